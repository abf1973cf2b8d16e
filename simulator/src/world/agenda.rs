//! What will happen, in order.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::Ties;

/// The order of kinds at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Change,
    Completion,
    Timeout,
    Retry,
    Arrival,
}

/// Something that will happen. A flight is named by its slot, and by its stamp to tell it from later ones there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The next change of the service is due.
    ServiceChanges,
    /// The speed of the service changes.
    SpeedChanges,
    /// The `usize`-th outage begins.
    OutageBegins(u32),
    /// An outage ends.
    OutageEnds,
    /// The `usize`-th limit from outside is to be set.
    LimitSet(u32),
    /// A client joins.
    Joins(u32),
    /// A gate is told that time passes.
    Tick(u32),
    /// A gate's limiter is told how busy the service is.
    Feed(u32),
    /// An answer that was delayed arrives.
    Answer { slot: u32, stamp: u32 },
    /// A client stops waiting.
    Timeout { slot: u32, stamp: u32 },
    /// The time of somebody who waits at a gate may be up.
    Expiry { slot: u32, stamp: u32 },
    /// A retry is sent.
    Retry { slot: u32, stamp: u32 },
    /// A client sends its next request.
    Arrival(u32),
    /// A client goes on with a request that failed before the run began.
    Resumption(u32),
}

impl Event {
    const fn kind(self) -> Kind {
        match self {
            Self::ServiceChanges
            | Self::SpeedChanges
            | Self::OutageBegins(_)
            | Self::OutageEnds
            | Self::LimitSet(_)
            | Self::Joins(_)
            | Self::Tick(_)
            | Self::Feed(_) => Kind::Change,
            Self::Answer { .. } => Kind::Completion,
            Self::Timeout { .. } | Self::Expiry { .. } => Kind::Timeout,
            Self::Retry { .. } => Kind::Retry,
            Self::Arrival(_) | Self::Resumption(_) => Kind::Arrival,
        }
    }
}

/// The events to come, ordered by time, kind, and the order in which they were set up.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    next: u64,
    retries_as_arrivals: bool,
}

impl Agenda {
    pub(super) fn new(ties: Ties) -> Self {
        Self { retries_as_arrivals: ties == Ties::AsPlanned, ..Self::default() }
    }

    #[inline]
    pub(super) fn add(&mut self, at: u64, event: Event) {
        let kind = match event.kind() {
            Kind::Retry if self.retries_as_arrivals => Kind::Arrival,
            kind => kind,
        };
        let order = (kind as u64) << 56 | self.next;
        self.next += 1;
        self.entries.push(Entry { at, order, event });
    }

    /// Time and kind of the next event.
    #[inline]
    pub(super) fn next(&self) -> Option<(u64, Kind)> {
        self.entries.peek().map(|entry| (entry.at, entry.event.kind()))
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.entries.pop().map(|entry| entry.event)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    order: u64,
    event: Event,
}

impl Ord for Entry {
    /// The earliest is the greatest, since the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
