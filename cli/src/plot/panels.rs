//! The four panels of a column: the limit, requests per second, latency, refusals.

use std::{collections::BTreeMap, time::Duration};

use goodput_simulator::{Moment, Segment};

use super::{
    canvas::{Anchor, Canvas},
    play::{Column, Played},
    scale::{Scale, round_up},
    words,
};

/// Whose axis it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Measure {
    Limit,
    PerSecond,
    Latency,
    Refused,
}

/// A row of panels.
pub(super) struct Row {
    pub(super) measure: Measure,
    pub(super) height: f64,
    /// Pixels between ticks, at least.
    pub(super) apart: f64,
    pub(super) number: fn(f64) -> String,
    pub(super) draw: fn(&mut Canvas, &Frame<'_>, &Column, &str),
    title: &'static str,
    key: &'static [(Mark, &'static str)],
}

/// A sample of what a word in the key stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mark {
    /// A line in the algorithm's colour.
    Own,
    /// A faint line in the algorithm's colour.
    OwnArea,
    /// An area between two lines in the algorithm's colour.
    OwnSpread,
    /// A line of this class.
    Line(&'static str),
    /// An area of this class.
    Area(&'static str),
}

/// The rows, from top to bottom.
pub(super) const ROWS: [Row; 4] = [
    Row {
        measure: Measure::Limit,
        height: 112.0,
        apart: 15.0,
        number: words::number,
        draw: limit,
        title: "Requests at once",
        key: &[
            (Mark::Own, "limit"),
            (Mark::Area("band"), "as good as the best limit"),
            (Mark::Line("flight"), "in flight"),
        ],
    },
    Row {
        measure: Measure::PerSecond,
        height: 96.0,
        apart: 20.0,
        number: words::number,
        draw: per_second,
        title: "Requests per second",
        key: &[
            (Mark::OwnArea, "good"),
            (Mark::Area("vain"), "admitted in vain"),
            (Mark::Line("offered"), "offered"),
            (Mark::Line("capacity"), "capacity"),
        ],
    },
    Row {
        measure: Measure::Latency,
        height: 84.0,
        apart: 15.0,
        number: words::seconds_of_axis,
        draw: latency,
        title: "Latency of answers",
        key: &[(Mark::OwnSpread, "p50 to p99"), (Mark::Line("deadline"), "deadline")],
    },
    Row {
        measure: Measure::Refused,
        height: 52.0,
        apart: 20.0,
        number: words::percent_of_axis,
        draw: refused,
        title: "Refused, of what was asked",
        key: &[(Mark::OwnArea, "refused"), (Mark::Line("need"), "what no limit could have served")],
    },
];

impl Row {
    /// What the row shows, and what its marks mean.
    pub(super) fn head(&self, canvas: &mut Canvas, left: f64, y: f64, pens: &[String]) {
        canvas.text(left, y, "row", Anchor::Start, self.title);
        let mut x = left + words::width(self.title, 12.0) * 1.06 + 18.0;
        for &(mark, word) in self.key {
            mark.draw(canvas, x, y - 4.0, pens);
            canvas.text(x + 23.0, y, "", Anchor::Start, word);
            x += 23.0 + words::width(word, 11.0) + 16.0;
        }
    }
}

impl Mark {
    /// 18 pixels wide, around the height `y`.
    fn draw(self, canvas: &mut Canvas, x: f64, y: f64, pens: &[String]) {
        let own = |canvas: &mut Canvas, class: &str, height: f64| {
            let wide = 18.0 / pens.len().min(3) as f64;
            for (index, pen) in pens.iter().take(3).enumerate() {
                let from = x + index as f64 * wide;
                canvas.rectangle(&format!("{pen} {class}"), from, y - height / 2.0, wide, height);
            }
        };
        match self {
            Self::Own => own(canvas, "swatch", 2.4),
            Self::OwnArea => own(canvas, "area", 9.0),
            Self::OwnSpread => {
                own(canvas, "spread", 9.0);
                own(canvas, "swatch", 1.6);
            }
            Self::Line(class) => canvas.rule(class, (x, y), (x + 18.0, y)),
            Self::Area(class) => canvas.rectangle(class, x, y - 4.5, 18.0, 9.0),
        }
    }
}

/// One axis for each row, the same in all columns.
#[derive(Debug)]
pub(super) struct Rows {
    scales: [Scale; 4],
}

impl Rows {
    pub(super) fn new(played: &Played) -> Self {
        let moments = || played.columns.iter().flat_map(|column| &column.trace.moments);
        let step = played.columns.first().map_or(1.0, |column| column.trace.step.as_secs_f64());
        let capacity = played.segments.iter().map(|segment| segment.capacity_per_second).fold(0.0, f64::max);
        let attempts = moments().map(|moment| moment.counts.attempts as f64 / step).fold(0.0, f64::max);
        // Retries without bound would press everything else flat.
        let most = attempts.min(4.0 * capacity).max(1.1 * capacity);
        let work = played.scenario.service.work.mean_ns() / 1e9;
        let deadline = played.scenario.deadline.map_or(work * 20.0, |deadline| deadline.as_secs_f64());
        let fastest = moments()
            .filter(|moment| !moment.p50.is_zero())
            .map(|moment| moment.p50.as_secs_f64())
            .fold(deadline, f64::min);
        let scale = |measure| ROWS.iter().find(|row| row.measure == measure).map_or(1.0, |row| row.height);
        let (least, greatest) = limits_to_show(played);
        Self {
            scales: [
                Scale::logarithmic(least, greatest, scale(Measure::Limit)),
                Scale::linear(round_up(most * 1.02), scale(Measure::PerSecond)),
                Scale::logarithmic(fastest.max(work / 4.0) * 0.8, deadline * 8.0, scale(Measure::Latency)),
                Scale::linear(1.0, scale(Measure::Refused)),
            ],
        }
    }

    pub(super) const fn scale(&self, measure: Measure) -> &Scale {
        &self.scales[measure as usize]
    }
}

/// The limits between which the best ones can be told apart, and some way beyond.
fn limits_to_show(played: &Played) -> (f64, f64) {
    let bands = played.best.iter().flat_map(|(oracle, bands)| {
        oracle.limits.iter().map(|&(_, limit)| limit).chain(bands.iter().filter_map(|band| band.high))
    });
    let bands: Vec<_> = bands.collect();
    // As many as keep the service busy, by Little's law.
    let work_s = played.scenario.service.work.mean_ns() / 1e9;
    let busy =
        played.segments.iter().map(|segment| segment.capacity_per_second * work_s).fold(f64::MAX, f64::min);
    let gates = played.scenario.open_doors().max(1) as f64;
    let least = bands.iter().min().map_or(f64::MAX, |&limit| limit as f64).min(busy / gates);
    let greatest = bands.iter().max().map_or(100.0, |&limit| limit as f64);
    ((least / 8.0).max(0.8), greatest * 12.0)
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
            canvas.text(x, self.y + 11.0, &format!("small {pen} word"), Anchor::End, &text);
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
