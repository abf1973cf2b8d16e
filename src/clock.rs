use std::{
    fmt,
    sync::{
        Arc, LazyLock,
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

/// The operating system's monotonic clock. All of a process count from the same origin, the creation of the first, so
/// that a deadline at one gate means the same at another.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

impl SystemClock {
    /// The clock.
    #[must_use]
    pub fn new() -> Self {
        static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        Self { origin: *ORIGIN }
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

/// The processor's time stamp counter: several times as fast as [`SystemClock`]. All of a process count from the same
/// origin, the creation of the first, so that a deadline at one gate means the same at another.
///
/// Where the processor has none that runs evenly, this is the operating system's clock. The first in a process takes
/// up to 200 ms to calibrate. Against the system's clock it drifts by some millionths, as calibration is not exact.
#[cfg(feature = "quanta")]
#[derive(Clone, Debug)]
pub struct TscClock {
    counter: quanta::Clock,
    origin: u64,
    tick: Tick,
}

#[cfg(feature = "quanta")]
impl TscClock {
    /// The clock.
    #[must_use]
    pub fn new() -> Self {
        static ORIGIN: LazyLock<u64> = LazyLock::new(|| quanta::Clock::new().raw());
        let counter = quanta::Clock::new();
        Self { origin: *ORIGIN, tick: Tick::of(&counter), counter }
    }
}

#[cfg(feature = "quanta")]
impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::from_nanos(self.tick.nanos_of(self.counter.raw().saturating_sub(self.origin)))
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

/// How long a tick of the counter takes: whole nanoseconds, and 2⁻⁶⁴ of one.
///
/// `quanta` can tell the same of any number of ticks, but shifts 128 bits by a distance that it looks up, for which what is
/// measured has to wait.
#[cfg(feature = "quanta")]
#[derive(Clone, Copy, Debug)]
struct Tick {
    whole: u64,
    fraction: u64,
}

#[cfg(feature = "quanta")]
impl Tick {
    fn of(counter: &quanta::Clock) -> Self {
        // To a part in billions: calibration is good to one in a million.
        let of_many = counter.delta_as_nanos(0, 1 << 32);
        Self { whole: of_many >> 32, fraction: of_many << 32 }
    }

    #[inline]
    fn nanos_of(self, ticks: u64) -> u64 {
        let of_fractions = ((u128::from(ticks) * u128::from(self.fraction)) >> 64) as u64;
        if self.whole == 0 {
            return of_fractions;
        }
        // Wherever it counts by more than 1 GHz, as on x86, there is nothing to add, and nobody to wait for it.
        std::hint::cold_path();
        // 584 years fit.
        ticks.wrapping_mul(self.whole).wrapping_add(of_fractions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_means_the_same_on_every_clock_of_the_system() {
        let (first, second) = (SystemClock::new(), SystemClock::new());
        let before = first.now();
        assert!(second.now() >= before);
        assert_eq!(first.origin, second.origin);
    }

    #[cfg(feature = "quanta")]
    #[test]
    fn ticks_take_as_long_as_they_were_calibrated_to_take() {
        let counter = quanta::Clock::new();
        for ticks in [0, 1, 1_000, 1_000_000_007, 3 << 50] {
            let calibrated = counter.delta_as_nanos(0, ticks);
            assert!(calibrated.abs_diff(Tick::of(&counter).nanos_of(ticks)) <= 1 + (ticks >> 32));
        }
        let slow = Tick { whole: 41, fraction: 0xAAAA_AAAA_AAAA_AAAB };
        assert_eq!(slow.nanos_of(24_000_000), 1_000_000_000);
    }
}
