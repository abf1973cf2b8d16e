//! Who else limits the service, and how much is therefore kept beyond the knee.

use serde::{Deserialize, Serialize};

/// Whether others limit the same service, each for itself. A limiter cannot tell by what it does alone: what one of
/// several leaves, the others fill.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Nobody says. With few requests worked on there may be others; with more it hardly matters.
    #[default]
    Unknown,
    /// Nobody else, as before a service of one instance that has no other door. Keeps more beyond the knee, at any size,
    /// and grows when it finds room.
    Alone,
    /// Others do, as the clients of one service. Keeps less where few are worked on.
    Shared,
}

impl Role {
    /// Requests to keep beyond the knee. Workers fed through a limit idle now and then, with a probability that falls
    /// exponentially in what is queued, which asks for a constant; how many are busy fluctuates like the square root of
    /// their number; and a baseline is known only to within some percent, which asks for a share.
    ///
    /// With fewer than two or three requests worked on there is no telling one small service from a part of a larger
    /// one that several limiters share. There most of it is in proportion to them, so that limiters that share a service
    /// share the headroom, too, and do not queue a constant each. What is not keeps a lone worker busy.
    pub(super) fn headroom(self, knee: f64) -> f64 {
        const HALF: f64 = 0.5;
        match self {
            // At 2 a lone worker idles less, at 3 limiters of one small service queue less.
            Self::Unknown => {
                (knee / HALF).min(1.0) + in_proportion_below(2.5, knee, |knee| beyond(knee, 1.0, 0.5))
            }
            Self::Alone => beyond(knee, 2.0, 1.0),
            // Where others surely are, a little further up. With more worked on, to keep less only costs.
            Self::Shared => in_proportion_below(3.5, knee, |knee| beyond(knee, 2.0, 0.5)),
        }
    }
}

fn beyond(knee: f64, constant: f64, per_root: f64) -> f64 {
    const SHARE: f64 = 0.15;
    constant + per_root * libm::sqrt(knee) + SHARE * knee
}

fn in_proportion_below(small: f64, knee: f64, headroom: impl Fn(f64) -> f64) -> f64 {
    (knee / small).min(1.0) * headroom(knee.max(small))
}
