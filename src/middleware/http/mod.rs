//! HTTP and gRPC: outcomes by status, bodies that hold tokens, what headers say, and what the refused are told.

mod body;
#[cfg(feature = "retry")]
mod failure;
mod headers;
mod next_hop;
mod outcome;
mod refusal;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use goodput_algorithms::{Instant, InvalidSettings};
use http::{
    HeaderMap, HeaderValue, Method, Request as HttpRequest, Response, StatusCode, header::CONTENT_TYPE,
};
use http_body::Body;

pub(super) use self::body::Held;
#[cfg(feature = "retry")]
pub use self::failure::RetryByStatus;
pub use self::{
    body::GuardedBody,
    headers::ByHeaders,
    next_hop::NextHop,
    outcome::{ByStatus, grpc_outcome, status_outcome},
    refusal::{PUSHBACK_HEADER, REFUSAL_HEADER, grpc_refusal, http_refusal},
};
use super::{Classify, Protocol, ReadRequest, SharedToken, Unmarked};
use crate::{
    Clock, Outcome, OwnedToken, Refusal, RefusalReason, Request,
    refusal::{Answers, RetryWatch, RetryWatchSettings},
};

/// How many attempts at a gRPC call, or HTTP request, there were before this one (gRFC A6). Set by clients that retry.
pub const PREVIOUS_ATTEMPTS_HEADER: &str = "grpc-previous-rpc-attempts";

/// The number of an attempt, from 1, as Envoy tells it.
const ATTEMPT_HEADER: &str = "x-envoy-attempt-count";

/// HTTP, and gRPC on it; a request says by its content type which of the two it is.
///
/// The token is held to the end of the response's body, its error, or its drop. A body dropped before its end, as when
/// a client disconnects, makes a cancelled request of a success; a status that says otherwise stands. The refused are
/// told as [`Answers`] say, and the [`Refusal`] itself is among the response's extensions.
///
/// An answer by another gate further behind, which is marked with [`REFUSAL_HEADER`], counts as cancelled, whatever its
/// status says: no work was done, so that it teaches nothing, and two gates in line do not add up what they refuse. For
/// a client the status stands: the host it calls has too much.
#[derive(Clone)]
pub struct Http<R = Unmarked, K = ByStatus> {
    read: R,
    classify: K,
    hold_until: HoldUntil,
    shares_token: bool,
    shares_request: bool,
    answers: Answers,
    next_hop: Option<Arc<NextHop>>,
    retries: Option<Arc<Mutex<RetryWatch>>>,
    role: Role,
}

/// On which side of the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    Server,
    Client,
}

impl Role {
    /// What becomes of a success whose body is dropped before its end.
    const fn early_drop(self) -> Outcome {
        match self {
            Self::Server => Outcome::Cancelled,
            Self::Client => Outcome::Success,
        }
    }
}

/// How long an admitted request holds its place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HoldUntil {
    /// To the end of the response's body. Its time counts as latency, and so does the time that a slow client
    /// takes to read it.
    #[default]
    BodyEnd,
    /// Until the head of the response is there. For bodies that cost the service nothing, as files on their way
    /// to slow clients. The status of a gRPC call, which comes after the body, is then not seen.
    Head,
}

impl Http {
    /// All requests alike; outcomes by status ([`ByStatus`]); places held to the end of the body; 503 for the refused,
    /// or 429 where the caller has too much ([`Answers::DEFAULT`]).
    #[must_use]
    pub const fn new() -> Self {
        Self {
            read: Unmarked,
            classify: ByStatus,
            hold_until: HoldUntil::BodyEnd,
            shares_token: false,
            shares_request: false,
            answers: Answers::DEFAULT,
            next_hop: None,
            retries: None,
            role: Role::Server,
        }
    }
}

impl<R, K> Http<R, K> {
    /// The same with another way to read requests: [`ByHeaders`], or a closure
    /// `Fn(&http::Request<B>, Instant) -> Request`.
    #[must_use]
    pub fn read<Q>(self, read: Q) -> Http<Q, K> {
        Http {
            read,
            classify: self.classify,
            hold_until: self.hold_until,
            shares_token: self.shares_token,
            shares_request: self.shares_request,
            answers: self.answers,
            next_hop: self.next_hop,
            retries: self.retries,
            role: self.role,
        }
    }

    /// The same with another way to tell outcomes: a closure `Fn(&Result<http::Response<B>, E>) -> Outcome`.
    ///
    /// The status that follows the body of a gRPC call is still read if this says success.
    #[must_use]
    pub fn classify<L>(self, classify: L) -> Http<R, L> {
        Http {
            read: self.read,
            classify,
            hold_until: self.hold_until,
            shares_token: self.shares_token,
            shares_request: self.shares_request,
            answers: self.answers,
            next_hop: self.next_hop,
            retries: self.retries,
            role: self.role,
        }
    }

    /// The same for a client: a body that its reader drops before its end is a success if its status says so, since
    /// the reader has seen all it wanted; and what the host refuses says that the host has too much.
    #[must_use]
    pub fn for_client(mut self) -> Self {
        self.role = Role::Client;
        self
    }

    /// The same, holding places until then.
    #[must_use]
    pub fn hold_until(mut self, hold_until: HoldUntil) -> Self {
        self.hold_until = hold_until;
        self
    }

    /// The same, with a [`SharedToken`] among the extensions of each admitted request. A handler takes a clone
    /// along into work that outlives it.
    #[must_use]
    pub fn share_token(mut self) -> Self {
        self.shares_token = true;
        self
    }

    /// The same, with the [`Request`] as it was read among the extensions of each admitted request. A handler hands it
    /// on to the clients it calls, so that they know the deadline and the criticality of what they work for.
    #[must_use]
    pub fn share_request(mut self) -> Self {
        self.shares_request = true;
        self
    }

    /// The same, telling the refused otherwise.
    #[must_use]
    pub fn answers(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// The same, telling the next hop how much time is left when a request is admitted, and how much it matters.
    #[must_use]
    pub fn next_hop(mut self, next_hop: NextHop) -> Self {
        self.next_hop = Some(Arc::new(next_hop));
        self
    }

    /// The same, watching how many of the requests are retries, as [`PREVIOUS_ATTEMPTS_HEADER`] or Envoy's
    /// `x-envoy-attempt-count` say. When so many are that all hosts must be refusing, the refused are told
    /// [`RefusalReason::Overloaded`]: not to try again, here or elsewhere.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn watch_retries(mut self, settings: RetryWatchSettings) -> Result<Self, InvalidSettings> {
        self.retries = Some(Arc::new(Mutex::new(RetryWatch::new(settings)?)));
        Ok(self)
    }

    fn watch(&self) -> Option<MutexGuard<'_, RetryWatch>> {
        Some(self.retries.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What to tell the refused: what the gate says, or that there is no room elsewhere either.
    fn refusal(&self, refusal: Refusal) -> Refusal {
        let is_final = refusal.reason.is_of_the_caller() || refusal.reason.forbids_retry();
        if is_final || !self.watch().is_some_and(|watch| watch.all_refuse()) {
            return refusal;
        }
        Refusal { reason: RefusalReason::Overloaded, retry_after: None, ..refusal }
    }

    fn outcome<B, E>(&self, answer: &Result<Response<B>, E>) -> Outcome
    where
        K: Classify<Response<B>, E>,
    {
        match answer {
            Ok(response) if self.role == Role::Server && response.headers().contains_key(REFUSAL_HEADER) => {
                Outcome::Cancelled
            }
            answer => self.classify.outcome(answer),
        }
    }
}

/// What is remembered of a request.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    is_grpc: bool,
    is_head: bool,
    asked: Request,
}

/// What is held while a request is worked on.
pub struct HeldExchange<C: Clock> {
    token: Held<C>,
    is_head: bool,
}

impl<C: Clock> fmt::Debug for HeldExchange<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldExchange").finish_non_exhaustive()
    }
}

impl<A, B, E, C, R, K> Protocol<HttpRequest<A>, Response<B>, E, C> for Http<R, K>
where
    B: Body,
    C: Clock + 'static,
    R: ReadRequest<HttpRequest<A>>,
    K: Classify<Response<B>, E>,
{
    type Note = Note;
    type Held = HeldExchange<C>;
    type Response = Response<GuardedBody<B, C>>;
    type Error = E;

    fn read(&self, request: &HttpRequest<A>, now: Instant) -> (Request, Note) {
        let asked = self.read.read(request, now);
        if let Some(mut watch) = self.watch() {
            watch.note(is_retry(request.headers()), now);
        }
        let is_head = request.method() == Method::HEAD;
        (asked, Note { is_grpc: is_grpc(request.headers()), is_head, asked })
    }

    fn refused(&self, refusal: Refusal, note: Note) -> Result<Self::Response, E> {
        let refusal = self.refusal(refusal);
        let head = if note.is_grpc {
            grpc_refusal(&refusal, &self.answers)
        } else {
            http_refusal(&refusal, &self.answers)
        };
        Ok(head.map(|()| GuardedBody::empty()))
    }

    fn admitted(&self, request: &mut HttpRequest<A>, token: OwnedToken<C>, note: Note) -> HeldExchange<C> {
        if self.shares_request {
            request.extensions_mut().insert(note.asked);
        }
        if let Some(next_hop) = &self.next_hop {
            next_hop.tell(request.headers_mut(), &note.asked, token.admitted_at());
        }
        let token = if self.shares_token {
            let shared = SharedToken::new(token);
            request.extensions_mut().insert(shared.clone());
            Held::Shared(shared)
        } else {
            Held::Alone(token)
        };
        HeldExchange { token, is_head: note.is_head }
    }

    fn answered(
        &self,
        answer: Result<Response<B>, E>,
        HeldExchange { token, is_head }: HeldExchange<C>,
    ) -> Result<Self::Response, E> {
        let outcome = self.outcome(&answer);
        match answer {
            Ok(response)
                if is_head || self.hold_until == HoldUntil::Head || has_no_body(response.status()) =>
            {
                token.release(outcome);
                Ok(response.map(GuardedBody::free))
            }
            Ok(response) => Ok(GuardedBody::guard(response, token, outcome, self.role.early_drop())),
            Err(error) => {
                token.release(outcome);
                Err(error)
            }
        }
    }

    fn broken(&self, error: E) -> E {
        error
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, K> fmt::Debug for Http<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("hold_until", &self.hold_until)
            .field("shares_token", &self.shares_token)
            .field("shares_request", &self.shares_request)
            .field("answers", &self.answers)
            .field("next_hop", &self.next_hop)
            .field("retries", &self.retries)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

fn is_retry(headers: &HeaderMap) -> bool {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<u32>().ok();
    number(PREVIOUS_ATTEMPTS_HEADER).is_some_and(|previous| previous > 0)
        || number(ATTEMPT_HEADER).is_some_and(|attempt| attempt > 1)
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).is_some_and(|kind| {
        kind.strip_prefix(b"application/grpc")
            .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    })
}

/// Answers whose body a server never looks at (RFC 9110, section 6.4.1).
fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}
