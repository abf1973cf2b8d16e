//! The operations whose instructions are counted.

#[path = "../../algorithms/benches/windows/mod.rs"]
mod windows;

use std::{hint::black_box, mem, time::Duration};

use goodput::{
    Gate, ManualClock, Outcome,
    algorithms::{Algorithm, Limiter},
};

use windows::Windows;

/// Something whose instructions are counted.
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) once: Box<dyn FnMut()>,
}

/// The request path, and an update of every algorithm.
pub(crate) fn operations() -> Vec<Operation> {
    let gates = [
        visit("acquire and release", "fixed"),
        visit("acquire and release, a window for each sample", "aimd"),
        visit("acquire and release, the default gate", Algorithm::default().name()),
        refusal(),
    ];
    let updates = Algorithm::all_defaults()
        .into_iter()
        .flat_map(|algorithm| [update(&algorithm, 1), update(&algorithm, 100)]);
    gates.into_iter().chain(updates).collect()
}

/// On a clock that costs next to nothing, so that what is counted is the gate.
fn visit(name: &str, algorithm: &str) -> Operation {
    let clock = ManualClock::new();
    let gate = Gate::builder(named(algorithm)).clock(clock.clone()).build();
    operation(name, move || {
        let token = gate.try_acquire().expect("there is room");
        clock.advance(Duration::from_millis(1));
        token.release(black_box(Outcome::Success));
    })
}

fn refusal() -> Operation {
    let gate = Gate::builder(named("fixed")).clock(ManualClock::new()).build();
    // Nobody gives these places back.
    mem::forget(gate.try_acquire_many(u32::MAX));
    operation("refusal at the limit", move || {
        black_box(gate.try_acquire().is_err());
    })
}

fn update(algorithm: &Algorithm, samples: u64) -> Operation {
    let (mut limiter, mut windows) = (algorithm.build().expect("defaults hold"), Windows::of(samples));
    operation(format!("update with a window of {samples}: {}", algorithm.name()), move || {
        black_box(&limiter.update(black_box(windows.next())));
    })
}

fn named(algorithm: &str) -> Box<dyn Limiter> {
    Algorithm::from_name(algorithm).expect("a known name").build().expect("defaults hold")
}

fn operation(name: impl Into<String>, once: impl FnMut() + 'static) -> Operation {
    Operation { name: name.into(), once: Box::new(once) }
}
