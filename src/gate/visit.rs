//! The way of a request that is simply let in, or simply refused, and the way out of all.

use std::time::Duration;

use goodput_algorithms::Instant;

use super::{
    admitted::{Admitted, Entry},
    classes::Account,
    door::{Occupancy, Part},
    shared::Shared,
    stripe::Refused,
    stripes::Writer,
};
use crate::{Clock, Outcome, Refusal, RefusalReason, Request};

impl<C: Clock> Shared<C> {
    /// Admits a request or refuses it, and makes of its entry what the caller wants: so no copy is made of it on the way.
    #[inline(always)]
    pub(super) fn try_admit<T>(
        &self,
        request: &Request,
        token: impl FnOnce(Entry) -> T,
    ) -> Result<T, Refusal> {
        self.try_admit_or(request, token, |refusal| refusal)
    }

    /// The same, and whoever listens is told of a refusal.
    #[inline(always)]
    pub(super) fn try_admit_and_tell<T>(
        &self,
        request: &Request,
        token: impl FnOnce(Entry) -> T,
    ) -> Result<T, Refusal> {
        self.try_admit_or(request, token, |refusal| {
            self.tell(request, &refusal);
            refusal
        })
    }

    /// What becomes of a refusal is said here, where each is made: a caller who looked at the result once more would have
    /// it put together in memory first.
    #[inline(always)]
    fn try_admit_or<T>(
        &self,
        request: &Request,
        token: impl FnOnce(Entry) -> T,
        refused: impl Fn(Refusal) -> Refusal,
    ) -> Result<T, Refusal> {
        'slowly: {
            if !self.only_room_matters_to(request) {
                break 'slowly;
            }
            let seen = self.door.0.look();
            if !seen.is_full() {
                return match self.admit(request, Part::ALL, seen) {
                    Ok(admitted) => Ok(token(Entry::new(admitted, request))),
                    Err(stopped) => Err(refused(self.refuse_stopped(stopped, request))),
                };
            }
            // Most of the refused: a look at the door, and a count in a place of one's own.
            let only_one = seen.is_settled() && request.weight <= 1;
            if only_one && self.stripes.refuse_again(Refused::at_limit(request.criticality)) {
                return Err(refused(refusal_at_limit(seen, self.watch.0.hint().for_one())));
            }
        }
        self.try_admit_slowly(request).map(token).map_err(refused)
    }

    /// Whoever is not simply let in, nor simply refused.
    #[cold]
    #[inline(never)]
    fn try_admit_slowly(&self, request: &Request) -> Result<Entry, Refusal> {
        if !self.only_room_matters_to(request) {
            return self.try_admit_by_rules(request);
        }
        self.admit(request, Part::ALL, self.occupancy())
            .map(|admitted| Entry::new(admitted, request))
            .map_err(|stopped| self.refuse_stopped(stopped, request))
    }

    #[inline(always)]
    fn only_room_matters_to(&self, request: &Request) -> bool {
        self.rules.0.flags().are_plain() && !request.bypass
    }

    #[cold]
    #[inline(never)]
    fn refuse_stopped(&self, stopped: Stopped, request: &Request) -> Refusal {
        match stopped {
            Stopped::Full(seen) => self.refuse_at_limit(seen, request),
            Stopped::Late(seen) => self.refuse_late(seen, request),
        }
    }

    /// Admits a request if nobody waits and there is room within `part` of the limit, by a door that was just `seen`.
    #[inline(always)]
    pub(super) fn admit(&self, request: &Request, part: Part, seen: Occupancy) -> Result<Admitted, Stopped> {
        let weight = request.weight.max(1);
        let admits = move |seen: Occupancy| seen.admits(weight, part);
        let seen = self.look_whether(seen, admits).map_err(Stopped::Full)?;
        let now = self.clock.now();
        if request.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Stopped::Late(seen));
        }
        let writer = self.stripes.writer(self.stripes.own());
        let may_be_kept = weight == 1 && part == Part::ALL;
        let after = if seen.is_roomy() && may_be_kept && writer.take_kept() {
            seen
        } else {
            self.enter(weight, seen, admits).map_err(Stopped::Full)?
        };
        let admitted = self.note_entry(&writer, weight, now, after);
        drop(writer);
        if self.watch.0.deadline_passed(now) {
            self.look(now, false);
        }
        Ok(admitted)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn refuse_at_limit(&self, seen: Occupancy, request: &Request) -> Refusal {
        self.stripes.refuse(Refused::at_limit(request.criticality));
        let hint = self.watch.0.hint();
        if !seen.is_full() {
            self.watch.0.limit_felt();
        }
        let is_plain = request.weight <= 1 && !seen.someone_waits();
        refusal_at_limit(seen, if is_plain { hint.for_one() } else { hint.behind_queue(request.weight) })
    }

    #[cold]
    pub(super) fn refuse_late(&self, seen: Occupancy, request: &Request) -> Refusal {
        let reason = RefusalReason::DeadlineExpired;
        self.tallies.refused.count(reason, request.criticality);
        Refusal { reason, limit: seen.limit(), in_flight: self.in_flight(seen), retry_after: None }
    }

    #[inline(always)]
    pub(super) fn release(&self, entry: Entry, outcome: Outcome) {
        self.release_at(entry, outcome, self.clock.now());
    }

    /// Ends a request whose token was dropped.
    #[inline]
    pub(super) fn drop_entry(&self, entry: Entry) {
        // In pieces that fit into registers: a result that may hold a token need not be in memory to be dropped.
        self.drop_pieces(entry.admitted, entry.deadline, entry.account);
    }

    #[inline(never)]
    fn drop_pieces(&self, admitted: Admitted, deadline: Instant, account: Account) {
        let now = self.clock.now();
        let outcome = if now >= deadline { Outcome::Overload } else { Outcome::Cancelled };
        self.release_at(Entry { admitted, deadline, account }, outcome, now);
    }

    #[inline(always)]
    fn release_at(&self, entry: Entry, outcome: Outcome, now: Instant) {
        let admitted = entry.admitted;
        if admitted.is_outside() {
            self.tallies.leave_outside();
            return;
        }
        let writer = self.stripes.writer(self.stripes.own());
        let after = self.leave(&writer, admitted.weight(), entry.account.is_none());
        let silence_ns = self.watch.0.end_silence(now);
        let bank = writer.stripe().bank(self.watch.0.generation());
        let samples = bank.leave(admitted, now, outcome, silence_ns);
        drop(writer);
        if after.someone_waits() || !entry.account.is_none() {
            self.place_is_free(admitted.weight(), entry.account, now);
        }
        if self.watch.0.is_due(samples, now) {
            self.look(now, true);
        }
    }

    #[inline(always)]
    pub(super) fn note_entry(
        &self,
        writer: &Writer<'_>,
        weight: u32,
        now: Instant,
        after: Occupancy,
    ) -> Admitted {
        writer.stripe().bank(self.watch.0.generation()).enter(weight, now, after);
        if after.is_full() {
            self.watch.0.limit_felt();
        }
        Admitted::new(now, weight, after.in_flight())
    }
}

#[inline]
fn refusal_at_limit(seen: Occupancy, retry_after: Option<Duration>) -> Refusal {
    Refusal {
        reason: RefusalReason::LimitReached,
        limit: seen.limit(),
        in_flight: seen.in_flight() as usize,
        retry_after,
    }
}

/// Why a request was not admitted at once.
pub(super) enum Stopped {
    /// No room for it, or others wait.
    Full(Occupancy),
    /// Its deadline has passed.
    Late(Occupancy),
}
