//! k6: `--out csv` and `--out json`. One row or line per metric and request; `http_req_duration` is the request
//! (`grpc_req_duration` for gRPC), everything else is skipped. Stamps mark the end; durations are milliseconds.

use csv::ByteRecord;

use super::json_lines::{Path, pick, scalar};
use super::tables::{Head, RowReader, recognised};
use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::{Clock, Style};
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

const REQUESTS: [&[u8]; 2] = [b"http_req_duration", b"grpc_req_duration"];
/// k6's code for a request that ran into the client's time limit.
const TIMEOUT: &[u8] = b"1050";

/// The tags of a point that matter.
struct Tags<'t> {
    status: &'t [u8],
    expected: &'t [u8],
    error_code: &'t [u8],
}

fn record(stamp: i64, value: &[u8], tags: &Tags<'_>) -> Result<Record, &'static str> {
    let latency = match Cell::read(value, Unit::Milliseconds, b'.') {
        Cell::Bad => return Err("the value is no number"),
        cell => cell.value(),
    };
    let mut record = Record::stamped(Some(stamp), Basis::End, latency);
    if !tags.status.is_empty() {
        record = record.with_status(Status::read(tags.status));
    }
    if tags.expected == b"false" {
        record.error = true;
    }
    if record.status.code().is_some_and(|code| code <= 0) {
        record.outcome = if tags.error_code == TIMEOUT { Outcome::TimedOut } else { Outcome::Failure };
    }
    Ok(record)
}

pub(crate) fn probe_csv(sample: &Sample, options: &Options) -> Probe {
    let Some(head) = Head::of(sample, options.fields.delimiter) else { return Ok(None) };
    if !head.has(&["metric_name", "timestamp", "metric_value"]) {
        return Ok(None);
    }
    let at = |name: &str| head.column(name);
    let stamp = at("timestamp").unwrap_or(1);
    let style =
        head.rows.iter().find_map(|row| Style::of(row.get(stamp)?)).unwrap_or(Style::Epoch(Unit::Seconds));
    let reader = Rows {
        count: head.header.len(),
        stamp,
        clock: Clock::new(style),
        value: at("metric_value").unwrap_or(2),
        status: at("status"),
        expected: at("expected_response"),
        error_code: at("error_code"),
    };
    Ok(Some(recognised(Format::K6, "CSV", Basis::End, "ms", reader, head.delimiter)))
}

struct Rows {
    count: usize,
    stamp: usize,
    clock: Clock,
    value: usize,
    status: Option<usize>,
    expected: Option<usize>,
    error_code: Option<usize>,
}

impl RowReader for Rows {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        let metric = row.get(0).unwrap_or_default();
        if metric == b"metric_name" {
            if line > 1 {
                out.skip(line, "a header line");
            }
            return;
        }
        if !REQUESTS.contains(&metric) {
            out.skip(line, "another metric");
            return;
        }
        if row.len() != self.count {
            out.bad(line, "not as many columns as the header has: the row is cut");
            return;
        }
        let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).unwrap_or_default();
        let tags = Tags {
            status: cell(self.status),
            expected: cell(self.expected),
            error_code: cell(self.error_code),
        };
        let stamp = self.clock.read(cell(Some(self.stamp)));
        match stamp.ok_or("no time stamp").and_then(|stamp| record(stamp, cell(Some(self.value)), &tags)) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(line, reason),
        }
    }
}

pub(crate) fn probe_json(sample: &Sample, _options: &Options) -> Probe {
    let wanted = wanted();
    let point = |line: &[u8]| {
        let mut found = vec![None; wanted.len()];
        line.first() == Some(&b'{')
            && pick(line, &wanted, &mut found)
            && found[0].is_some()
            && matches!(found[1], Some("\"Point\"" | "\"Metric\""))
    };
    if sample.share(point) < 0.5 {
        return Ok(None);
    }
    let style = sample.lines().find_map(|line| {
        let mut found = vec![None; wanted.len()];
        pick(line, &wanted, &mut found).then(|| Style::of(&scalar(found[2]))).flatten()
    });
    let clock = Clock::new(style.unwrap_or(Style::Iso));
    let reader = Lines::new(Points { wanted, clock }, sample);
    Ok(Some(Recognised::new(Format::K6, "JSON", Basis::End, "ms", reader)))
}

fn wanted() -> Vec<Path> {
    [
        "metric",
        "type",
        "data.time",
        "data.value",
        "data.tags.status",
        "data.tags.expected_response",
        "data.tags.error_code",
    ]
    .iter()
    .map(|path| path.split('.').map(str::to_owned).collect())
    .collect()
}

struct Points {
    wanted: Vec<Path>,
    clock: Clock,
}

impl LineReader for Points {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let mut found = vec![None; self.wanted.len()];
        if !pick(line, &self.wanted, &mut found) {
            out.bad(number, "not a JSON object");
            return;
        }
        let request = REQUESTS.contains(&scalar(found[0]).as_ref());
        if !request || found[1] != Some("\"Point\"") {
            out.skip(number, "another metric");
            return;
        }
        let (status, expected, error_code) = (scalar(found[4]), scalar(found[5]), scalar(found[6]));
        let tags = Tags { status: &status, expected: &expected, error_code: &error_code };
        let stamp = self.clock.read(&scalar(found[2]));
        match stamp.ok_or("no time").and_then(|stamp| record(stamp, &scalar(found[3]), &tags)) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(number, reason),
        }
    }
}
