//! Why the limit moved: the last decisions, which every snapshot carries.

use std::{sync::Arc, time::Duration};

use goodput::{
    Gate, ManualClock, Outcome, TimedDecision,
    algorithms::{CannotResume, Decision, Instant, Limiter, Reason, State, Window, WindowRule},
};

/// One more with every request.
#[derive(Debug)]
struct Counting(usize);

impl Limiter for Counting {
    fn limit(&self) -> usize {
        self.0
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.0 += 1;
        Decision::new(self.0, Reason::Growing).with("successes", window.successes.count as f64)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

#[test]
fn a_snapshot_has_the_last_thirty_two_with_their_times_and_reasons_and_counts_all() {
    let clock = ManualClock::new();
    let heard = Arc::new(std::sync::Mutex::new(Vec::<TimedDecision>::new()));
    let journal = Arc::clone(&heard);
    let gate = Gate::builder(Box::new(Counting(1)))
        .clock(clock.clone())
        .on_decision(move |decision| journal.lock().unwrap().push(*decision))
        .build();
    for _ in 0..40 {
        clock.advance(Duration::from_millis(1));
        gate.try_acquire().unwrap().release(Outcome::Success);
    }
    let snapshot = gate.snapshot();
    let limits: Vec<_> = snapshot.decisions.iter().map(|decision| decision.decision.limit).collect();
    assert_eq!(limits, (10..=41).collect::<Vec<_>>());
    for decision in &snapshot.decisions {
        assert_eq!(decision.previous_limit + 1, decision.decision.limit);
        assert_eq!(decision.at, Instant::ZERO + Duration::from_millis(decision.previous_limit as u64));
        assert_eq!(decision.decision.to_string().matches("growing").count(), 1, "{}", decision.decision);
    }
    assert_eq!(snapshot.moves.iter().collect::<Vec<_>>(), [(Reason::Growing, 40)]);
    assert_eq!(heard.lock().unwrap()[8..], snapshot.decisions);
}
