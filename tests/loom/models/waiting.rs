//! Who waits, and whom a free place goes to. A wake-up that is lost leaves the model without a thread that can go on,
//! which loom reports.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use crate::support::{Inside, Ledger, explore, fixed, gate, scripted};
use goodput_under_loom::{Gate, ManualClock, Outcome, Request};
use loom::{future::block_on, thread};

#[test]
fn a_release_wakes_the_one_who_waits() {
    explore(|| {
        let gate = gate(fixed(1), 1, 2);
        let token = gate.try_acquire().unwrap();
        let waiter = spawn_waiter(&gate);
        token.release(Outcome::Success);
        waiter.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn the_next_one_is_woken_by_the_one_before() {
    explore(|| {
        let gate = gate(fixed(1), 2, 3);
        let token = gate.try_acquire().unwrap();
        let waiters = [spawn_waiter(&gate), spawn_waiter(&gate)];
        drop(token);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn a_lowered_limit_drains_first() {
    explore(|| {
        let gate = gate(fixed(2), 1, 2);
        let inside = Inside::default();
        let tokens = [(); 2].map(|()| gate.try_acquire_owned(&Request::DEFAULT).unwrap());
        inside.enter(2);
        let mut acquire = pin!(gate.acquire(Request::DEFAULT));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let leaving = {
            let inside = inside.clone();
            thread::spawn(move || {
                for token in tokens {
                    inside.leave(1);
                    drop(token);
                }
            })
        };
        gate.replace_limiter(fixed(1));
        let admitted_before = gate.waiting() == 0;
        let token = block_on(acquire).unwrap();
        assert!(inside.enter(1) <= if admitted_before { 2 } else { 1 });
        inside.leave(1);
        drop(token);
        leaving.join().unwrap();
        assert_eq!((gate.limit(), gate.in_flight(), gate.waiting()), (1, 0, 0));
    });
}

#[test]
fn a_limit_lowered_while_one_comes_to_wait_keeps_nobody_out_for_ever() {
    explore(|| {
        let gate = gate(fixed(2), 1, 2);
        let token = gate.try_acquire_many(2).unwrap();
        let waiter = spawn_waiter(&gate);
        gate.replace_limiter(fixed(1));
        drop(token);
        waiter.join().unwrap();
        assert_eq!((gate.limit(), gate.in_flight(), gate.waiting()), (1, 0, 0));
    });
}

#[test]
fn a_raised_limit_wakes_as_many_as_fit() {
    explore(|| {
        let gate = gate(fixed(1), 2, 2);
        let token = gate.try_acquire().unwrap();
        let mut acquire = pin!(gate.acquire(Request::DEFAULT));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let waiter = spawn_waiter(&gate);
        gate.replace_limiter(fixed(3));
        // While the first place is still taken.
        let admitted = block_on(acquire).unwrap();
        waiter.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (2, 0));
        drop((token, admitted));
    });
}

#[test]
fn a_limit_that_rises_by_what_a_release_taught_wakes_those_who_wait() {
    explore(|| {
        let gate = gate(scripted(&[2, 3], &Ledger::default()), 2, 2);
        let stays = gate.try_acquire().unwrap();
        let leaves = gate.try_acquire().unwrap();
        let mut acquire = pin!(gate.acquire(Request::DEFAULT));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let waiter = spawn_waiter(&gate);
        leaves.release(Outcome::Success);
        // One place was freed, and the limit rose by one: both find room, whoever comes first.
        let admitted = block_on(acquire).unwrap();
        waiter.join().unwrap();
        drop((stays, admitted));
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn a_waiter_who_leaves_takes_nobodys_place_along() {
    explore(|| {
        let gate = gate(fixed(1), 2, 3);
        let token = gate.try_acquire().unwrap();
        let leaver = {
            let gate = gate.clone();
            thread::spawn(move || {
                let mut acquire = pin!(gate.acquire(Request::DEFAULT));
                let polled = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(token) = polled {
                    drop(token.unwrap());
                }
            })
        };
        let waiter = spawn_waiter(&gate);
        drop(token);
        waiter.join().unwrap();
        leaver.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    });
}

#[test]
fn a_waiter_who_cannot_be_served_makes_way_for_the_lighter_behind() {
    explore(|| {
        let gate = gate(fixed(2), 2, 3);
        let token = gate.try_acquire().unwrap();
        let mut heavy = Box::pin(gate.acquire(Request::DEFAULT.weighing(2)));
        assert!(heavy.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let waiter = spawn_waiter(&gate);
        drop(heavy);
        waiter.join().unwrap();
        assert_eq!((gate.in_flight(), gate.waiting()), (1, 0));
        drop(token);
    });
}

fn spawn_waiter(gate: &Gate<ManualClock>) -> thread::JoinHandle<()> {
    let gate = gate.clone();
    thread::spawn(move || drop(block_on(gate.acquire(Request::DEFAULT)).unwrap()))
}
