//! Gatling's simulation.log: [`text`] up to 3.11, [`binary`] since. Both write the start and the end of each request
//! in milliseconds.

mod binary;
mod text;

use std::borrow::Cow;

use crate::record::{Outcome, Record, Status};

pub(crate) use binary::probe as probe_binary;
pub(crate) use text::probe as probe_text;

/// A request with its verdict and the message of a failure.
fn record(start: i64, end: i64, ok: bool, message: &[u8]) -> Record {
    let tells = |needle: &[u8]| memchr::memmem::find(message, needle).is_some();
    let outcome = if ok {
        Outcome::Success
    } else if tells(b"found 503") || tells(b"found 429") {
        Outcome::Refused
    } else if tells(b"timeout") || tells(b"Timeout") || tells(b"found 504") {
        Outcome::TimedOut
    } else {
        Outcome::Failure
    };
    let status = Status::Text(Cow::Borrowed(if ok { "OK" } else { "KO" }));
    Record { outcome, error: !ok, status, ..Record::spanning(start, end) }
}
