//! Algorithms that decide how many requests a service should work on at once.
//!
//! Everything here is a pure state machine. A [`Limiter`] is shown a [`Window`] of observations and answers
//! with a [`Decision`]: the limit, and why it moved. It reads no clock, takes no lock, does no I/O and draws no
//! hidden randomness, so the same windows always give the same limits, in production as in a simulation.
//!
//! # What a limiter sees
//!
//! A [`Window`] is what happened between two instants: how many requests ended and how, sums of their latencies, the
//! largest in flight, how often the limit was felt, and the integral of in flight over time. From these come the three
//! quantities of Little's law, N = X × W: [`Window::mean_in_flight`], [`Window::throughput`] and
//! [`Window::mean_latency_ns`]. Windows merge, so several observers can each keep one.
//!
//! # When it sees it
//!
//! A [`WindowRule`] says when a window opens and closes: with so many samples, not before an instant, no later than
//! another. A limiter is asked for a rule at the start and after each window. An algorithm that steps with every request
//! asks for [`WindowRule::EACH`]; whoever drives it may still hand it more at once, and it takes their mean.
//!
//! # What it answers
//!
//! A [`Decision`] is the limit from now on, a typed [`Reason`], and the numbers behind it by name. What a limiter
//! remembers is its [`State`], to look at, to export, and to resume from after a restart.
//!
//! # The algorithms
//!
//! Each has one page, which says where it comes from, what it is good for and what is known to go wrong. A config file
//! names one by [`Algorithm`].
//!
//! | name | limiter | goes by |
//! | --- | --- | --- |
//! | `aimd` | [`Aimd`] | overloads |
//! | `fixed` | [`Fixed`] | nothing |
//! | `gradient` | [`Gradient`] | latency against its minimum, with probes |
//! | `gradient2` | [`Gradient2`] | latency against its own long average |
//! | `vegas` | [`Vegas`] | the queue that latency tells of |
//! | `windowed` | [`Windowed`] | one latency a window, for any of the others |
//! | | [`Settable`] | what somebody sets, in code |
//!
//! # Writing an algorithm
//!
//! One file and this crate are enough: implement [`Limiter`]. No sequence of windows may lead to a panic, to a number that
//! is not finite, to a limit outside the bounds, or to a floor that healthy traffic cannot leave. To ship it in this crate,
//! add one line for it where [`Algorithm`] is declared; every property test then runs over it.
//!
//! ```
//! use goodput_algorithms::{CannotResume, Decision, Limiter, Reason, State, Window, WindowRule};
//!
//! /// Halves on any overload, else adds one.
//! #[derive(Debug)]
//! struct Halving {
//!     limit: usize,
//! }
//!
//! impl Limiter for Halving {
//!     fn limit(&self) -> usize {
//!         self.limit
//!     }
//!
//!     fn next_window(&self) -> WindowRule {
//!         WindowRule::samples(self.limit as u64)
//!     }
//!
//!     fn update(&mut self, window: &Window) -> Decision {
//!         let reason = if window.overloads.count > 0 {
//!             self.limit = (self.limit / 2).max(1);
//!             Reason::Overload
//!         } else {
//!             self.limit = (self.limit + 1).min(1_000);
//!             Reason::Growing
//!         };
//!         Decision::new(self.limit, reason).with("overloads", window.overloads.count as f64)
//!     }
//!
//!     fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
//!         self.limit = state.number_within("limit", 1.0, 1_000.0)? as usize;
//!         Ok(())
//!     }
//! }
//! ```

mod aimd;
mod allowance;
mod brpc;
mod cinnamon;
mod conjure;
mod crest;
mod decision;
mod dubbo;
mod envoy;
mod failsafe;
mod fixed;
mod go_zero;
mod gradient;
mod gradient2;
mod hill_climbing;
mod incremental_steps;
mod kratos;
mod limiter;
mod parabola;
mod parts;
mod pid;
mod sentinel;
mod settable;
mod settings;
mod slow_start;
mod split_mix;
mod state;
mod time;
mod utilization;
mod vector;
mod vegas;
mod window;
mod windowed;

pub use aimd::{Aimd, AimdSettings};
pub use allowance::Allowance;
pub use brpc::{Brpc, BrpcSettings};
pub use cinnamon::{Cinnamon, CinnamonSettings};
pub use conjure::{Conjure, ConjureSettings};
pub use crest::{Crest, CrestSettings, Part, Role};
pub use decision::{Decision, Evidence, Reason};
pub use dubbo::{Dubbo, DubboSettings};
pub use envoy::{Envoy, EnvoySettings};
pub use failsafe::{Failsafe, FailsafeSettings};
pub use fixed::{Fixed, FixedSettings};
pub use go_zero::{GoZero, GoZeroSettings};
pub use gradient::{Gradient, GradientSettings};
pub use gradient2::{Gradient2, Gradient2Settings};
pub use hill_climbing::{HillClimbing, HillClimbingSettings};
pub use incremental_steps::{IncrementalSteps, IncrementalStepsSettings};
pub use kratos::{Kratos, KratosSettings};
pub use limiter::{Limiter, WindowRule};
pub use parabola::{Parabola, ParabolaSettings};
pub use pid::{Pid, PidSettings};
pub use sentinel::{Sentinel, SentinelSettings};
pub use settable::{LimitHandle, Settable};
pub use settings::{Algorithm, InvalidSettings, UnknownAlgorithm};
pub use slow_start::{SlowStart, SlowStartSettings};
pub use state::{CannotResume, State};
pub use time::Instant;
pub use utilization::{InvalidUtilization, Sampling, Utilization};
pub use vector::{Vector, VectorSettings};
pub use vegas::{Vegas, VegasSettings};
pub use window::{Latencies, Window};
pub use windowed::{Summary, Windowed, WindowedSettings, Windowing};
