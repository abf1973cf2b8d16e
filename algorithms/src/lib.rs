//! Algorithms that decide how many requests a service should work on at once.
//!
//! Everything here is a pure state machine. A [`Limiter`] is shown a [`Window`] of observations and answers
//! with a [`Decision`]: the limit, and why it moved. It reads no clock, takes no lock, does no I/O and draws no
//! hidden randomness, so the same windows always give the same limits, in production as in a simulation.
//!
//! # Writing an algorithm
//!
//! One file and this crate are enough: implement [`Limiter`].
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
mod decision;
mod fixed;
mod gradient;
mod gradient2;
mod limiter;
mod settable;
mod settings;
mod split_mix;
mod state;
mod time;
mod vegas;
mod window;
mod windowed;

pub use aimd::{Aimd, AimdSettings};
pub use allowance::Allowance;
pub use decision::{Decision, Evidence, Reason};
pub use fixed::{Fixed, FixedSettings};
pub use gradient::{Gradient, GradientSettings};
pub use gradient2::{Gradient2, Gradient2Settings};
pub use limiter::{Limiter, WindowRule};
pub use settable::{LimitHandle, Settable};
pub use settings::{Algorithm, InvalidSettings, UnknownAlgorithm};
pub use state::{CannotResume, State};
pub use time::Instant;
pub use vegas::{Vegas, VegasSettings};
pub use window::{Latencies, Window};
pub use windowed::{Summary, Windowed, WindowedSettings, Windowing};
