//! Published assertions on who may still join a queue, and when the others should come back: at the queue of a simulated
//! service, and by the functions that ship.

use std::time::Duration;

use goodput::{Criticality, refusal::retry_after};
use goodput_simulator::{Limits, Listed, Measure, Scenario, run};

/// A worker that is busy, before it a queue of which critical requests may use all, normal ones four fifths, and
/// sheddable ones half.
fn service(limit: usize) -> Scenario {
    Scenario::parse(&format!(
        r#"
        length = "10s"
        [service]
        work = {{ constant = "1h" }}
        pool = {{ workers = 1 }}
        [[clients]]
        classes = [
            {{ name = "critical", criticality = "critical-plus" }},
            {{ name = "normal", criticality = "critical" }},
            {{ name = "sheddable", criticality = "sheddable" }},
        ]
        requests = [{{ at = "0s", class = "critical" }}]
        [door.service]
        limiter = {{ algorithm = "fixed", limit = 1 }}
        [door.service.waiting]
        max_waiting = {limit}
        max_wait = "1h"
        by_criticality = false
        refuse_hopeless = false
        shares = {{ critical = 0.8, sheddable_plus = 0.5, sheddable = 0.5 }}
        "#
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a request of that class is let in while so many wait.
fn admits(class: &str, waiting: usize, limit: usize) -> bool {
    let mut scenario = service(limit);
    let requests = &mut scenario.clients[0].requests;
    let asked = |millis: u64, class: &str| Listed {
        at: Duration::from_millis(millis),
        work: None,
        class: Some(class.into()),
    };
    requests.extend((0..waiting).map(|_| asked(1, "critical")));
    requests.push(asked(2, class));
    let measure = Measure { cuts: vec![Duration::from_millis(2)], ..Measure::default() };
    let summary = run(&scenario, &Limits::Written, 1, &measure).unwrap().summary;
    let [before, probe] = [&summary.parts[0].counts, &summary.parts[1].counts];
    assert_eq!((before.refused.total(), probe.offered), (0, 1));
    probe.refused.queue_full == 0
}

#[test]
fn each_priority_may_fill_its_share_of_the_queue() {
    for (class, waiting, limit, admitted) in [
        ("critical", 0, 100, true),
        ("critical", 99, 100, true),
        ("critical", 100, 100, false),
        ("normal", 79, 100, true),
        ("normal", 159, 200, true),
        ("normal", 80, 100, false),
        ("normal", 160, 200, false),
        ("sheddable", 49, 100, true),
        ("sheddable", 0, 2, true),
        ("sheddable", 50, 100, false),
        ("sheddable", 1, 2, false),
        // Shares that are not whole: 2.4 and 1.5 of 3.
        ("normal", 2, 3, true),
        ("sheddable", 1, 3, true),
        ("sheddable", 2, 3, false),
    ] {
        assert_eq!(admits(class, waiting, limit), admitted, "{class} {waiting}/{limit}");
    }
}

#[test]
fn the_refused_are_told_when_the_queue_will_be_worked_off() {
    for (waiting, drain, seconds) in
        [(250, 100.0, 3), (201, 100.0, 3), (200, 100.0, 2), (0, 100.0, 1), (30, 100.0, 1)]
    {
        assert_eq!(retry_after(waiting, drain), Ok(Duration::from_secs(seconds)));
    }
    assert!(retry_after(10, 0.0).is_err());
}

#[test]
fn a_decision_is_both() {
    for (class, waiting, drain, refused) in
        [("critical", 99, 50.0, None), ("sheddable", 60, 50.0, Some(2)), ("normal", 90, 20.0, Some(5))]
    {
        let decision = (!admits(class, waiting, 100)).then(|| retry_after(waiting as u64, drain).unwrap());
        assert_eq!(decision, refused.map(Duration::from_secs), "{class}");
    }
}

#[test]
fn the_classes_are_as_critical_as_the_scenario_says() {
    let summary = run(&service(10), &Limits::Written, 1, &Measure::default()).unwrap().summary;
    let criticality: Vec<_> = summary.classes.iter().map(|class| class.criticality).collect();
    assert_eq!(criticality, [Criticality::CriticalPlus, Criticality::Critical, Criticality::Sheddable]);
}
