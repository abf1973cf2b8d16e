//! Requests of clients whose attempts follow each other without waiting for the outcome.

use goodput::client::Call;
use slab::Slab;

use super::{World, agenda::Event, flight::Place};
use crate::RetryOn;

/// All such requests that are unanswered.
#[derive(Debug, Default)]
pub(super) struct Polls(Slab<Poll>);

#[derive(Debug)]
struct Poll {
    call: Call,
    retrying: bool,
    /// Attempts that are out, and awaited.
    out: Vec<u32>,
    /// The attempt to come.
    next: Option<u32>,
}

impl World<'_> {
    /// An attempt is being sent: when does the next one follow?
    pub(super) fn plan_next(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        let Some(call) = flight.call else { return };
        let index = flight.client as usize;
        let poll = *flight.poll.get_or_insert_with(|| {
            let poll = Poll { call, retrying: flight.retrying, out: Vec::new(), next: None };
            self.polls.0.insert(poll) as u32
        });
        let state = &mut self.polls.0[poll as usize];
        state.out.push(slot);
        let wait = self.clients[index].wait_before_next(&mut state.call, self.now);
        let next = wait.map(|wait| {
            let next = self.next_attempt(slot);
            let event = Event::Retry { slot: next, stamp: self.flights[next].stamp };
            self.agenda.add(self.timer.after(self.now, wait), event);
            next
        });
        self.polls.0[poll as usize].next = next;
    }

    pub(super) fn end_attempt_of_poll(&mut self, slot: u32, trouble: Option<RetryOn>) {
        let flight = &self.flights[slot];
        let Some(poll) = flight.poll else { return };
        let index = flight.client as usize;
        let state = &mut self.polls.0[poll as usize];
        state.out.retain(|&out| out != slot);
        if trouble.is_some() {
            if !state.retrying {
                state.retrying = true;
                self.recorder.start_retrying(1);
            }
            if state.next.is_some() || !state.out.is_empty() {
                self.remove_if_gone(slot);
                return;
            }
        }
        let state = self.polls.0.remove(poll as usize);
        if state.retrying {
            self.recorder.stop_retrying(self.now);
        }
        if trouble.is_none() {
            self.clients[index].succeeded(Some(&state.call));
        }
        if let Some(next) = state.next {
            self.flights.remove(next);
        }
        for other in state.out {
            self.flights[other].awaited = false;
            self.abandon(other);
            if self.flights[other].place == Place::Lost {
                self.flights[other].place = Place::Client;
            }
            self.remove_if_gone(other);
        }
        self.end_request(slot);
    }
}
