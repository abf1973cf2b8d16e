//! Small machines that several algorithms share. Each has a fixed size: nothing here allocates after construction.

mod bounds;
mod buckets;
mod correlation;
mod reading;
mod sketch;
mod smoothing;
#[cfg(test)]
pub(crate) mod trials;

pub(crate) use bounds::{bounded, check, nanos, whole_log10};
pub(crate) use buckets::Buckets;
pub(crate) use correlation::Correlation;
pub(crate) use reading::{area_ns, float, in_flight, mean_latency_ns};
pub(crate) use sketch::Sketch;
pub(crate) use smoothing::{MedianOfFive, WarmingMean};
