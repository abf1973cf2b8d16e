//! Who keeps a place for his next request, and who takes it back.

use crate::support::{Inside, Ledger, explore, fixed, gate, scripted};
use goodput_under_loom::{Gate, ManualClock, Outcome, Request, algorithms::Limiter};
use loom::{future::block_on, thread};

/// So much that threads keep places while one of them, or one and a half, is in flight.
const LIMIT: usize = 8;

/// Everything but the place of one.
const ALL_BUT_ONE: u32 = LIMIT as u32 - 1;

#[test]
fn a_kept_place_counts_until_it_is_wanted() {
    explore(|| {
        let ledger = Ledger::default();
        let gate = roomy_gate(scripted(&[LIMIT], &ledger));
        visit(&gate);
        let here = gate.clone();
        thread::spawn(move || visit(&here)).join().unwrap();
        assert_eq!(gate.in_flight(), 0);
        // The other thread came in beside the place that this one kept: the models below are about something.
        assert_eq!(ledger.sum().max_in_flight, 2);
        drop(gate.try_acquire_many(LIMIT as u32).unwrap());
    });
}

#[test]
fn nobody_is_let_in_beside_a_place_that_is_kept_and_taken_again() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let inside = Inside::default();
        visit(&gate);
        let other = {
            let (gate, inside) = (gate.clone(), inside.clone());
            thread::spawn(move || enter_and_leave(&gate, &inside, LIMIT as u32))
        };
        enter_and_leave(&gate, &inside, 1);
        enter_and_leave(&gate, &inside, 1);
        other.join().unwrap();
        assert_eq!(gate.in_flight(), 0);
        drop(gate.try_acquire_many(LIMIT as u32).unwrap());
    });
}

#[test]
fn a_place_that_nobody_uses_is_found_by_one_of_two_who_want_it() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        visit(&gate);
        let others = [(); 2].map(|()| {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire_many(LIMIT as u32).map(std::mem::forget).is_ok())
        });
        let admitted = others.map(|other| usize::from(other.join().unwrap()));
        assert_eq!(admitted.iter().sum::<usize>(), 1);
        assert_eq!(gate.in_flight(), LIMIT);
    });
}

#[test]
fn two_who_fit_are_both_let_in_while_a_third_keeps_a_place() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        visit(&gate);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire_many(ALL_BUT_ONE).map(std::mem::forget).is_ok())
        };
        let here = gate.try_acquire().map(std::mem::forget).is_ok();
        assert!(here && other.join().unwrap());
        assert!(gate.try_acquire().is_err());
    });
}

#[test]
fn a_limit_lowered_while_a_place_is_kept_holds_for_all_who_come_after() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let other = {
            let gate = gate.clone();
            thread::spawn(move || {
                visit(&gate);
                visit(&gate);
            })
        };
        gate.replace_limiter(fixed(1));
        other.join().unwrap();
        assert_eq!((gate.limit(), gate.in_flight()), (1, 0));
        let only = gate.try_acquire().unwrap();
        assert!(gate.try_acquire().is_err());
        drop(only);
    });
}

#[test]
fn a_place_freed_by_one_who_was_never_here_before_is_found() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let token = gate.try_acquire_owned(&Request::DEFAULT).unwrap();
        let other = thread::spawn(move || token.release(Outcome::Success));
        gate.replace_limiter(fixed(1));
        other.join().unwrap();
        assert_eq!((gate.limit(), gate.in_flight()), (1, 0));
        drop(gate.try_acquire().unwrap());
    });
}

#[test]
fn one_who_waits_for_all_places_gets_the_one_that_is_kept() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let inside = Inside::default();
        let waiter = {
            let (gate, inside) = (gate.clone(), inside.clone());
            thread::spawn(move || {
                let token = block_on(gate.acquire(Request::DEFAULT.weighing(LIMIT as u32))).unwrap();
                assert_eq!(inside.enter(LIMIT), LIMIT);
                inside.leave(LIMIT);
                drop(token);
            })
        };
        enter_and_leave(&gate, &inside, 1);
        waiter.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn one_who_comes_to_wait_while_the_door_becomes_roomy_gets_what_is_kept_then() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let token = gate.try_acquire().unwrap();
        let waiter = {
            let gate = gate.clone();
            let request = Request::DEFAULT.weighing(LIMIT as u32);
            thread::spawn(move || drop(block_on(gate.acquire(request)).unwrap()))
        };
        gate.replace_limiter(fixed(LIMIT));
        drop(token);
        waiter.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn a_pause_ends_with_every_place_free() {
    explore(|| {
        let gate = roomy_gate(fixed(LIMIT));
        let other = {
            let gate = gate.clone();
            thread::spawn(move || drop(gate.try_acquire()))
        };
        gate.pause();
        gate.resume();
        other.join().unwrap();
        drop(gate.try_acquire_many(LIMIT as u32).unwrap());
    });
}

#[test]
fn every_sample_of_those_who_keep_their_places_is_shown_once() {
    explore(|| {
        let ledger = Ledger::default();
        let gate = roomy_gate(scripted(&[LIMIT], &ledger));
        visit(&gate);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || visit(&gate))
        };
        gate.try_acquire().unwrap().release(Outcome::Overload);
        other.join().unwrap();
        // Whoever was still at work when the last window closed is collected with the next.
        visit(&gate);
        let shown = ledger.sum();
        assert_eq!((shown.successes.count, shown.overloads.count, shown.cancelled), (3, 1, 0));
    });
}

/// A gate at which two threads have been, so that threads may keep places from now on. `limiter` is shown nothing of those
/// visits.
fn roomy_gate(limiter: Box<dyn Limiter>) -> Gate<ManualClock> {
    let gate = gate(fixed(LIMIT), 2, 4);
    let there = gate.clone();
    thread::spawn(move || visit(&there)).join().unwrap();
    visit(&gate);
    gate.replace_limiter(limiter);
    gate
}

fn visit(gate: &Gate<ManualClock>) {
    gate.try_acquire().unwrap().release(Outcome::Success);
}

fn enter_and_leave(gate: &Gate<ManualClock>, inside: &Inside, weight: u32) {
    let Ok(token) = gate.try_acquire_many(weight) else { return };
    assert!(inside.enter(weight as usize) <= LIMIT);
    inside.leave(weight as usize);
    token.release(Outcome::Success);
}
