use std::fmt;

use serde::{Deserialize, Serialize};

/// What a limiter answers to a window: the limit from now on, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Requests that may be in flight from now on.
    pub limit: usize,
    /// Why the limit is what it is.
    pub reason: Reason,
    /// The numbers behind the reason.
    pub evidence: Evidence,
}

impl Decision {
    /// A decision without evidence; add it with [`Decision::with`].
    #[must_use]
    pub const fn new(limit: usize, reason: Reason) -> Self {
        Self { limit, reason, evidence: Evidence::NONE }
    }

    /// Adds a number to the evidence.
    ///
    /// Names are lower-case words with a unit where there is one (`"latency_ns"`). Beyond
    /// [`Evidence::CAPACITY`] numbers, further ones are dropped: a decision never allocates.
    #[must_use]
    pub const fn with(mut self, name: &'static str, value: f64) -> Self {
        self.evidence.push(name, value);
        self
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}: {}", self.limit, self.reason)?;
        for (index, (name, value)) in self.evidence.iter().enumerate() {
            let separator = if index == 0 { " (" } else { ", " };
            write!(f, "{separator}{name} {value:.6}")?;
        }
        if self.evidence.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// Why a limit moved, or stayed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is room: latency does not say that requests queue, and demand wants more.
    Growing,
    /// Demand did not come near the limit, so the window says nothing about a higher one.
    AppLimited,
    /// The evidence asks for no move.
    Holding,
    /// Too few samples to decide on; the window goes on.
    Undecided,
    /// Requests queue inside the service: latency follows concurrency.
    QueueBuilding,
    /// Answers came too late, or the service itself refused.
    Overload,
    /// The limit was lowered for a moment, to measure latency without a queue.
    Probing,
    /// A measurement ended, and the limit is back where it was, or where the measurement put it.
    Measured,
    /// The first look at a service: bracketing where its queue begins.
    Starting,
    /// The service slowed or stood still by itself; a lower limit would not help.
    ServiceShift,
    /// Somebody set the limit by hand.
    Set,
}

impl Reason {
    /// All reasons, for whoever lists them.
    pub const ALL: [Self; 11] = [
        Self::Growing,
        Self::AppLimited,
        Self::Holding,
        Self::Undecided,
        Self::QueueBuilding,
        Self::Overload,
        Self::Probing,
        Self::Measured,
        Self::Starting,
        Self::ServiceShift,
        Self::Set,
    ];

    /// The reason as one lower-case word, as metrics and tables label it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Growing => "growing",
            Self::AppLimited => "app_limited",
            Self::Holding => "holding",
            Self::Undecided => "undecided",
            Self::QueueBuilding => "queue_building",
            Self::Overload => "overload",
            Self::Probing => "probing",
            Self::Measured => "measured",
            Self::Starting => "starting",
            Self::ServiceShift => "service_shift",
            Self::Set => "set",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Up to [`Evidence::CAPACITY`] named numbers, held in place.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    numbers: [Option<(&'static str, f64)>; Self::CAPACITY],
    len: u8,
}

impl Evidence {
    /// How many numbers fit.
    pub const CAPACITY: usize = 5;

    /// No numbers.
    pub const NONE: Self = Self { numbers: [None; Self::CAPACITY], len: 0 };

    const fn push(&mut self, name: &'static str, value: f64) {
        if (self.len as usize) < Self::CAPACITY {
            self.numbers[self.len as usize] = Some((name, value));
            self.len += 1;
        }
    }

    /// The numbers in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.numbers.iter().map_while(|number| *number)
    }

    /// The number of that name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Whether there is no number.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialEq for Evidence {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
