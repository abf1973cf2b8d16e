//! What the operator sees.
//!
//! * **Intervals.** An [`Interval`] is what a gate did between two [snapshots](crate::Gate::snapshot), and what an
//!   operator wants to know of it: how much of the limit was used, how much of the demand felt it, what was refused.
//!   Plain data, made by whoever looks; nothing here has a clock or a thread of its own.
//! * **Metrics** (feature `metrics`). `Reporter` publishes a gate's intervals through the `metrics` facade, and with it
//!   to Prometheus or whatever else is installed. [`METRICS`] lists every name with its type, labels and meaning.
//!   `dashboards/` has a Grafana dashboard and Prometheus alert rules on them.
//! * **Events** (feature `tracing`). One for every move of a limit, with its reason and the numbers behind it (target
//!   `goodput::limit`, level debug); at most one a second and gate for refusals, with how many there were since the last
//!   (target `goodput::refusal`, level info); one for every config file that is put in force (info) or refused (error,
//!   target `goodput::config`). None for an admitted request, ever.
//! * **The last decisions** are in every snapshot, for the first question of an incident: why did the limit move?
//!
//! # Signals to scale by
//!
//! A gate that sheds keeps latency and utilisation where they are, so neither says that capacity is missing. These do:
//!
//! | signal | metric | add capacity when |
//! |---|---|---|
//! | [`Interval::limit_bound`] | `goodput_limit_bound_ratio` | above 0.5 for minutes: most of the demand feels the limit |
//! | [`Interval::demand_in_flight`] | `goodput_demand_in_flight` | above `goodput_limit`; their ratio says by how much |
//! | [`Interval::queue_age`] | `goodput_queue_age_seconds` | near what callers put up with |
//!
//! # What latency is there of the admitted
//!
//! Sums, counts and sums of squares, which the gate keeps for its limiter anyway: mean and deviation. No quantiles,
//! which would cost every request a histogram of its own; whoever needs them has one around the handler already.

#[cfg(feature = "tracing")]
pub(crate) mod events;
#[cfg(feature = "metrics")]
mod family;
mod interval;
mod names;
#[cfg(feature = "metrics")]
mod publish;
#[cfg(feature = "metrics")]
mod reporter;
mod totals;

#[cfg(all(feature = "metrics", feature = "toml"))]
pub(crate) use self::publish::count_reload;
#[cfg(feature = "metrics")]
pub use self::{family::FamilyReporter, publish::describe, reporter::Reporter};
pub use self::{
    interval::Interval,
    names::{METRICS, Metric, MetricKind},
    totals::{Ended, Totals},
};
