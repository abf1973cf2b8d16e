use std::{error::Error, fmt};

use goodput_algorithms::Instant;

use super::{Classify, Protocol, ReadRequest, Unmarked};
use crate::{Clock, Outcome, OwnedToken, Refusal, Request};

/// Any service: a refusal is an error, and the token is released when the answer is there.
#[derive(Clone, Copy)]
pub struct Plain<R = Unmarked, K = ByResult> {
    read: R,
    classify: K,
}

impl Plain {
    /// All requests alike; `Ok` is a success, `Err` a failure that says nothing about load.
    #[must_use]
    pub const fn new() -> Self {
        Self { read: Unmarked, classify: ByResult }
    }
}

impl<R, K> Plain<R, K> {
    /// The same with another way to read requests: a closure `Fn(&Req, Instant) -> Request`.
    #[must_use]
    pub fn read<Q>(self, read: Q) -> Plain<Q, K> {
        Plain { read, classify: self.classify }
    }

    /// The same with another way to tell outcomes: a closure `Fn(&Result<Res, Err>) -> Outcome`.
    #[must_use]
    pub fn classify<L>(self, classify: L) -> Plain<R, L> {
        Plain { read: self.read, classify }
    }
}

impl<Req, Res, Err, C, R, K> Protocol<Req, Res, Err, C> for Plain<R, K>
where
    C: Clock,
    R: ReadRequest<Req>,
    K: Classify<Res, Err>,
{
    type Note = ();
    type Held = OwnedToken<C>;
    type Response = Res;
    type Error = GateError<Err>;

    fn read(&self, request: &Req, now: Instant) -> (Request, ()) {
        (self.read.read(request, now), ())
    }

    fn refused(&self, refusal: Refusal, (): ()) -> Result<Res, GateError<Err>> {
        Err(GateError::Refused(refusal))
    }

    fn admitted(&self, _: &mut Req, token: OwnedToken<C>, (): ()) -> OwnedToken<C> {
        token
    }

    fn answered(&self, answer: Result<Res, Err>, token: OwnedToken<C>) -> Result<Res, GateError<Err>> {
        token.release(self.classify.outcome(&answer));
        answer.map_err(GateError::Service)
    }

    fn broken(&self, error: Err) -> GateError<Err> {
        GateError::Service(error)
    }
}

impl Default for Plain {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, K> fmt::Debug for Plain<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").finish_non_exhaustive()
    }
}

/// `Ok` is a success, `Err` a failure that says nothing about load.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByResult;

impl<Res, Err> Classify<Res, Err> for ByResult {
    fn outcome(&self, answer: &Result<Res, Err>) -> Outcome {
        if answer.is_ok() { Outcome::Success } else { Outcome::Failure }
    }
}

/// Why a guarded service gave no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GateError<E> {
    /// The gate refused the request; the service never saw it. Try later, as the refusal says, or elsewhere.
    Refused(Refusal),
    /// The service failed.
    Service(E),
}

impl<E> GateError<E> {
    /// The refusal, if that is what it was.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Service(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for GateError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Service(error) => error.fmt(f),
        }
    }
}

// Not bound to `E: Error`: the boxed errors of many tower layers are not, and they must pass through here too.
impl<E: fmt::Debug + fmt::Display> Error for GateError<E> {}
