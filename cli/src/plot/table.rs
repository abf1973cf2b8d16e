//! Tables of figures, for a page and for a terminal.

use std::{collections::BTreeMap, time::Duration};

use comfy_table::{CellAlignment, presets};
use goodput_simulator::{Part, Summary, score::geometric_mean};

use super::{
    load::LoadCurves,
    play::{Entrant, Played, Verdict},
    words::{number, percent, seconds},
};

/// What the scores of [`at_a_glance`] mean.
pub(super) const GLANCE: &str = "\
Scores: goodput over the oracle's, times 1.5 over the worse of the ratios of p50 and p99 to the oracle's where they \
exceed 1.5, times Jain's fairness where several limiters share a service. The oracle is the best limit for each \
stretch of time, found by trying them all, which no limiter can know beforehand. 1 is perfect; the last column is the \
geometric mean.";

/// Names in the first column, numbers in the others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// In Markdown.
    pub(super) fn for_page(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut marks = vec!["---:".to_owned(); self.header.len()];
        if let Some(first) = marks.first_mut() {
            "---".clone_into(first);
        }
        let rows = self.rows.iter().map(|row| line(row));
        [line(&self.header), line(&marks)].into_iter().chain(rows).collect()
    }

    /// In columns, with a line break at the end.
    pub(super) fn for_terminal(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::ASCII_MARKDOWN).set_header(&self.header).add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
        lines.collect()
    }
}

/// What the columns of [`of_runs`] mean.
pub(super) const FIGURES: &str = "\
*Best limits* is the oracle. *Of the best* is good answers over the oracle's; above 100 % where the oracle gave up to \
2 % for a shorter p99. Latencies are those of all that was admitted, answers that came too late included. *Refused at \
load ≤ 0.8* should be nothing. *Fairness* is Jain's index of what the clients got. *Converges in*: how long after a \
change the limit is where it should be, as a mean over the stretches of time in which a limit has to refuse; a stretch \
in which it never is counts whole. *Wavers by*: the standard deviation of the limit's logarithm after that.";

/// The columns of [`of_runs`].
const RUNS: [&str; 12] = [
    "",
    "score",
    "good/s",
    "of the best",
    "p50",
    "p99",
    "refused",
    "refused at load ≤ 0.8",
    "fairness",
    "mean limit",
    "converges in",
    "wavers by",
];

/// The figures of the runs of one scenario, the oracle first.
pub(super) fn of_runs(played: &Played) -> Table {
    let oracle = played.best.iter().map(|(oracle, _)| run_row("best limits", &oracle.summary, None));
    let columns =
        played.columns.iter().map(|column| run_row(&column.label, &column.summary, column.verdict.as_ref()));
    let rows = oracle.chain(columns).map(|row| row.to_vec()).collect();
    Table { header: RUNS.map(str::to_owned).to_vec(), rows }
}

fn run_row(name: &str, summary: &Summary, verdict: Option<&Verdict>) -> [String; RUNS.len()] {
    let total = summary.total();
    let refused = total.counts.refused.total() as f64 / total.counts.attempts.max(1) as f64;
    let score = verdict.map(|verdict| verdict.score);
    // Without a gate nothing converges.
    let convergence = verdict.map(|verdict| verdict.convergence).filter(|_| summary.mean_limit > 0.0);
    [
        name.to_owned(),
        score.map_or_else(none, |score| format!("{:.2}", score.score)),
        number(libm::round(summary.goodput_per_second())),
        score.map_or_else(none, |score| percent(score.goodput_ratio)),
        latency(&total, 0.5),
        latency(&total, 0.99),
        percent(refused),
        summary.false_refusals().map_or_else(none, percent),
        if summary.clients.len() > 1 { format!("{:.2}", summary.jain()) } else { none() },
        if summary.mean_limit > 0.0 { rounded(summary.mean_limit) } else { none() },
        convergence.and_then(|way| way.time_s).map_or_else(none, seconds),
        convergence.and_then(|way| way.oscillation).map_or_else(none, percent),
    ]
}

/// What became of the requests of each class.
pub(super) fn of_classes(played: &Played) -> Table {
    let names = |what: &str| -> Vec<String> {
        played.classes().iter().map(|class| format!("{what}: {}", class.name)).collect()
    };
    let header = [String::new()].into_iter().chain(names("in time")).chain(names("refused")).collect();
    let share = |of: u64, all: u64| percent(of as f64 / all.max(1) as f64);
    let rows = played.columns.iter().map(|column| {
        let total = column.summary.total();
        let good = total.classes.iter().map(|counts| share(counts.good, counts.offered));
        let refused = total.classes.iter().map(|counts| share(counts.refused.total(), counts.attempts));
        [column.label.clone()].into_iter().chain(good).chain(refused).collect()
    });
    Table { header, rows: rows.collect() }
}

/// Goodput by load, as a share of capacity.
pub(super) fn of_loads(curves: &LoadCurves) -> Table {
    let loads = curves.loads.iter().map(|&load| format!("{}×", number(load)));
    let mut table = Table { header: [String::new()].into_iter().chain(loads).collect(), rows: Vec::new() };
    for curve in &curves.curves {
        let goodput = curve.goodput.iter().map(|&share| percent(share));
        table.rows.push([Entrant::label(&curve.name)].into_iter().chain(goodput).collect());
    }
    table
}

/// The scores of those who were in every scenario, the best first.
pub(super) fn at_a_glance<'a>(scenarios: impl Iterator<Item = (String, &'a Played)>) -> Table {
    let mut table = Table::new([""]);
    let mut scores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (title, played) in scenarios {
        table.header.push(title);
        for column in &played.columns {
            let score = column.verdict.as_ref().map(|verdict| verdict.score.score);
            scores.entry(&column.name).or_default().extend(score);
        }
    }
    let count = table.header.len() - 1;
    table.header.push("all".to_owned());
    let mut ranked: Vec<_> = scores
        .iter()
        .filter(|(_, scores)| scores.len() == count)
        .map(|(name, scores)| (geometric_mean(scores.iter().copied()), *name, scores))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    for (total, name, scores) in ranked {
        let scores = scores.iter().chain([&total]).map(|score| format!("{score:.2}"));
        table.rows.push([Entrant::label(name)].into_iter().chain(scores).collect());
    }
    table
}

fn none() -> String {
    "–".to_owned()
}

fn latency(part: &Part, quantile: f64) -> String {
    let latency: Duration = part.latency_quantile(quantile);
    if latency.is_zero() { none() } else { seconds(latency.as_secs_f64()) }
}

fn rounded(limit: f64) -> String {
    if limit >= 100.0 { number(limit) } else { format!("{limit:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_the_same_on_a_page_and_in_a_terminal() {
        let mut table = Table::new(["", "score"]);
        table.rows.push(vec!["aimd".into(), "0.50".into()]);
        assert_eq!(table.for_page(), "|  | score |\n| --- | ---: |\n| aimd | 0.50 |\n");
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(table.for_terminal()),
            ["|", "|", "score", "|", "|------|-------|", "|", "aimd", "|", "0.50", "|"]
        );
    }
}
