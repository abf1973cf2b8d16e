use std::{collections::HashMap, fmt, hash::Hash};

use metrics::SharedString;

use super::{
    Interval,
    publish::{Rest, publish},
};
use crate::{Clock, Gate, Snapshot, keyed::KeyedGates};

/// Publishes what gates by key do, all together under one name: as many series as one gate, however many keys there are
/// and whoever chooses them. Without the limiters' inner states, which do not add up.
///
/// Limits, counts and what is in flight are sums; the queue is as old as the oldest. A gate that was forgotten between
/// two calls takes with it what it did since the first of them.
///
/// ```
/// use goodput::{Gate, keyed::{KeyedGates, KeyedSettings}, observe::FamilyReporter};
/// use goodput::algorithms::{Aimd, AimdSettings};
///
/// let hosts = KeyedGates::new(KeyedSettings::default(), |_: Option<&String>| {
///     Gate::new(Aimd::new(AimdSettings::default()).unwrap())
/// })?;
/// let mut reporter = FamilyReporter::new("hosts");
/// reporter.publish(&hosts);
/// # Ok::<(), goodput::algorithms::InvalidSettings>(())
/// ```
pub struct FamilyReporter<K> {
    name: SharedString,
    published: HashMap<Option<K>, Snapshot>,
    rest: Rest,
}

impl<K: Clone + Eq + Hash> FamilyReporter<K> {
    /// Nothing is published yet. The name is the label `gate`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: SharedString::from(name.into()), published: HashMap::new(), rest: Rest::NONE }
    }

    /// Publishes what happened since the last time. Tells it as well.
    pub fn publish<C: Clock>(&mut self, gates: &KeyedGates<K, C>) -> Interval {
        let named = gates.gates().into_iter().map(|(key, gate)| (Some(key), gate.snapshot()));
        let snapshots: HashMap<Option<K>, Snapshot> =
            named.chain([(None, Gate::snapshot(gates.shared()))]).collect();
        let interval = snapshots
            .iter()
            .map(|(key, snapshot)| since(self.published.get(key), snapshot))
            .fold(Interval::default(), |sum, interval| sum.merge(&interval));
        publish(&self.name, &interval, &mut self.rest);
        self.published = snapshots;
        interval
    }
}

/// A gate that was forgotten and made again starts anew.
fn since(earlier: Option<&Snapshot>, snapshot: &Snapshot) -> Interval {
    match earlier.filter(|earlier| earlier.totals.opened == snapshot.totals.opened) {
        Some(earlier) => Interval::between(earlier, snapshot),
        None => Interval::since_start(snapshot),
    }
}

impl<K> fmt::Debug for FamilyReporter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FamilyReporter").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        ManualClock, Outcome, Request, SystemClock,
        algorithms::{Fixed, FixedSettings},
        keyed::KeyedSettings,
    };

    fn hosts(clock: &ManualClock) -> KeyedGates<&'static str, ManualClock> {
        let clock = clock.clone();
        let settings = KeyedSettings { max_gates: 2, idle_after: Duration::from_secs(1) };
        KeyedGates::new(settings, move |_| {
            let limiter = Box::new(Fixed::new(FixedSettings { limit: 3 }).unwrap());
            Gate::<SystemClock>::builder(limiter).clock(clock.clone()).build()
        })
        .unwrap()
    }

    #[test]
    fn a_family_counts_every_request_of_every_gate_once() {
        let clock = ManualClock::new();
        let hosts = hosts(&clock);
        let mut reporter = FamilyReporter::new("hosts");
        // Both stay in use, so that the third has to share.
        let _held = ["a", "b"].map(|host| hosts.gate(&host).try_acquire_owned(&Request::DEFAULT).unwrap());
        for host in ["a", "c"] {
            hosts.gate(&host).try_acquire().unwrap().release(Outcome::Success);
        }
        let first = reporter.publish(&hosts);
        assert_eq!((first.limit, first.admitted), (9, 4));
        hosts.gate(&"a").try_acquire().unwrap().release(Outcome::Success);
        assert_eq!(reporter.publish(&hosts).admitted, 1);
    }

    #[test]
    fn a_gate_that_was_made_again_is_counted_from_its_start() {
        let clock = ManualClock::new();
        let hosts = hosts(&clock);
        let mut reporter = FamilyReporter::new("hosts");
        for _ in 0..3 {
            hosts.gate(&"a").try_acquire().unwrap().release(Outcome::Success);
        }
        assert_eq!(reporter.publish(&hosts).admitted, 3);
        clock.advance(Duration::from_secs(10));
        hosts.forget_idle();
        for _ in 0..5 {
            hosts.gate(&"a").try_acquire().unwrap().release(Outcome::Success);
        }
        assert_eq!(reporter.publish(&hosts).admitted, 5);
    }
}
