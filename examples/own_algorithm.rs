//! An algorithm of your own: one file that needs `goodput-algorithms` alone. Below it, a scenario that tries it, and
//! its score against the best that any limit could have done.
//!
//! `cargo run --release --example own_algorithm`

use std::{error::Error, sync::Arc};

use goodput_algorithms::{CannotResume, Decision, Limiter, Reason, State, Window, WindowRule};

/// Lowers the limit when a window's mean latency is more than twice the least mean it has seen, else raises it.
#[derive(Debug)]
struct TwiceTheBest {
    limit: usize,
    best_ns: f64,
}

impl TwiceTheBest {
    const MAX: usize = 10_000;

    fn new() -> Self {
        Self { limit: 10, best_ns: f64::INFINITY }
    }
}

impl Limiter for TwiceTheBest {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        // As many samples as requests in flight: about one round trip of each.
        WindowRule::samples(self.limit.max(20) as u64)
    }

    fn update(&mut self, window: &Window) -> Decision {
        let latency_ns = window.mean_latency_ns();
        if latency_ns > 0.0 {
            self.best_ns = self.best_ns.min(latency_ns);
        }
        let reason = if latency_ns > 2.0 * self.best_ns {
            self.limit = (self.limit * 9 / 10).max(1);
            Reason::QueueBuilding
        } else if window.limit_hits == 0 {
            Reason::AppLimited
        } else {
            self.limit = (self.limit + self.limit / 10 + 1).min(Self::MAX);
            Reason::Growing
        };
        Decision::new(self.limit, reason).with("latency_ns", latency_ns).with("best_ns", self.best_ns)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.limit = state.number_within("limit", 1.0, Self::MAX as f64)? as usize;
        Ok(())
    }
}

const SCENARIO: &str = r#"
name = "half again too much, and then the service slows"
length = "40s"
deadline = "300ms"

[service]
work = { exponential = "10ms" }
pool = { workers = 16 }
changes = [{ at = "20s", speed = 0.5 }]

[[clients]]
open = { per_second = 2400 }

[door.service]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    use goodput_simulator::{Limits, Measure, Oracle, Scenario, run, score::Score};

    let scenario = Scenario::parse(SCENARIO)?;
    let ours = Limits::Custom("twice the best".into(), Arc::new(|| Box::new(TwiceTheBest::new())));
    let oracle = Oracle::search(&scenario, 1)?;
    for limits in [ours, Limits::fixed(20), Limits::fixed(200)] {
        let played = run(&scenario, &limits, 1, &Measure::default())?.summary;
        let score = Score::new(&scenario, &oracle, &played);
        println!(
            "{:<16} score {:.2}: {:.0} % of the best goodput, p99 {:.2} x the best, mean limit {:.0}",
            limits.name(),
            score.score,
            100.0 * score.goodput_ratio,
            score.p99_ratio,
            score.mean_limit,
        );
    }
    Ok(())
}
