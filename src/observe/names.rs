/// A metric that is published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Metric {
    /// Its name, which ends in its unit where it has one.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// What it is labelled by.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

/// The types of metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// Only grows, from 0 at the start of the process. Look at its rate.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl Metric {
    const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, labels, help }
    }

    const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, labels, help }
    }
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal by $labels:tt: $help:literal;)*) => {
        $(
            #[cfg_attr(not(all(feature = "metrics", feature = "toml")), allow(dead_code))]
            pub(super) const $constant: Metric = Metric::$kind($name, &$labels, $help);
        )*

        /// Every metric that is published. Each is labelled by the gate's name at least.
        ///
        /// The values of the other labels are few and known: `reason` of refusals is one of
        /// [`RefusalReason::ALL`](crate::RefusalReason::ALL), of moves one of
        /// [`Reason::ALL`](crate::algorithms::Reason::ALL), `criticality` one of
        /// [`Criticality::ALL`](crate::Criticality::ALL), `outcome` one of the four [`Outcome`](crate::Outcome)s, `result`
        /// `applied` or `refused`, and `variable` a name from the limiter's [`State`](crate::algorithms::State).
        pub const METRICS: &[Metric] = &[$(Metric::$kind($name, &$labels, $help)),*];
    };
}

metrics! {
    LIMIT = gauge "goodput_limit" by ["gate"]:
        "Requests that may be in flight.";
    IN_FLIGHT = gauge "goodput_in_flight" by ["gate"]:
        "Requests in flight, by weight.";
    IN_FLIGHT_OUTSIDE = gauge "goodput_in_flight_outside_limit" by ["gate"]:
        "Requests in flight that take no place: they bypass the limit, or would have been refused.";
    WAITING = gauge "goodput_waiting" by ["gate"]:
        "Requests that wait to be admitted.";
    QUEUE_AGE = gauge "goodput_queue_age_seconds" by ["gate"]:
        "How long the oldest request that waits has waited.";
    LIMIT_USE = gauge "goodput_limit_use_ratio" by ["gate"]:
        "Requests in flight on average, as a part of the limit.";
    LIMIT_BOUND = gauge "goodput_limit_bound_ratio" by ["gate"]:
        "The part of the demand that felt the limit. Near 1 for minutes: add capacity.";
    DEMAND_IN_FLIGHT = gauge "goodput_demand_in_flight" by ["gate"]:
        "How many would be in flight if nobody were refused. Above the limit: add capacity.";
    LATENCY_DEVIATION = gauge "goodput_latency_deviation_seconds" by ["gate"]:
        "Standard deviation of the latency of successes and overloads.";
    OBSERVE_ONLY = gauge "goodput_observe_only" by ["gate"]:
        "1 if the gate admits everybody and only counts, else 0.";
    LIMITER_STATE = gauge "goodput_limiter_state" by ["gate", "variable"]:
        "The limiter's inner state. Not a number once a limiter does not have the variable any more.";
    ADMITTED = counter "goodput_admitted_total" by ["gate"]:
        "Requests admitted to places of the limit.";
    REFUSED = counter "goodput_refused_total" by ["gate", "reason", "criticality"]:
        "Requests refused.";
    DEMAND = counter "goodput_demand_total" by ["gate"]:
        "Requests that were admitted or refused, or would have been refused or had to wait.";
    BYPASSED = counter "goodput_bypassed_total" by ["gate"]:
        "Requests let past the limit because they bypass it.";
    WOULD_HAVE_REFUSED = counter "goodput_would_have_refused_total" by ["gate", "reason", "criticality"]:
        "Requests admitted in observe-only mode that would have been refused.";
    WOULD_HAVE_WAITED = counter "goodput_would_have_waited_total" by ["gate"]:
        "Requests admitted in observe-only mode that would have had to wait.";
    COMPLETED = counter "goodput_completed_total" by ["gate", "outcome"]:
        "Admitted requests that ended. The rate of successes is the goodput.";
    LATENCY = counter "goodput_latency_microseconds_total" by ["gate", "outcome"]:
        "Sum of the latencies of admitted requests that ended, but for those cancelled.";
    LIMIT_HITS = counter "goodput_limit_hits_total" by ["gate"]:
        "Requests that felt the limit: their admission reached it, or it stood in their way.";
    LIMIT_MOVES = counter "goodput_limit_moves_total" by ["gate", "reason"]:
        "Moves of the limit.";
    CONFIG_RELOADS = counter "goodput_config_reloads_total" by ["gate", "result"]:
        "Config files that had changed, and were put in force or refused.";
}
