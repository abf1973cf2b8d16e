//! What would be, before it is.

use std::collections::VecDeque;

use goodput::{
    Criticality, Gate, ManualClock, Outcome, OwnedToken, RefusalReason, Request,
    algorithms::{Aimd, AimdSettings},
    priority::CriticalityShares,
    waiting::WaitingSettings,
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

use crate::support::{SHEDDABLE, answer, ask, at, ms, plain, queued, waiting};

/// A minute of 150 requests/s of 20 to 180 ms each at 10 places of which the sheddable may use 8.
fn play(gate: &Gate<ManualClock>, clock: &ManualClock) -> u64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(93);
    let mut running = VecDeque::<(u64, OwnedToken<ManualClock>)>::new();
    let mut refused = 0;
    for number in 0..9_000 {
        let now = number * 20 / 3;
        for (end, token) in std::mem::take(&mut running) {
            if end <= now {
                clock.set(at(end));
                token.release(Outcome::Success);
            } else {
                running.push_back((end, token));
            }
        }
        clock.set(at(now));
        let request = if random.next_u64().is_multiple_of(2) { SHEDDABLE } else { Request::DEFAULT };
        let took = 20 + random.next_u64() % 160;
        match gate.try_acquire_owned(&request) {
            Ok(token) => running.push_back((now + took, token)),
            Err(_) => refused += 1,
        }
        running.make_contiguous().sort_by_key(|&(end, _)| end);
    }
    refused
}

#[test]
fn it_refuses_nobody_and_counts_exactly_those_whom_it_would_refuse() {
    let (builder, clock) = plain(10);
    let enforcing = builder.shares(CriticalityShares::default()).build();
    let refused = play(&enforcing, &clock);
    let (builder, clock) = plain(10);
    let observing = builder.shares(CriticalityShares::default()).observe_only(true).build();
    assert_eq!(play(&observing, &clock), 0);
    let (enforced, observed) = (enforcing.snapshot(), observing.snapshot());
    assert!(refused > 1_000);
    assert_eq!(enforced.refused.total(), refused);
    assert_eq!(observed.would_have_refused, enforced.refused);
    assert_eq!(observed.refused.total(), 0);
    // And the limiter sees the same.
    assert_eq!(observed.totals.refused, enforced.totals.refused);
    assert_eq!(observed.totals.limit_hits, enforced.totals.limit_hits);
    assert_eq!(observed.totals.successes, enforced.totals.successes);
}

#[test]
fn the_limit_moves_as_it_would_move_if_it_were_enforced() {
    let limits = [false, true].map(|observe_only| {
        let clock = ManualClock::new();
        let settings = AimdSettings { initial: 10, min: 5, ..AimdSettings::default() };
        let limiter = Box::new(Aimd::new(settings).unwrap());
        let gate = Gate::builder(limiter).clock(clock.clone()).observe_only(observe_only).build();
        play(&gate, &clock);
        gate.limit()
    });
    assert_eq!(limits[0], limits[1]);
}

#[test]
fn switched_on_it_lets_everybody_in_who_waits() {
    let (gate, _clock) = waiting(1, WaitingSettings::default());
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiter = queued(&gate, Request::DEFAULT);
    gate.set_observe_only(true);
    assert!(waiter.is_woken());
    let outside = answer(&mut waiter).unwrap();
    let another = ask(&gate, Request::DEFAULT).unwrap();
    let snapshot = gate.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.outside, snapshot.would_have_waited), (1, 2, 2));
    assert!(snapshot.observe_only);
    drop((token, outside, another));
    assert_eq!((gate.in_flight(), gate.snapshot().outside), (0, 0));
}

#[test]
fn switched_off_it_refuses_again_at_once() {
    let (builder, clock) = plain(1);
    let gate = builder.observe_only(true).build();
    let tokens: Vec<_> = (0..5).map(|_| gate.try_acquire().unwrap()).collect();
    gate.set_observe_only(false);
    assert_eq!(gate.try_acquire().unwrap_err().reason, RefusalReason::LimitReached);
    clock.advance(ms(10));
    drop(tokens);
    assert!(gate.try_acquire().is_ok());
    let snapshot = gate.snapshot();
    assert_eq!(snapshot.would_have_refused.of(RefusalReason::LimitReached, Criticality::Critical), 4);
    assert_eq!(snapshot.refused.total(), 1);
    assert_eq!(snapshot.totals.refused, 5);
}
