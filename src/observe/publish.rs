//! Intervals through the `metrics` facade.

use metrics::{Label, SharedString, counter, describe_counter, describe_gauge, gauge};

use super::{
    Ended, Interval,
    names::{self, METRICS, Metric, MetricKind},
};
use crate::refusal::RefusalCounts;

/// Gives the installed recorder the help text of every metric. To be called once, after the recorder is installed.
pub fn describe() {
    for &Metric { name, kind, help, .. } in METRICS {
        match kind {
            MetricKind::Counter => describe_counter!(name, help),
            MetricKind::Gauge => describe_gauge!(name, help),
        }
    }
}

/// What is left of a microsecond, by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest([u64; 3]);

impl Rest {
    pub(super) const NONE: Self = Self([0; 3]);
}

/// Publishes what happened in an interval.
pub(super) fn publish(gate: &SharedString, interval: &Interval, rest: &mut Rest) {
    publish_gauges(gate, interval);
    let labels = || vec![Label::new("gate", gate.clone())];
    let count = |metric: &Metric, count: u64| counter!(metric.name, labels()).increment(count);
    count(&names::ADMITTED, interval.admitted);
    count(&names::DEMAND, interval.demand());
    count(&names::BYPASSED, interval.bypassed);
    count(&names::LIMIT_HITS, interval.limit_hits);
    count(&names::WOULD_HAVE_WAITED, interval.would_have_waited);
    publish_refusals(gate, &names::REFUSED, &interval.refused);
    publish_refusals(gate, &names::WOULD_HAVE_REFUSED, &interval.would_have_refused);
    for (reason, count) in interval.moves.iter() {
        let labels = with(labels(), "reason", reason.as_str());
        counter!(names::LIMIT_MOVES.name, labels).increment(count);
    }
    publish_ended(gate, interval, rest);
}

fn publish_gauges(gate: &SharedString, interval: &Interval) {
    let set = |metric: &Metric, value: f64| {
        gauge!(metric.name, vec![Label::new("gate", gate.clone())]).set(value);
    };
    set(&names::LIMIT, interval.limit as f64);
    set(&names::IN_FLIGHT, interval.in_flight as f64);
    set(&names::IN_FLIGHT_OUTSIDE, interval.outside as f64);
    set(&names::WAITING, interval.waiting as f64);
    set(&names::QUEUE_AGE, interval.queue_age.as_secs_f64());
    set(&names::LIMIT_USE, interval.limit_use());
    set(&names::LIMIT_BOUND, interval.limit_bound());
    set(&names::DEMAND_IN_FLIGHT, interval.demand_in_flight());
    set(&names::LATENCY_DEVIATION, interval.samples().deviation().as_secs_f64());
}

fn publish_refusals(gate: &SharedString, metric: &Metric, counts: &RefusalCounts) {
    for (reason, criticality, count) in counts.iter() {
        let labels = vec![
            Label::new("gate", gate.clone()),
            Label::from_static_parts("reason", reason.as_str()),
            Label::from_static_parts("criticality", criticality.as_str()),
        ];
        counter!(metric.name, labels).increment(count);
    }
}

fn publish_ended(gate: &SharedString, interval: &Interval, rest: &mut Rest) {
    let cancelled = Ended { count: interval.cancelled, ..Ended::default() };
    let outcomes = [
        ("success", interval.successes),
        ("overload", interval.overloads),
        ("failure", interval.failures),
        ("cancelled", cancelled),
    ];
    for (index, (outcome, ended)) in outcomes.into_iter().enumerate() {
        let labels = || with(vec![Label::new("gate", gate.clone())], "outcome", outcome);
        counter!(names::COMPLETED.name, labels()).increment(ended.count);
        if let Some(rest) = rest.0.get_mut(index) {
            let sum_ns = ended.sum_ns.saturating_add(u128::from(*rest));
            *rest = (sum_ns % 1_000) as u64;
            let micros = u64::try_from(sum_ns / 1_000).unwrap_or(u64::MAX);
            counter!(names::LATENCY.name, labels()).increment(micros);
        }
    }
}

/// Publishes a number of the limiter's inner state.
pub(super) fn publish_state(gate: &SharedString, variable: String, value: f64) {
    let labels = vec![Label::new("gate", gate.clone()), Label::new("variable", variable)];
    gauge!(names::LIMITER_STATE.name, labels).set(value);
}

/// Publishes whether a gate only observes.
pub(super) fn publish_observe_only(gate: &SharedString, observe_only: bool) {
    let labels = vec![Label::new("gate", gate.clone())];
    gauge!(names::OBSERVE_ONLY.name, labels).set(f64::from(u8::from(observe_only)));
}

/// Counts a look at a config file that had changed.
#[cfg(feature = "toml")]
pub(crate) fn count_reload(gate: &str, applied: bool) {
    let result = if applied { "applied" } else { "refused" };
    let labels = with(vec![Label::new("gate", gate.to_owned())], "result", result);
    counter!(names::CONFIG_RELOADS.name, labels).increment(1);
}

fn with(mut labels: Vec<Label>, key: &'static str, value: &'static str) -> Vec<Label> {
    labels.push(Label::from_static_parts(key, value));
    labels
}
