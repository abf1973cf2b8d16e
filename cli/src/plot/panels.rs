//! What each panel of a column shows: the limit, requests per second, latency, refusals, retries, or one class.

use std::{collections::BTreeMap, time::Duration};

use goodput_simulator::{Counts, Moment, Segment};

use super::{
    canvas::{Anchor, Canvas},
    play::{Column, Played},
    scale::Scale,
    words,
};

/// What a panel shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Panel {
    Limit,
    PerSecond,
    Latency,
    Refused,
    Retrying,
    /// Requests per second of one class.
    OfClass(usize),
}

impl Panel {
    pub(super) fn draw(self, canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
        match self {
            Self::Limit => limit(canvas, frame, column, pen),
            Self::PerSecond => per_second(canvas, frame, column, pen),
            Self::Latency => latency(canvas, frame, column, pen),
            Self::Refused => refused(canvas, frame, column, pen),
            Self::Retrying => retrying(canvas, frame, column, pen),
            Self::OfClass(class) => of_class(canvas, frame, column, pen, class),
        }
    }
}

/// Where a panel is, and what it shows.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) played: &'a Played,
    pub(super) time: Scale,
    pub(super) scale: Scale,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) height: f64,
}

impl Frame<'_> {
    fn at(&self, instant: Duration) -> f64 {
        self.x + self.time.at(instant.as_secs_f64())
    }

    fn level(&self, value: f64) -> f64 {
        self.y + self.height - self.scale.at(value)
    }

    /// A point for each step, in its middle.
    fn over_time(&self, column: &Column, value: impl Fn(&Moment) -> Option<f64>) -> Vec<Option<(f64, f64)>> {
        let half = column.trace.step / 2;
        let point =
            |moment: &Moment| Some((self.at(moment.at.saturating_sub(half)), self.level(value(moment)?)));
        column.trace.moments.iter().map(point).collect()
    }

    /// The bottom of the panel under each step.
    fn bottom(&self, column: &Column) -> Vec<Option<(f64, f64)>> {
        self.over_time(column, |_| Some(0.0))
    }

    /// A level for each stretch of time.
    fn steps(&self, canvas: &mut Canvas, class: &str, value: impl Fn(&Segment) -> Option<f64>) {
        let mut points = Vec::new();
        for segment in &self.played.segments {
            let level = value(segment).map(|value| self.level(value));
            points.push(level.map(|level| (self.at(segment.from), level)));
            points.push(level.map(|level| (self.at(segment.until), level)));
        }
        canvas.line(class, &points);
    }

    /// Says how far above the panel the greatest value lies, if it does.
    fn above(&self, canvas: &mut Canvas, pen: &str, greatest: Option<f64>, number: fn(f64) -> String) {
        if let Some(greatest) = greatest.filter(|&greatest| greatest > self.scale.high() * 1.05) {
            let x = self.at(self.played.scenario.length) - 4.0;
            let text = format!("▲ up to {}", number(greatest));
            for class in ["small halo", &format!("small {pen} word")] {
                canvas.text(x, self.y + 11.0, class, Anchor::End, &text);
            }
        }
    }
}

fn limit(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
    for band in frame.played.best.iter().flat_map(|(_, bands)| bands) {
        let (from, until) = (frame.at(band.from), frame.at(band.until));
        let top = frame.level(band.high.map_or(f64::MAX, |high| high as f64));
        canvas.rectangle("band", from, top, until - from, frame.level(band.low as f64) - top);
    }
    let gates = gates(column);
    let share = gates.len().max(1) as f64;
    canvas.line("flight", &frame.over_time(column, |moment| Some(moment.in_flight as f64 / share)));
    if gates.len() > 1 {
        for steps in gates.values() {
            let end = steps.last().map(|&(_, limit)| (frame.played.scenario.length, limit));
            let points: Vec<_> = steps
                .iter()
                .copied()
                .chain(end)
                .map(|(at, limit)| Some((frame.at(at), frame.level(limit))))
                .collect();
            canvas.line(&format!("{pen} thin"), &points);
        }
    } else {
        canvas.line(&format!("{pen} line"), &frame.over_time(column, |moment| moment.limit));
    }
    let limits = || column.trace.moments.iter().filter_map(|moment| moment.limit);
    let flights = column.trace.moments.iter().map(|moment| moment.in_flight as f64);
    let greatest =
        if limits().next().is_some() { limits().reduce(f64::max) } else { flights.reduce(f64::max) };
    frame.above(canvas, pen, greatest, words::number);
}

/// When the limit of each gate moved, and to what.
fn gates(column: &Column) -> BTreeMap<usize, Vec<(Duration, f64)>> {
    let mut gates: BTreeMap<usize, Vec<(Duration, f64)>> = BTreeMap::new();
    for one in &column.trace.decisions {
        let steps = gates.entry(one.gate).or_insert_with(|| vec![(one.at, one.previous_limit as f64)]);
        // One point for each step of the trace is as much as can be seen.
        if steps.last().is_some_and(|&(at, _)| at + column.trace.step <= one.at) {
            steps.push((one.at, one.decision.limit as f64));
        }
    }
    gates
}

fn per_second(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
    let step = column.trace.step.as_secs_f64();
    let per_second =
        |count: fn(&Moment) -> u64| frame.over_time(column, move |moment| Some(count(moment) as f64 / step));
    let bottom = frame.bottom(column);
    canvas.between("vain", &per_second(|moment| moment.counts.admitted), &bottom);
    canvas.between(&format!("{pen} area"), &per_second(|moment| moment.counts.good), &bottom);
    canvas.line("offered", &per_second(|moment| moment.counts.attempts));
    frame.steps(canvas, "capacity", |segment| Some(segment.capacity_per_second));
    let most =
        column.trace.moments.iter().map(|moment| moment.counts.attempts as f64 / step).reduce(f64::max);
    frame.above(canvas, pen, most, words::number);
}

fn latency(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
    let some = |latency: Duration| (!latency.is_zero()).then_some(latency.as_secs_f64());
    if let Some(deadline) = frame.played.scenario.deadline {
        frame.steps(canvas, "deadline", |_| Some(deadline.as_secs_f64()));
    }
    let (p50, p99) = (
        frame.over_time(column, |moment| some(moment.p50)),
        frame.over_time(column, |moment| some(moment.p99)),
    );
    canvas.between(&format!("{pen} spread"), &p99, &p50);
    canvas.line(&format!("{pen} line"), &p50);
    canvas.line(&format!("{pen} thin"), &p99);
    let slowest = column.trace.moments.iter().map(|moment| moment.p99.as_secs_f64()).reduce(f64::max);
    frame.above(canvas, pen, slowest, words::seconds);
}

fn refused(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
    let share = |moment: &Moment| {
        let attempts = moment.counts.attempts.max(1) as f64;
        Some((moment.counts.refused.total() as f64 / attempts).min(1.0))
    };
    canvas.between(&format!("{pen} area"), &frame.over_time(column, share), &frame.bottom(column));
    // Retries multiply what is asked; what could not have been served is a share of the first attempts.
    if frame.played.scenario.clients.iter().all(|clients| clients.retries.is_none()) {
        frame.steps(canvas, "need", |segment| Some((1.0 - 1.0 / segment.load()?).max(0.0)));
    }
}

fn retrying(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str) {
    let retrying = frame.over_time(column, |moment| Some(moment.retrying as f64));
    canvas.between(&format!("{pen} area"), &retrying, &frame.bottom(column));
}

fn of_class(canvas: &mut Canvas, frame: &Frame<'_>, column: &Column, pen: &str, class: usize) {
    let step = column.trace.step.as_secs_f64();
    let per_second = |count: fn(&Counts) -> u64| {
        frame.over_time(column, move |moment| Some(count(moment.classes.get(class)?) as f64 / step))
    };
    let bottom = frame.bottom(column);
    let admitted = per_second(|counts| counts.admitted);
    canvas.between("turned", &per_second(|counts| counts.admitted + counts.refused.total()), &admitted);
    canvas.between("vain", &admitted, &bottom);
    canvas.between(&format!("{pen} area"), &per_second(|counts| counts.good), &bottom);
    canvas.line("offered", &per_second(|counts| counts.attempts));
}
