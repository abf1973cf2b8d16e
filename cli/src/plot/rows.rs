//! Which panels a column has, from top to bottom, and the axis of each.

use super::{
    canvas::{Anchor, Canvas},
    panels::Panel,
    play::Played,
    scale::{Scale, round_up},
    words,
};

/// A row of panels, one in each column.
pub(super) struct Row {
    pub(super) panel: Panel,
    pub(super) height: f64,
    /// The axis, the same in all columns.
    pub(super) scale: Scale,
    /// Pixels between ticks, at least.
    pub(super) apart: f64,
    pub(super) number: fn(f64) -> String,
    pub(super) title: String,
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

impl Row {
    /// The rows of a picture: a row for each class where classes are told apart, else what a limit does.
    pub(super) fn all(played: &Played) -> Vec<Self> {
        let classes = played.classes();
        if classes.len() > 1 {
            let most = most_of_a_class(played, classes.len());
            return (0..classes.len()).map(|class| Self::of_class(played, class, most)).collect();
        }
        let mut rows =
            vec![Self::limit(played), Self::per_second(played), Self::latency(played), Self::refused()];
        if played.scenario.clients.iter().any(|clients| clients.retries.is_some()) {
            rows.push(Self::retrying(played));
        }
        rows
    }

    fn limit(played: &Played) -> Self {
        let (height, (least, greatest)) = (112.0, limits_to_show(played));
        Self {
            panel: Panel::Limit,
            height,
            scale: Scale::logarithmic(least, greatest, height),
            apart: 15.0,
            number: words::number,
            title: "Requests at once".into(),
            key: &[
                (Mark::Own, "limit"),
                (Mark::Area("band"), "as good as the best limit"),
                (Mark::Line("flight"), "in flight"),
            ],
        }
    }

    fn per_second(played: &Played) -> Self {
        let height = 96.0;
        let capacity = played.segments.iter().map(|segment| segment.capacity_per_second).fold(0.0, f64::max);
        let attempts = played.most_per_step(|moment| moment.counts.attempts);
        // Retries without bound would press everything else flat.
        let most = attempts.min(4.0 * capacity).max(1.1 * capacity);
        Self {
            panel: Panel::PerSecond,
            height,
            scale: Scale::linear(round_up(most * 1.02), height),
            apart: 20.0,
            number: words::number,
            title: "Requests per second".into(),
            key: &[
                (Mark::OwnArea, "good"),
                (Mark::Area("vain"), "admitted in vain"),
                (Mark::Line("offered"), "offered"),
                (Mark::Line("capacity"), "capacity"),
            ],
        }
    }

    fn latency(played: &Played) -> Self {
        let height = 84.0;
        let work = played.scenario.service.work.mean_ns() / 1e9;
        let deadline = played.scenario.deadline.map_or(work * 20.0, |deadline| deadline.as_secs_f64());
        let fastest = played
            .moments()
            .filter(|moment| !moment.p50.is_zero())
            .map(|moment| moment.p50.as_secs_f64())
            .fold(deadline, f64::min);
        Self {
            panel: Panel::Latency,
            height,
            scale: Scale::logarithmic(fastest.max(work / 4.0) * 0.8, deadline * 8.0, height),
            apart: 15.0,
            number: words::seconds_of_axis,
            title: "Latency of answers".into(),
            key: &[(Mark::OwnSpread, "p50 to p99"), (Mark::Line("deadline"), "deadline")],
        }
    }

    fn refused() -> Self {
        let height = 52.0;
        Self {
            panel: Panel::Refused,
            height,
            scale: Scale::linear(1.0, height),
            apart: 20.0,
            number: words::percent_of_axis,
            title: "Refused, of what was asked".into(),
            key: &[(Mark::OwnArea, "refused"), (Mark::Line("need"), "what no limit could have served")],
        }
    }

    fn retrying(played: &Played) -> Self {
        let height = 64.0;
        let most = played.moments().map(|moment| moment.retrying).max().unwrap_or(0) as f64;
        Self {
            panel: Panel::Retrying,
            height,
            scale: Scale::linear(round_up(most * 1.02), height),
            apart: 20.0,
            number: words::number,
            title: "Failed, and tried again".into(),
            key: &[(Mark::OwnArea, "requests at a time")],
        }
    }

    fn of_class(played: &Played, class: usize, most: f64) -> Self {
        let height = 72.0;
        let name = &played.classes()[class].name;
        let key: &[_] = &[
            (Mark::OwnArea, "answered in time"),
            (Mark::Area("vain"), "admitted in vain"),
            (Mark::Area("turned"), "refused"),
            (Mark::Line("offered"), "offered"),
        ];
        Self {
            panel: Panel::OfClass(class),
            height,
            scale: Scale::linear(round_up(most * 1.02), height),
            apart: 20.0,
            number: words::number,
            title: if class == 0 { format!("{name}, requests per second") } else { name.clone() },
            key: if class == 0 { key } else { &[] },
        }
    }

    /// What the row shows, and what its marks mean.
    pub(super) fn head(&self, canvas: &mut Canvas, left: f64, y: f64, pens: &[String]) {
        canvas.text(left, y, "row", Anchor::Start, &self.title);
        let mut x = left + words::width(&self.title, 12.0) * 1.15 + 18.0;
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

/// Requests of one class per second, at most.
fn most_of_a_class(played: &Played, classes: usize) -> f64 {
    let of = |class: usize| {
        played.most_per_step(move |moment| moment.classes.get(class).map_or(0, |counts| counts.attempts))
    };
    (0..classes).map(of).fold(0.0, f64::max)
}
