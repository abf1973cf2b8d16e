//! Tells limiters how busy the service is.

use goodput::algorithms::{Algorithm, Sampling, Utilization};

use crate::scenario::nanos;

/// What one limiter is told.
#[derive(Debug)]
pub(super) struct Feed {
    utilization: Utilization,
    sampling: Sampling,
    /// What the service's meter said the last time.
    before: f64,
}

impl Feed {
    /// `None` if the algorithm does not ask.
    pub(super) fn new(algorithm: &Algorithm, utilization: &Utilization) -> Option<Self> {
        let sampling = algorithm.sampling()?;
        Some(Self { utilization: utilization.clone(), sampling, before: 0.0 })
    }

    /// The machine was idle until now, and its meter says `busy_ns`.
    pub(super) fn start(&mut self, busy_ns: f64) {
        self.before = busy_ns;
        // Zero is a share.
        let _ = self.utilization.set(0.0);
    }

    pub(super) fn every(&self) -> u64 {
        nanos(self.sampling.every)
    }

    /// The meter says how many nanoseconds all of the service has been busy so far.
    pub(super) fn tell(&mut self, busy_ns: f64) {
        let share = (busy_ns - self.before) / self.every() as f64;
        self.before = busy_ns;
        // Shares of time are numbers from 0 to 1, up to rounding.
        let _ = self.utilization.blend(share.clamp(0.0, 1.0), self.sampling.keep);
    }
}
