//! What the limiter is shown while others come and go. The cells of the banks report any access that is not ordered.

use crate::support::{Ledger, explore, fixed, gate, scripted};
use goodput_under_loom::Outcome;
use loom::thread;

#[test]
fn every_sample_is_shown_once() {
    explore(|| {
        let ledger = Ledger::default();
        let gate = gate(scripted(&[2], &ledger), 0, 2);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire().unwrap().release(Outcome::Success))
        };
        gate.try_acquire().unwrap().release(Outcome::Overload);
        other.join().unwrap();
        // Whoever was still at work when the last window closed is collected with the next.
        gate.try_acquire().unwrap().release(Outcome::Success);
        let shown = ledger.sum();
        assert_eq!((shown.successes.count, shown.overloads.count, shown.cancelled), (2, 1, 0));
    });
}

#[test]
fn every_sample_of_threads_that_share_a_stripe_is_shown_once() {
    explore(|| {
        let ledger = Ledger::default();
        let gate = gate(scripted(&[2], &ledger), 0, 0);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire().unwrap().release(Outcome::Success))
        };
        gate.try_acquire().unwrap().release(Outcome::Overload);
        other.join().unwrap();
        gate.try_acquire().unwrap().release(Outcome::Success);
        let shown = ledger.sum();
        assert_eq!((shown.successes.count, shown.overloads.count, shown.cancelled), (2, 1, 0));
    });
}

#[test]
fn the_limit_of_the_door_is_that_of_the_limiter() {
    explore(|| {
        let gate = gate(scripted(&[2, 5, 3, 7], &Ledger::default()), 0, 2);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire().unwrap().release(Outcome::Success))
        };
        gate.try_acquire().unwrap().release(Outcome::Success);
        other.join().unwrap();
        assert_eq!(gate.limit() as f64, gate.limiter_state().number("limit").unwrap());
    });
}

#[test]
fn a_limiter_swapped_during_a_release_loses_no_token() {
    explore(|| {
        let gate = gate(scripted(&[1, 4], &Ledger::default()), 0, 2);
        let token = gate.try_acquire_owned(&goodput_under_loom::Request::DEFAULT).unwrap();
        let other = thread::spawn(move || token.release(Outcome::Success));
        gate.replace_limiter(fixed(2));
        other.join().unwrap();
        assert_eq!((gate.limit(), gate.in_flight()), (2, 0));
        let tokens = [gate.try_acquire(), gate.try_acquire()];
        assert!(tokens.iter().all(Result::is_ok));
        assert!(gate.try_acquire().is_err());
    });
}

#[test]
fn a_window_that_closes_by_time_takes_what_others_are_writing_or_leaves_it_whole() {
    explore(|| {
        let ledger = Ledger::default();
        let gate = gate(scripted(&[2], &ledger), 0, 2);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.try_acquire().unwrap().release(Outcome::Success))
        };
        gate.tick();
        gate.tick();
        other.join().unwrap();
        gate.try_acquire().unwrap().release(Outcome::Success);
        assert_eq!(ledger.sum().successes.count, 2);
    });
}
