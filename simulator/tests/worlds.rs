//! The world keeps its word.

use std::time::Duration;

use goodput::algorithms::{AimdSettings, Algorithm};
use goodput_simulator::{Counts, Limits, Measure, Run, Scenario, run};

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn overload() -> Scenario {
    scenario(
        r#"
        length = "20s"
        deadline = "200ms"
        [service]
        work = { exponential = "10ms" }
        pool = { workers = 16 }
        [[clients]]
        open = { per_second = 2400 }
        [door.service]
        "#,
    )
}

fn play(scenario: &Scenario, limits: &Limits, seed: u64) -> Run {
    let measure = Measure { trace: true, ..Measure::default() };
    run(scenario, limits, seed, &measure).unwrap_or_else(|error| panic!("{error}"))
}

fn counts(scenario: &Scenario, limits: &Limits) -> Counts {
    play(scenario, limits, 1).summary.total().counts
}

fn aimd() -> Limits {
    Limits::Algorithm(Algorithm::Aimd(AimdSettings { min: 1, ..AimdSettings::default() }))
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let once = play(&overload(), &aimd(), 7);
    let again = play(&overload(), &aimd(), 7);
    assert_eq!(once.trace.as_ref().unwrap().moments, again.trace.unwrap().moments);
    let other = play(&overload(), &aimd(), 8);
    assert_ne!(once.trace.unwrap().moments, other.trace.unwrap().moments);
}

#[test]
fn all_limits_meet_the_same_requests() {
    let offered = |limits: &Limits| {
        let trace = play(&overload(), limits, 3).trace.unwrap();
        trace.moments.iter().map(|moment| moment.counts.offered).collect::<Vec<_>>()
    };
    let none = offered(&Limits::None);
    assert_eq!(none, offered(&Limits::fixed(5)));
    assert_eq!(none, offered(&aimd()));
}

#[test]
fn even_requests_to_one_worker_can_be_counted_by_hand() {
    // Every 10 ms a request of 15 ms, one worker, at most two in flight. Requests 0 and 1 go in; 0 leaves at 15 ms,
    // so that 2 goes in at 20 ms; 1 leaves at 30 ms, before 3 comes; then 2 at 45 ms, 4 having been refused at
    // 40 ms; 5 comes at 50 ms ... of three, two are admitted.
    let scenario = scenario(
        r#"
        length = "300ms"
        [service]
        work = { constant = "15ms" }
        pool = { workers = 1 }
        [[clients]]
        open = { process = "constant", per_second = 100 }
        [door.service]
        "#,
    );
    let run = play(&scenario, &Limits::fixed(2), 1);
    let total = run.summary.total();
    assert_eq!(total.counts.offered, 30);
    assert_eq!(total.counts.admitted, 21);
    assert_eq!(total.counts.refused.limit_reached, 9);
    assert_eq!(total.counts.good, 19);
    assert_eq!(run.summary.queued_at_end + run.summary.in_service_at_end, 2);
    assert_eq!(total.counts.done_ns, 19 * 15_000_000);
}

#[test]
fn a_timeout_frees_the_place_at_the_client_but_not_the_worker() {
    // One worker, 30 ms of work, a request every 10 ms for 100 ms, clients who wait 20 ms: no answer is in time, every
    // timeout frees the client's place of two, and the service works on.
    let scenario = scenario(
        r#"
        length = "1s"
        [service]
        work = { constant = "30ms" }
        pool = { workers = 1 }
        [[clients]]
        timeout = "20ms"
        leaves = "95ms"
        open = { process = "constant", per_second = 100 }
        [door.clients]
        "#,
    );
    let counts = counts(&scenario, &Limits::fixed(2));
    assert_eq!((counts.offered, counts.refused.total(), counts.timed_out), (10, 0, 10));
    assert_eq!((counts.good, counts.late), (0, 10));
    assert_eq!(counts.wasted_ns, 300_000_000);
}

#[test]
fn an_answer_in_the_nanosecond_of_the_timeout_is_in_time() {
    let text = r#"
        length = "1s"
        [service]
        work = { constant = "20ms" }
        pool = { workers = 1 }
        [[clients]]
        timeout = "20ms"
        requests = [{ at = "0ms" }]
        "#;
    let in_time = counts(&scenario(text), &Limits::None);
    assert_eq!((in_time.good, in_time.timed_out, in_time.late), (1, 0, 0));
    let late =
        counts(&scenario(&text.replace(r#"constant = "20ms""#, r#"constant = "20000001ns""#)), &Limits::None);
    assert_eq!((late.good, late.timed_out, late.late), (0, 1, 1));
}

#[test]
fn refused_requests_are_tried_again_after_growing_waits() {
    // The worker is busy until 100 ms. The second request is refused at 0, 10, 30 and 70 ms, and never again.
    let text = r#"
        length = "1s"
        [service]
        work = { constant = "100ms" }
        pool = { workers = 1 }
        [[clients]]
        retries = { at_most = 3, wait = "10ms", growth = 2.0 }
        requests = [{ at = "0ms" }, { at = "0ms" }]
        [door.service]
        "#;
    let given_up = counts(&scenario(text), &Limits::fixed(1));
    assert_eq!((given_up.offered, given_up.attempts, given_up.refused.total(), given_up.good), (2, 5, 4, 1));
    // One more retry comes at 150 ms and is served.
    let served = counts(&scenario(&text.replace("at_most = 3", "at_most = 4")), &Limits::fixed(1));
    assert_eq!((served.attempts, served.refused.total(), served.good), (6, 4, 2));
}

#[test]
fn requests_wait_at_the_gate_in_turn_and_are_refused_when_its_queue_is_full() {
    let scenario = scenario(
        r#"
        length = "1s"
        [service]
        work = { constant = "10ms" }
        pool = { workers = 5 }
        [[clients]]
        requests = [{ at = "0ms" }, { at = "1ms" }, { at = "2ms" }, { at = "3ms" }]
        [door.service]
        max_waiting = 2
        "#,
    );
    let run = play(&scenario, &Limits::fixed(1), 1);
    let total = run.summary.total();
    assert_eq!((total.counts.good, total.counts.refused.queue_full), (3, 1));
    // Answers at 10, 20 and 30 ms to requests of 0, 1 and 2 ms.
    assert_eq!(total.latency_quantile(1.0).as_millis(), 28);
    assert_eq!(run.trace.unwrap().moments[4].waiting, 2);
}

#[test]
fn limits_set_from_outside_hold_from_their_instant_on() {
    let steps = vec![(Duration::ZERO, 4), (Duration::from_secs(10), 16), (Duration::from_secs(15), 8)];
    let trace = play(&overload(), &Limits::Schedule(steps), 1).trace.unwrap();
    let limit_at = |millis: usize| trace.moments[millis / 20].limit.unwrap();
    assert_eq!((limit_at(5_000), limit_at(12_000), limit_at(19_000)), (4.0, 16.0, 8.0));
    assert!(trace.moments.iter().all(|moment| moment.in_flight <= 16));
}

#[test]
fn a_trace_holds_every_decision_and_its_reason() {
    let trace = play(&overload(), &aimd(), 1).trace.unwrap();
    let last = trace.decisions.last().unwrap();
    assert_eq!(last.decision.limit as f64, trace.moments.last().unwrap().limit.unwrap());
    for pair in trace.decisions.windows(2) {
        assert_eq!(pair[0].decision.limit, pair[1].previous_limit);
        assert!(pair[0].at <= pair[1].at);
    }
}

#[test]
fn parts_and_steps_add_up_to_the_whole() {
    let measure = Measure {
        cuts: vec![Duration::from_secs(5), Duration::from_secs(12)],
        trace: true,
        ..Measure::default()
    };
    let run = run(&overload(), &aimd(), 1, &measure).unwrap();
    assert_eq!(run.summary.parts.len(), 3);
    let mut steps = Counts::default();
    run.trace.unwrap().moments.iter().for_each(|moment| steps.add(&moment.counts));
    let whole = run.summary.total().counts;
    assert_eq!(steps, Counts { stuck: 0, ..whole });
    assert_eq!(whole.attempts, whole.admitted + whole.refused.total());
    let left = (run.summary.queued_at_end + run.summary.in_service_at_end) as u64;
    assert_eq!(whole.admitted, whole.good + whole.late + whole.failed + left);
}

#[test]
fn a_door_without_a_limiter_is_an_error_when_the_scenario_is_to_decide() {
    let error = run(&overload(), &Limits::Written, 1, &Measure::default()).unwrap_err();
    assert!(error.to_string().contains("`door.service` names no limiter"), "{error}");
}

#[test]
fn a_share_of_the_requests_fails_fast_during_an_episode() {
    let mut scenario = overload();
    scenario.service.errors = vec![goodput_simulator::ErrorEpisode {
        from: Duration::from_secs(5),
        until: Some(Duration::from_secs(15)),
        share: 0.3,
        after: Duration::from_millis(1),
    }];
    let measure =
        Measure { cuts: vec![Duration::from_secs(5), Duration::from_secs(15)], ..Measure::default() };
    let parts = run(&scenario, &Limits::fixed(20), 1, &measure).unwrap().summary.parts;
    let share = |part: usize| parts[part].counts.failed as f64 / parts[part].counts.admitted as f64;
    assert_eq!(share(2), 0.0);
    // Five standard deviations of a share of 0.3 among about 20,000 requests.
    assert!((share(1) - 0.3).abs() < 0.017, "{}", share(1));
}

#[test]
fn limiters_that_ask_are_told_how_busy_the_workers_are_as_their_originals_measure_it() {
    // Half of the time one worker is at work; until then the machine was idle.
    let scenario = scenario(
        r#"
        length = "10s"
        [service]
        work = { constant = "5ms" }
        pool = { workers = 1 }
        [[clients]]
        open = { process = "constant", per_second = 100 }
        [door.service]
        "#,
    );
    for (name, every_ms) in [("kratos", 500), ("go_zero", 250)] {
        let algorithm = Algorithm::from_name(name).unwrap();
        let trace = play(&scenario, &Limits::Algorithm(algorithm), 1).trace.unwrap();
        assert!(trace.decisions.len() > 900);
        for made in &trace.decisions {
            let told = (made.at.as_millis() / every_ms) as i32;
            let expected = 0.5 * (1.0 - 0.95_f64.powi(told));
            let utilization = made.decision.evidence.number("utilization").unwrap();
            assert!((utilization - expected).abs() < 1e-9, "{name} at {:?}: {utilization}", made.at);
        }
    }
}

#[test]
fn a_crowd_refuses_after_the_time_of_the_work_and_loses_at_once() {
    // Three come together to a service that takes two.
    let text = r#"
        length = "1s"
        [service]
        work = { constant = "10ms" }
        crowd = { at_most = 2, slows_by = 0.5, beyond = "refused" }
        [[clients]]
        timeout = "50ms"
        requests = [{ at = "0ms" }, { at = "0ms" }, { at = "0ms" }]
        "#;
    let refused = play(&scenario(text), &Limits::None, 1);
    let total = refused.summary.total();
    assert_eq!((total.counts.good, total.counts.failed, total.counts.timed_out), (2, 1, 0));
    // The first alone, the second half as long again.
    assert_eq!(total.counts.latency_ns, 25_000_000);
    let lost = counts(&scenario(&text.replace("refused", "lost")), &Limits::None);
    assert_eq!((lost.good, lost.failed, lost.timed_out), (2, 0, 1));
}

#[test]
fn a_request_that_keeps_its_place_holds_it_through_its_waits() {
    // A service that takes one request a second, and a gate for one at a time.
    let text = r#"
        length = "1s"
        [service]
        work = { constant = "10ms" }
        crowd = { at_most_per_second = 1 }
        [[clients]]
        retries = { wait = "2s", at_most = 1, keeps_place = true }
        requests = [{ at = "0ms" }, { at = "1ms" }, { at = "500ms" }]
        [door.clients]
        max_waiting = 10
        "#;
    let keeps = play(&scenario(text), &Limits::fixed(1), 1);
    let moments = keeps.trace.unwrap().moments;
    // The second gets its place as the first leaves, at 10 ms, is refused at 20 ms, and waits inside to the end.
    assert_eq!((moments[5].in_flight, moments[5].waiting), (1, 1));
    assert_eq!((moments[30].in_flight, moments[30].waiting), (1, 0));
    assert_eq!((moments[700].in_flight, moments[700].waiting), (1, 1));
    let asks_again = play(&scenario(&text.replace("true", "false")), &Limits::fixed(1), 1);
    assert_eq!(asks_again.trace.unwrap().moments[700].waiting, 0);
}
