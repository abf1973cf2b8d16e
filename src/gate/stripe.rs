//! What threads observe, each in a stripe of its own.

use std::sync::atomic::Ordering;

use goodput_algorithms::{Instant, Latencies, Window};

use super::{admitted::Admitted, door::Occupancy};
use crate::{
    Criticality, Outcome,
    sync::{AtomicBool, AtomicU64, Plain},
};

/// The observations of one thread: two banks, of which the generation says which one is written.
pub(super) struct Stripe {
    /// Odd while its writer is at work, so that a collector knows whom to wait for. From [`Stripe::SHARED`] on where
    /// threads share it, so that its writer need not remember that apart.
    turns: AtomicU64,
    refused: [AtomicU64; Refused::KINDS],
    claimed: AtomicBool,
    /// Whether its thread keeps a place. Never in a stripe that threads share.
    kept: AtomicBool,
    banks: [Bank; 2],
}

impl Stripe {
    const SHARED: u64 = 1 << 63;

    /// For one thread.
    pub(super) fn own() -> Self {
        Self::starting_at(0)
    }

    /// For threads that take turns.
    pub(super) fn shared() -> Self {
        Self::starting_at(Self::SHARED)
    }

    fn starting_at(turns: u64) -> Self {
        Self {
            turns: AtomicU64::new(turns),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            claimed: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            banks: [Bank::new(), Bank::new()],
        }
    }

    /// The writer announces itself. It must then pass the door, or take or keep a place here, before it asks for a bank.
    /// Tells which turn it is, to be given to [`Stripe::end`].
    #[inline]
    pub(super) fn begin(&self) -> Turn {
        let turn = self.turns.load(Ordering::Relaxed).wrapping_add(1);
        // Whoever sees that a new visit began must see all of the one before.
        self.turns.store(turn, Ordering::Release);
        Turn(turn)
    }

    #[inline]
    pub(super) fn end(&self, turn: Turn) {
        self.turns.store(turn.0.wrapping_add(1), Ordering::Release);
        if turn.is_shared() {
            self.give_back();
        }
    }

    /// How often the writer has come and gone.
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    /// Its thread keeps a place. False, and nothing done, if it keeps one already.
    #[inline]
    pub(super) fn keep(&self) -> bool {
        !self.keeps() && !self.kept.swap(true, Ordering::AcqRel)
    }

    /// Its thread takes the place that it keeps. False if there is none.
    #[inline]
    pub(super) fn take_kept(&self) -> bool {
        self.keeps() && self.take_back()
    }

    /// Takes away the place that its thread keeps. False if there is none.
    ///
    /// A read-modify-write even then: a thread that keeps one after this sees what the caller did before.
    #[inline]
    pub(super) fn take_back(&self) -> bool {
        self.kept.swap(false, Ordering::AcqRel)
    }

    #[inline]
    pub(super) fn keeps(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// Orders the caller with its thread where that takes and keeps places: as [`Door::line_up`](super::door::Door::line_up).
    pub(super) fn line_up(&self) {
        self.kept.fetch_or(false, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn bank(&self, generation: u64) -> &Bank {
        &self.banks[(generation & 1) as usize]
    }

    /// Counts a refusal of the stripe's only thread, unless it is the first of its kind: false then, and nothing done.
    #[inline]
    pub(super) fn refuse_again(&self, kind: Refused) -> bool {
        let place = &self.refused[kind.0];
        let refused = place.load(Ordering::Relaxed);
        if refused > 0 {
            place.store(refused.wrapping_add(1), Ordering::Relaxed);
        }
        refused > 0
    }

    /// Counts a refusal, also where several threads share the stripe.
    pub(super) fn refuse(&self, kind: Refused) {
        self.refused[kind.0].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, kind: Refused) -> u64 {
        self.refused[kind.0].load(Ordering::Relaxed)
    }

    pub(super) fn refused_at_limit(&self) -> u64 {
        let kinds = Criticality::ALL.map(Refused::at_limit);
        kinds.into_iter().fold(0, |sum, kind| sum.wrapping_add(self.refused(kind)))
    }

    /// Makes the caller the only writer of a stripe that threads share, until the turn that it begins ends.
    pub(super) fn claim(&self) -> bool {
        self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn give_back(&self) {
        self.claimed.store(false, Ordering::Release);
    }
}

/// One visit of a stripe's writer.
#[derive(Clone, Copy)]
pub(super) struct Turn(u64);

impl Turn {
    #[inline]
    pub(super) fn is_first(self) -> bool {
        // With the bit shifted out that says whether the stripe is shared.
        self.0 << 1 == 1 << 1
    }

    /// Whether the stripe is one that threads share.
    #[inline]
    pub(super) fn is_shared(self) -> bool {
        self.0 >= Stripe::SHARED
    }
}

/// The kinds of refusal that cost next to nothing.
#[derive(Clone, Copy)]
pub(super) struct Refused(usize);

impl Refused {
    const KINDS: usize = 2 * Criticality::ALL.len();

    /// The limit is reached.
    #[inline]
    pub(super) fn at_limit(criticality: Criticality) -> Self {
        Self(criticality as usize)
    }

    /// Its part of the limit is used.
    #[inline]
    pub(super) fn at_share(criticality: Criticality) -> Self {
        Self(Criticality::ALL.len() + criticality as usize)
    }
}

/// Sums since the last collection. On cache lines of its own, as a collector empties it while its writer is at the other
/// one; and first what nearly every visit writes, so that few lines go to the collector and back.
#[repr(C, align(64))]
pub(super) struct Bank {
    admitted: Plain,
    entered: Plain,
    /// Sum of weight × instant over those who left, less the same over those who entered: with as many in flight as
    /// entered and did not leave, the integral of in flight over time up to any `now` is this + in flight × now.
    moment: Moment,
    successes: Tally,
    max_in_flight: Plain,
    longest_silence_ns: Plain,
    limit_hits: Plain,
    cancelled: Plain,
    overloads: Tally,
    failures: Tally,
}

impl Bank {
    fn new() -> Self {
        Self {
            admitted: Plain::new(0),
            entered: Plain::new(0),
            moment: Moment::new(),
            successes: Tally::new(),
            max_in_flight: Plain::new(0),
            longest_silence_ns: Plain::new(0),
            limit_hits: Plain::new(0),
            cancelled: Plain::new(0),
            overloads: Tally::new(),
            failures: Tally::new(),
        }
    }

    #[inline]
    pub(super) fn enter(&self, weight: u32, now: Instant, after: Occupancy) {
        self.admitted.set(self.admitted.get() + 1);
        self.entered.set(self.entered.get().wrapping_add(u64::from(weight)));
        self.moment.subtract(u128::from(weight) * u128::from(now.nanos()));
        if after.is_full() {
            self.limit_hits.set(self.limit_hits.get() + 1);
        }
    }

    /// Tells how many samples the bank holds.
    #[inline]
    pub(super) fn leave(&self, admitted: Admitted, now: Instant, outcome: Outcome, silence_ns: u64) -> u64 {
        let weight = admitted.weight();
        // On a clock that stepped back the request took no time, rather than less than none.
        let left = now.max(admitted.at);
        self.entered.set(self.entered.get().wrapping_sub(u64::from(weight)));
        self.moment.add(u128::from(weight) * u128::from(left.nanos()));
        let tally = match outcome {
            Outcome::Success => &self.successes,
            Outcome::Overload => &self.overloads,
            Outcome::Failure => &self.failures,
            Outcome::Cancelled => {
                self.cancelled.set(self.cancelled.get() + 1);
                return self.samples();
            }
        };
        tally.add(now.nanos_since(admitted.at));
        raise(&self.max_in_flight, u64::from(admitted.in_flight()));
        raise(&self.longest_silence_ns, silence_ns);
        self.samples()
    }

    #[inline]
    fn samples(&self) -> u64 {
        self.successes.count.get() + self.overloads.count.get()
    }

    /// Empties the bank, and adds to `window` what belongs there: all but instants and area.
    pub(super) fn drain_into(&self, window: &mut Window) -> Flow {
        let samples = self.successes.drain_into(&mut window.successes)
            + self.overloads.drain_into(&mut window.overloads);
        let failures = self.failures.drain_into(&mut window.failures);
        let cancelled = take(&self.cancelled);
        window.cancelled += cancelled;
        window.limit_hits += take(&self.limit_hits);
        window.max_in_flight = window.max_in_flight.max(take(&self.max_in_flight));
        window.longest_silence_ns = window.longest_silence_ns.max(take(&self.longest_silence_ns));
        Flow {
            samples,
            ended: samples + failures + cancelled,
            admitted: take(&self.admitted),
            entered: take(&self.entered).cast_signed(),
            moment: self.moment.take(),
        }
    }
}

/// Who came and went, as a bank noted it.
pub(super) struct Flow {
    /// Requests that ended and say something about load.
    pub(super) samples: u64,
    /// Requests that ended, however they did.
    pub(super) ended: u64,
    /// Requests, whatever they weigh.
    pub(super) admitted: u64,
    pub(super) entered: i64,
    pub(super) moment: i128,
}

struct Tally {
    count: Plain,
    sum_ns: Plain,
    sum_squares: Wide,
    min_ns: Plain,
    max_ns: Plain,
}

impl Tally {
    fn new() -> Self {
        Self {
            count: Plain::new(0),
            sum_ns: Plain::new(0),
            sum_squares: Wide::new(),
            min_ns: Plain::new(u64::MAX),
            max_ns: Plain::new(0),
        }
    }

    #[inline]
    fn add(&self, latency_ns: u64) {
        self.count.set(self.count.get() + 1);
        self.sum_ns.set(self.sum_ns.get().saturating_add(latency_ns));
        self.sum_squares.add(u128::from(latency_ns) * u128::from(latency_ns));
        if latency_ns < self.min_ns.get() {
            self.min_ns.set(latency_ns);
        }
        raise(&self.max_ns, latency_ns);
    }

    /// Tells how many there were.
    fn drain_into(&self, latencies: &mut Latencies) -> u64 {
        let count = take(&self.count);
        if count > 0 {
            let min_ns = self.min_ns.get();
            self.min_ns.set(u64::MAX);
            *latencies = latencies.merge(Latencies {
                count,
                sum_ns: take(&self.sum_ns),
                sum_squares: self.sum_squares.take(),
                min_ns,
                max_ns: take(&self.max_ns),
            });
        }
        count
    }
}

/// A sum of either sign. It starts in the middle of what its low half can hold, so that there is hardly ever anything to
/// carry.
struct Moment(Wide);

impl Moment {
    const ZERO: u128 = 1 << 63;

    fn new() -> Self {
        let wide = Wide::new();
        wide.set(Self::ZERO);
        Self(wide)
    }

    #[inline]
    fn add(&self, value: u128) {
        match self.0.low.get().checked_add(value as u64) {
            Some(low) if value >> 64 == 0 => self.0.low.set(low),
            _ => self.change(value),
        }
    }

    #[inline]
    fn subtract(&self, value: u128) {
        match self.0.low.get().checked_sub(value as u64) {
            Some(low) if value >> 64 == 0 => self.0.low.set(low),
            _ => self.change(value.wrapping_neg()),
        }
    }

    #[cold]
    fn change(&self, by: u128) {
        self.0.set(self.0.get().wrapping_add(by));
    }

    fn take(&self) -> i128 {
        let value = self.0.get();
        self.0.set(Self::ZERO);
        value.wrapping_sub(Self::ZERO).cast_signed()
    }
}

/// 128 bits in two halves.
struct Wide {
    low: Plain,
    high: Plain,
}

impl Wide {
    fn new() -> Self {
        Self { low: Plain::new(0), high: Plain::new(0) }
    }

    #[inline]
    fn get(&self) -> u128 {
        u128::from(self.high.get()) << 64 | u128::from(self.low.get())
    }

    #[inline]
    fn set(&self, value: u128) {
        self.low.set(value as u64);
        self.high.set((value >> 64) as u64);
    }

    /// At most the greatest number. Hardly ever is there anything to carry.
    #[inline]
    fn add(&self, value: u128) {
        match self.low.get().checked_add(value as u64) {
            Some(low) if value >> 64 == 0 => self.low.set(low),
            _ => self.add_all(value),
        }
    }

    #[cold]
    fn add_all(&self, value: u128) {
        self.set(self.get().saturating_add(value));
    }

    fn take(&self) -> u128 {
        let value = self.get();
        self.set(0);
        value
    }
}

#[inline]
fn raise(place: &Plain, value: u64) {
    if value > place.get() {
        place.set(value);
    }
}

fn take(place: &Plain) -> u64 {
    let value = place.get();
    if value != 0 {
        place.set(0);
    }
    value
}
