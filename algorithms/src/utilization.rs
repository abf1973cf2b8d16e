use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use thiserror::Error;

/// How busy the machine is, as told by whoever measures it: an input of the algorithms that ask for it.
///
/// Clones share the value. Algorithms read no clock and no operating system, so somebody else measures, a few times
/// a second, and calls [`Utilization::set`] or [`Utilization::blend`].
///
/// Until then it is unknown, and an algorithm whose rule applies only to a busy machine applies it always: a limiter
/// that waits for a measurement that never comes would protect nothing.
///
/// ```
/// use goodput_algorithms::Utilization;
///
/// let cpu = Utilization::unknown();
/// let shared = cpu.clone();
/// assert_eq!(shared.value(), None);
/// cpu.set(0.5).unwrap();
/// assert_eq!(shared.value(), Some(0.5));
/// cpu.blend(1.0, 0.75).unwrap();
/// assert_eq!(shared.value(), Some(0.625));
/// ```
#[derive(Clone, Debug)]
pub struct Utilization(Arc<AtomicU64>);

impl Utilization {
    /// Not measured yet.
    #[must_use]
    pub fn unknown() -> Self {
        Self(Arc::new(AtomicU64::new(f64::NAN.to_bits())))
    }

    /// The last value: 1 for all processors busy, or whatever unit the threshold it is compared with has.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|value| !value.is_nan())
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// [`InvalidUtilization`] if it is negative or not finite; the old value then stays.
    pub fn set(&self, value: f64) -> Result<(), InvalidUtilization> {
        if !value.is_finite() || value < 0.0 {
            return Err(InvalidUtilization { value });
        }
        self.0.store(value.to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Moves the value towards a new measurement, keeping the share `keep` of the old one. The first one is taken
    /// as it is. One writer at a time.
    ///
    /// # Errors
    ///
    /// [`InvalidUtilization`] if the measurement is negative or not finite, or `keep` is not within 0 and 1.
    pub fn blend(&self, value: f64, keep: f64) -> Result<(), InvalidUtilization> {
        if !value.is_finite() || value < 0.0 {
            return Err(InvalidUtilization { value });
        }
        if !(0.0..=1.0).contains(&keep) {
            return Err(InvalidUtilization { value: keep });
        }
        let old = self.value().unwrap_or(value);
        self.set(old * keep + value * (1.0 - keep))
    }
}

impl Default for Utilization {
    fn default() -> Self {
        Self::unknown()
    }
}

/// How an algorithm wants to be told how busy the machine is, as its original measures it.
///
/// ```
/// use goodput_algorithms::{Algorithm, Sampling, Utilization};
///
/// let sampling = Algorithm::from_name("kratos").unwrap().sampling().unwrap();
/// assert_eq!(sampling, Sampling { every: std::time::Duration::from_millis(500), keep: 0.95 });
/// // It starts as if the machine had been idle; then, twice a second:
/// let cpu = Utilization::unknown();
/// cpu.set(0.0).unwrap();
/// cpu.blend(1.0, sampling.keep).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// From one measurement to the next. Each is the mean over this time.
    pub every: Duration,
    /// The share of the old value that each keeps: see [`Utilization::blend`].
    pub keep: f64,
}

/// A utilization, or the weight of one, that cannot be.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "a utilization must be finite and not negative, and the share kept of the old one within 0 and 1, not {value}"
)]
pub struct InvalidUtilization {
    /// What was given.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_and_changes_nothing() {
        let cpu = Utilization::unknown();
        cpu.set(0.3).unwrap();
        assert!(cpu.set(f64::NAN).is_err());
        assert!(cpu.set(-0.1).is_err());
        assert!(cpu.blend(f64::INFINITY, 0.5).is_err());
        assert!(cpu.blend(0.5, 1.5).is_err());
        assert_eq!(cpu.value(), Some(0.3));
    }
}
