//! A service on paper, which observes its requests as a limiter's rules ask.

use goodput_algorithms::{Decision, Instant, Latencies, Limiter, Window, WindowRule};

/// Feeds a limiter one request after the other, in windows that open and close by its rules.
pub(crate) struct Driver {
    pub(crate) limiter: Box<dyn Limiter>,
    pub(crate) now: Instant,
    rule: WindowRule,
    window: Window,
    is_open: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Success,
    Overload,
}

impl Driver {
    pub(crate) fn new(limiter: Box<dyn Limiter>) -> Self {
        let rule = limiter.next_window();
        Self { limiter, now: Instant::ZERO, rule, window: Window::EMPTY, is_open: false }
    }

    /// One request ends while the limit is held full: `limit` requests in flight, one ending every
    /// `latency` / `limit`.
    pub(crate) fn saturated_request(&mut self, latency_ns: u64, outcome: Outcome) -> Option<Decision> {
        let limit = self.limiter.limit().max(1) as u64;
        let step_ns = (latency_ns / limit).max(1);
        let sample = Latencies::one(latency_ns);
        let (successes, overloads) = match outcome {
            Outcome::Success => (sample, Latencies::NONE),
            Outcome::Overload => (Latencies::NONE, sample),
        };
        let opened = self.now;
        self.now = opened.plus_nanos(step_ns);
        self.observe(Window {
            opened,
            closed: self.now,
            successes,
            overloads,
            limit_hits: 1,
            max_in_flight: limit,
            in_flight_area_ns: u128::from(step_ns) * u128::from(limit),
            longest_silence_ns: step_ns,
            ..Window::EMPTY
        })
    }

    fn observe(&mut self, seen: Window) -> Option<Decision> {
        if !self.is_open && !self.rule.extend {
            if self.now < self.rule.opens_at {
                return None;
            }
            self.is_open = true;
            self.window = Window::EMPTY;
            if self.rule.opens_at > Instant::ZERO && seen.opened < self.rule.opens_at {
                return None;
            }
        }
        self.is_open = true;
        self.window = self.window.merge(seen);
        let is_full = self.window.samples().count >= self.rule.samples_wanted(&self.window)
            && self.now >= self.rule.not_before;
        if !is_full && self.now < self.rule.deadline {
            return None;
        }
        let decision = self.limiter.update(&self.window);
        self.rule = self.limiter.next_window();
        self.is_open = false;
        Some(decision)
    }
}
