//! A gate for each downstream host, route or tenant.
//!
//! One limit over several hosts lets the slow one starve the rest. [`KeyedGates`] makes a gate for each key on demand,
//! with a limiter that learns that key alone, forgets those that are idle, and is bounded in number whoever chooses the
//! keys.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::{Clock, Gate, SystemClock};

/// Gates by key, made on demand, forgotten when idle, and bounded in number.
///
/// When the bound is reached and no gate is idle, further keys share one gate, so that nobody is refused for lack of a
/// gate, and memory stays bounded whoever chooses the keys.
pub struct KeyedGates<K, C: Clock = SystemClock> {
    make: Box<Make<K, C>>,
    table: Mutex<Table<K, Gate<C>>>,
    shared: Gate<C>,
}

type Make<K, C> = dyn Fn(Option<&K>) -> Gate<C> + Send + Sync;

impl<K: Clone + Eq + Hash, C: Clock> KeyedGates<K, C> {
    /// No gates yet. `make` makes the gate of a key, and, asked for `None`, the one that keys beyond the bound share. Others
    /// who want a gate wait while it does; it must not ask these gates for one.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] if no gates are allowed.
    pub fn new(
        settings: KeyedSettings,
        make: impl Fn(Option<&K>) -> Gate<C> + Send + Sync + 'static,
    ) -> Result<Self, InvalidSettings> {
        if settings.max_gates == 0 {
            return Err(InvalidSettings::new("max_gates", "must be at least 1, not 0"));
        }
        let shared = make(None);
        Ok(Self { make: Box::new(make), table: Mutex::new(Table::new(settings)), shared })
    }

    /// The gate of a key.
    pub fn gate(&self, key: &K) -> Gate<C> {
        let now = self.shared.clock().now();
        let mut table = self.lock();
        if let Some(gate) = table.find(key, now) {
            return gate.clone();
        }
        if !table.make_room(now, is_idle) {
            return self.shared.clone();
        }
        let gate = (self.make)(Some(key));
        table.insert(key.clone(), gate.clone(), now);
        gate
    }

    /// The gate that keys beyond the bound share.
    pub const fn shared(&self) -> &Gate<C> {
        &self.shared
    }

    /// Forgets gates that have been idle for as long as the settings say. Happens by itself as new keys come.
    pub fn forget_idle(&self) {
        let now = self.shared.clock().now();
        self.lock().forget_idle(now, is_idle);
    }

    /// All gates with their keys, from the least recently used to the most.
    pub fn gates(&self) -> Vec<(K, Gate<C>)> {
        self.lock().iter().map(|(key, gate)| (key.clone(), gate.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table<K, Gate<C>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_idle<C: Clock>(gate: &Gate<C>) -> bool {
    gate.in_flight() == 0 && gate.waiting() == 0
}

impl<K: Clone + Eq + Hash, C: Clock> fmt::Debug for KeyedGates<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGates").field("gates", &self.lock().by_use.len()).finish_non_exhaustive()
    }
}

/// Settings of [`KeyedGates`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyedSettings {
    /// The most gates at once, beside the shared one. Default 1000.
    pub max_gates: usize,
    /// A gate that nobody asked for so long and that holds nothing is forgotten. Default 10 min.
    #[serde(with = "humantime_serde")]
    pub idle_after: Duration,
}

impl Default for KeyedSettings {
    fn default() -> Self {
        Self { max_gates: 1_000, idle_after: Duration::from_secs(600) }
    }
}

/// Values by key in order of use.
#[derive(Debug)]
struct Table<K, V> {
    settings: KeyedSettings,
    by_key: HashMap<K, Entry<V>>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    last_use: u64,
    used: Instant,
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    fn new(settings: KeyedSettings) -> Self {
        Self { settings, by_key: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    fn find(&mut self, key: &K, now: Instant) -> Option<&V> {
        let entry = self.by_key.get_mut(key)?;
        let key = self.by_use.remove(&entry.last_use)?;
        self.uses += 1;
        (entry.last_use, entry.used) = (self.uses, now);
        self.by_use.insert(self.uses, key);
        Some(&entry.value)
    }

    fn insert(&mut self, key: K, value: V, now: Instant) {
        self.uses += 1;
        self.by_use.insert(self.uses, key.clone());
        self.by_key.insert(key, Entry { value, last_use: self.uses, used: now });
    }

    /// Whether there is room for one more, at the cost of the least recently used idle one if need be.
    fn make_room(&mut self, now: Instant, is_idle: impl Fn(&V) -> bool) -> bool {
        self.forget_idle(now, &is_idle);
        if self.by_key.len() < self.settings.max_gates {
            return true;
        }
        let idle = self
            .by_use
            .iter()
            .find(|(_, key)| self.by_key.get(key).is_some_and(|entry| is_idle(&entry.value)));
        let Some(last_use) = idle.map(|(&last_use, _)| last_use) else { return false };
        self.forget(last_use);
        true
    }

    fn forget_idle(&mut self, now: Instant, is_idle: impl Fn(&V) -> bool) {
        let old = self.by_use.iter().map_while(|(&last_use, key)| {
            let entry = self.by_key.get(key)?;
            (now.since(entry.used) >= self.settings.idle_after).then_some((last_use, entry))
        });
        let idle: Vec<_> =
            old.filter(|(_, entry)| is_idle(&entry.value)).map(|(last_use, _)| last_use).collect();
        for last_use in idle {
            self.forget(last_use);
        }
    }

    fn forget(&mut self, last_use: u64) {
        if let Some(key) = self.by_use.remove(&last_use) {
            self.by_key.remove(&key);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.by_use.values().filter_map(|key| Some((key, &self.by_key.get(key)?.value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ManualClock, Outcome,
        algorithms::{Fixed, FixedSettings},
    };

    fn gates(max_gates: usize) -> (ManualClock, KeyedGates<String, ManualClock>) {
        let clock = ManualClock::new();
        let gate_clock = clock.clone();
        let settings = KeyedSettings { max_gates, ..KeyedSettings::default() };
        let gates = KeyedGates::new(settings, move |host: Option<&String>| {
            let limiter = Fixed::new(FixedSettings { limit: 2 }).unwrap();
            let name = host.map_or("others", String::as_str);
            Gate::builder(Box::new(limiter)).clock(gate_clock.clone()).name(name).build()
        });
        (clock, gates.unwrap())
    }

    fn names(gates: &KeyedGates<String, ManualClock>) -> Vec<String> {
        gates.gates().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn each_key_has_a_gate_of_its_own() {
        let (_clock, gates) = gates(10);
        let slow = gates.gate(&String::from("slow"));
        let _held = [slow.try_acquire().unwrap(), slow.try_acquire().unwrap()];
        assert!(gates.gate(&String::from("slow")).try_acquire().is_err());
        assert!(gates.gate(&String::from("fast")).try_acquire().is_ok());
    }

    #[test]
    fn the_least_recently_used_idle_gate_makes_room() {
        let (_clock, gates) = gates(3);
        let busy = gates.gate(&String::from("busy"));
        let token = busy.try_acquire().unwrap();
        for key in ["b", "c", "b", "d"] {
            gates.gate(&String::from(key));
        }
        assert_eq!(names(&gates), ["busy", "b", "d"]);
        token.release(Outcome::Success);
    }

    #[test]
    fn keys_beyond_the_bound_share_a_gate_while_all_others_are_busy() {
        let (_clock, gates) = gates(1);
        let busy = gates.gate(&String::from("a"));
        let token = busy.try_acquire().unwrap();
        let one = gates.gate(&String::from("b"));
        let _held = [one.try_acquire().unwrap(), one.try_acquire().unwrap()];
        assert!(gates.gate(&String::from("c")).try_acquire().is_err());
        token.release(Outcome::Success);
        assert!(gates.gate(&String::from("c")).try_acquire().is_ok());
        assert_eq!(names(&gates), ["c"]);
    }

    #[test]
    fn a_gate_that_is_idle_for_long_is_forgotten_but_not_one_that_holds_something() {
        let (clock, gates) = gates(10);
        let busy = gates.gate(&String::from("busy"));
        let token = busy.try_acquire().unwrap();
        gates.gate(&String::from("idle"));
        clock.advance(Duration::from_secs(300));
        gates.gate(&String::from("lately"));
        clock.advance(Duration::from_secs(301));
        gates.forget_idle();
        assert_eq!(names(&gates), ["busy", "lately"]);
        token.release(Outcome::Success);
        gates.forget_idle();
        assert_eq!(names(&gates), ["lately"]);
    }

    #[test]
    fn a_bound_of_none_is_refused() {
        let settings = KeyedSettings { max_gates: 0, ..KeyedSettings::default() };
        let made =
            KeyedGates::<u32>::new(settings, |_| Gate::new(Fixed::new(FixedSettings::default()).unwrap()));
        assert_eq!(made.unwrap_err().field, "max_gates");
    }
}
