//! Faults that limiters elsewhere had.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use goodput::{
    Gate, Key, ManualClock, Outcome, Request,
    algorithms::{Aimd, AimdSettings, CannotResume, Decision, Limiter, Reason, State, Window, WindowRule},
    priority::{PartitionsSettings, Quota, RateQuota, TenantSettings},
    share::Share,
    waiting::{QueueBound, WaitingSettings},
};

use crate::support::{Token, answer, ask, at, fixed, ms, plain, queued};

/// What is to happen, in order of time.
type Agenda<T> = std::collections::BTreeMap<(u64, u64), T>;

#[test]
fn cancelled_calls_keep_their_place_while_their_work_goes_on_and_move_no_limit() {
    // 100/s of 200 ms at 20 places; a fifth of the clients leaves after 50 ms, and the work goes on.
    let limits = [false, true].map(|some_leave| {
        let clock = ManualClock::new();
        let limiter =
            Aimd::new(AimdSettings { initial: 20, min: 5, max: 40, ..AimdSettings::default() }).unwrap();
        let gate = Gate::builder(Box::new(limiter)).clock(clock.clone()).build();
        let mut working = VecDeque::<(u64, Token)>::new();
        for number in 0..6_000_u64 {
            let now = number * 10;
            while working.front().is_some_and(|&(end, _)| end <= now) {
                let (end, token) = working.pop_front().unwrap();
                clock.set(at(end));
                // Whoever left gets no answer: the token is dropped when the work ends.
                if some_leave && end % 50 == 0 { drop(token) } else { token.release(Outcome::Success) }
            }
            clock.set(at(now));
            working.extend(gate.try_acquire_owned(&Request::DEFAULT).ok().map(|token| (now + 200, token)));
            assert!(working.len() == gate.in_flight() && working.len() <= gate.limit());
        }
        for (_, token) in working {
            token.release(Outcome::Success);
        }
        assert_eq!(gate.in_flight(), 0);
        assert_eq!(gate.snapshot().totals.cancelled > 0, some_leave);
        gate.limit()
    });
    assert!(limits[0].abs_diff(limits[1]) * 10 <= limits[0], "{limits:?}");
}

/// Moves its limit with every window, between 1 and 50.
#[derive(Debug)]
struct Restless(usize);

impl Limiter for Restless {
    fn limit(&self) -> usize {
        self.0
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(10)
    }

    fn update(&mut self, _: &Window) -> Decision {
        self.0 = self.0 * 7 % 50 + 1;
        Decision::new(self.0, Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

#[test]
fn a_listener_may_ask_the_gate_anything_while_eight_threads_use_it() {
    let gate_seen_by_listener = Arc::new(std::sync::OnceLock::<Gate>::new());
    let heard = Arc::new(AtomicU64::new(0));
    let gate = {
        let (gate, heard) = (Arc::clone(&gate_seen_by_listener), Arc::clone(&heard));
        Gate::builder(Box::new(Restless(20)))
            .max_waiting(4)
            .on_decision(move |decision| {
                assert!((1..=50).contains(&decision.decision.limit));
                if let Some(gate) = gate.get() {
                    let snapshot = gate.snapshot();
                    assert!(snapshot.waiting <= 4);
                    drop(gate.try_acquire());
                }
                heard.fetch_add(1, Ordering::Relaxed);
            })
            .build()
    };
    gate_seen_by_listener.set(gate.clone()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if let Ok(token) = gate.try_acquire() {
                            token.release(Outcome::Success);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for limit in (1..=50).cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                gate.replace_limiter(Box::new(Restless(limit)));
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(gate.in_flight(), 0);
    assert!(heard.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_rate_of_thirty_a_second_lets_no_more_than_thirty_one_through_in_any_second() {
    let (builder, clock) = plain(1_000);
    let rate = Some(RateQuota { requests: 30, per: ms(1_000), burst: Some(1) });
    let quota = Quota { in_flight: None, rate };
    let gate = builder.tenants(TenantSettings { quota, ..TenantSettings::default() }).unwrap().build();
    let request = Request::DEFAULT.from_tenant(Key::of("eager"));
    // 100 callers without pause, work of 0 to 1 s: successes lag far behind.
    let mut free_from = [0_u64; 100];
    let mut passed = Vec::new();
    let mut working = Vec::new();
    for now in 0..10_000_u64 {
        clock.set(at(now));
        working.retain(|&(end, _): &(u64, Token)| end > now);
        for (caller, free) in free_from.iter_mut().enumerate().filter(|(_, free)| **free <= now) {
            if let Ok(token) = gate.try_acquire_owned(&request) {
                *free = now + caller as u64 * 10;
                working.push((*free, token));
                passed.push(now);
            }
        }
    }
    let most =
        (0..9_000).map(|from| passed.iter().filter(|&&t| (from..from + 1_000).contains(&t)).count()).max();
    assert!(most.unwrap() <= 31, "{most:?}");
    assert!(passed.len() >= 290, "{}", passed.len());
}

#[test]
fn a_limit_that_goes_up_and_down_loses_no_place_and_wakes_nobody_in_vain() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(200),
        max_wait: ms(3_600_000),
        ..WaitingSettings::default()
    };
    let (builder, clock) = plain(50);
    let gate = builder.waiting(settings).unwrap().build();
    // 200 closed-loop callers of 20 ms each; the limit alternates each 100 ms.
    let mut waiting = VecDeque::new();
    let mut working = Agenda::<Token>::new();
    let mut number = 0;
    let mut served = 0_u64;
    for _ in 0..200 {
        match ask_or_wait(&gate) {
            Ok(token) => {
                number += 1;
                working.insert((20, number), token);
            }
            Err(waiter) => waiting.push_back(waiter),
        }
    }
    for now in 1..=10_000_u64 {
        clock.set(at(now));
        if now % 100 == 0 {
            gate.replace_limiter(fixed(if now % 200 == 0 { 50 } else { 10 }));
        }
        while working.first_key_value().is_some_and(|(&(end, _), _)| end <= now) {
            working.pop_first().unwrap().1.release(Outcome::Success);
            served += 1;
            waiting.push_back(queued(&gate, Request::DEFAULT));
        }
        let woken = waiting.iter().filter(|waiter| waiter.is_woken()).count();
        let mut still = VecDeque::new();
        for mut waiter in std::mem::take(&mut waiting) {
            if waiter.is_woken() {
                // Nobody is woken but to be let in.
                number += 1;
                working.insert((now + 20, number), answer(&mut waiter).unwrap());
            } else {
                still.push_back(waiter);
            }
        }
        waiting = still;
        assert_eq!(working.len(), gate.in_flight());
        assert!(woken == 0 || gate.in_flight() <= gate.limit());
    }
    assert_eq!(waiting.len() + working.len(), 200);
    // Half the time 50 places of 20 ms, half the time 10, less what drains: between 10 and 50 a 20 ms all along.
    assert!(served > 10_000 / 20 * 25, "{served}");
    drop((waiting, working));
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

type Asking = crate::support::Asking;

fn ask_or_wait(gate: &Gate<ManualClock>) -> Result<Token, Asking> {
    let mut asking = tokio_test::task::spawn(gate.acquire(Request::DEFAULT));
    match asking.poll() {
        std::task::Poll::Ready(answer) => Ok(answer.unwrap()),
        std::task::Poll::Pending => Err(asking),
    }
}

#[test]
fn a_standing_queue_does_not_keep_a_limit_from_falling() {
    let clock = ManualClock::new();
    let settings = AimdSettings { initial: 20, min: 1, backoff_ratio: 0.5, ..AimdSettings::default() };
    let gate =
        Gate::builder(Box::new(Aimd::new(settings).unwrap())).clock(clock.clone()).max_waiting(40).build();
    let mut working: Vec<_> = (0..20).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
    let mut waiting: VecDeque<_> = (0..20).map(|_| queued(&gate, Request::DEFAULT)).collect();
    // Ten rounds of 100 ms, in which everything ends in overload and everybody comes again.
    for round in 1..=10 {
        clock.set(at(round * 100));
        for token in std::mem::take(&mut working) {
            token.release(Outcome::Overload);
            waiting.push_back(queued(&gate, Request::DEFAULT));
        }
        for mut waiter in std::mem::take(&mut waiting) {
            if !waiter.is_woken() {
                waiting.push_back(waiter);
            } else if let Ok(token) = answer(&mut waiter) {
                working.push(token);
            } else {
                waiting.push_back(queued(&gate, Request::DEFAULT));
            }
        }
    }
    assert!(gate.in_flight() <= 2, "{}", gate.in_flight());
    assert!(gate.waiting() > 30);
}

#[test]
fn a_partition_with_half_of_one_place_is_served_on_an_idle_system() {
    let (builder, clock) = plain(1);
    let half = Share::new(0.5).unwrap();
    let gate =
        builder.partitions(PartitionsSettings::default().with("a", half).with("b", half)).unwrap().build();
    let second = Request::DEFAULT.in_partition(Key::of("b"));
    for number in 0..600 {
        clock.set(at(number * 1_000));
        let token = gate.try_acquire_for(&second).unwrap();
        clock.advance(ms(10));
        token.release(Outcome::Success);
    }
}

#[test]
fn five_users_under_a_limit_of_five_are_never_refused_though_some_requests_panic() {
    let limiter = Aimd::new(AimdSettings { initial: 5, min: 5, max: 10, ..AimdSettings::default() }).unwrap();
    let gate = Gate::new(limiter);
    let panics = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for request in 0..2_000 {
                    let token = gate.try_acquire().expect("five places for five users");
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        let _token = token;
                        if request % 10 == 0 {
                            // A panic that tells nobody.
                            std::panic::resume_unwind(Box::new("one in ten"));
                        }
                    }));
                    panics.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(panics.into_inner(), 5 * 200);
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(gate.snapshot().refused.total(), 0);
}

#[test]
fn a_health_probe_never_waits_however_full_the_gate_is() {
    let (builder, clock) = plain(20);
    let gate = builder.waiting(WaitingSettings::default()).unwrap().build();
    let _full: Vec<_> = (0..20).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
    let _queue: Vec<_> = (0..10).map(|_| queued(&gate, Request::DEFAULT)).collect();
    for probe in 0..20 {
        clock.set(at(probe * 3_000));
        drop(ask(&gate, Request::DEFAULT.bypassing()).expect("a probe is always answered"));
    }
    assert_eq!(gate.snapshot().bypassed, 20);
}
