//! What any limiter must do at least that counts what is in flight and measures how long it took: read a clock twice,
//! add one and subtract one.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use goodput::{SystemClock, TscClock};

use crate::contender::{Clock, Contender, Kind};

#[repr(align(128))]
struct InFlight(AtomicU64);

/// The floor on each clock.
pub(crate) fn visits() -> Vec<Contender> {
    vec![floor("floor", Clock::System, SystemClock::new()), floor("floor, TSC", Clock::Tsc, TscClock::new())]
}

fn floor(name: &str, kind: Clock, clock: impl goodput::Clock + 'static) -> Contender {
    let in_flight = InFlight(AtomicU64::new(0));
    Contender::new(name, Kind::Floor(kind), move |slice| {
        slice.repeat(|| {
            let entered = clock.now();
            in_flight.0.fetch_add(1, Ordering::AcqRel);
            black_box(entered);
            let left = clock.now();
            in_flight.0.fetch_sub(1, Ordering::AcqRel);
            left.nanos_since(entered)
        })
    })
}
