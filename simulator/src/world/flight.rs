//! Attempts under way.

use std::ops::{Index, IndexMut};

use goodput::{ManualClock, OwnedToken, client::Call};
use slab::Slab;

/// One attempt of a request, from its sending (or the wait before it) until neither its client nor the service has
/// to do with it.
#[derive(Debug)]
pub(super) struct Flight {
    /// Tells this attempt from others that had or will have the same slot.
    pub(super) stamp: u32,
    pub(super) client: u32,
    /// The part of the run in which the request was first sent.
    pub(super) part: u32,
    /// Its class, by number.
    pub(super) class: u16,
    /// The attempts of its request so far, for a client that retries.
    pub(super) call: Option<Call>,
    /// Whether its request has failed before.
    pub(super) retrying: bool,
    /// Its request, if attempts at it may be out at once.
    pub(super) poll: Option<u32>,
    /// When the request was first sent.
    pub(super) born: u64,
    /// When the request got its place at its client's gate. Without one, when it was first sent.
    pub(super) placed: u64,
    /// When this attempt was sent.
    pub(super) sent: u64,
    /// How long its work takes at speed 1, alone.
    pub(super) work: u64,
    /// How long it took.
    pub(super) work_done: u64,
    /// Uniform in [0, 1): the unlucky fail where a share does.
    pub(super) luck: f64,
    pub(super) ending: Ending,
    pub(super) place: Place,
    /// Whether the client still waits for it.
    pub(super) awaited: bool,
    pub(super) client_token: Option<OwnedToken<ManualClock>>,
    pub(super) service_token: Option<OwnedToken<ManualClock>>,
}

/// What the service's answer says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    Well,
    /// An error that says nothing about load.
    Failed,
    /// That there are too many.
    Refused,
}

/// Where an attempt is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Not sent yet.
    Client,
    /// Waiting at the gate of its client.
    ClientDoor,
    /// Waiting at the gate before the service.
    ServiceDoor,
    /// At the service, or its answer is on the way.
    Service,
    /// Lost in an outage.
    Lost,
}

/// All attempts under way, by slot.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Slab<Flight>,
    stamps: u32,
}

impl Flights {
    #[inline]
    pub(super) fn add(&mut self, mut flight: Flight) -> u32 {
        flight.stamp = self.new_stamp();
        u32::try_from(self.slots.insert(flight)).expect("fewer than four billion attempts at once")
    }

    /// A stamp for an attempt that takes over the slot of the one before.
    pub(super) fn new_stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    #[inline]
    pub(super) fn is(&self, slot: u32, stamp: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|flight| flight.stamp == stamp)
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        self.slots.remove(slot as usize);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.slots.iter().map(|(_, flight)| flight)
    }

    /// The slots of those that fulfil a condition, in the order in which they were added.
    pub(super) fn find(&self, condition: impl Fn(&Flight) -> bool) -> Vec<u32> {
        let mut found: Vec<_> = self.slots.iter().filter(|(_, flight)| condition(flight)).collect();
        found.sort_by_key(|(_, flight)| flight.stamp);
        found.into_iter().map(|(slot, _)| slot as u32).collect()
    }
}

impl Index<u32> for Flights {
    type Output = Flight;

    fn index(&self, slot: u32) -> &Flight {
        &self.slots[slot as usize]
    }
}

impl IndexMut<u32> for Flights {
    fn index_mut(&mut self, slot: u32) -> &mut Flight {
        &mut self.slots[slot as usize]
    }
}
