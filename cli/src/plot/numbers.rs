//! The numbers behind a picture, as CSV.

use std::io;

use serde::Serialize;

use super::{load::LoadCurves, play::Played};
use crate::failure::Failure;

/// What happened in one step of a run. Counts are of the step, levels of its end.
#[derive(Serialize)]
struct Step<'a> {
    algorithm: &'a str,
    at_s: f64,
    limit: Option<f64>,
    in_flight: usize,
    waiting: usize,
    queued: usize,
    in_service: usize,
    offered: u64,
    attempts: u64,
    admitted: u64,
    good: u64,
    late: u64,
    failed: u64,
    timed_out: u64,
    refused: u64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Goodput at one load.
#[derive(Serialize)]
struct AtLoad<'a> {
    algorithm: &'a str,
    load: f64,
    goodput_of_capacity: f64,
}

pub(super) fn over_time(played: &Played) -> Result<String, Failure> {
    let steps = played.columns.iter().flat_map(|column| {
        column.trace.moments.iter().map(|moment| Step {
            algorithm: &column.name,
            at_s: moment.at.as_secs_f64(),
            limit: moment.limit,
            in_flight: moment.in_flight,
            waiting: moment.waiting,
            queued: moment.queued,
            in_service: moment.in_service,
            offered: moment.counts.offered,
            attempts: moment.counts.attempts,
            admitted: moment.counts.admitted,
            good: moment.counts.good,
            late: moment.counts.late,
            failed: moment.counts.failed,
            timed_out: moment.counts.timed_out,
            refused: moment.counts.refused.total(),
            p50_ms: moment.p50.as_secs_f64() * 1e3,
            p99_ms: moment.p99.as_secs_f64() * 1e3,
        })
    });
    to_csv(steps)
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
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
