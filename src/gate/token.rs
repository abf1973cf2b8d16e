use std::{fmt, mem, sync::Arc};

use goodput_algorithms::Instant;

use super::{admitted::Entry, shared::Shared};
use crate::{Clock, Outcome};

/// One admitted request. Released exactly once: by [`Token::release`], or by drop, which counts as
/// [`Outcome::Cancelled`] and teaches the limiter nothing, also when its holder panics or its future is dropped; or as
/// [`Outcome::Overload`] if the [deadline](crate::Request::deadline) of the request has passed: its caller went away
/// because it took too long.
///
/// A token that is forgotten ([`std::mem::forget`], a cycle of `Arc`s) is never released: its place stays taken, and
/// the limit is in effect lower by its weight. Nothing else breaks.
#[must_use = "dropping a token at once frees its place again"]
pub struct Token<'gate, C: Clock> {
    shared: &'gate Shared<C>,
    entry: Entry,
}

impl<'gate, C: Clock> Token<'gate, C> {
    #[inline]
    pub(super) fn new(shared: &'gate Shared<C>, entry: Entry) -> Self {
        Self { shared, entry }
    }

    /// Ends the request.
    #[inline]
    pub fn release(self, outcome: Outcome) {
        // Not to be released again, not even if the limiter panics.
        let (shared, entry) = (self.shared, self.entry);
        // Before anything else: not to be released again, not even if the limiter panics.
        mem::forget(self);
        shared.release(entry, outcome);
    }

    /// When the request was admitted.
    #[must_use]
    pub fn admitted_at(&self) -> Instant {
        self.entry.admitted.at
    }
}

impl<C: Clock> Drop for Token<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.shared.drop_entry(self.entry);
    }
}

impl<C: Clock> fmt::Debug for Token<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("admitted", &self.entry.admitted).finish()
    }
}

/// A [`Token`] that keeps its gate alive instead of borrowing it.
#[must_use = "dropping a token at once frees its place again"]
pub struct OwnedToken<C: Clock> {
    shared: Arc<Shared<C>>,
    entry: Entry,
    outcome: Option<Outcome>,
}

impl<C: Clock> OwnedToken<C> {
    pub(super) fn new(shared: Arc<Shared<C>>, entry: Entry) -> Self {
        Self { shared, entry, outcome: None }
    }

    /// Ends the request.
    pub fn release(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// When the request was admitted.
    #[must_use]
    pub fn admitted_at(&self) -> Instant {
        self.entry.admitted.at
    }
}

impl<C: Clock> Drop for OwnedToken<C> {
    fn drop(&mut self) {
        match self.outcome {
            Some(outcome) => self.shared.release(self.entry, outcome),
            None => self.shared.drop_entry(self.entry),
        }
    }
}

impl<C: Clock> fmt::Debug for OwnedToken<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedToken").field("admitted", &self.entry.admitted).finish()
    }
}
