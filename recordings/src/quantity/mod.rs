//! What a file writes as text, as integers: decimals, durations with their units, and instants.

pub(crate) mod decimal;
pub(crate) mod duration;
pub(crate) mod instant;

pub(crate) use decimal::Decimal;
pub use duration::Unit;
