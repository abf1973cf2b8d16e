//! What users have on disk, and what it says about the service behind it.
//!
//! A [`Recording`] is an access log, a load-test result or a set of spans, in one of the [`Format`]s, recognised from
//! its content. It is read as a stream of [`Record`]s, or of [`Step`]s where the file only holds aggregates; the
//! [`Reading`] tells what was assumed and what was skipped. Gathered in a [`Digest`], it says what the service is: the
//! [`Workload`]. [`Inspection`] is all of that in one value.

mod convert;
mod digest;
mod error;
mod formats;
mod input;
mod inspect;
mod options;
mod quantity;
mod reading;
mod record;
mod recording;
pub mod scenario;
mod workload;

pub use convert::{ConvertError, convert};
pub use digest::{ConcurrencySummary, Digest, LatencySummary};
pub use error::ReadError;
pub use formats::{Format, UnknownFormat};
pub use input::Compression;
pub use inspect::Inspection;
pub use options::{FieldMap, Options, TimeForm};
pub use quantity::Unit;
pub use quantity::duration::UnknownUnit;
pub use reading::{Evidence, Problem, Reading};
pub use record::{Basis, Item, Outcome, Record, Status, Step, StepLatency};
pub use recording::Recording;
pub use workload::{Arrivals, CurvePoint, Estimate, ServiceModel, ServiceTimes, Shares, Waiting, Workload};
