//! Collects windows as the limiter asks for them, and tells it when one closes.

use std::collections::VecDeque;

use goodput_algorithms::{Instant, Latencies, Limiter, State, Window, WindowRule};

use super::{Admitted, TimedDecision};
use crate::Outcome;

/// How many decisions a snapshot remembers.
const REMEMBERED_DECISIONS: usize = 32;

pub(super) struct Observer {
    limiter: Box<dyn Limiter>,
    rule: WindowRule,
    window: Window,
    /// Not before the first completion at or after the rule's opening.
    open: bool,
    in_flight: u64,
    last_change: Instant,
    last_completion: Instant,
    decisions: VecDeque<TimedDecision>,
}

impl Observer {
    pub(super) fn new(limiter: Box<dyn Limiter>, now: Instant) -> Self {
        let rule = limiter.next_window();
        let mut observer = Self {
            limiter,
            rule,
            window: Window::EMPTY,
            open: false,
            in_flight: 0,
            last_change: now,
            last_completion: now,
            decisions: VecDeque::with_capacity(REMEMBERED_DECISIONS),
        };
        observer.start_window(now);
        observer
    }

    pub(super) fn limit(&self) -> usize {
        self.limiter.limit()
    }

    pub(super) fn limiter_state(&self) -> State {
        self.limiter.state()
    }

    pub(super) fn decisions(&self) -> Vec<TimedDecision> {
        self.decisions.iter().copied().collect()
    }

    pub(super) fn replace(&mut self, limiter: Box<dyn Limiter>, now: Instant) {
        self.integrate(now);
        self.limiter = limiter;
        self.rule = self.limiter.next_window();
        self.start_window(now);
    }

    pub(super) fn enter(&mut self, weight: u32, now: Instant, reached_limit: bool) {
        self.integrate(now);
        self.in_flight += u64::from(weight);
        self.window.limit_hits += u64::from(reached_limit);
    }

    pub(super) fn refuse(&mut self) {
        self.window.refused += 1;
        self.window.limit_hits += 1;
    }

    pub(super) fn leave(&mut self, weight: u32, now: Instant) {
        self.integrate(now);
        self.in_flight -= u64::from(weight);
    }

    pub(super) fn record(&mut self, admitted: Admitted, now: Instant, outcome: Outcome) {
        let silence = now.nanos_since(self.last_completion);
        self.last_completion = self.last_completion.max(now);
        if !self.open {
            if now >= self.rule.opens_at {
                self.open_window(now);
            }
            return;
        }
        let latency = Latencies::one(now.nanos_since(admitted.at));
        let tally = match outcome {
            Outcome::Success => &mut self.window.successes,
            Outcome::Overload => &mut self.window.overloads,
            Outcome::Failure => &mut self.window.failures,
            Outcome::Cancelled => {
                self.window.cancelled += 1;
                return;
            }
        };
        *tally = tally.merge(latency);
        self.window.max_in_flight = self.window.max_in_flight.max(admitted.in_flight as u64);
        self.window.longest_silence_ns = self.window.longest_silence_ns.max(silence);
    }

    /// Whether the limiter was asked.
    pub(super) fn close_window_if_due(&mut self, now: Instant) -> bool {
        let enough =
            self.open && self.window.samples().count >= self.rule.min_samples && now >= self.rule.not_before;
        if !enough && now < self.rule.deadline {
            return false;
        }
        self.integrate(now);
        self.window.closed = now;
        let previous_limit = self.limiter.limit();
        let decision = self.limiter.update(&self.window);
        if self.decisions.len() == REMEMBERED_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(TimedDecision { at: now, previous_limit, decision });
        self.rule = self.limiter.next_window();
        if !self.rule.extend {
            self.start_window(now);
        }
        true
    }

    fn start_window(&mut self, now: Instant) {
        self.open_window(now);
        self.open = self.rule.opens_at <= now;
    }

    fn open_window(&mut self, now: Instant) {
        // Refusals and hits since the last window closed are kept: they are load on the limit, not latency.
        let (refused, limit_hits) =
            if self.open { (0, 0) } else { (self.window.refused, self.window.limit_hits) };
        self.window = Window { opened: now, closed: now, refused, limit_hits, ..Window::EMPTY };
        self.open = true;
    }

    fn integrate(&mut self, now: Instant) {
        let elapsed = now.nanos_since(self.last_change);
        self.window.in_flight_area_ns += u128::from(elapsed) * u128::from(self.in_flight);
        self.last_change = self.last_change.max(now);
    }
}
