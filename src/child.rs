//! Gates under another: each has its own limit, and all of them together stay within the parent's.
//!
//! For several routes of one service, or several pools of one database: a [`ChildGate`] learns its own limit, and the
//! parent that of what they share.

use crate::{Clock, Gate, Outcome, OwnedToken, Refusal, RefusalReason, Request, SystemClock};

/// A gate under another: a request needs a place of its own gate and one of the parent, which several children share.
///
/// ```
/// use goodput::{Gate, Request, child::ChildGate};
/// use goodput::algorithms::{Fixed, FixedSettings};
///
/// let fixed = |limit| Gate::new(Fixed::new(FixedSettings { limit }).unwrap());
/// let parent = fixed(2);
/// let reads = ChildGate::new(fixed(2), parent.clone());
/// let writes = ChildGate::new(fixed(1), parent);
/// let _write = writes.try_acquire(&Request::DEFAULT).unwrap();
/// assert!(writes.try_acquire(&Request::DEFAULT).is_err());
/// assert!(reads.try_acquire(&Request::DEFAULT).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct ChildGate<C: Clock = SystemClock> {
    own: Gate<C>,
    parent: Gate<C>,
}

/// A place in a [`ChildGate`] and one in its parent, released together.
#[derive(Debug)]
#[must_use = "dropping a token at once frees its places again"]
pub struct ChildToken<C: Clock> {
    own: OwnedToken<C>,
    parent: OwnedToken<C>,
}

impl<C: Clock> ChildGate<C> {
    /// The gate `own` under `parent`. Several children may share both.
    #[must_use]
    pub const fn new(own: Gate<C>, parent: Gate<C>) -> Self {
        Self { own, parent }
    }

    /// Admits `request` if both gates have room.
    ///
    /// # Errors
    ///
    /// The child's [`Refusal`], or [`RefusalReason::ParentRefused`] with the parent's numbers. A refusal by the parent
    /// teaches the child's limiter nothing.
    pub fn try_acquire(&self, request: &Request) -> Result<ChildToken<C>, Refusal> {
        let own = self.own.try_acquire_owned(request)?;
        let parent = self.parent.try_acquire_owned(request).map_err(by_parent)?;
        Ok(ChildToken { own, parent })
    }

    /// Waits for room in the child and then in the parent, as far as the bounds of each allow.
    ///
    /// # Errors
    ///
    /// As [`ChildGate::try_acquire`].
    pub async fn acquire(&self, request: Request) -> Result<ChildToken<C>, Refusal> {
        let own = self.own.acquire(request).await?;
        let parent = self.parent.acquire(request).await.map_err(by_parent)?;
        Ok(ChildToken { own, parent })
    }

    /// The child itself.
    #[must_use]
    pub const fn own(&self) -> &Gate<C> {
        &self.own
    }

    /// The parent.
    #[must_use]
    pub const fn parent(&self) -> &Gate<C> {
        &self.parent
    }
}

impl<C: Clock> ChildToken<C> {
    /// Ends the request, at both gates.
    pub fn release(self, outcome: Outcome) {
        self.own.release(outcome);
        self.parent.release(outcome);
    }
}

const fn by_parent(refusal: Refusal) -> Refusal {
    Refusal { reason: RefusalReason::ParentRefused, ..refusal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{Fixed, FixedSettings};

    fn fixed(limit: usize) -> Gate {
        Gate::new(Fixed::new(FixedSettings { limit }).unwrap())
    }

    #[test]
    fn children_together_never_exceed_their_parent() {
        let parent = fixed(3);
        let children = [ChildGate::new(fixed(2), parent.clone()), ChildGate::new(fixed(2), parent.clone())];
        let tokens: Vec<_> =
            [0, 1, 0].map(|child| children[child].try_acquire(&Request::DEFAULT).unwrap()).into();
        let refusal = children[1].try_acquire(&Request::DEFAULT).unwrap_err();
        assert_eq!((refusal.reason, refusal.limit, refusal.in_flight), (RefusalReason::ParentRefused, 3, 3));
        // The place at the child was given back.
        assert_eq!(children[1].own().in_flight(), 1);
        assert_eq!(
            children[0].try_acquire(&Request::DEFAULT).unwrap_err().reason,
            RefusalReason::LimitReached
        );
        for token in tokens {
            token.release(Outcome::Success);
        }
        assert_eq!((parent.in_flight(), children[0].own().in_flight()), (0, 0));
    }

    #[test]
    fn a_dropped_token_frees_both_places() {
        let child = ChildGate::new(fixed(1), fixed(1));
        drop(child.try_acquire(&Request::DEFAULT).unwrap());
        assert!(child.try_acquire(&Request::DEFAULT).is_ok());
    }
}
