//! A world on virtual time in which limiters are tried.
//!
//! A [`Scenario`] describes clients, doors, a service and the events that befall them; [`run`] plays it. The doors
//! are real [`goodput::Gate`]s, driven through the calls that a server makes, on a clock that the world moves.
//! Nothing here decides on a limit or on an admission: what is measured is the code that ships.
//!
//! Every run repeats to the bit from its seed, on any machine. Times are whole nanoseconds, logarithms and powers
//! come from `libm`, and each purpose (arrivals, work, errors, waits) of each client draws from a stream of its
//! own. Open-loop arrivals and the work that each request brings therefore do not depend on the limiter, so two
//! limiters are compared on the same traffic.
//!
//! ```
//! use goodput_simulator::{Limits, Measure, Scenario, run};
//! use goodput::algorithms::{Algorithm, FixedSettings};
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     name = "half again too much"
//!     length = "10s"
//!     deadline = "200ms"
//!
//!     [service]
//!     work = { exponential = "10ms" }
//!     pool = { workers = 16 }
//!
//!     [[clients]]
//!     open = { per_second = 2400 }
//!
//!     [door.service]
//!     "#,
//! )?;
//! let limits = Limits::Algorithm(Algorithm::Fixed(FixedSettings { limit: 20 }));
//! let summary = run(&scenario, &limits, 1, &Measure::default())?.summary;
//! assert!(summary.goodput_per_second() > 1_500.0);
//! # Ok::<(), goodput_simulator::ScenarioError>(())
//! ```
//!
//! # How good was it
//!
//! [`Oracle::search`] finds the best constant limit of each [`Segment`] of a scenario, knowing the future;
//! [`score::Score`] compares a run with it, and [`score::Standing`] sums up many. [`suite()`] holds the scenarios by
//! which algorithms are compared, and [`random_scenario`] draws others that nobody tuned for.
//!
//! ```
//! # use goodput_simulator::{Limits, Measure, Oracle, Scenario, run, score::Score};
//! # let scenario = Scenario::parse(
//! #     r#"
//! #     length = "2s"
//! #     deadline = "200ms"
//! #     service = { work = { constant = "10ms" }, pool = { workers = 4 } }
//! #     clients = [{ open = { process = "constant", per_second = 800 } }]
//! #     door.service = {}
//! #     "#,
//! # )?;
//! let oracle = Oracle::search(&scenario, 1)?;
//! let run = run(&scenario, &Limits::fixed(2), 1, &Measure::default())?;
//! let score = Score::new(&scenario, &oracle, &run.summary);
//! // Half of the four workers are idle.
//! assert!((score.goodput_ratio - 0.5).abs() < 0.01);
//! # Ok::<(), goodput_simulator::ScenarioError>(())
//! ```
//!
//! # What happens first
//!
//! At one instant, events happen in this order: changes (of the service, of limits, of who is there), completions,
//! timeouts, retries, arrivals, and last dispatch: who waits at a door and was woken asks again, and the service
//! starts work. Events of one kind happen in the order in which they were set up. A completion in the very
//! nanosecond of the timeout is in time. With [`Pool::starts`] at once, the service starts work as it arrives
//! instead; with [`Ties::AsPlanned`], retries and arrivals come as they were planned.

mod comparison;
mod figures;
mod limits;
mod oracle;
mod random;
mod random_scenarios;
mod scenario;
pub mod score;
mod suite;
mod trace;
mod world;

pub use comparison::{Cell, Columns, ComparedRow, ComparedTable, Comparison, RowPlan, TablePlan};
pub use figures::{ClassName, ClientFigures, Counts, Part, Refusals, Summary};
pub use limits::Limits;
pub use oracle::{Band, Oracle};
pub use random_scenarios::{random_scenario, random_scenario_text};
pub use scenario::{
    Abandoned, Beyond, Bursts, Class, Clients, Closed, Contradiction, Crowd, Door, Doors, ErrorEpisode, Knee,
    Listed, Open, Outage, OutageRequests, Paced, Pauses, Pool, Process, RateChange, Retries, RetryOn,
    Scenario, ScenarioError, Segment, Service, ServiceChange, Sharing, Sine, Starts, Ties, Usl, Work,
};
pub use suite::{SUITE, suite};
pub use trace::{Answered, DoorDecision, Moment, Trace};
pub use world::{Measure, Run, run};
