//! Tables that are recognised by their header: results of load generators, and published traces.

use csv::ByteRecord;

use super::{Head, RowReader, recognised};
use crate::error::ReadError;
use crate::formats::{Format, Probe};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::duration::{Cell, Unit};
use crate::quantity::instant::{Clock, Style};
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

/// A table of requests whose header is known.
struct Known {
    format: Format,
    variant: &'static str,
    /// Columns by which it is recognised.
    header: &'static [&'static str],
    stamp: &'static str,
    /// How the stamps are written; `None` for dates.
    stamp_unit: Option<Unit>,
    basis: Basis,
    /// The completion, where the table has both.
    end: Option<&'static str>,
    latency: &'static str,
    unit: Unit,
    status: Option<&'static str>,
    /// A column that holds one of these values in the rows that are requests.
    only: Option<(&'static str, &'static [&'static str])>,
    /// Whether the header counts as a skipped line.
    header_counts: bool,
}

const BARE: Known = Known {
    format: Format::GenericCsv,
    variant: "",
    header: &[],
    stamp: "",
    stamp_unit: Some(Unit::Seconds),
    basis: Basis::Start,
    end: None,
    latency: "",
    unit: Unit::Seconds,
    status: None,
    only: None,
    header_counts: false,
};

const KNOWN: &[Known] = &[
    Known {
        format: Format::Hey,
        variant: "CSV",
        header: &["response-time", "Response-delay", "Response-read"],
        stamp: "offset",
        latency: "response-time",
        status: Some("status-code"),
        header_counts: true,
        ..BARE
    },
    Known {
        format: Format::Oha,
        variant: "CSV",
        header: &["request-start", "request-duration"],
        stamp: "request-start",
        latency: "request-duration",
        status: Some("status"),
        header_counts: true,
        ..BARE
    },
    Known {
        format: Format::Ab,
        variant: "-g table",
        header: &["starttime", "seconds", "ctime", "dtime", "ttime", "wait"],
        stamp: "seconds",
        latency: "ttime",
        unit: Unit::Milliseconds,
        header_counts: true,
        ..BARE
    },
    Known {
        format: Format::Truth,
        variant: "arrival, start and end",
        header: &["arrival_us", "start_us", "end_us"],
        stamp: "arrival_us",
        stamp_unit: Some(Unit::Microseconds),
        basis: Basis::Both,
        end: Some("end_us"),
        status: Some("status"),
        unit: Unit::Microseconds,
        ..BARE
    },
    Known {
        format: Format::Goodput,
        variant: "request list",
        header: &["start_ns", "latency_ns", "outcome"],
        stamp: "start_ns",
        stamp_unit: Some(Unit::Nanoseconds),
        latency: "latency_ns",
        unit: Unit::Nanoseconds,
        status: Some("status"),
        ..BARE
    },
    Known {
        format: Format::TraceCsv,
        variant: "spans",
        header: &["TraceID", "SpanID", "ParentID", "StartTimeUnixNano", "EndTimeUnixNano"],
        stamp: "StartTimeUnixNano",
        stamp_unit: Some(Unit::Nanoseconds),
        basis: Basis::Both,
        end: Some("EndTimeUnixNano"),
        unit: Unit::Nanoseconds,
        only: Some(("ParentID", &["root", "", "-", "null", "0", "0000000000000000"])),
        ..BARE
    },
    Known {
        format: Format::AzureFunctions,
        variant: "2021 invocations",
        header: &["app", "func", "end_timestamp", "duration"],
        stamp: "end_timestamp",
        basis: Basis::End,
        latency: "duration",
        ..BARE
    },
    Known {
        format: Format::Alibaba,
        variant: "GenAI serving",
        header: &["gmt_create", "predict_status", "exec_time_seconds"],
        stamp: "gmt_create",
        stamp_unit: None,
        latency: "exec_time_seconds",
        status: Some("predict_status"),
        ..BARE
    },
    Known {
        format: Format::AzureLlm,
        variant: "arrivals of LLM requests",
        header: &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        stamp: "TIMESTAMP",
        stamp_unit: None,
        ..BARE
    },
];

/// Tables that hold no requests: their header, what they are, what to give instead.
const NOT_REQUESTS: &[(&[&str], &str, &str)] = &[
    (
        &["Percentage served", "Time in ms"],
        "ab's table of percentiles, which has neither times nor a rate",
        "give the per-request table that ab -g writes",
    ),
    (
        &["Method", "Name", "Error", "Occurrences"],
        "locust's list of failures",
        "give the file _stats_history.csv of the same run",
    ),
    (
        &["concurrency_limit", "gradient", "min_rtt_msecs"],
        "gauges of an adaptive limiter, not requests",
        "give the access log of the same run",
    ),
    (&["Name", "# requests", "# failures"], "a statistics table without times", "give per-request results"),
];

pub(crate) fn probe(head: &Head, sample: &Sample, options: &Options) -> Probe {
    if let Some((_, what, remedy)) = NOT_REQUESTS.iter().find(|(header, ..)| head.has(header)) {
        return Err(ReadError::NotARecording { what, remedy });
    }
    if let Some(known) = KNOWN.iter().find(|known| head.has(known.header)) {
        let at = |name: &str| head.column(name);
        let reader = KnownRows {
            known,
            header: head.header.clone(),
            stamp: at(known.stamp),
            clock: Clock::new(known.stamp_unit.map_or(Style::Iso, Style::Epoch)),
            end: known.end.and_then(at),
            latency: at(known.latency),
            status: known.status.and_then(at),
            outcome: at("outcome").filter(|_| known.format == Format::Goodput),
            service: at("service_ns").filter(|_| known.format == Format::Goodput),
            nested: at("nested").filter(|_| known.format == Format::Goodput),
            only: known.only.and_then(|(name, values)| Some((at(name)?, values))),
        };
        let basis = if reader.stamp.is_none() { Basis::None } else { known.basis };
        let mut recognised =
            recognised(known.format, known.variant, basis, known.unit.to_string(), reader, head.delimiter);
        if known.stamp_unit.is_none() {
            recognised.notes.push("the dates carry no zone and were read as UTC".to_owned());
        }
        return Ok(Some(recognised));
    }
    minutes(head, sample, options)
}

struct KnownRows {
    known: &'static Known,
    header: Vec<String>,
    stamp: Option<usize>,
    clock: Clock,
    end: Option<usize>,
    latency: Option<usize>,
    status: Option<usize>,
    outcome: Option<usize>,
    service: Option<usize>,
    nested: Option<usize>,
    only: Option<(usize, &'static [&'static str])>,
}

impl RowReader for KnownRows {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        if row.get(0).is_some_and(|first| self.header[0].as_bytes() == first.trim_ascii())
            && row.len() == self.header.len()
        {
            if self.known.header_counts || line > 1 {
                out.skip(line, "a header line");
            }
            return;
        }
        match self.record(row) {
            Ok(Some(record)) => out.record(record),
            Ok(None) => out.skip(line, "a span below another one"),
            Err(reason) => out.bad(line, reason),
        }
    }
}

impl KnownRows {
    fn record(&mut self, row: &ByteRecord) -> Result<Option<Record>, &'static str> {
        if row.len() != self.header.len() {
            return Err("not as many columns as the header has");
        }
        let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).unwrap_or_default().trim_ascii();
        if let Some((at, values)) = self.only
            && !values.iter().any(|value| value.as_bytes() == cell(Some(at)))
        {
            return Ok(None);
        }
        let stamp = match self.stamp {
            // A converted recording without stamps.
            Some(_) if self.known.format == Format::Goodput && cell(self.stamp).is_empty() => None,
            Some(_) => Some(self.clock.read(cell(self.stamp)).ok_or("no time stamp")?),
            None => None,
        };
        let latency = match Cell::read(cell(self.latency), self.known.unit, b'.') {
            Cell::Bad => return Err("the latency is no number"),
            latency => latency.value(),
        };
        let mut record = match (stamp, self.end) {
            (Some(start), Some(_)) => {
                let end = self.clock.read(cell(self.end)).ok_or("no end")?;
                Record::spanning(start, end)
            }
            (Some(stamp), None) => Record::stamped(Some(stamp), self.known.basis, latency),
            (None, _) => Record::unstamped(latency),
        };
        if self.status.is_some() {
            self.judge(&mut record, Status::read(cell(self.status)));
        }
        if self.outcome.is_some() {
            let wanted = cell(self.outcome);
            record.outcome = Outcome::ALL
                .into_iter()
                .find(|outcome| outcome.name().as_bytes() == wanted)
                .ok_or("an outcome that is none of success, refused, timed_out, failure, cancelled")?;
            record.service = Cell::read(cell(self.service), Unit::Nanoseconds, b'.').value();
            record.nested = cell(self.nested) == b"true";
        }
        Ok(Some(record))
    }

    fn judge(&self, record: &mut Record, status: Status) {
        match self.known.format {
            Format::Alibaba => {
                let failed = !matches!(&status, Status::Text(text) if text == "SUCCEED");
                record.error = failed;
                record.outcome = if failed { Outcome::Failure } else { Outcome::Success };
                record.status = status;
            }
            // A list that has been converted keeps no status where there was none.
            Format::Goodput if status == Status::Absent => {}
            _ => *record = record.clone().with_status(status),
        }
    }
}

/// Requests by minute, without a header: `1998-05-14 22:00,964`.
fn minutes(head: &Head, sample: &Sample, _options: &Options) -> Probe {
    let minute = |date: &[u8], count: &[u8]| {
        date.len() == 16
            && Style::Iso.parse(date).is_some()
            && !count.is_empty()
            && count.iter().all(u8::is_ascii_digit)
    };
    let fits = head.header.len() == 2 && minute(head.header[0].as_bytes(), head.header[1].as_bytes());
    if !fits || sample.share(|line| line.iter().filter(|b| **b == b',').count() == 1) < 0.9 {
        return Ok(None);
    }
    let reader = Minutes { clock: Clock::new(Style::Iso) };
    Ok(Some(recognised(Format::WorldCup98, "requests by minute", Basis::None, "", reader, head.delimiter)))
}

struct Minutes {
    clock: Clock,
}

impl RowReader for Minutes {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        let start = row.get(0).and_then(|date| self.clock.read(date));
        let count = row.get(1).and_then(|text| std::str::from_utf8(text).ok()?.trim().parse::<u32>().ok());
        match (start, count) {
            (Some(start), Some(count)) => out.step(crate::record::Step {
                start: Some(start),
                seconds: 60.0,
                offered_per_s: Some(f64::from(count) / 60.0),
                ..Default::default()
            }),
            _ => out.bad(line, "not a minute and a number"),
        }
    }
}
