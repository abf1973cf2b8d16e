//! What `goodput inspect` shows of a recording, as one value that can be printed and serialised.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use crate::digest::{ConcurrencySummary, Digest, LatencySummary};
use crate::error::ReadError;
use crate::formats::Format;
use crate::options::Options;
use crate::reading::Reading;
use crate::record::{Item, Outcome, Step, StepLatency};
use crate::recording::Recording;
use crate::workload::Workload;

/// What was read of a recording.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The format.
    pub format: Format,
    /// Requests read.
    pub records: u64,
    /// Non-empty lines that are neither a request nor a known other thing.
    pub unparseable_lines: u64,
    /// Headers, comments, blank lines, other metrics, other span kinds.
    pub skipped_non_record_lines: u64,
    /// Requests without a latency.
    pub records_without_latency: u64,
    /// Requests that failed by the plain rule: status 500 or more, none at all, or the tool's own mark.
    pub errors: u64,
    /// How requests ended.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// How often each status occurred, as written.
    pub status_counts: BTreeMap<String, u64>,
    /// The smallest time stamp as written, in seconds since the epoch (or since the start of the run).
    pub first_ts: Option<f64>,
    /// The largest time stamp as written.
    pub last_ts: Option<f64>,
    /// Stamps that lie before the one on the line above.
    pub timestamps_out_of_order: u64,
    /// Latency of all requests that have one, in milliseconds.
    pub latency_ms: Option<LatencySummary>,
    /// Requests in flight.
    pub concurrency: Option<ConcurrencySummary>,
    /// Load steps, in files of aggregates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Latency of a file of aggregates, where it can be told over all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_latency_ms: Option<StepLatency>,
    /// What the recording says about the service.
    pub workload: Workload,
    /// What was assumed and skipped.
    pub reading: Reading,
}

impl Inspection {
    /// Reads a file (`-` is the standard input).
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, ReadError> {
        let path = path.as_ref();
        Self::of(Recording::open(path, options)?).map_err(|error| match error {
            error @ ReadError::InFile { .. } => error,
            error => ReadError::InFile { path: path.to_owned(), source: Box::new(error) },
        })
    }

    /// Reads a stream.
    pub fn read(reader: impl Read, options: &Options) -> Result<Self, ReadError> {
        Self::of(Recording::new(reader, options)?)
    }

    /// Reads an opened recording to its end.
    pub fn of(recording: Recording<'_>) -> Result<Self, ReadError> {
        let mut digest = Digest::new();
        let reading = recording.each(|item: Item| digest.add(item))?;
        Ok(Self::new(&digest, reading))
    }

    /// What a digest shows.
    pub fn new(digest: &Digest, reading: Reading) -> Self {
        let seconds = |stamp: i64| stamp as f64 / 1e9;
        Self {
            format: reading.format,
            records: digest.records,
            unparseable_lines: reading.unparseable_lines,
            skipped_non_record_lines: reading.skipped_non_record_lines,
            records_without_latency: digest.without_latency,
            errors: digest.errors,
            outcomes: digest.outcomes(),
            status_counts: digest.statuses(),
            first_ts: digest.first_stamp.map(seconds),
            last_ts: digest.last_stamp.map(seconds),
            timestamps_out_of_order: digest.out_of_order,
            latency_ms: digest.latency(),
            concurrency: digest.concurrency(&reading),
            steps: digest.steps.clone(),
            step_latency_ms: digest.step_latency(&reading),
            workload: Workload::of(digest, &reading),
            reading,
        }
    }
}
