//! Who goes first when there is not enough for all.
//!
//! Four rules, each a state machine of its own, each usable without the others. [`CriticalityShares`] say how much of
//! the limit (or of the queue) each criticality may use. [`Cohorts`] shed the least critical part of the demand, by a
//! threshold that follows how much is too much. [`Partitions`] guarantee parts of the limit and lend what lies idle.
//! [`Tenants`] keep any one of many from taking what others need.

mod cohorts;
mod partitions;
mod shares;
mod tenants;

pub use self::{
    cohorts::{CohortSettings, Cohorts},
    partitions::{PartitionSettings, Partitions, PartitionsSettings},
    shares::CriticalityShares,
    tenants::{Quota, RateQuota, TenantSettings, Tenants},
};
