//! A published limiter of what is in flight, with a reserve for the critical and a lower limit for the rest: at the door
//! of a simulated service.

use std::time::Duration;

use goodput::{
    algorithms::{Algorithm, FixedSettings},
    priority::CriticalityShares,
    share::Allowance,
};
use goodput_simulator::{Counts, Limits, Listed, Measure, Run, Scenario, run};

const CLASSES: [&str; 3] = ["low", "normal", "critical"];

/// A service that works on everything at once; capacity, limit of low requests and reserve of the critical ones.
fn service(capacity: usize, low: usize, reserve: usize) -> Scenario {
    let mut scenario = Scenario::parse(
        r#"
        length = "1s"
        [service]
        work = { constant = "10s" }
        pool = { workers = 1000 }
        [[clients]]
        classes = [
            { name = "low", criticality = "sheddable" },
            { name = "normal", criticality = "critical" },
            { name = "critical", criticality = "critical-plus" },
        ]
        requests = [{ at = "0s", class = "low" }]
        [door.service]
        "#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let door = scenario.door.service.as_mut().unwrap();
    door.limiter = Some(Algorithm::Fixed(FixedSettings { limit: capacity }));
    door.shares = Some(CriticalityShares::with_reserve(capacity, low, reserve).unwrap());
    scenario
}

/// When a request comes, in ms, its class, and when it is to leave if it is admitted.
type Asked = (u64, &'static str, u64);

fn play(mut scenario: Scenario, requests: &[Asked]) -> Run {
    let asked = requests.iter().map(|&(at, class, leaves)| Listed {
        at: Duration::from_millis(at),
        work: Some(Duration::from_millis(leaves - at)),
        class: Some(class.into()),
    });
    scenario.clients[0].requests = asked.collect();
    let millis = Duration::from_millis(1);
    let measure = Measure {
        cuts: (1..50).map(Duration::from_millis).collect(),
        step: Some(millis),
        trace: true,
        ..Measure::default()
    };
    run(&scenario, &Limits::Written, 1, &measure).unwrap_or_else(|error| panic!("{error}"))
}

/// For each millisecond with a request, how many were in flight at its end; `None` if it was shed.
fn log(run: &Run) -> Vec<Option<usize>> {
    let moments = &run.trace.as_ref().unwrap().moments;
    let asked = run.summary.parts.iter().zip(moments).filter(|(part, _)| part.counts.offered == 1);
    asked.map(|(part, moment)| (part.counts.admitted == 1).then_some(moment.in_flight)).collect()
}

/// How many of each class were shed, and admitted in all.
fn totals(run: &Run) -> (Vec<u64>, u64) {
    let total = run.summary.total();
    (total.classes.iter().map(|counts| counts.refused.total()).collect(), total.counts.admitted)
}

const NEVER: u64 = 10_000;

#[test]
fn the_published_example_in_three_phases_holds() {
    let run = play(
        service(5, 3, 1),
        &[
            // Two that finish before the next comes.
            (0, "low", 1),
            (1, "normal", 2),
            // Four that are stuck, and what the others then meet.
            (2, "normal", 20),
            (3, "normal", 20),
            (4, "normal", 20),
            (5, "normal", 20),
            (6, "low", 20),
            (7, "normal", 20),
            (8, "critical", 20),
            // All five have finished.
            (20, "low", NEVER),
        ],
    );
    let expected = [Some(1), Some(1), Some(1), Some(2), Some(3), Some(4), None, None, Some(5), Some(1)];
    assert_eq!(log(&run), expected);
    assert_eq!(totals(&run), (vec![1, 1, 0], 8));
}

#[test]
fn each_priority_fills_to_its_bound_and_no_further() {
    for (capacity, low, reserve, expected) in [
        (5, 3, 1, [3, 4, 5]),
        (5, 0, 0, [0, 5, 5]),
        (5, 0, 5, [0, 0, 5]),
        (5, 5, 5, [5, 0, 5]),
        (5, 3, 0, [3, 5, 5]),
        (1, 1, 0, [1, 1, 1]),
        (1, 0, 1, [0, 0, 1]),
        (3, 3, 1, [3, 2, 3]),
    ] {
        for (class, admitted) in expected.into_iter().enumerate() {
            let requests: Vec<_> = (0..8).map(|at| (at, CLASSES[class], NEVER)).collect();
            let run = play(service(capacity, low, reserve), &requests);
            let counts: Counts = run.summary.total().counts;
            assert_eq!(counts.admitted, admitted, "C {capacity}, L {low}, R {reserve}, {}", CLASSES[class]);
            assert_eq!(counts.admitted + counts.refused.total(), 8);
        }
    }
}

#[test]
fn a_mixed_sequence_is_admitted_as_the_original_does() {
    let mut requests = Vec::new();
    // N, N, L, L, N, N, C, C, L; then the first three leave; then L, L, N, N, C.
    let classes = ["normal", "normal", "low", "low", "normal", "normal", "critical", "critical", "low"];
    requests.extend(
        classes
            .iter()
            .enumerate()
            .map(|(at, &class)| (at as u64, class, if at < 3 { 10 + at as u64 } else { NEVER })),
    );
    let classes = ["low", "low", "normal", "normal", "critical"];
    requests.extend(classes.iter().enumerate().map(|(at, &class)| (20 + at as u64, class, NEVER)));
    let run = play(service(5, 3, 1), &requests);
    let expected = [1, 2, 3, 0, 4, 0, 5, 0, 0, 3, 0, 4, 0, 5].map(|count| (count > 0).then_some(count));
    assert_eq!(log(&run), expected);
    assert_eq!(totals(&run), (vec![3, 2, 1], 8));
}

#[test]
fn a_reserve_or_a_low_limit_above_the_capacity_is_an_error() {
    assert_eq!(CriticalityShares::with_reserve(5, 3, 6).unwrap_err().field, "reserve");
    assert_eq!(CriticalityShares::with_reserve(5, 7, 1).unwrap_err().field, "low");
    let mut scenario = service(5, 3, 1);
    let door = scenario.door.service.as_mut().unwrap();
    door.shares = Some(CriticalityShares { sheddable: Allowance::AtMost(7), ..CriticalityShares::EQUAL });
    let error = scenario.check().unwrap_err();
    assert_eq!(error.field, "door.service.shares.sheddable");
}
