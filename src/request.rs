use goodput_algorithms::Instant;

use crate::Criticality;

/// What the gate needs to know of a request to decide on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// How much of the limit it takes. At least 1.
    pub weight: u32,
    /// How much it matters.
    pub criticality: Criticality,
    /// When its caller stops waiting, on the gate's clock.
    pub deadline: Option<Instant>,
}

impl Request {
    /// Weight 1, critical, no deadline.
    pub const DEFAULT: Self = Self { weight: 1, criticality: Criticality::Critical, deadline: None };

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
}

impl Default for Request {
    fn default() -> Self {
        Self::DEFAULT
    }
}
