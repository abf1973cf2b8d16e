//! `goodput inspect`: what was read, and what was understood.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use clap::Args;
use goodput_recordings::{
    Basis, Estimate, Evidence, Inspection, Problem, Reading, ServiceModel, Waiting, Workload,
};

use crate::{
    failure::Failure,
    plot::words::{number, percent, seconds},
    recording::Source,
    text::wrapped,
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn inspect(arguments: &Arguments) -> Result<(), Failure> {
    let read = arguments.source.read()?;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&read.inspection).map_err(io::Error::from)?)?;
    } else {
        writeln!(out, "{}", arguments.source.name())?;
        for line in read_lines(&read.inspection).into_iter().chain(service_lines(&read.inspection.workload)) {
            writeln!(out, "{}", wrapped(&format!("  {line}"), 4))?;
        }
    }
    Ok(())
}

/// What was read, a fact in each line.
pub(crate) fn read_lines(inspection: &Inspection) -> Vec<String> {
    let reading = &inspection.reading;
    let mut lines = Vec::new();
    let variant = if reading.variant.is_empty() { String::new() } else { format!(" ({})", reading.variant) };
    let amount = if inspection.records > 0 {
        format!("{} requests", number(inspection.records as f64))
    } else {
        format!("{} load steps", number(reading.steps as f64))
    };
    lines.push(format!(
        "Format: {}{variant}. {amount}; {} lines not understood, {} skipped.",
        inspection.format,
        number(inspection.unparseable_lines as f64),
        number(inspection.skipped_non_record_lines as f64)
    ));
    lines.extend(reading.assumed.iter().map(|assumed| format!("Assumed: {assumed}.")));
    lines.extend(problems(reading));
    if let (Some(first), Some(last)) = (inspection.first_ts, inspection.last_ts) {
        let span = seconds(last - first);
        lines.push(format!("Time: {} to {} ({span}). {}", instant(first), instant(last), stamps(reading)));
    }
    if !reading.latency_unit.is_empty() {
        lines.push(format!("Unit of the latency: {}.", reading.latency_unit));
    }
    if let Some(latency) = &inspection.latency_ms {
        let ms = |value: f64| seconds(value / 1e3);
        lines.push(format!(
            "Latency: mean {}; from {}, p50 {}, p90 {}, p99 {}, to {}.",
            ms(latency.mean),
            ms(latency.min),
            ms(latency.p50),
            ms(latency.p90),
            ms(latency.p99),
            ms(latency.max)
        ));
    }
    if inspection.records_without_latency > 0 {
        lines.push(format!("Without a latency: {}.", number(inspection.records_without_latency as f64)));
    }
    if let Some(flight) = &inspection.concurrency {
        let about = if flight.approximate { "about " } else { "" };
        lines.push(format!(
            "In flight: {about}{} at most, {} on average.",
            number(flight.max_in_flight_refined as f64),
            number(flight.mean_in_flight)
        ));
    }
    if !inspection.outcomes.is_empty() {
        let total = inspection.records.max(1) as f64;
        let ends = inspection.outcomes.iter().map(|(outcome, &count)| {
            format!(
                "{} {} ({})",
                outcome.name().replace('_', " "),
                number(count as f64),
                percent(count as f64 / total)
            )
        });
        lines.push(format!("Ends: {}.", ends.collect::<Vec<_>>().join(", ")));
    }
    lines.extend(reading.truncated.iter().map(|why| format!("Cut off: {why}")));
    lines.extend(reading.notes.iter().map(|note| format!("Note: {note}")));
    lines
}

/// What was understood of the service.
pub(crate) fn service_lines(workload: &Workload) -> Vec<String> {
    let mut lines = vec![format!("Service: {}", workload.verdict)];
    if let Some(capacity) = &workload.capacity_per_s {
        lines.push(format!("Capacity: {} per second.", range(capacity, round)));
    } else if let Some(least) = workload.capacity_at_least_per_s {
        lines.push(format!("Capacity: at least {} per second.", round(least)));
    }
    if let Some(latency) = &workload.no_load_latency_ms {
        let ms = |ms| seconds(ms / 1e3);
        // Nothing shows that these did not have to wait.
        let known =
            if latency.low > 0.0 { range(latency, ms) } else { format!("at most {}", ms(latency.high)) };
        lines.push(format!("Latency without a queue: {known}, as a median."));
    }
    match &workload.knee {
        Some(knee) => lines.push(format!("Knee: {} at once.", range(knee, round))),
        None => lines.push("Knee: unknown.".into()),
    }
    let about = if workload.knee.is_some_and(|knee| knee.high > 1.5 * knee.low) { "about " } else { "" };
    lines.extend(workload.service.map(|model| format!("Kind: {}.", kind(model, about))));
    let arrivals = &workload.arrivals;
    if arrivals.rate_per_s > 0.0 {
        let waiting = match arrivals.clients_wait {
            Waiting::Closed => "; clients wait for answers before they ask again",
            Waiting::Open => "; clients ask whether or not they were answered",
            Waiting::Unknown => "",
        };
        lines.push(format!(
            "Arrivals: {} per second on average, {} at most{waiting}.",
            round(arrivals.rate_per_s),
            round(arrivals.peak_per_s)
        ));
    }
    lines
}

fn kind(model: ServiceModel, about: &str) -> String {
    match model {
        ServiceModel::Queue { workers } => format!("{about}{} workers behind a queue", round(workers)),
        ServiceModel::Shared { parallelism } => {
            format!("requests share what suffices for {about}{} at once", round(parallelism))
        }
        ServiceModel::Saturating { parallelism } => {
            format!("{about}{} requests are worked on at once", round(parallelism))
        }
        ServiceModel::Slowed { workers, .. } => {
            format!(
                "{about}{} workers behind a queue, which get slower the more requests wait",
                round(workers)
            )
        }
        ServiceModel::Retrograde { .. } => "throughput falls again when too many are in it".into(),
    }
}

/// To three digits: more are never known.
fn round(value: f64) -> String {
    number(if value >= 100.0 { value.round() } else { (value * 10.0).round() / 10.0 })
}

fn range(estimate: &Estimate, write: impl Fn(f64) -> String) -> String {
    let (value, low, high) = (write(estimate.value), write(estimate.low), write(estimate.high));
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

/// The first few lines that are no requests, those together that are none for the same reason.
fn problems(reading: &Reading) -> Vec<String> {
    let mut all = Vec::new();
    for (what, problems) in [("not understood", &reading.unparseable), ("skipped", &reading.skipped)] {
        let mut by_reason: Vec<(&str, Vec<u64>)> = Vec::new();
        for Problem { line, reason } in problems {
            match by_reason.iter_mut().find(|(known, _)| known == reason) {
                Some((_, lines)) if lines.last() == Some(line) => {}
                Some((_, lines)) => lines.push(*line),
                None => by_reason.push((reason, vec![*line])),
            }
        }
        all.extend(by_reason.into_iter().map(|(reason, lines)| {
            let word = if lines.len() > 1 { "lines" } else { "line" };
            let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
            format!("  {word} {} {what}: {reason}", lines.join(", "))
        }));
    }
    all
}

/// A date, or seconds in a file that counts from the start of the run.
fn instant(stamp_s: f64) -> String {
    const YEAR_1980: f64 = 315_532_800.0;
    let date = jiff::Timestamp::from_second(stamp_s as i64).ok().filter(|_| stamp_s > YEAR_1980);
    date.map_or_else(|| format!("{stamp_s:.3} s"), |date| date.to_string())
}

fn stamps(reading: &Reading) -> String {
    let mut text = String::from(match reading.basis {
        Basis::Start => "Stamps mark the start of a request",
        Basis::End => "Stamps mark the end of a request",
        Basis::Both => "Start and end are written",
        Basis::None => return "Without stamps.".into(),
    });
    text.push_str(match reading.basis_known_from {
        Evidence::Format => "",
        Evidence::Data => ", as the order of the lines shows",
        Evidence::Assumed => ", as is usual; nothing in the file says so",
        Evidence::User => ", as you said",
    });
    if let Some(step) = reading.resolution_ns {
        // Writing to a text cannot fail.
        let _ = write!(text, ", to {}", seconds(step as f64 / 1e9));
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_only_where_there_is_one() {
        let sure = Estimate { value: 4.0, low: 4.0, high: 4.0 };
        assert_eq!(range(&sure, round), "4");
        assert_eq!(range(&Estimate { high: 6.04, ..sure }, round), "4 (4 to 6)");
    }

    #[test]
    fn stamps_of_a_run_are_seconds_and_others_are_dates() {
        assert_eq!(instant(12.5), "12.500 s");
        assert_eq!(instant(1_795_993_308.7), "2026-11-29T23:01:48Z");
    }
}
