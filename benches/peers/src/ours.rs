//! goodput, with windows of three sorts, on both clocks.

use goodput::{
    Gate, Outcome, SystemClock, TscClock,
    algorithms::{Algorithm, CannotResume, Decision, Limiter, Reason, State, Window, WindowRule},
    middleware::GateLayer,
};
use tower::Layer;

use crate::{
    contender::{Clock, Contender, Kind},
    peers::{Instantly, LIMIT, serve},
};

/// The gate as it comes.
pub(crate) const DEFAULT: &str = "goodput: `Gate::default()`";

/// The gate with a limiter that costs nothing.
pub(crate) const GATE_ALONE: &str = "goodput: windows of 100, a limiter that does nothing";

/// A token taken and released as a success.
pub(crate) fn visits() -> Vec<Contender> {
    [Clock::System, Clock::Tsc]
        .into_iter()
        .flat_map(|clock| {
            [
                gate(DEFAULT, clock, &|| Algorithm::default().build().expect("defaults hold")),
                gate(GATE_ALONE, clock, &|| Box::new(Idle(100))),
                gate("goodput: AIMD, a window for each sample", clock, &|| named("aimd")),
                layer(clock),
            ]
        })
        .collect()
}

/// A request refused because the limit is reached.
pub(crate) fn refusals() -> Vec<Contender> {
    let gate = Gate::new(Idle(1));
    // Nobody gives these places back.
    std::mem::forget(gate.try_acquire_many(LIMIT as u32));
    vec![Contender::new("goodput: `Gate::try_acquire`", Kind::Ours(Clock::System), move |slice| {
        slice.repeat(|| gate.try_acquire().is_err())
    })]
}

fn gate(name: &str, clock: Clock, limiter: &dyn Fn() -> Box<dyn Limiter>) -> Contender {
    fn contender<C: goodput::Clock + 'static>(name: &str, kind: Clock, gate: Gate<C>) -> Contender {
        Contender::new(name, Kind::Ours(kind), move |slice| {
            slice.repeat(|| gate.try_acquire().map(|token| token.release(Outcome::Success)).is_ok())
        })
    }
    match clock {
        Clock::System => contender(name, clock, Gate::builder(limiter()).clock(SystemClock::new()).build()),
        Clock::Tsc => contender(name, clock, Gate::builder(limiter()).clock(TscClock::new()).build()),
    }
}

/// The layer around a service that answers at once.
fn layer(clock: Clock) -> Contender {
    fn contender<C: goodput::Clock + 'static>(kind: Clock, gate: Gate<C>) -> Contender {
        let service = GateLayer::new(gate).layer(Instantly);
        Contender::new("goodput: the tower layer", Kind::Ours(kind), move |slice| {
            let mut service = service.clone();
            slice.repeat_async(async || serve(&mut service).await.is_ok())
        })
    }
    let builder = Gate::builder(Algorithm::default().build().expect("defaults hold"));
    match clock {
        Clock::System => contender(clock, builder.build()),
        Clock::Tsc => contender(clock, builder.clock(TscClock::new()).build()),
    }
}

fn named(algorithm: &str) -> Box<dyn Limiter> {
    Algorithm::from_name(algorithm).expect("a known name").build().expect("defaults hold")
}

/// A limit that stays, of a limiter that asks for windows of so many samples.
#[derive(Debug)]
struct Idle(u64);

impl Limiter for Idle {
    fn limit(&self) -> usize {
        LIMIT
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(self.0)
    }

    fn update(&mut self, _: &Window) -> Decision {
        Decision::new(LIMIT, Reason::Holding)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}
