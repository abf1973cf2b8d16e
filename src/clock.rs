use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use goodput_algorithms::Instant;

/// Where a gate takes the time from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now. May stand still; should not step back, but nothing breaks if it does.
    fn now(&self) -> Instant;
}

/// The operating system's monotonic clock, counted from the clock's creation.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

impl SystemClock {
    /// A clock that starts at zero now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Instant {
        let elapsed = self.origin.elapsed();
        // 584 years fit.
        let nanos =
            elapsed.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(elapsed.subsec_nanos()));
        Instant::from_nanos(nanos)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The processor's time stamp counter, counted from the clock's creation: several times as fast as [`SystemClock`].
///
/// Where the processor has none that runs evenly, this is the operating system's clock. The first in a process takes
/// up to 200 ms to calibrate. Against the system's clock it drifts by some millionths, as calibration is not exact.
#[cfg(feature = "quanta")]
#[derive(Clone, Debug)]
pub struct TscClock {
    counter: quanta::Clock,
    origin: u64,
}

#[cfg(feature = "quanta")]
impl TscClock {
    /// A clock that starts at zero now.
    #[must_use]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Self { counter, origin }
    }
}

#[cfg(feature = "quanta")]
impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::from_nanos(self.counter.delta_as_nanos(self.origin, self.counter.raw()))
    }
}

#[cfg(feature = "quanta")]
impl Default for TscClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock that moves when it is told to. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now() + duration);
    }

    /// Sets the clock, forwards or backwards.
    pub fn set(&self, now: Instant) {
        self.nanos.store(now.nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}
