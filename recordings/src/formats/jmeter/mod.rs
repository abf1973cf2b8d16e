//! JMeter's results (JTL): tables ([`table`]) and XML ([`xml`]).
//!
//! Stamps mark the start in milliseconds, because the shipped `jmeter.properties` says so; the library's own default
//! is the end, so the rows of each thread are asked. Sub-samples (redirects, embedded resources: `label-0`) lie
//! within their parent, and transaction controllers sum up requests that have rows of their own; both are counted as
//! records and marked as nested.

mod table;
mod xml;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::record::{Outcome, Record, Status};

pub(crate) use table::probe as probe_table;
pub(crate) use xml::probe as probe_xml;

/// Labels that are remembered to know sub-samples by.
const LABELS: usize = 10_000;

/// Takes over a response code and the sampler's verdict.
fn with_verdict(mut record: Record, code: &[u8], success: Option<bool>, message: &[u8]) -> Record {
    let status = Status::read(code);
    let by_code = match &status {
        Status::Code(code) => Outcome::of_status(*code),
        _ => Outcome::Success,
    };
    let failed =
        success.map_or_else(|| !matches!(by_code, Outcome::Success | Outcome::Refused), |success| !success);
    record.error = success.map_or(by_code != Outcome::Success, |success| !success);
    record.outcome = match (failed, by_code) {
        (false, _) => Outcome::Success,
        (true, Outcome::Success) => exception(&status, message),
        (true, by_code) => by_code,
    };
    record.status = status;
    record
}

/// JMeter writes the exception of a request that got no answer as its code.
fn exception(status: &Status, message: &[u8]) -> Outcome {
    let text = match status {
        Status::Text(text) => Cow::Borrowed(text.as_bytes()),
        _ => Cow::Borrowed(message),
    };
    let tells = |needle: &[u8]| memchr::memmem::find(&text, needle).is_some();
    if tells(b"SocketTimeout") || tells(b"ConnectTimeout") || tells(b"timed out") {
        Outcome::TimedOut
    } else {
        Outcome::Failure
    }
}

/// Knows sub-samples by their labels, and transaction controllers by their messages.
#[derive(Default)]
struct Nesting {
    labels: BTreeSet<Vec<u8>>,
    /// Every row sums up a transaction: then these are the requests.
    transactions_only: bool,
}

impl Nesting {
    fn see(&mut self, label: &[u8]) {
        if self.labels.len() < LABELS && !self.labels.contains(label) {
            self.labels.insert(label.to_vec());
        }
    }

    fn is_nested(&self, label: &[u8], message: &[u8]) -> bool {
        self.is_part(label) || (is_transaction(message) && !self.transactions_only)
    }

    /// Whether the label is a known one with a number after a dash.
    fn is_part(&self, label: &[u8]) -> bool {
        let digits = label.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let Some(parent) = label[..label.len() - digits].strip_suffix(b"-") else { return false };
        digits > 0 && (self.labels.contains(parent) || self.is_part(parent))
    }
}

fn is_transaction(message: &[u8]) -> bool {
    message.starts_with(b"Number of samples in transaction")
}
