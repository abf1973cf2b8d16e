//! What `tracing` hears of a gate.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use goodput::{
    Criticality, Gate, ManualClock, Outcome, Request,
    algorithms::{Aimd, AimdSettings, Fixed, FixedSettings},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Writes down every event: its target and its fields.
#[derive(Clone, Debug, Default)]
struct Journal(Arc<Mutex<Vec<Entry>>>);

type Entry = (&'static str, BTreeMap<&'static str, String>);

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Journal {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push((event.metadata().target(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is heard while `work` is done.
fn heard(work: impl FnOnce()) -> Vec<Entry> {
    let journal = Journal::default();
    tracing::subscriber::with_default(journal.clone(), work);
    std::mem::take(&mut *journal.0.lock().unwrap())
}

fn fixed(limit: usize, clock: &ManualClock) -> Gate<ManualClock> {
    let limiter = Box::new(Fixed::new(FixedSettings { limit }).unwrap());
    Gate::builder(limiter).name("api").clock(clock.clone()).build()
}

#[test]
fn a_move_of_the_limit_is_told_with_its_reason() {
    let settings = AimdSettings { initial: 100, ..AimdSettings::default() };
    let gate = Gate::builder(Box::new(Aimd::new(settings).unwrap())).name("api").build();
    let entries = heard(|| gate.try_acquire().unwrap().release(Outcome::Overload));
    let [(target, fields)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(*target, "goodput::limit");
    let told = ["gate", "previous_limit", "limit", "reason"].map(|field| fields[field].as_str());
    assert_eq!(told, ["api", "100", "90", "overload"]);
}

#[test]
fn nothing_is_told_of_requests_that_are_admitted() {
    let gate = fixed(10, &ManualClock::new());
    let entries = heard(|| {
        for _ in 0..1_000 {
            gate.try_acquire().unwrap().release(Outcome::Success);
        }
    });
    assert_eq!(entries, []);
}

#[test]
fn refusals_are_told_once_a_second_with_how_many_there_were() {
    let clock = ManualClock::new();
    let gate = fixed(1, &clock);
    let _held = gate.try_acquire().unwrap();
    let refused = |criticality| assert!(gate.try_acquire_for(&Request::DEFAULT.of(criticality)).is_err());
    let entries = heard(|| {
        for _ in 0..1_000 {
            refused(Criticality::Sheddable);
        }
        clock.advance(Duration::from_secs(1));
        refused(Criticality::Critical);
    });
    let [(target, first), (_, second)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(*target, "goodput::refusal");
    let told = |fields: &BTreeMap<&str, String>| {
        ["gate", "reason", "criticality", "refused_since_last"].map(|field| fields[field].clone())
    };
    assert_eq!(told(first), ["api", "limit_reached", "sheddable", "1"]);
    assert_eq!(told(second), ["api", "limit_reached", "critical", "1000"]);
}

#[test]
fn another_limiter_is_told_as_a_move() {
    let gate = fixed(1, &ManualClock::new());
    let entries = heard(|| gate.replace_limiter(Box::new(Fixed::new(FixedSettings { limit: 7 }).unwrap())));
    let [(_, fields)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(["previous_limit", "limit", "reason"].map(|field| fields[field].as_str()), ["1", "7", "set"]);
}
