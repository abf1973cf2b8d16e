//! `goodput simulate`.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use goodput_simulator::{
    Limits, Measure, Oracle, Run, Scenario, run,
    score::{Convergence, Score},
};
use serde_json::{Map, Value};

use crate::{contestants::Contestant, failure::Failure, league, memory::Memory};

/// Parts of a run whose success is told apart.
const PARTS: u32 = 10;

/// Steps of the trace on which convergence is measured.
const STEPS: u32 = 5_000;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A scenario file
    file: PathBuf,
    /// What decides the limit at doors without a limiter: an algorithm as a config file names it, with settings if
    /// wanted (vegas:initial=50,max=500); `none` for no gate; `oracle` for the best limits in hindsight
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Where chance begins
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Leave out the figures that need an oracle, whose search takes as long as some thirty runs
    #[arg(long)]
    no_oracle: bool,
    #[command(flatten)]
    cache: crate::memory::Place,
}

pub(crate) fn simulate(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = Scenario::read(&arguments.file)?;
    if arguments.algorithm.is_none() && scenario.open_doors() > 0 {
        return Err(Failure::Arguments(format!(
            "{}: a door has no limiter; say which one to try, as --algorithm vegas, or write it into the file",
            arguments.file.display()
        )));
    }
    let wants_oracle = arguments.algorithm.as_deref() == Some("oracle");
    let oracle = if scenario.open_doors() > 0 && (wants_oracle || !arguments.no_oracle) {
        Some(league::oracle(&scenario, arguments.seed, &Memory::open(&arguments.cache.folder())?)?)
    } else {
        None
    };
    let limits = match (arguments.algorithm.as_deref(), &oracle) {
        (None, _) => Limits::Written,
        (Some("none"), _) => Limits::None,
        (Some("oracle"), Some(oracle)) => Limits::Schedule(oracle.limits.clone()),
        (Some("oracle"), None) => {
            return Err(Failure::Arguments(format!(
                "{}: every door has its limiter, so there is nothing for an oracle to decide",
                arguments.file.display()
            )));
        }
        (Some(text), _) => Limits::Algorithm(Contestant::parse_stock(text)?.algorithm),
    };
    let measure = Measure {
        cuts: (1..PARTS).map(|part| scenario.length / PARTS * part).collect(),
        step: Some((scenario.length / STEPS).max(Duration::from_nanos(1))),
        trace: true,
        ..Measure::default()
    };
    let run = run(&scenario, &limits, arguments.seed, &measure)?;
    let mut figures = Figures::of(&run);
    figures.replace("algorithm", arguments.algorithm.as_deref().unwrap_or("written").into());
    if let Some(oracle) = oracle {
        figures.compare(&scenario, arguments.seed, &oracle, &run)?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&figures.json()).map_err(io::Error::from)?)?;
    } else if arguments.csv {
        out.write_all(&figures.csv()?)?;
    } else {
        writeln!(out, "{}", figures.table())?;
    }
    Ok(())
}

/// Figures by name, in the order in which they are printed.
struct Figures(Vec<(&'static str, Value)>);

impl Figures {
    fn of(run: &Run) -> Self {
        let summary = &run.summary;
        let total = summary.total();
        let counts = total.counts;
        let length_s = summary.length.as_secs_f64();
        let millis = |quantile| total.latency_quantile(quantile).as_secs_f64() * 1e3;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut figures = Self(Vec::new());
        let mut say = |name, value: Value| figures.0.push((name, value));
        say("scenario", summary.scenario.as_str().into());
        say("algorithm", summary.limits.as_str().into());
        say("seed", summary.seed.into());
        say("length_s", length_s.into());
        say("goodput_per_s", summary.goodput_per_second().into());
        say("throughput_per_s", ((counts.good + counts.late) as f64 / length_s).into());
        say("p50_ms", millis(0.5).into());
        say("p99_ms", millis(0.99).into());
        say("p99_9_ms", millis(0.999).into());
        say("mean_ms", (total.latency.mean() / 1e6).into());
        say("max_ms", millis(1.0).into());
        say("offered", counts.offered.into());
        say("attempts", counts.attempts.into());
        say("admitted", counts.admitted.into());
        say("refused", counts.refused.total().into());
        say("refused_limit_reached", counts.refused.limit_reached.into());
        say("refused_queue_full", counts.refused.queue_full.into());
        say("refused_waited_too_long", counts.refused.waited_too_long.into());
        say("refused_deadline_expired", counts.refused.deadline_expired.into());
        say("refused_otherwise", counts.refused.other.into());
        say("on_time", counts.good.into());
        say("late", counts.late.into());
        say("failed", counts.failed.into());
        say("timed_out", counts.timed_out.into());
        say("stuck_at_end", counts.stuck.into());
        say("queued_at_end", summary.queued_at_end.into());
        say("in_service_at_end", summary.in_service_at_end.into());
        say("largest_queue", summary.largest_queue.into());
        say("work_done_s", seconds(counts.done_ns).into());
        say("work_wasted_s", seconds(counts.wasted_ns).into());
        say("mean_limit", summary.mean_limit.into());
        say("idle_refusals", (summary.idle_refusals as f64 / (counts.attempts as f64).max(1.0)).into());
        say("false_refusals", summary.false_refusals().into());
        say("jain", summary.jain().into());
        let success = |part: &goodput_simulator::Part| {
            Value::from(part.counts.good as f64 / (part.counts.offered as f64).max(1.0))
        };
        say("success_by_start", summary.parts.iter().map(success).collect::<Vec<_>>().into());
        say("events", summary.events.into());
        figures
    }

    /// Adds what the oracle tells.
    fn compare(&mut self, scenario: &Scenario, seed: u64, oracle: &Oracle, run: &Run) -> Result<(), Failure> {
        // The oracle's good answers are counted in longer steps than the trace's.
        let coarse = coarser(run, oracle.summary.step);
        let score = Score::new(scenario, oracle, &coarse);
        let way = run
            .trace
            .as_ref()
            .map(|trace| oracle.bands(scenario, seed).map(|bands| Convergence::new(scenario, &bands, trace)));
        let mut say = |name, value: Value| self.0.push((name, value));
        say("score", score.score.into());
        say("oracle_goodput_per_s", oracle.summary.goodput_per_second().into());
        say("oracle_mean_limit", oracle.summary.mean_limit.into());
        say("goodput_ratio", score.goodput_ratio.into());
        say("p50_ratio", score.p50_ratio.into());
        say("p99_ratio", score.p99_ratio.into());
        say("recovery_s", score.recovery_s.into());
        if let Some(way) = way.transpose()? {
            say("convergence_s", way.time_s.into());
            say("overshoot", way.overshoot.into());
            say("undershoot", way.undershoot.into());
            say("oscillation", way.oscillation.into());
            say("reversals", way.reversals.into());
            say("probe_refusals", way.probe_refusals.into());
        }
        Ok(())
    }

    fn replace(&mut self, name: &str, value: Value) {
        if let Some(figure) = self.0.iter_mut().find(|(known, _)| *known == name) {
            figure.1 = value;
        }
    }

    fn json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// A line of names and one of figures.
    fn csv(&self) -> Result<Vec<u8>, Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = writer
            .write_record(self.0.iter().map(|(name, _)| name))
            .and_then(|()| writer.write_record(self.0.iter().map(|(_, value)| text(value))));
        written.map_err(io::Error::from)?;
        Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["figure", "value"]);
        for (name, value) in &self.0 {
            let short = match value {
                Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or(0.0)),
                Value::Array(shares) => {
                    let shares = shares.iter().filter_map(Value::as_f64);
                    shares.map(|share| format!("{share:.3}")).collect::<Vec<_>>().join(" ")
                }
                other => text(other),
            };
            table.add_row([(*name).to_owned(), short]);
        }
        if let Some(values) = table.column_mut(1) {
            values.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// Without quotation marks; nothing for a figure that there is not.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// The figures with good answers in steps of about this length.
fn coarser(run: &Run, step: Duration) -> goodput_simulator::Summary {
    let mut summary = run.summary.clone();
    let together = (step.as_nanos() / summary.step.as_nanos().max(1)).max(1) as usize;
    summary.good_per_step = summary.good_per_step.chunks(together).map(|good| good.iter().sum()).collect();
    summary.step *= together as u32;
    summary
}
