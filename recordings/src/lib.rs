//! What users have on disk, and what it says about the service behind it.
//!
//! A [`Recording`] is an access log, a load-test result or a set of spans, in one of the [`Format`]s, recognised from
//! its content. It is read as a stream of [`Record`]s, or of [`Step`]s where the file only holds aggregates; the
//! [`Reading`] tells what was assumed and what was skipped.

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
