use super::*;
use crate::Latencies;

const MS: u64 = 1_000_000;

#[test]
fn a_pool_is_bracketed_from_any_size_and_its_queue_held_at_the_headroom() {
    for workers in [1.0, 4.0, 16.0, 100.0, 1_000.0] {
        for service_ns in [100_000.0, 10.0 * MS as f64, 10_000.0 * MS as f64] {
            let mut pool = Pool { workers, service_ns, delay_ns: 0.0, now: 0.0 };
            let mut crest = Crest::new(CrestSettings::default()).unwrap();
            pool.serve(&mut crest, 400);
            let (least, most) = (workers, workers + 1.5 * Role::Unknown.headroom(workers) + 1.0);
            let limit = crest.returns_to_or_limit();
            assert!(limit >= least && limit <= most, "{workers} workers of {service_ns} ns: {limit}");
        }
    }
}

#[test]
fn a_service_that_slows_by_itself_is_not_starved() {
    let mut pool = Pool { workers: 32.0, service_ns: 10.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
    let mut crest = Crest::new(CrestSettings::default()).unwrap();
    pool.serve(&mut crest, 300);
    pool.delay_ns = 50.0 * MS as f64;
    pool.serve(&mut crest, 300);
    // With the delay, 32 workers are busy at 32 × 60 / 10 in flight.
    assert!(crest.returns_to_or_limit() > 0.9 * 192.0, "{crest:?}");
}

#[test]
fn a_pool_that_shrinks_gets_a_smaller_limit() {
    let mut pool = Pool { workers: 64.0, service_ns: 20.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
    let mut crest = Crest::new(CrestSettings::default()).unwrap();
    pool.serve(&mut crest, 300);
    pool.workers = 16.0;
    pool.serve(&mut crest, 300);
    let limit = crest.returns_to_or_limit();
    assert!((16.0..=16.0 + 1.5 * Role::Unknown.headroom(16.0)).contains(&limit), "{limit}");
}

#[test]
fn when_most_answers_are_lost_at_least_half_of_the_limit_goes() {
    let mut pool = Pool { workers: 32.0, service_ns: 10.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
    let mut crest = Crest::new(CrestSettings::default()).unwrap();
    pool.serve(&mut crest, 300);
    while crest.mode != Mode::Run {
        pool.serve(&mut crest, 1);
    }
    let before = crest.limit();
    let lost = |window: Window| Window { overloads: window.successes, successes: Latencies::NONE, ..window };
    let window = window_at(pool.now, 100.0 * MS as f64, before as f64, 64);
    let decision = crest.update(&lost(window));
    assert_eq!(decision.reason, Reason::Overload);
    assert!(decision.limit <= before / 2 && decision.limit >= 1, "{before} -> {}", decision.limit);
}

#[test]
fn the_first_step_leads_near_what_is_wanted_and_hardly_moves_one_of_many() {
    let from = |initial, wanted: f64, without| {
        let mut crest = Crest::new(CrestSettings { initial, without, ..CrestSettings::default() }).unwrap();
        crest.first_look(&Look { in_flight: 1.0, wanted, ..dip(10.0) });
        crest.limit()
    };
    // To the power of three quarters, and to thirty-two at most.
    assert_eq!([1.5, 2.0, 16.0, 40.0, 1_000.0].map(|wanted| from(1, wanted, None)), [1, 1, 8, 15, 32]);
    assert_eq!(from(1, 1_000.0, Some(Part::FirstStep)), 1);
    // Who says where to begin is believed.
    assert_eq!(from(50, 1_000.0, None), 50);
}

#[test]
fn where_demand_waits_at_the_door_the_first_step_leads_to_four() {
    let limit = |in_flight| {
        let mut crest = Crest::new(CrestSettings::default()).unwrap();
        crest.first_look(&Look { in_flight, wanted: in_flight, ..dip(10.0) });
        crest.limit()
    };
    // Nobody was refused. Without a queue, one in eight of the time would pass until the next comes.
    assert_eq!([0.5, 0.87, 0.88, 1.0].map(limit), [1, 1, 4, 4]);
}

#[test]
fn a_climb_takes_longer_steps_where_much_more_is_wanted_than_is_in_flight() {
    let step = |wanted_for_each: f64| {
        let mut crest = known(10.0, 300.0);
        crest.mode = Mode::Climb;
        crest.bracket = Bracket::from(4.0);
        crest.baseline.spread = 4.0;
        crest.set_limit(8.0);
        // Not so surely flat that the step would be long anyway.
        crest.climb(&Look { samples: 300.0, wanted: 8.0 * wanted_for_each, ..dip(10.0) });
        crest.limit() / 8
    };
    assert_eq!([1.0, 15.0, 16.0, 63.0, 64.0, 1e9].map(step), [2, 2, 4, 4, 8, 8]);
}

#[test]
fn looks_are_long_while_load_is_light_for_long_until_the_limit_is_felt() {
    let mut crest = Crest::new(CrestSettings::default()).unwrap();
    let mut now = 0.0;
    let mut long = 0;
    for _ in 0..40 {
        let rule = crest.next_window();
        long += usize::from(rule.min_samples == 128);
        let light =
            Window { limit_hits: 0, ..window_at(now, 10.0 * MS as f64, 1.0, rule.min_samples.max(8)) };
        now = light.closed.nanos() as f64 + 20.0 * MS as f64;
        crest.update(&light);
    }
    // After the first look, which is not one at light load, and thirty-two that are.
    assert_eq!(long, 40 - 33);
    assert_eq!(crest.next_window().samples_once_felt, 8);
    crest.update(&window_at(now, 10.0 * MS as f64, 4.0, 8));
    assert_eq!(crest.next_window().min_samples, 8);
}

#[test]
fn limiters_that_share_a_service_share_most_of_the_headroom() {
    assert_eq!(Role::Unknown.headroom(0.0), 0.0);
    assert!(Role::Unknown.headroom(0.25) < Role::Unknown.headroom(2.5) / 4.0);
    // 1 + (1 / 2.5) · (1 + ½ √2.5 + 0.15 · 2.5).
    assert!((Role::Unknown.headroom(1.0) - 1.866).abs() < 0.001);
    // 2 + ½ √4 + 0.15 · 4.
    assert_eq!(Role::Unknown.headroom(4.0), 3.6);
}

#[test]
fn who_is_alone_keeps_more_beyond_the_knee_and_who_shares_keeps_less_where_few_are_worked_on() {
    for knee in [0.1, 1.0, 2.5, 10.0, 10_000.0] {
        let [alone, unknown, shared] =
            [Role::Alone, Role::Unknown, Role::Shared].map(|role| role.headroom(knee));
        let keeps_less = unknown > shared || unknown == shared && knee > 3.5;
        assert!(alone > unknown && keeps_less && shared > 0.0, "{knee}: {alone} {unknown} {shared}");
    }
    let limit = |role| {
        let mut pool = Pool { workers: 1.0, service_ns: 10.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
        let mut crest = Crest::new(CrestSettings { role, ..CrestSettings::default() }).unwrap();
        pool.serve(&mut crest, 400);
        crest.returns_to_or_limit()
    };
    let [alone, shared] = [Role::Alone, Role::Shared].map(limit);
    assert!(alone >= 3.0 && shared < 3.0, "{alone} {shared}");
}

#[test]
fn two_dips_that_agree_on_a_slower_service_replace_the_baseline_and_one_does_not() {
    let mut crest = known(10.0, 64.0);
    crest.learn_from_dip(&dip(20.0), false, 64.0);
    crest.last_dip = dip(20.0).seen();
    assert_eq!(crest.baseline.latency_ns, 10.0 * MS as f64);
    crest.learn_from_dip(&dip(20.0), false, 64.0);
    assert_eq!(crest.baseline.latency_ns, 20.0 * MS as f64);
}

#[test]
fn one_of_many_only_weighs_dips_that_agree() {
    let mut crest = known(10.0, 64.0);
    crest.knee = 1.0;
    crest.last_dip = dip(20.0).seen();
    crest.learn_from_dip(&dip(20.0), false, 64.0);
    let weighed = (64.0 * 10.0 + 16.0 * 20.0) / 80.0;
    assert!((crest.baseline.latency_ns / MS as f64 - weighed).abs() < 1e-6, "{crest:?}");
}

#[test]
fn a_dip_that_reads_surely_lower_is_the_baseline() {
    let mut crest = known(10.0, 64.0);
    crest.learn_from_dip(&dip(6.0), true, 64.0);
    assert_eq!(crest.baseline.latency_ns, 6.0 * MS as f64);
}

#[test]
fn a_service_that_became_faster_is_dipped_into_soon() {
    let mut crest = known(100.0, 64.0);
    crest.mode = Mode::Run;
    crest.round_ns = 100.0 * MS as f64;
    crest.next_dip = Instant::FAR_FUTURE;
    crest.update(&window_at(0.0, 10.0 * MS as f64, 10.0, 64));
    // Eight rounds of 10 ms, rounded up to a power of two: 2²⁷ ns.
    assert_eq!(crest.next_dip, Instant::from_nanos(1 << 27));
}

#[test]
fn answers_that_came_faster_for_once_bring_a_deep_dip() {
    // Twelve in flight took 12 ms, and in one look less.
    let crest = |latency_ms: f64, without| {
        let mut crest = known(10.0, 512.0);
        (crest.mode, crest.round_ns, crest.without) = (Mode::Run, 12.0 * MS as f64, without);
        crest.next_dip = Instant::FAR_FUTURE;
        crest.last_run = Seen { latency_ns: 12.0 * MS as f64, in_flight: 12.0, samples: 512.0 };
        crest.update(&window_at(0.0, latency_ms * MS as f64, 12.0, 512));
        crest
    };
    // Four standard errors are 4 √(1.5 · 2 / 512), or 31 %: by chance once in ten thousand looks.
    assert_eq!(crest(9.0, None).next_dip, Instant::FAR_FUTURE);
    assert_eq!(crest(8.7, Some(Part::Faster)).next_dip, Instant::FAR_FUTURE);
    let mut crest = crest(8.7, None);
    assert!(crest.next_dip < Instant::from_nanos(1 << 31));
    let mut dips_to = || {
        crest.set_limit(20.0);
        crest.begin_dip().unwrap();
        crest.limit() as f64 / crest.knee
    };
    assert_eq!(dips_to(), 6.0 / 12.0);
    assert_eq!(dips_to(), 9.0 / 12.0);
}

#[test]
fn a_deep_dip_that_comes_at_light_load_is_not_made_up_for() {
    let mut crest = known(10.0, 64.0);
    (crest.mode, crest.round_ns) = (Mode::Run, 10.0 * MS as f64);
    crest.plan_deep_dip();
    // Nobody has felt the limit for long.
    assert!(crest.begin_dip().is_none());
    (crest.unfelt_looks, crest.wanted) = (0, 12.0);
    crest.begin_dip().unwrap();
    assert_eq!(crest.limit() as f64, 0.8 * crest.knee);
}

#[test]
fn a_small_service_that_becomes_much_slower_is_checked_though_hardly_anything_seems_to_be_worked_on() {
    let mode = |knee| {
        let mut crest = known(10.0, 64.0);
        (crest.mode, crest.knee) = (Mode::Run, knee);
        crest.set_limit(9.0);
        crest.next_dip = Instant::FAR_FUTURE;
        // By the baseline, 9 · 10 / 40 requests are worked on.
        for second in 0..2 {
            crest.update(&window_at(f64::from(second) * 1e9, 40.0 * MS as f64, 9.0, 64));
        }
        crest.mode
    };
    assert_eq!(mode(5.0), Mode::Check);
    // One of many does not check, but dips soon.
    assert_eq!(mode(2.0), Mode::Dip);
}

#[test]
fn cuts_that_do_not_lower_latency_wait_for_a_dip() {
    // How much of the limit is left, and what the baseline is, when each answer takes 6 ms longer and no dip is due.
    let after = |without| {
        let mut pool = Pool { workers: 32.0, service_ns: 10.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
        let mut crest = Crest::new(CrestSettings { without, ..CrestSettings::default() }).unwrap();
        pool.serve(&mut crest, 300);
        while crest.mode != Mode::Run {
            pool.serve(&mut crest, 1);
        }
        let before = crest.limit;
        crest.next_dip = Instant::FAR_FUTURE;
        pool.delay_ns = 6.0 * MS as f64;
        let mut least = before;
        for _ in 0..60 {
            pool.serve(&mut crest, 1);
            if crest.mode == Mode::Run {
                least = least.min(crest.limit);
            }
        }
        (least / before, crest.baseline.latency_ns / MS as f64)
    };
    let (left, baseline_ms) = after(None);
    assert!(left > 0.6 && (baseline_ms - 16.0).abs() < 0.5, "{left} {baseline_ms}");
    // 32 workers are busy at 51.2 in flight; what looks like the headroom of a queue is at half of that.
    let (left, baseline_ms) = after(Some(Part::Cuts));
    assert!(left < 0.6 && (baseline_ms - 10.0).abs() < 0.5, "{left} {baseline_ms}");
}

#[test]
fn where_few_requests_are_worked_on_the_limit_grows_right_after_a_dip_only() {
    let limit = |dip_was_due, without, role| {
        let mut crest = known(10.0, 64.0);
        (crest.mode, crest.limit, crest.role) = (Mode::Run, 2.0, role);
        (crest.dip_was_due, crest.without) = (dip_was_due, without);
        crest.next_dip = Instant::FAR_FUTURE;
        crest.update(&window_at(0.0, 10.0 * MS as f64, 1.5, 64)).limit
    };
    assert_eq!(limit(false, None, Role::Unknown), 2);
    assert_eq!(limit(true, None, Role::Unknown), 3);
    assert_eq!(limit(false, None, Role::Alone), 3);
    assert_eq!(limit(false, Some(Part::Together), Role::Unknown), 3);
}

#[test]
fn a_queue_ends_the_climb_though_nobody_feels_the_limit() {
    let mut crest = known(10.0, 512.0);
    (crest.mode, crest.limit, crest.bracket) = (Mode::Climb, 64.0, Bracket::from(16.0));
    // Twice as many in flight as were accepted take twice as long: 16 are worked on.
    let window = Window { limit_hits: 0, ..window_at(0.0, 20.0 * MS as f64, 32.0, 512) };
    let decision = crest.update(&window);
    assert_eq!(crest.mode, Mode::Run);
    assert_eq!(decision.limit, (16.0 + Role::Unknown.headroom(16.0)) as usize);
}

#[test]
fn a_dip_that_perhaps_reads_lower_is_followed_by_another_soon() {
    let next = |latency_ms| {
        let mut crest = known(10.0, 64.0);
        crest.mode = Mode::Dip;
        crest.dip_rounds = 64.0;
        crest.end_dip(&dip(latency_ms));
        crest.next_dip
    };
    // By chance a dip of 16 answers reads lower by half of it often: the error is √(3 (1/16 + 1/64)), or 48 %.
    // Eight rounds of 7 ms, and 64 of 9.5 ms, both rounded up to a power of two.
    assert_eq!(next(7.0), Instant::from_nanos(1 << 26));
    assert_eq!(next(9.5), Instant::from_nanos(1 << 30));
}

/// One that knows the baseline of 10 requests, which it has seen so many times.
fn known(latency_ms: f64, samples: f64) -> Crest {
    let mut crest = Crest::new(CrestSettings { initial: 12, ..CrestSettings::default() }).unwrap();
    crest.knee = 10.0;
    crest.baseline.set(latency_ms * MS as f64, samples);
    crest
}

/// What a dip of 16 answers saw.
fn dip(latency_ms: f64) -> Look {
    Look {
        samples: 16.0,
        duration_ns: 2.0 * latency_ms * MS as f64,
        latency_ns: latency_ms * MS as f64,
        in_flight: 8.0,
        wanted: 8.0,
        peak: 8.0,
        spread: 1.0,
        saturated: true,
        overloaded: false,
        lost: false,
    }
}

#[test]
fn dips_come_twice_as_often_while_the_service_is_slower_than_usual() {
    let rounds = |usual_ms: f64, without| {
        let mut crest = known(10.0, 64.0);
        (crest.mode, crest.dip_rounds, crest.without) = (Mode::Dip, 64.0, without);
        crest.usual_ns = usual_ms * MS as f64;
        crest.end_dip(&dip(10.0));
        crest.dip_rounds
    };
    assert_eq!(rounds(10.0, None), 64.0);
    assert_eq!(rounds(5.0, None), 32.0);
    assert_eq!(rounds(5.0, Some(Part::Slower)), 64.0);
    // What lasts becomes usual: 2 to the power of (15/16)⁸ is more than a half again, and of (15/16)⁹ less.
    let mut crest = known(10.0, 64.0);
    crest.usual_ns = 5.0 * MS as f64;
    let slower = (0..100).take_while(|_| {
        crest.learn_usual();
        crest.is_slower_than_usual()
    });
    assert_eq!(slower.count(), 8);
}

#[test]
fn who_felt_the_limit_lately_dips_unless_load_is_light() {
    let dips = |unfelt_looks, wanted, without| {
        let mut crest = known(10.0, 64.0);
        (crest.mode, crest.round_ns) = (Mode::Run, 10.0 * MS as f64);
        (crest.unfelt_looks, crest.without) = (unfelt_looks, without);
        crest.wanted = wanted;
        crest.begin_dip().is_some()
    };
    assert!(dips(0, 12.0, None));
    assert!(dips(5, 12.0, None));
    assert!(!dips(6, 12.0, None));
    assert!(!dips(5, 12.0, Some(Part::Lately)));
    // Half of the limit, which is twelve, and less.
    assert!(dips(0, 6.0, None));
    assert!(!dips(0, 5.9, None));
}

#[test]
fn load_is_light_only_once_little_was_wanted_for_some_time_and_no_longer_when_much_is() {
    let mut crest = known(10.0, 64.0);
    let mut light_after = |wanted| {
        crest.note_what_is_wanted(&Look { wanted, ..dip(10.0) });
        crest.wanted < 6.0
    };
    assert!(!light_after(12.0));
    // 2 + 10 · (7/8)⁶ is more than six, and 2 + 10 · (7/8)⁷ less.
    assert_eq!((0..20).take_while(|_| !light_after(2.0)).count(), 6);
    assert!(!light_after(12.0));
}

#[test]
fn a_climb_whose_limit_is_not_filled_waits_for_that_twice_and_then_collects() {
    let mut crest = known(10.0, 16.0);
    (crest.mode, crest.round_ns, crest.bracket) = (Mode::Climb, 10.0 * MS as f64, Bracket::from(4.0));
    // Nine of twelve places are taken, and latency has risen about as far as it may: the question is open.
    let mut opened = 0.0;
    let goes_on = (0..6).map(|_| {
        let window = window_at(opened, 13.0 * MS as f64, 9.0, crest.next_window().min_samples.max(16));
        crest.update(&window);
        let extends = crest.next_window().extend;
        opened = if extends { opened } else { window.closed.nanos() as f64 };
        extends
    });
    assert_eq!(goes_on.collect::<Vec<_>>(), [false, false, true, true, true, true]);
}

#[test]
fn an_idle_service_is_left_in_peace() {
    // One request at a time, and now and then two: the limit is felt, but hardly anything is in flight.
    let mut crest = Crest::new(CrestSettings::default()).unwrap();
    let mut now = 0.0;
    for _ in 0..200 {
        let wanted = crest.next_window().min_samples.max(8);
        let light = Window { limit_hits: 1, refused: 1, ..window_at(now, 10.0 * MS as f64, 0.1, wanted) };
        now = light.closed.nanos() as f64;
        let decision = crest.update(&light);
        assert_ne!(decision.reason, Reason::Probing);
    }
    assert!(crest.limit() >= 3, "{crest:?}");
}

#[test]
fn dips_of_limiters_with_like_latency_fall_together() {
    let at = |now: u64, round_ns: f64| {
        let mut crest = Crest::new(CrestSettings::default()).unwrap();
        crest.now = Instant::from_nanos(now);
        crest.round_ns = round_ns;
        crest.begin_dips_anew();
        crest.next_dip
    };
    // 8 rounds of 10 and of 14 ms both round up to 2²⁷ ns.
    assert_eq!(at(5 * MS, 10.0 * MS as f64), Instant::from_nanos(1 << 27));
    assert_eq!(at(90 * MS, 14.0 * MS as f64), Instant::from_nanos(1 << 27));
}

#[test]
fn a_known_limit_is_resumed_without_a_climb() {
    let mut pool = Pool { workers: 100.0, service_ns: 10.0 * MS as f64, delay_ns: 0.0, now: 0.0 };
    let mut old = Crest::new(CrestSettings::default()).unwrap();
    pool.serve(&mut old, 300);
    let mut new = Crest::new(CrestSettings::default()).unwrap();
    new.resume(&old.state()).unwrap();
    assert_eq!(new.limit(), old.limit());
    assert!(matches!(new.mode, Mode::Run | Mode::Dip));
}

impl Crest {
    fn returns_to_or_limit(&self) -> f64 {
        if self.mode == Mode::Dip { self.returns_to } else { self.limit }
    }
}

/// A window of so many answers that all took the same time, with so many in flight, each of which felt the limit.
fn window_at(opened: f64, latency_ns: f64, in_flight: f64, count: u64) -> Window {
    let lasts = latency_ns * count as f64 / in_flight;
    Window {
        opened: Instant::from_nanos(opened as u64),
        closed: Instant::from_nanos((opened + lasts) as u64),
        successes: Latencies::same(latency_ns as u64, count),
        limit_hits: count,
        max_in_flight: in_flight as u64,
        in_flight_area_ns: (lasts * in_flight) as u128,
        longest_silence_ns: (latency_ns / in_flight) as u64,
        ..Window::EMPTY
    }
}

/// A pool of workers under endless demand, by Little's law: latency is what it takes, or what the queue makes it.
struct Pool {
    workers: f64,
    service_ns: f64,
    delay_ns: f64,
    now: f64,
}

impl Pool {
    fn serve(&mut self, crest: &mut Crest, windows: usize) {
        for _ in 0..windows {
            let rule = crest.next_window();
            let in_flight = crest.limit() as f64;
            let free_ns = self.service_ns + self.delay_ns;
            let latency_ns = free_ns.max(in_flight * self.service_ns / self.workers);
            let opened = if rule.extend { self.now } else { self.now.max(rule.opens_at.nanos() as f64) };
            let lasts = (rule.samples_once_felt as f64 * latency_ns / in_flight)
                .max(2.0 * latency_ns)
                .max(rule.not_before.nanos() as f64 - opened);
            let closed = (opened + lasts).min(opened.max(rule.deadline.nanos() as f64));
            let count = ((closed - opened) * in_flight / latency_ns).floor() as u64;
            crest.update(&Window {
                opened: Instant::from_nanos(opened as u64),
                closed: Instant::from_nanos(closed as u64),
                successes: Latencies::same(latency_ns as u64, count),
                limit_hits: count,
                max_in_flight: in_flight as u64,
                in_flight_area_ns: ((closed - opened) * in_flight) as u128,
                longest_silence_ns: (latency_ns / in_flight) as u64,
                ..Window::EMPTY
            });
            self.now = closed;
        }
    }
}
