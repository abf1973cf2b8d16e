use goodput_algorithms::Instant;

use crate::{Clock, Outcome, OwnedToken, Request};

/// How the requests and answers of a service speak to a gate.
///
/// One exchange calls [`read`](Protocol::read), then either [`refused`](Protocol::refused), or
/// [`admitted`](Protocol::admitted) and, unless the caller goes away first, [`answered`](Protocol::answered).
pub trait Protocol<Req, Res, Err, C: Clock> {
    /// What is remembered of a request until it is admitted or refused.
    type Note;
    /// What is held while an admitted request is worked on. Dropping it gives the place back.
    type Held;
    /// What the guarded service answers.
    type Response;
    /// What the guarded service fails with.
    type Error;

    /// What the gate needs to know of `request`, which arrived `now` on the gate's clock.
    fn read(&self, request: &Req, now: Instant) -> (Request, Self::Note);

    /// What a refused request is told.
    ///
    /// # Errors
    ///
    /// Where the protocol tells it as an error.
    fn refused(&self, refusal: crate::Refusal, note: Self::Note) -> Result<Self::Response, Self::Error>;

    /// Takes the token of an admitted request, just before the inner service is called with it.
    fn admitted(&self, request: &mut Req, token: OwnedToken<C>, note: Self::Note) -> Self::Held;

    /// Passes the inner service's answer on, and sees to it that the token is released with its outcome.
    ///
    /// # Errors
    ///
    /// Where the inner service failed.
    fn answered(&self, answer: Result<Res, Err>, held: Self::Held) -> Result<Self::Response, Self::Error>;

    /// Passes the error of an inner service on that cannot be made ready.
    fn broken(&self, error: Err) -> Self::Error;
}

/// Says what a gate needs to know of a request. Implemented by closures `Fn(&Req, Instant) -> Request`, which are
/// told the time on the gate's clock so that a time-out can become a deadline.
pub trait ReadRequest<Req> {
    /// Weight, criticality, deadline of `request`, which arrived `now`.
    fn read(&self, request: &Req, now: Instant) -> Request;
}

impl<Req, F: Fn(&Req, Instant) -> Request> ReadRequest<Req> for F {
    fn read(&self, request: &Req, now: Instant) -> Request {
        self(request, now)
    }
}

/// Every request is [`Request::DEFAULT`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmarked;

impl<Req> ReadRequest<Req> for Unmarked {
    fn read(&self, _: &Req, _: Instant) -> Request {
        Request::DEFAULT
    }
}

/// Says what an answer means for the gate. Implemented by closures `Fn(&Result<Res, Err>) -> Outcome`.
pub trait Classify<Res, Err> {
    /// How the request ended.
    fn outcome(&self, answer: &Result<Res, Err>) -> Outcome;
}

impl<Res, Err, F: Fn(&Result<Res, Err>) -> Outcome> Classify<Res, Err> for F {
    fn outcome(&self, answer: &Result<Res, Err>) -> Outcome {
        self(answer)
    }
}
