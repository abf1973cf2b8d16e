//! The numbers behind a picture, as CSV.

use std::io;

use goodput_simulator::{Counts, Moment};
use serde::Serialize;

use super::{load::LoadCurves, play::Played};
use crate::failure::Failure;

/// A column of the numbers over time.
type Number = (&'static str, fn(&Moment) -> String);

/// A column of counts.
type Count = (&'static str, fn(&Counts) -> u64);

/// What happened in one step of a run: levels of its end, and counts of the step.
const OVER_TIME: &[Number] = &[
    ("at_s", |moment| moment.at.as_secs_f64().to_string()),
    ("limit", |moment| moment.limit.map_or_else(String::new, |limit| format!("{limit:?}"))),
    ("in_flight", |moment| moment.in_flight.to_string()),
    ("waiting", |moment| moment.waiting.to_string()),
    ("retrying", |moment| moment.retrying.to_string()),
    ("queued", |moment| moment.queued.to_string()),
    ("in_service", |moment| moment.in_service.to_string()),
    ("p50_ms", |moment| (moment.p50.as_secs_f64() * 1e3).to_string()),
    ("p99_ms", |moment| (moment.p99.as_secs_f64() * 1e3).to_string()),
];

/// The counts of a step, of all requests and then of each class.
const COUNTS: &[Count] = &[
    ("offered", |counts| counts.offered),
    ("attempts", |counts| counts.attempts),
    ("admitted", |counts| counts.admitted),
    ("good", |counts| counts.good),
    ("late", |counts| counts.late),
    ("failed", |counts| counts.failed),
    ("timed_out", |counts| counts.timed_out),
    ("refused", |counts| counts.refused.total()),
];

/// Goodput at one load.
#[derive(Serialize)]
struct AtLoad<'a> {
    algorithm: &'a str,
    load: f64,
    goodput_of_capacity: f64,
}

pub(super) fn over_time(played: &Played) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = OVER_TIME.iter().map(|(name, _)| (*name).to_owned());
    let counts = COUNTS.iter().map(|(name, _)| (*name).to_owned());
    let of_classes = played
        .classes()
        .iter()
        .flat_map(|class| COUNTS.iter().map(move |(name, _)| format!("{name} {}", class.name)));
    let header = ["algorithm".to_owned()].into_iter().chain(names).chain(counts).chain(of_classes);
    writer.write_record(header).map_err(io::Error::from)?;
    for column in &played.columns {
        for moment in &column.trace.moments {
            let numbers = OVER_TIME.iter().map(|(_, number)| number(moment));
            let all = [&moment.counts].into_iter().chain(&moment.classes);
            let counts = all.flat_map(|counts| COUNTS.iter().map(|(_, count)| count(counts).to_string()));
            let row = [column.name.clone()].into_iter().chain(numbers).chain(counts);
            writer.write_record(row).map_err(io::Error::from)?;
        }
    }
    into_text(writer)
}

pub(super) fn against_load(curves: &LoadCurves) -> Result<String, Failure> {
    to_csv(curves.curves.iter().flat_map(|curve| {
        curves.loads.iter().zip(&curve.goodput).map(|(&load, &goodput)| AtLoad {
            algorithm: &curve.name,
            load,
            goodput_of_capacity: goodput,
        })
    }))
}

fn to_csv(rows: impl Iterator<Item = impl Serialize>) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(io::Error::from)?;
    }
    into_text(writer)
}

fn into_text(writer: csv::Writer<Vec<u8>>) -> Result<String, Failure> {
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
