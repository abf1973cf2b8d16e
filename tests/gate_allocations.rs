//! The request path asks the allocator for nothing.

use allocation_counter::measure;
use goodput::{
    Gate, ManualClock, Outcome, Request,
    algorithms::{Algorithm, Limiter},
};

#[test]
fn acquire_and_release_allocate_nothing_whatever_the_algorithm_decides() {
    for algorithm in Algorithm::all_defaults() {
        let clock = ManualClock::new();
        let gate = gate_with(algorithm.build().unwrap(), &clock);
        let allocated = measure(|| {
            for request in 0..5_000_u64 {
                let Ok(token) = gate.try_acquire() else { continue };
                // Refused where the limit starts at one.
                let other = gate.try_acquire_owned(&Request::DEFAULT);
                clock.advance(std::time::Duration::from_micros(900 + request % 200));
                token.release(Outcome::Success);
                if let Ok(other) = other {
                    other.release(if request % 7 == 0 { Outcome::Overload } else { Outcome::Success });
                }
            }
        });
        assert_eq!(allocated.count_total, 0, "with {}", algorithm.name());
        assert!(
            !gate.snapshot().decisions.is_empty() || algorithm.name() == "fixed",
            "{} slept",
            algorithm.name()
        );
    }
}

#[test]
fn a_refusal_allocates_nothing() {
    let gate = gate_with(Algorithm::from_name("fixed").unwrap().build().unwrap(), &ManualClock::new());
    let _all = gate.try_acquire_many(gate.limit() as u32).unwrap();
    let allocated = measure(|| assert!((0..1_000).all(|_| gate.try_acquire().is_err())));
    assert_eq!(allocated.count_total, 0);
}

/// Warm: a thread's first visit to any gate takes its number.
fn gate_with(limiter: Box<dyn Limiter>, clock: &ManualClock) -> Gate<ManualClock> {
    let gate = Gate::builder(limiter).clock(clock.clone()).build();
    drop(gate.try_acquire().unwrap());
    gate
}
