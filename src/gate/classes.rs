//! Who is told apart: cohorts, partitions and tenants, where any of them is configured.

use std::time::Duration;

use goodput_algorithms::Instant;
use slab::Slab;

use super::door::Occupancy;
use crate::{
    Key, RefusalReason, Request,
    priority::{Cohorts, Partitions, Tenants},
};

#[derive(Debug)]
pub(super) struct Classes {
    pub(super) cohorts: Option<Cohorts>,
    pub(super) partitions: Option<Partitions>,
    pub(super) tenants: Option<Tenants>,
    /// From 1, and grows with every change of these, so that what was entered in others is not taken out of these.
    epoch: u32,
    /// Where those are entered who have not left.
    book: Slab<Line>,
}

/// A number in the book, plus one; 0 if a request is not in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account(usize);

#[derive(Clone, Copy, Debug)]
struct Line {
    tenant: Option<Key>,
    partition: Option<Key>,
    epoch: u32,
}

impl Account {
    pub(super) const NONE: Self = Self(0);

    #[inline]
    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Classes {
    pub(super) const fn new(
        cohorts: Option<Cohorts>,
        partitions: Option<Partitions>,
        tenants: Option<Tenants>,
    ) -> Self {
        Self { cohorts, partitions, tenants, epoch: 1, book: Slab::new() }
    }

    /// To be called after every change of them.
    pub(super) fn start_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
    }

    /// Counts a request that asks for the first time, and says whether its cohort is served.
    pub(super) fn offer(&mut self, request: &Request, seen: Occupancy, now: Instant) -> bool {
        let in_flight = seen.in_flight() as usize;
        self.cohorts.as_mut().is_none_or(|cohorts| cohorts.offer(request, in_flight, seen.limit(), now))
    }

    /// Enters a request, unless its tenant or its partition has too much. One that asks `again` is not told to its
    /// partition as one more need that was not met.
    pub(super) fn enter(
        &mut self,
        request: &Request,
        seen: Occupancy,
        now: Instant,
        again: bool,
    ) -> Result<Account, NotEntered> {
        let Request { partition, tenant, .. } = *request;
        let weight = request.weight.max(1);
        if self.partitions.is_none() && self.tenants.is_none() {
            return Ok(Account::NONE);
        }
        if let (Some(tenants), Some(tenant)) = (&mut self.tenants, tenant) {
            let in_flight = seen.in_flight() as usize;
            tenants
                .enter(tenant, weight, in_flight, seen.limit(), now)
                .map_err(|refusal| NotEntered { reason: refusal.reason, retry_after: refusal.retry_after })?;
        }
        if let Some(partitions) = &mut self.partitions
            && (again && !partitions.fits(partition, weight, seen.limit())
                || !partitions.enter(partition, weight, seen.limit(), now))
        {
            self.take_tenant_back(tenant, weight, now);
            return Err(NotEntered { reason: RefusalReason::PartitionFull, retry_after: None });
        }
        Ok(Account(self.book.insert(Line { tenant, partition, epoch: self.epoch }) + 1))
    }

    /// A request that was entered has a place now.
    pub(super) const fn admitted(&mut self) {
        if let Some(cohorts) = &mut self.cohorts {
            cohorts.admitted();
        }
    }

    /// Undoes an [`Classes::enter`] that led to nothing.
    pub(super) fn take_back(&mut self, account: Account, weight: u32, now: Instant) {
        let Some(line) = self.strike(account) else { return };
        self.take_tenant_back(line.tenant, weight, now);
        if let Some(partitions) = &mut self.partitions {
            partitions.leave(line.partition, weight);
        }
    }

    pub(super) fn leave(&mut self, account: Account, weight: u32, now: Instant) {
        let Some(line) = self.strike(account) else { return };
        if let Some(partitions) = &mut self.partitions {
            partitions.leave(line.partition, weight);
        }
        if let (Some(tenants), Some(tenant)) = (&mut self.tenants, line.tenant) {
            tenants.leave(tenant, weight, now);
        }
    }

    /// Strikes a line from the book. Nothing if it is of an earlier epoch.
    fn strike(&mut self, account: Account) -> Option<Line> {
        let line = self.book.try_remove(account.0.checked_sub(1)?)?;
        (line.epoch == self.epoch).then_some(line)
    }

    fn take_tenant_back(&mut self, tenant: Option<Key>, weight: u32, now: Instant) {
        if let (Some(tenants), Some(tenant)) = (&mut self.tenants, tenant) {
            tenants.take_back(tenant, weight, now);
        }
    }
}

/// Why a request was not entered.
pub(super) struct NotEntered {
    pub(super) reason: RefusalReason,
    pub(super) retry_after: Option<Duration>,
}
