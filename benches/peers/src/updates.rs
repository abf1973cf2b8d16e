//! One `update` of every algorithm with its defaults.

use std::{hint::black_box, sync::Mutex};

use goodput::algorithms::Algorithm;

use crate::{
    contender::{Clock, Contender, Kind},
    windows::Windows,
};

/// An algorithm's step with a window of one sample, and with one of a hundred.
pub(crate) struct Updates {
    pub(crate) name: &'static str,
    /// Whether it asks for windows of one sample.
    pub(crate) steps_with_each: bool,
    pub(crate) of_one: Contender,
    pub(crate) of_hundred: Contender,
}

/// Every algorithm.
pub(crate) fn all() -> Vec<Updates> {
    Algorithm::all_defaults()
        .iter()
        .map(|algorithm| Updates {
            name: algorithm.name(),
            steps_with_each: steps_with_each(algorithm),
            of_one: update(algorithm, 1),
            of_hundred: update(algorithm, 100),
        })
        .collect()
}

fn steps_with_each(algorithm: &Algorithm) -> bool {
    let mut limiter = algorithm.build().expect("defaults hold");
    // The first window of some is shorter.
    let mut windows = Windows::of(1);
    let first = windows.next();
    limiter.update(first);
    let rule = limiter.next_window();
    rule.min_samples == 1 && rule.not_before <= first.closed
}

fn update(algorithm: &Algorithm, samples: u64) -> Contender {
    let limiter = algorithm.build().expect("defaults hold");
    let state = Mutex::new((limiter, Windows::of(samples)));
    Contender::new(algorithm.name(), Kind::Ours(Clock::System), move |slice| {
        let mut state = state.lock().expect("limiters do not panic");
        let (limiter, windows) = &mut *state;
        slice.repeat(|| {
            black_box(&limiter.update(black_box(windows.next())));
        })
    })
}
