//! The requests that wait for room, first in, first out.

use std::{collections::VecDeque, task::Waker};

use super::Admitted;

pub(crate) struct Waiters {
    queue: VecDeque<Waiter>,
    /// Places of those who were let in and have not come for them yet.
    assigned: Vec<(u64, Admitted)>,
    next_ticket: u64,
}

struct Waiter {
    ticket: u64,
    weight: u32,
    waker: Waker,
}

impl Waiters {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), assigned: Vec::new(), next_ticket: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn first_weight(&self) -> Option<u32> {
        self.queue.front().map(|waiter| waiter.weight)
    }

    pub(super) fn join(&mut self, weight: u32, waker: Waker) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(Waiter { ticket, weight, waker });
        ticket
    }

    /// Assigns the first its place. Tells whom to wake.
    pub(super) fn let_first_in(&mut self, admitted: Admitted) -> Option<Waker> {
        let waiter = self.queue.pop_front()?;
        self.assigned.push((waiter.ticket, admitted));
        Some(waiter.waker)
    }

    /// The place assigned to `ticket`, if it has come to its turn.
    pub(super) fn take_place(&mut self, ticket: u64) -> Option<Admitted> {
        let index = self.assigned.iter().position(|(assigned, _)| *assigned == ticket)?;
        Some(self.assigned.swap_remove(index).1)
    }

    /// Puts another waker in place of that of `ticket`. Gives back the one that is of no more use, to be dropped where
    /// no lock is held.
    pub(super) fn replace_waker(&mut self, ticket: u64, waker: Waker) -> Option<Waker> {
        let index = self.position(ticket)?;
        Some(std::mem::replace(&mut self.queue[index].waker, waker))
    }

    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        let index = self.position(ticket)?;
        self.queue.remove(index).map(|waiter| waiter.waker)
    }

    fn position(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}
