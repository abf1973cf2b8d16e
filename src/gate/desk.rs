//! What is remembered of requests that are not simply admitted or refused: who waits, and who has how much.

use std::{collections::BTreeMap, task::Waker};

use super::{admitted::Entry, classes::Classes};
use crate::{
    Refusal,
    waiting::{Ticket, WaitingRoom},
};

pub(super) struct Desk {
    pub(super) room: WaitingRoom<Waiting>,
    pub(super) classes: Classes,
    /// What became of those who wait no more and have not come for it yet.
    settled: BTreeMap<Ticket, Settled>,
}

/// What became of a request that waited.
pub(super) type Settled = Result<Entry, Refusal>;

/// What the room keeps for one who waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) waker: Waker,
    /// Whether it waits because the limit is reached, rather than its own part of it.
    pub(super) at_limit: bool,
}

impl Desk {
    pub(super) fn new(room: WaitingRoom<Waiting>, classes: Classes) -> Self {
        Self { room, classes, settled: BTreeMap::new() }
    }

    pub(super) fn settle(&mut self, ticket: Ticket, what: Settled) {
        self.settled.insert(ticket, what);
    }

    /// What became of a request, once.
    pub(super) fn take_settled(&mut self, ticket: Ticket) -> Option<Settled> {
        self.settled.remove(&ticket)
    }

    /// Puts another waker in place of that of `ticket`. Gives back the one that is of no more use, to be dropped where
    /// no lock is held.
    pub(super) fn replace_waker(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        let waiting = self.room.payload_mut(ticket)?;
        Some(std::mem::replace(&mut waiting.waker, waker))
    }
}
