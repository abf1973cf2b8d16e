//! Any recording as a plain list of requests, which this crate (format `goodput`) and any other tool can read.
//!
//! ```csv
//! start_ns,latency_ns,outcome,service_ns,status,nested
//! 1795993308731000000,97000000,success,97000000,200,false
//! ```
//!
//! The order is that of the file. `start_ns` counts from the Unix epoch (or from the start of the run), and is empty
//! when the file has no stamps; `latency_ns` is a lower bound for the outcomes `timed_out` and `cancelled`, and empty
//! when nothing was measured; `service_ns` is the part spent in the service itself, where the file tells it.

use std::io::Write;

use crate::error::ReadError;
use crate::reading::Reading;
use crate::record::{Item, Record};
use crate::recording::Recording;

/// The columns, in order.
pub(crate) const HEADER: [&str; 6] = ["start_ns", "latency_ns", "outcome", "service_ns", "status", "nested"];

/// Why a recording could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The list could not be written.
    #[error("the list cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// The file has no requests, only what many of them came to.
    #[error("the file holds {steps} load steps or intervals and no requests: there is no list to write")]
    Aggregate {
        /// Load steps in the file.
        steps: u64,
    },
}

/// Writes the requests of a recording as a list.
pub fn convert(recording: Recording<'_>, target: impl Write) -> Result<Reading, ConvertError> {
    let mut list = csv::Writer::from_writer(target);
    let mut failed: Option<csv::Error> = list.write_record(HEADER).err();
    let reading = recording.each(|item| {
        if let (Item::Request(record), None) = (item, &failed) {
            failed = list.write_record(row(&record)).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(ConvertError::Write(error.into()));
    }
    list.flush()?;
    if reading.records == 0 {
        return Err(ConvertError::Aggregate { steps: reading.steps });
    }
    Ok(reading)
}

fn row(record: &Record) -> [String; 6] {
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let between =
        record.start.zip(record.end).and_then(|(start, end)| u64::try_from(end.checked_sub(start)?).ok());
    // Where both stamps are known they tell more than a latency that leaves stages out.
    let latency = between.or(record.latency);
    [
        record.start.or(record.stamp).map_or(String::new(), |start| start.to_string()),
        number(latency),
        record.outcome.name().to_owned(),
        number(record.service),
        record.status.to_string(),
        record.nested.to_string(),
    ]
}
