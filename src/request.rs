use goodput_algorithms::Instant;

use crate::{Criticality, Key};

/// What the gate needs to know of a request to decide on it. Small, and cheap to copy.
///
/// ```
/// use goodput::{Criticality, Key, Request};
///
/// let request = Request::DEFAULT.of(Criticality::Sheddable).from_tenant(Key::of("crawler")).weighing(3);
/// assert_eq!(request.weight, 3);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// How much of the limit it takes. At least 1.
    pub weight: u32,
    /// How much it matters.
    pub criticality: Criticality,
    /// A later step of work that was begun already. It goes before new work: what the earlier steps cost is lost if
    /// it is refused.
    pub continuation: bool,
    /// A health check or control call. Admitted always, counted apart, and never shown to the limiter.
    pub bypass: bool,
    /// When its caller stops waiting, on the gate's clock.
    pub deadline: Option<Instant>,
    /// On whose account it is.
    pub tenant: Option<Key>,
    /// To which part of the limit it belongs.
    pub partition: Option<Key>,
    /// Who stays together when only a part of a criticality level is shed: the user, as a rule. The tenant if unset.
    pub cohort: Option<Key>,
}

impl Request {
    /// Weight 1, critical, new, and nothing else known about it.
    pub const DEFAULT: Self = Self {
        weight: 1,
        criticality: Criticality::Critical,
        continuation: false,
        bypass: false,
        deadline: None,
        tenant: None,
        partition: None,
        cohort: None,
    };

    /// The same with another weight; zero counts as one.
    #[must_use]
    pub const fn weighing(mut self, weight: u32) -> Self {
        self.weight = if weight == 0 { 1 } else { weight };
        self
    }

    /// The same with another criticality.
    #[must_use]
    pub const fn of(mut self, criticality: Criticality) -> Self {
        self.criticality = criticality;
        self
    }

    /// The same with a deadline.
    #[must_use]
    pub const fn by(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, on a tenant's account.
    #[must_use]
    pub const fn from_tenant(mut self, tenant: Key) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// The same, in a partition.
    #[must_use]
    pub const fn in_partition(mut self, partition: Key) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The same, shed or admitted together with all others of this cohort key.
    #[must_use]
    pub const fn in_cohort_of(mut self, user: Key) -> Self {
        self.cohort = Some(user);
        self
    }

    /// The same, as a later step of work that was begun already.
    #[must_use]
    pub const fn continuing(mut self) -> Self {
        self.continuation = true;
        self
    }

    /// What is asked of the gate of another host that is called on its behalf: deadline, criticality, continuation, tenant
    /// and cohort stay; weight, partition and bypass are matters of this gate.
    #[must_use]
    pub const fn handed_on(mut self) -> Self {
        self.weight = 1;
        self.partition = None;
        self.bypass = false;
        self
    }

    /// The same, as a health check or control call.
    #[must_use]
    pub const fn bypassing(mut self) -> Self {
        self.bypass = true;
        self
    }
}

impl Default for Request {
    fn default() -> Self {
        Self::DEFAULT
    }
}
