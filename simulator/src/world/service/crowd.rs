//! Requests that are all worked on at once, each for a time that is known as it comes.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use crate::scenario::Crowd as Settings;

/// What counts as the rate: who came within this time.
const SECOND: u64 = 1_000_000_000;

/// All requests are worked on, and whoever comes is told by the crowd how long it takes.
#[derive(Debug)]
pub(super) struct Crowd {
    settings: Settings,
    /// Who is there, by the time of completion and the order of arrival.
    present: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrived: u64,
    /// When those came who did so within the last second, where their number matters.
    lately: VecDeque<u64>,
}

impl Crowd {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, present: BinaryHeap::new(), arrived: 0, lately: VecDeque::new() }
    }

    /// How many times as long it takes the one who comes now, or that there are too many already.
    pub(super) fn welcome(&mut self, now: u64) -> Result<f64, TooMany> {
        let there = self.present.len() + 1;
        if let Some(most) = self.settings.at_most_per_second {
            while self.lately.front().is_some_and(|&came| came + SECOND <= now) {
                self.lately.pop_front();
            }
            self.lately.push_back(now);
            if self.lately.len() > most as usize {
                return Err(TooMany);
            }
        }
        if self.settings.at_most.is_some_and(|most| there > most as usize) {
            return Err(TooMany);
        }
        Ok(self.settings.slowness(there as f64))
    }

    pub(super) fn enter(&mut self, slot: u32, finish: u64) {
        self.present.push(Reverse((finish, self.arrived, slot)));
        self.arrived += 1;
    }

    pub(super) fn next_completion(&self) -> Option<u64> {
        self.present.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn complete(&mut self) -> Option<u32> {
        self.present.pop().map(|Reverse((.., slot))| slot)
    }

    /// Throws everybody out.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.complete()).collect()
    }

    pub(super) fn has_room(&self) -> bool {
        self.settings.at_most.is_none_or(|most| self.present.len() < most as usize)
    }

    pub(super) fn in_service(&self) -> usize {
        self.present.len()
    }
}

/// More than the service takes.
pub(super) struct TooMany;
