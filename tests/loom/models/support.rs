//! What the models share.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use goodput_under_loom::{
    Gate, ManualClock,
    algorithms::{CannotResume, Decision, Limiter, Reason, State, Window, WindowRule},
};

/// How often a thread may be interrupted where it would not have to be, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS: usize = 2;

/// What building a gate needs, and more: loom's own threads have 32 KiB, and the first one cannot have another.
const STACK: usize = 1 << 18;

/// Runs `model` in every order.
pub(crate) fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.max_branches = 100_000;
    builder.check(move || {
        loom::thread::Builder::new().stack_size(STACK).spawn(model).unwrap().join().unwrap();
    });
}

/// A gate whose clock stands still.
pub(crate) fn gate(limiter: Box<dyn Limiter>, max_waiting: usize, stripes: usize) -> Gate<ManualClock> {
    Gate::builder(limiter).clock(ManualClock::new()).max_waiting(max_waiting).stripes(stripes).build()
}

/// A limit that stays, of a limiter that is never asked.
pub(crate) fn fixed(limit: usize) -> Box<dyn Limiter> {
    Box::new(Scripted {
        limits: vec![limit],
        updates: 0,
        rule: WindowRule::samples(u64::MAX),
        ledger: Ledger::default(),
    })
}

/// A new limit after each sample, as listed; the last one stays. What it is shown goes to the ledger.
pub(crate) fn scripted(limits: &[usize], ledger: &Ledger) -> Box<dyn Limiter> {
    Box::new(Scripted { limits: limits.into(), updates: 0, rule: WindowRule::EACH, ledger: ledger.clone() })
}

/// The sum of all windows that a limiter was shown.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Arc<Mutex<Window>>);

impl Default for Ledger {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Window::EMPTY)))
    }
}

impl Ledger {
    pub(crate) fn sum(&self) -> Window {
        *self.0.lock().unwrap()
    }
}

#[derive(Debug)]
struct Scripted {
    limits: Vec<usize>,
    updates: usize,
    rule: WindowRule,
    ledger: Ledger,
}

impl Limiter for Scripted {
    fn limit(&self) -> usize {
        self.limits[self.updates.min(self.limits.len() - 1)]
    }

    fn next_window(&self) -> WindowRule {
        self.rule
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.updates += 1;
        let mut sum = self.ledger.0.lock().unwrap();
        *sum = sum.merge(*window);
        Decision::new(self.limit(), Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

/// The weight of those who are inside for certain: they enter it after the gate let them in, and leave it before they
/// release.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inside(Arc<AtomicUsize>);

impl Inside {
    /// Tells how much is inside then.
    pub(crate) fn enter(&self, weight: usize) -> usize {
        self.0.fetch_add(weight, Ordering::SeqCst) + weight
    }

    pub(crate) fn leave(&self, weight: usize) {
        self.0.fetch_sub(weight, Ordering::SeqCst);
    }
}
