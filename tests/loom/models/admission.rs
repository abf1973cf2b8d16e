//! Who is let in at once.

use std::sync::Arc;

use crate::support::{Inside, explore, fixed, gate};
use goodput_under_loom::Outcome;
use loom::{cell::UnsafeCell, thread};

#[test]
fn in_flight_never_exceeds_the_limit() {
    explore(|| {
        let gate = gate(fixed(2), 0, 3);
        let inside = Inside::default();
        let visit = {
            let (gate, inside) = (gate.clone(), inside.clone());
            move || {
                if let Ok(token) = gate.try_acquire() {
                    assert!(inside.enter(1) <= 2);
                    assert!(gate.in_flight() <= 2);
                    inside.leave(1);
                    token.release(Outcome::Success);
                }
            }
        };
        let others = [thread::spawn(visit.clone()), thread::spawn(visit.clone())];
        visit();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(gate.in_flight(), 0);
    });
}

#[test]
fn weights_count() {
    explore(|| {
        let gate = gate(fixed(3), 0, 3);
        let inside = Inside::default();
        let visit = |weight: u32| {
            let (gate, inside) = (gate.clone(), inside.clone());
            move || {
                if let Ok(token) = gate.try_acquire_many(weight) {
                    assert!(inside.enter(weight as usize) <= 3);
                    inside.leave(weight as usize);
                    drop(token);
                }
            }
        };
        let others = [thread::spawn(visit(2)), thread::spawn(visit(2))];
        visit(1)();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(gate.in_flight(), 0);
    });
}

#[test]
fn one_of_two_is_always_admitted_to_the_only_place() {
    explore(|| {
        let gate = gate(fixed(1), 0, 2);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire().map(std::mem::forget).is_ok())
        };
        let here = gate.try_acquire().map(std::mem::forget).is_ok();
        let there = other.join().unwrap();
        assert!(here != there, "admitted here: {here}, there: {there}");
        assert_eq!(gate.in_flight(), 1);
    });
}

#[test]
fn what_came_before_a_release_is_seen_after_the_admission_that_it_made_possible() {
    struct Guarded(UnsafeCell<u64>);
    // SAFETY: loom fails the model on any access that is not ordered with the others.
    unsafe impl Sync for Guarded {}
    // SAFETY: a number belongs to no thread.
    unsafe impl Send for Guarded {}

    explore(|| {
        let gate = gate(fixed(1), 0, 2);
        let guarded = Arc::new(Guarded(UnsafeCell::new(0)));
        let visit = {
            let (gate, guarded) = (gate.clone(), Arc::clone(&guarded));
            move || {
                let Ok(_token) = gate.try_acquire() else { return 0 };
                // SAFETY: with a limit of 1 nobody else is here; loom looks whether that is so.
                guarded.0.with_mut(|place| unsafe { *place += 1 });
                1
            }
        };
        let other = thread::spawn(visit.clone());
        let visits = visit() + other.join().unwrap();
        // SAFETY: all others have ended.
        assert_eq!(guarded.0.with(|place| unsafe { *place }), visits);
    });
}

#[test]
fn threads_that_share_a_stripe_do_not_disturb_each_other() {
    explore(|| {
        let gate = gate(fixed(2), 0, 0);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || drop(gate.try_acquire().unwrap()))
        };
        drop(gate.try_acquire().unwrap());
        other.join().unwrap();
        assert_eq!(gate.in_flight(), 0);
    });
}
