//! Workers with a queue before them.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Workers with a queue before them, first in, first out.
#[derive(Debug)]
pub(super) struct Workers {
    workers: usize,
    queue: VecDeque<u32>,
    /// Who is worked on, by the time of completion and the order of starts.
    busy: BinaryHeap<Reverse<(u64, u64, u32)>>,
    started: u64,
}

impl Workers {
    pub(super) fn new(workers: u32) -> Self {
        Self { workers: workers as usize, queue: VecDeque::new(), busy: BinaryHeap::new(), started: 0 }
    }

    pub(super) fn set_workers(&mut self, workers: u32) {
        self.workers = workers as usize;
    }

    #[inline]
    pub(super) fn enter(&mut self, slot: u32) {
        self.queue.push_back(slot);
    }

    /// Who starts next, if a worker is free.
    #[inline]
    pub(super) fn next_to_start(&mut self) -> Option<u32> {
        if self.busy.len() < self.workers { self.queue.pop_front() } else { None }
    }

    #[inline]
    pub(super) fn start(&mut self, slot: u32, finish: u64) {
        self.busy.push(Reverse((finish, self.started, slot)));
        self.started += 1;
    }

    #[inline]
    pub(super) fn next_completion(&self) -> Option<u64> {
        self.busy.peek().map(|Reverse((at, ..))| *at)
    }

    #[inline]
    pub(super) fn complete(&mut self) -> Option<u32> {
        self.busy.pop().map(|Reverse((.., slot))| slot)
    }

    #[inline]
    pub(super) fn can_start(&self) -> bool {
        !self.queue.is_empty() && self.busy.len() < self.workers
    }

    /// Throws everybody out.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        let mut slots = Vec::new();
        while let Some(slot) = self.complete() {
            slots.push(slot);
        }
        slots.extend(self.queue.drain(..));
        slots
    }

    /// The share of the workers that are at work.
    pub(super) fn busy_share(&self) -> f64 {
        (self.busy.len() as f64 / (self.workers as f64).max(1.0)).min(1.0)
    }

    pub(super) fn has_room(&self) -> bool {
        self.queue.is_empty() && self.busy.len() < self.workers
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn in_service(&self) -> usize {
        self.busy.len()
    }
}
