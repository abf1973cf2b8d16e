//! The windows that updates are measured with.

use goodput_algorithms::{Instant, Latencies, Window};

/// Windows of so many samples of about 10 ms at 20 in flight, one after the other.
pub(crate) struct Windows {
    window: Window,
    span_ns: u64,
}

impl Windows {
    pub(crate) fn of(samples: u64) -> Self {
        let sum = |sum: Latencies, i: u64| sum.merge(Latencies::one(10_000_000 + i % 7 * 100_000));
        let span_ns = samples * 500_000;
        let window = Window {
            opened: Instant::ZERO,
            closed: Instant::ZERO,
            successes: (0..samples).fold(Latencies::NONE, sum),
            limit_hits: samples,
            max_in_flight: 20,
            in_flight_area_ns: 10_000_000 * u128::from(samples),
            longest_silence_ns: 500_000,
            ..Window::EMPTY
        };
        Self { window, span_ns }
    }

    pub(crate) fn next(&mut self) -> &Window {
        self.window.opened = self.window.closed;
        self.window.closed = self.window.opened.plus_nanos(self.span_ns);
        &self.window
    }
}
