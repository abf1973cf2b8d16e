//! The figures of a run, by name.

use std::{io, time::Duration};

use comfy_table::{CellAlignment, Table, presets};
use goodput_simulator::{
    Counts, Oracle, Part, Run, Scenario, Summary,
    score::{Convergence, Score},
};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Figures in the order in which they are printed.
pub(crate) struct Figures(Vec<Figure>);

struct Figure {
    name: &'static str,
    value: Value,
    about: &'static str,
}

impl Figures {
    /// What can be told without an oracle. Parts of the run are told apart where it was measured in parts.
    pub(crate) fn of(run: &Run, algorithm: &str) -> Self {
        let summary = &run.summary;
        let total = summary.total();
        let counts = total.counts;
        let refused = counts.refused;
        let length_s = summary.length.as_secs_f64();
        let millis = |quantile| total.latency_quantile(quantile).as_secs_f64() * 1e3;
        let share = |of: u64, all: u64| of as f64 / (all as f64).max(1.0);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let success = |part: &Part| Value::from(share(part.counts.good, part.counts.offered));
        let by_start: Vec<Value> = summary.parts.iter().map(success).collect();
        let mut figures = Self(Vec::new());
        figures.say("scenario", summary.scenario.as_str(), "");
        figures.say("algorithm", algorithm, "what decides the limit");
        figures.say("seed", summary.seed, "");
        figures.say("length_s", length_s, "");
        figures.say("goodput_per_s", summary.goodput_per_second(), "answers well within the deadline");
        figures.say(
            "throughput_per_s",
            (counts.good + counts.late) as f64 / length_s,
            "all answers but failures",
        );
        figures.say("p50_ms", millis(0.5), "latency of the admitted, late ones included");
        figures.say("p99_ms", millis(0.99), "");
        figures.say("p99_9_ms", millis(0.999), "");
        figures.say("mean_ms", total.latency.mean() / 1e6, "");
        figures.say("max_ms", millis(1.0), "");
        figures.say("offered", counts.offered, "requests");
        figures.say("attempts", counts.attempts, "requests and their retries");
        figures.say("admitted", counts.admitted, "attempts that came to the service");
        figures.say("refused", refused.total(), "attempts that a gate refused");
        figures.say("refused_limit_reached", refused.limit_reached, "of them, because the limit was reached");
        figures.say("refused_queue_full", refused.queue_full, "because too many waited");
        figures.say("refused_waited_too_long", refused.waited_too_long, "after waiting at the gate");
        figures.say(
            "refused_deadline_expired",
            refused.deadline_expired,
            "because it would have been too late",
        );
        figures.say("refused_otherwise", refused.other, "for another reason");
        figures.say("on_time", counts.good, "answered well within the deadline");
        figures.say("late", counts.late, "answered well, too late");
        figures.say("failed", counts.failed, "answered with an error");
        figures.say("timed_out", counts.timed_out, "given up by their clients");
        figures.say("stuck_at_end", counts.stuck, "at the service at the end, longer than the deadline");
        figures.say("queued_at_end", summary.queued_at_end, "in the service's queue at the end");
        figures.say("in_service_at_end", summary.in_service_at_end, "worked on at the end");
        figures.say("largest_queue", summary.largest_queue, "in the service");
        figures.say("work_done_s", seconds(counts.done_ns), "seconds of work");
        figures.say("work_wasted_s", seconds(counts.wasted_ns), "of them, for answers that came too late");
        figures.say("mean_limit", summary.mean_limit, "over time");
        figures.say(
            "idle_refusals",
            share(summary.idle_refusals, counts.attempts),
            "refused with a worker free, of attempts",
        );
        figures.say(
            "false_refusals",
            summary.false_refusals(),
            "refused at a load of at most 0.8, of attempts there",
        );
        figures.say("jain", summary.jain(), "fairness between clients: 1 is even");
        figures.say("success_by_start", by_start, "on time of offered, by tenths of the run");
        if !summary.classes.is_empty() {
            let by_class = |of: &dyn Fn(&Counts) -> f64| -> Map<String, Value> {
                let classes = summary.classes.iter().zip(&total.classes);
                classes.map(|(class, counts)| (class.name.clone(), of(counts).into())).collect()
            };
            let success = by_class(&|counts| share(counts.good, counts.offered));
            let refused = by_class(&|counts| share(counts.refused.total(), counts.attempts));
            figures.say("success_by_class", success, "on time of offered");
            figures.say("refused_by_class", refused, "refused of attempts");
        }
        figures.say("events", summary.events, "that the simulation went through");
        figures
    }

    /// Adds what the oracle of the same scenario and seed tells.
    pub(crate) fn compare(
        &mut self,
        scenario: &Scenario,
        seed: u64,
        oracle: &Oracle,
        run: &Run,
    ) -> Result<(), Failure> {
        // The oracle's good answers are counted in longer steps than the trace's.
        let score = Score::new(scenario, oracle, &coarser(run, oracle.summary.step));
        self.say("score", score.score, "against the best limits in hindsight: 1 is as good");
        self.say("oracle_goodput_per_s", oracle.summary.goodput_per_second(), "");
        self.say("oracle_mean_limit", oracle.summary.mean_limit, "");
        self.say("goodput_ratio", score.goodput_ratio, "to the oracle's");
        self.say("p50_ratio", score.p50_ratio, "");
        self.say("p99_ratio", score.p99_ratio, "");
        self.say("recovery_s", score.recovery_s, "after a change, until goodput is the oracle's again");
        let Some(trace) = &run.trace else { return Ok(()) };
        let way = Convergence::new(scenario, &oracle.bands(scenario, seed)?, trace);
        self.say("convergence_s", way.time_s, "after a change, until the limit is as good as the best");
        self.say("overshoot", way.overshoot, "in flight above the good limits, over time, in services");
        self.say("undershoot", way.undershoot, "limit below the good ones while refusing, in the same");
        self.say("oscillation", way.oscillation, "of the settled limit: standard deviation of its logarithm");
        self.say("reversals", way.reversals, "of the settled limit, in 100 services");
        self.say(
            "probe_refusals",
            way.probe_refusals,
            "refused while a limit was lowered to measure, of offered",
        );
        Ok(())
    }

    fn say(&mut self, name: &'static str, value: impl Into<Value>, about: &'static str) {
        self.0.push(Figure { name, value: value.into(), about });
    }

    pub(crate) fn json(&self) -> Map<String, Value> {
        self.0.iter().map(|figure| (figure.name.to_owned(), figure.value.clone())).collect()
    }

    /// A line of names and one of figures.
    pub(crate) fn csv(&self) -> Result<Vec<u8>, Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = writer
            .write_record(self.0.iter().map(|figure| figure.name))
            .and_then(|()| writer.write_record(self.0.iter().map(|figure| text(&figure.value))));
        written.map_err(io::Error::from)?;
        Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["figure", "value", "meaning"]);
        for Figure { name, value, about } in &self.0 {
            let short = match value {
                Value::Null => "-".into(),
                Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or(0.0)),
                Value::Array(shares) => {
                    let shares = shares.iter().filter_map(Value::as_f64);
                    shares.map(|share| format!("{share:.2}")).collect::<Vec<_>>().join(" ")
                }
                Value::Object(classes) => {
                    let shares = classes.iter().map(|(name, share)| (name, share.as_f64().unwrap_or(0.0)));
                    shares.map(|(name, share)| format!("{name} {share:.2}")).collect::<Vec<_>>().join(", ")
                }
                other => text(other),
            };
            table.add_row([*name, &short, about]);
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
        Value::Object(values) => {
            let named = values.iter().map(|(name, value)| format!("{name} {}", text(value)));
            named.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// The figures with good answers in steps of about this length.
fn coarser(run: &Run, step: Duration) -> Summary {
    let mut summary = run.summary.clone();
    let together = (step.as_nanos() / summary.step.as_nanos().max(1)).max(1) as usize;
    summary.good_per_step = summary.good_per_step.chunks(together).map(|good| good.iter().sum()).collect();
    summary.step *= together as u32;
    summary
}
