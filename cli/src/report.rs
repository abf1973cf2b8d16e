//! What the comparison is printed as.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use comfy_table::{CellAlignment, Table, presets};
use goodput_simulator::score::{Score, Standing, geometric_mean};
use serde::Serialize;

use crate::failure::Failure;

/// Characters in a line of a table.
const WIDTH: usize = 120;

/// Scores that differ by less look the same.
const SAME: f64 = 0.0005;

/// The layout of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    algorithms: &'a [Standing],
}

/// A row of `--csv`.
#[derive(Serialize)]
struct Row<'a> {
    algorithm: &'a str,
    scenario: &'a str,
    score: f64,
    goodput_ratio: f64,
    p50_ratio: f64,
    p99_ratio: f64,
    jain: f64,
    recovery_s: f64,
    false_refusals: f64,
    mean_limit: f64,
}

/// Prints or writes as asked: `Some(None)` means to standard output.
pub(crate) fn report(
    standings: &[Standing],
    json: Option<&Option<PathBuf>>,
    csv: Option<&Option<PathBuf>>,
) -> Result<(), Failure> {
    let mut printed = false;
    if let Some(to) = json {
        let text =
            serde_json::to_string_pretty(&Report { algorithms: standings }).map_err(io::Error::from)?;
        printed |= put(format!("{text}\n").as_bytes(), to.as_ref())?;
    }
    if let Some(to) = csv {
        printed |= put(&to_csv(standings)?, to.as_ref())?;
    }
    if !printed {
        put(tables(standings).as_bytes(), None)?;
    }
    Ok(())
}

/// Whether it went to standard output.
fn put(bytes: &[u8], to: Option<&PathBuf>) -> Result<bool, Failure> {
    match to {
        Some(path) => fs::write(path, bytes).map_err(Failure::file(path))?,
        None => io::stdout().lock().write_all(bytes)?,
    }
    Ok(to.is_none())
}

fn to_csv(standings: &[Standing]) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for standing in standings {
        for scenario in &standing.scenarios {
            let Score {
                score,
                goodput_ratio,
                p50_ratio,
                p99_ratio,
                jain,
                recovery_s,
                false_refusals,
                mean_limit,
            } = scenario.figures;
            let row = Row {
                algorithm: &standing.name,
                scenario: &scenario.name,
                score,
                goodput_ratio,
                p50_ratio,
                p99_ratio,
                jain,
                recovery_s,
                false_refusals,
                mean_limit,
            };
            writer.serialize(row).map_err(io::Error::from)?;
        }
    }
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

fn tables(standings: &[Standing]) -> String {
    let (shown, same) = without_repetitions(standings);
    let mut text = totals(&shown).to_string();
    text.push('\n');
    for some in lines(&shown) {
        text.push('\n');
        text.push_str(&scenarios(some).to_string());
        text.push('\n');
    }
    text.push_str(
        "\nEach figure is the median over the seeds; total is the geometric mean over the scenarios, the\n",
    );
    text.push_str(
        "ratios are to the oracle's, as geometric means; recovery and false refusals as plain means.\n",
    );
    if !same.is_empty() {
        text.push_str(&format!("Not shown, as with wide bounds: {}.\n", same.join(", ")));
    }
    text
}

/// Without algorithms with their own bounds that score in every scenario as they do with wide ones; and the names of
/// those.
fn without_repetitions(standings: &[Standing]) -> (Vec<&Standing>, Vec<&str>) {
    let repeats = |standing: &Standing| {
        let wide = standing.name.strip_suffix("_stock");
        standings.iter().filter(|other| Some(other.name.as_str()) == wide).any(|wide| {
            let pairs = wide.scenarios.iter().zip(&standing.scenarios);
            pairs.into_iter().all(|(a, b)| (a.figures.score - b.figures.score).abs() < SAME)
        })
    };
    let (same, shown): (Vec<_>, Vec<_>) = standings.iter().partition(|standing| repeats(standing));
    (shown, same.into_iter().map(|standing| standing.name.as_str()).collect())
}

/// As many algorithms together as fit into a line.
fn lines<'a, 's>(mut standings: &'a [&'s Standing]) -> Vec<&'a [&'s Standing]> {
    let first = standings.first().map_or(&[][..], |standing| &standing.scenarios);
    let names = first.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0) + 4;
    let mut lines = Vec::new();
    while !standings.is_empty() {
        let mut width = names;
        let fitting = standings.iter().take_while(|standing| {
            width += standing.name.len().max(5) + 3;
            width <= WIDTH
        });
        let (line, rest) = standings.split_at(fitting.count().max(1));
        lines.push(line);
        standings = rest;
    }
    lines
}

fn totals(standings: &[&Standing]) -> Table {
    let mut table = numbers();
    table.set_header([
        "algorithm",
        "total",
        "mean",
        "worst",
        "goodput",
        "p50",
        "p99",
        "recovery s",
        "false refusals",
    ]);
    for standing in standings {
        let figures = || standing.scenarios.iter().map(|scenario| &scenario.figures);
        // Ratios may be zero where nothing was answered; a millionth stands for that.
        let ratio = |of: fn(&Score) -> f64| geometric_mean(figures().map(of).map(|ratio| ratio.max(1e-6)));
        let mean = |of: fn(&Score) -> f64| figures().map(of).sum::<f64>() / figures().count().max(1) as f64;
        table.add_row([
            standing.name.clone(),
            format!("{:.3}", standing.total),
            format!("{:.3}", standing.mean),
            format!("{:.3}", standing.worst),
            format!("{:.3}", ratio(|figures| figures.goodput_ratio)),
            format!("{:.2}", ratio(|figures| figures.p50_ratio)),
            format!("{:.2}", ratio(|figures| figures.p99_ratio)),
            format!("{:.2}", mean(|figures| figures.recovery_s)),
            format!("{:.4}", mean(|figures| figures.false_refusals)),
        ]);
    }
    align(table)
}

fn scenarios(standings: &[&Standing]) -> Table {
    let mut table = numbers();
    let names = standings.iter().map(|standing| standing.name.as_str());
    table.set_header(std::iter::once("scenario").chain(names));
    let count = standings.first().map_or(0, |standing| standing.scenarios.len());
    for index in 0..count {
        let name = standings[0].scenarios[index].name.clone();
        let scores = standings.iter().map(|standing| &standing.scenarios[index].figures.score);
        table.add_row(std::iter::once(name).chain(scores.map(|score| format!("{score:.3}"))));
    }
    align(table)
}

fn numbers() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
}

/// Names to the left, numbers to the right.
fn align(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
