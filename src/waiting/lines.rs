//! Lines of waiting requests, each of which any of its members may leave at any time in constant time.

use goodput_algorithms::Instant;

use super::{Ticket, Waiter};

const NOBODY: u32 = u32::MAX;

/// `N` doubly linked lists over one slab.
#[derive(Clone, Debug)]
pub(super) struct Lines<T, const N: usize> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    lines: [Line; N],
    waiting: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    oldest: u32,
    newest: u32,
    waiting: usize,
    weight: u64,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    older: u32,
    newer: u32,
    line: u8,
    waiter: Option<Waiter<T>>,
}

impl<T, const N: usize> Lines<T, N> {
    pub(super) const fn new() -> Self {
        let line = Line { oldest: NOBODY, newest: NOBODY, waiting: 0, weight: 0 };
        Self { slots: Vec::new(), free: Vec::new(), lines: [line; N], waiting: 0 }
    }

    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) const fn waiting_in(&self, line: usize) -> usize {
        self.lines[line].waiting
    }

    pub(super) const fn weight_of(&self, line: usize) -> u64 {
        self.lines[line].weight
    }

    /// Puts a waiter at the end of a line. `make` is told the ticket.
    pub(super) fn join(&mut self, line: usize, make: impl FnOnce(Ticket) -> Waiter<T>) -> Ticket {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, older: NOBODY, newer: NOBODY, line: 0, waiter: None });
            (self.slots.len() - 1) as u32
        });
        let previous = self.lines[line].newest;
        let entry = &mut self.slots[slot as usize];
        let ticket = Ticket { slot, generation: entry.generation };
        let waiter = make(ticket);
        let weight = u64::from(waiter.request.weight);
        *entry = Slot {
            generation: ticket.generation,
            older: previous,
            newer: NOBODY,
            line: line as u8,
            waiter: Some(waiter),
        };
        match previous {
            NOBODY => self.lines[line].oldest = slot,
            previous => self.slots[previous as usize].newer = slot,
        }
        let line = &mut self.lines[line];
        line.newest = slot;
        line.waiting += 1;
        line.weight += weight;
        self.waiting += 1;
        ticket
    }

    /// Takes a waiter out, wherever it stands.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waiter<T>> {
        let entry = self.slots.get_mut(ticket.slot as usize)?;
        if entry.generation != ticket.generation {
            return None;
        }
        let waiter = entry.waiter.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        let (older, newer, line) = (entry.older, entry.newer, entry.line as usize);
        match older {
            NOBODY => self.lines[line].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NOBODY => self.lines[line].newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        let line = &mut self.lines[line];
        line.waiting -= 1;
        line.weight -= u64::from(waiter.request.weight);
        self.waiting -= 1;
        self.free.push(ticket.slot);
        Some(waiter)
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Waiter<T>> {
        let entry = self.slots.get(ticket.slot as usize)?;
        entry.waiter.as_ref().filter(|_| entry.generation == ticket.generation)
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Waiter<T>> {
        let entry = self.slots.get_mut(ticket.slot as usize)?;
        entry.waiter.as_mut().filter(|_| entry.generation == ticket.generation)
    }

    /// One end of a line: the newest if `newest_first`, else the oldest.
    pub(super) fn first(&self, line: usize, newest_first: bool) -> Option<&Waiter<T>> {
        let line = &self.lines[line];
        self.at(if newest_first { line.newest } else { line.oldest })
    }

    /// The one behind `ticket`, on the way from that end to the other.
    pub(super) fn next(&self, ticket: Ticket, newest_first: bool) -> Option<&Waiter<T>> {
        let entry = self.slots.get(ticket.slot as usize)?;
        self.at(if newest_first { entry.older } else { entry.newer })
    }

    /// Since when the oldest of all has waited.
    pub(super) fn oldest_joined(&self) -> Option<Instant> {
        (0..N).filter_map(|line| Some(self.first(line, false)?.joined)).min()
    }

    fn at(&self, slot: u32) -> Option<&Waiter<T>> {
        self.slots.get(slot as usize)?.waiter.as_ref()
    }
}
