//! A published laboratory of retry storms, to the last digit, played from a scenario file through the waiting room, the
//! retries, the budget and the throttle that ship.

use std::{path::Path, time::Duration};

use goodput::{
    algorithms::{Algorithm, FixedSettings},
    client::ThrottleSettings,
    share::{Allowance, Share},
    waiting::{Order, QueueBound, WaitingSettings},
};
use goodput_simulator::{
    Cell, Comparison, Counts, Limits, Measure, RetryOn, RowPlan, Run, Scenario, Work, run,
};

fn lab() -> Comparison {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/retry_storm.toml");
    Comparison::read(file).unwrap_or_else(|error| panic!("{error}"))
}

fn scenario(with: &[&str]) -> Scenario {
    let row = RowPlan { label: "row".into(), with: with.iter().map(|&name| name.into()).collect() };
    lab().scenario(&row).unwrap_or_else(|error| panic!("{error}"))
}

fn play(scenario: &Scenario) -> Run {
    let cuts = [1, 2, 4, 8].map(Duration::from_secs).to_vec();
    let measure = Measure { cuts, ..Measure::default() };
    run(scenario, &Limits::Written, 1, &measure).unwrap_or_else(|error| panic!("{error}"))
}

/// Attempts at the server, refused, dropped, on time, too late, wasted ms, largest queue, waiting and in service at the
/// end.
type Counters = [u64; 9];

fn counters(run: &Run) -> Counters {
    let (summary, counts) = (&run.summary, run.summary.total().counts);
    let counters = [
        counts.attempts - counts.refused.throttled,
        counts.refused.total() - counts.refused.throttled - counts.dropped,
        counts.dropped,
        counts.good,
        counts.late,
        counts.wasted_ns / 1_000_000,
        summary.largest_queue.max(summary.largest_waiting) as u64,
        (summary.waiting_at_end + summary.queued_at_end) as u64,
        summary.in_service_at_end as u64,
    ];
    let [attempts, refused, dropped, on_time, too_late, _, _, waiting, in_service] = counters;
    assert_eq!(attempts, refused + dropped + on_time + too_late + waiting + in_service);
    counters
}

#[test]
fn the_published_tables_are_printed_to_the_last_digit() {
    let tables = lab().play(1).unwrap();
    let printed: Vec<_> = tables.iter().map(ToString::to_string).collect();
    // Copied from the published tables, below the titles and headers.
    let published = [
        "\
no shedding                                      100.0%     100.0%     100.0%     100.0%      1.00
bounded queue                                    100.0%     100.0%     100.0%     100.0%      1.00
bounded + drop expired                           100.0%     100.0%     100.0%     100.0%      1.00
priority + drop expired                          100.0%     100.0%     100.0%     100.0%      1.00
",
        "\
no shedding                                      100.0%      62.0%       1.0%       0.0%      2.22
bounded queue                                    100.0%     100.0%     100.0%     100.0%      2.02
bounded + drop expired                           100.0%     100.0%     100.0%     100.0%      1.74
priority + drop expired                          100.0%      99.0%     100.0%     100.0%      2.22
",
        "\
no shedding / no retries                         100.0%      54.0%     100.0%     100.0%      1.00
no shedding / 3 retries                          100.0%      62.0%       1.0%       0.0%      2.22
no shedding / 3 retries, 10 % budget             100.0%      66.0%      94.0%     100.0%      1.15
bounded + drop expired / no retries              100.0%      57.0%     100.0%     100.0%      1.00
bounded + drop expired / 3 retries               100.0%     100.0%     100.0%     100.0%      1.74
bounded + drop expired / 3 retries, 10 % budget     100.0%      61.0%     100.0%     100.0%      1.14
",
        "\
no shedding                    2716        0        0      164     1308    39780 ms    1510
bounded queue                  1139      299        0      800       40     1740 ms      40
bounded + drop expired          985      157        6      800       22     1200 ms      40
priority + drop expired        1064      256        0      799        9      810 ms      21
",
        "\
bounded + drop expired          35.0%      40.0%
priority + drop expired         60.0%      30.0%
",
    ];
    assert_eq!(printed.len(), published.len());
    for (printed, published) in printed.iter().zip(published) {
        let below_header = printed.splitn(3, '\n').nth(2).unwrap();
        assert_eq!(below_header, published);
    }
}

#[test]
fn the_counters_behind_the_tables_are_those_of_two_independent_programs() {
    let rows: [(&[&str], Counters); 10] = [
        (&["trigger", "retries"], [2716, 0, 0, 164, 1308, 39780, 1510, 1240, 4]),
        (&["trigger", "bounded", "retries"], [1139, 299, 0, 800, 40, 1740, 40, 0, 0]),
        (&["trigger", "bounded", "dropping", "retries"], [985, 157, 6, 800, 22, 1200, 40, 0, 0]),
        (&["trigger", "bounded", "dropping", "priority", "retries"], [1064, 256, 0, 799, 9, 810, 21, 0, 0]),
        (&["trigger"], [800, 0, 0, 754, 46, 1920, 55, 0, 0]),
        (&["trigger", "retries", "budget"], [818, 0, 0, 754, 64, 2460, 66, 0, 0]),
        (&["trigger", "bounded", "dropping"], [800, 15, 6, 757, 22, 1200, 40, 0, 0]),
        (&["trigger", "bounded", "dropping", "retries", "budget"], [814, 25, 6, 761, 22, 1200, 40, 0, 0]),
        (&["long_trigger", "bounded", "dropping"], [800, 21, 28, 739, 12, 1800, 40, 0, 0]),
        (&["long_trigger", "bounded", "dropping", "priority"], [800, 48, 10, 730, 12, 1800, 22, 0, 0]),
    ];
    for (with, expected) in rows {
        assert_eq!(counters(&play(&scenario(with))), expected, "{with:?}");
    }
}

#[test]
fn the_critical_are_one_in_five_and_counted_apart() {
    let run = play(&scenario(&["long_trigger", "bounded", "dropping", "priority"]));
    let classes: Vec<&Counts> = run.summary.parts[1].classes.iter().collect();
    assert_eq!((classes[0].offered, classes[0].good), (20, 12));
    assert_eq!((classes[1].offered, classes[1].good), (80, 24));
}

#[test]
fn a_share_is_printed_with_halves_rounded_up() {
    assert_eq!(Cell::Share(1, 16).to_string(), "6.3%");
    assert_eq!(Cell::Share(1, 2_000).to_string(), "0.1%");
    assert_eq!(Cell::Quotient(1, 8).to_string(), "0.13");
    assert_eq!(format!("{:>8}|", Cell::Share(0, 0)), "    0.0%|");
}

/// What extensions of the laboratory come to, in a program of its own that walks through the ticks and shares no code
/// with this one.
mod extensions {
    use super::*;

    const BOUNDED: &[&str] = &["trigger", "bounded", "retries"];
    const DROPPING: &[&str] = &["trigger", "bounded", "dropping", "retries"];

    fn unbounded(mut scenario: Scenario) -> Scenario {
        waiting(&mut scenario).max_waiting = QueueBound::Count(1_000_000);
        scenario
    }

    fn newest_first(mut scenario: Scenario) -> Scenario {
        let waiting = waiting(&mut scenario);
        waiting.order = Order::Adaptive;
        waiting.standing_above = Allowance::AtMost(20);
        waiting.standing_for = Duration::ZERO;
        scenario
    }

    fn waiting(scenario: &mut Scenario) -> &mut WaitingSettings {
        scenario.door.service.as_mut().unwrap().waiting.as_mut().unwrap()
    }

    #[test]
    fn a_refusal_that_is_final() {
        let mut scenario = scenario(DROPPING);
        scenario.clients[0].retries.as_mut().unwrap().on = vec![RetryOn::Timeout];
        let run = play(&scenario);
        assert_eq!(counters(&run), [828, 33, 6, 767, 22, 1200, 40, 0, 0]);
        let good: Vec<_> = run.summary.parts.iter().map(|part| part.counts.good).collect();
        assert_eq!(good, [100, 81, 186, 400, 0]);
    }

    #[test]
    fn the_newest_first_above_half_of_the_queue() {
        assert_eq!(
            counters(&play(&newest_first(unbounded(scenario(BOUNDED))))),
            [908, 0, 0, 800, 108, 3240, 114, 0, 0]
        );
        assert_eq!(
            counters(&play(&newest_first(scenario(BOUNDED)))),
            [1139, 301, 0, 800, 38, 1140, 40, 0, 0]
        );
        assert_eq!(counters(&play(&newest_first(scenario(DROPPING)))), [1110, 272, 38, 800, 0, 0, 40, 0, 0]);
    }

    #[test]
    fn a_queue_without_bound_that_drops_what_has_expired() {
        assert_eq!(counters(&play(&unbounded(scenario(DROPPING)))), [882, 0, 19, 800, 63, 2430, 72, 0, 0]);
        assert_eq!(
            counters(&play(&newest_first(unbounded(scenario(DROPPING))))),
            [907, 0, 107, 800, 0, 0, 112, 0, 0]
        );
    }

    #[test]
    fn callers_with_a_throttle() {
        for (k, with, expected, held_back) in [
            (1.1, &["trigger", "retries"][..], [757, 0, 0, 323, 434, 13560, 114, 0, 0], 1724),
            (1.1, DROPPING, [876, 59, 6, 789, 22, 1200, 40, 0, 0], 266),
            (2.0, &["trigger", "retries"], [1120, 0, 0, 166, 954, 29160, 319, 0, 0], 1596),
            (2.0, DROPPING, [985, 157, 6, 800, 22, 1200, 40, 0, 0], 0),
        ] {
            let mut throttled = scenario(with);
            throttled.clients[0].throttle = Some(ThrottleSettings {
                k,
                max_rejection: Share::new(0.999_999).unwrap(),
                probe_every: None,
                ..ThrottleSettings::default()
            });
            let run = play(&throttled);
            assert_eq!(counters(&run), expected, "{k} {with:?}");
            assert_eq!(run.summary.total().counts.refused.throttled, held_back, "{k} {with:?}");
        }
    }

    #[test]
    fn other_times_workers_limits_and_retries() {
        let mut scenario = scenario(&["trigger", "bounded", "dropping", "priority", "retries"]);
        scenario.service.work = Work::Constant(Duration::from_millis(20));
        scenario.service.pool.as_mut().unwrap().workers = 3;
        scenario.service.changes[0].at = Duration::from_millis(1_500);
        scenario.service.changes[0].stretch = Some(3.5);
        scenario.service.changes[1].at = Duration::from_millis(2_500);
        scenario.deadline = Some(Duration::from_millis(300));
        let clients = &mut scenario.clients[0];
        clients.timeout = Some(Duration::from_millis(300));
        clients.open.as_mut().unwrap().per_second = 125.0;
        let retries = clients.retries.as_mut().unwrap();
        (retries.at_most, retries.wait, retries.growth) = (Some(2), Duration::from_millis(50), 1.5);
        waiting(&mut scenario).max_waiting = QueueBound::Count(30);
        waiting(&mut scenario).shares.sheddable = Allowance::AtMost(12);
        scenario.door.service.as_mut().unwrap().limiter = Some(Algorithm::Fixed(FixedSettings { limit: 3 }));
        assert_eq!(counters(&play(&scenario)), [1219, 281, 3, 909, 26, 1820, 18, 0, 0]);
    }
}
