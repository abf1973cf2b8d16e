//! reqwest: a gate around a client.

use std::fmt;

use async_trait::async_trait;
use http::{Extensions, Method, Response as HttpResponse};
use reqwest::{Body, Request as ClientRequest, Response, ResponseBuilderExt, Url};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::{
    Classify, GuardedBody, ReadRequest, Unmarked, WhenFull,
    http::{ByStatus, Held, status_outcome},
};
use crate::{Clock, Gate, Outcome, SystemClock};

/// Limits how many requests a client has under way.
///
/// The token is held to the end of the response's body, its error, or its drop; who drops a body unread has seen all
/// it wanted, and the status stands. A refusal is [`Error::Middleware`] with a [`Refusal`](crate::Refusal) inside. Put it nearer to the client than anything that
/// retries: attempts are then admitted and timed one by one, and none holds a place while it waits for the next.
///
/// ```
/// use goodput::{Gate, middleware::GateMiddleware};
/// use goodput::algorithms::{Aimd, AimdSettings};
///
/// let gate = Gate::new(Aimd::new(AimdSettings::default()).unwrap());
/// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
///     .with(GateMiddleware::new(gate))
///     .build();
/// ```
pub struct GateMiddleware<R = Unmarked, K = ByStatus, C: Clock = SystemClock> {
    gate: Gate<C>,
    when_full: WhenFull,
    read: R,
    classify: K,
}

impl<C: Clock> GateMiddleware<Unmarked, ByStatus, C> {
    /// All requests alike; outcomes by status, and a time-out is an overload.
    #[must_use]
    pub const fn new(gate: Gate<C>) -> Self {
        Self { gate, when_full: WhenFull::Wait, read: Unmarked, classify: ByStatus }
    }
}

impl<R, K, C: Clock> GateMiddleware<R, K, C> {
    /// The same with another way to treat requests that find no room.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// The same with another way to read requests: a closure `Fn(&reqwest::Request, Instant) -> Request`.
    #[must_use]
    pub fn read<Q>(self, read: Q) -> GateMiddleware<Q, K, C> {
        GateMiddleware { gate: self.gate, when_full: self.when_full, read, classify: self.classify }
    }

    /// The same with another way to tell outcomes: a closure
    /// `Fn(&Result<reqwest::Response, reqwest_middleware::Error>) -> Outcome`.
    #[must_use]
    pub fn classify<L>(self, classify: L) -> GateMiddleware<R, L, C> {
        GateMiddleware { gate: self.gate, when_full: self.when_full, read: self.read, classify }
    }
}

#[async_trait]
impl<R, K, C> Middleware for GateMiddleware<R, K, C>
where
    R: ReadRequest<ClientRequest> + Send + Sync + 'static,
    K: Classify<Response, Error> + Send + Sync + 'static,
    C: Clock + 'static,
{
    async fn handle(
        &self,
        request: ClientRequest,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let asked = self.read.read(&request, self.gate.clock().now());
        let admission = match self.when_full {
            WhenFull::Wait => self.gate.acquire_timed(asked).await,
            WhenFull::Refuse => self.gate.try_acquire_owned(&asked),
        };
        let token = admission.map_err(Error::middleware)?;
        let is_head = request.method() == Method::HEAD;
        let answer = next.run(request, extensions).await;
        let outcome = self.classify.outcome(&answer);
        match answer {
            Ok(response) if !is_head => Ok(guard(response, Held::Alone(token), outcome)),
            answer => {
                token.release(outcome);
                answer
            }
        }
    }
}

impl<R, K, C: Clock> fmt::Debug for GateMiddleware<R, K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateMiddleware")
            .field("gate", &self.gate)
            .field("when_full", &self.when_full)
            .finish_non_exhaustive()
    }
}

/// By status; a time-out is an overload, any other error a failure.
impl Classify<Response, Error> for ByStatus {
    fn outcome(&self, answer: &Result<Response>) -> Outcome {
        match answer {
            Ok(response) => status_outcome(response.status()),
            Err(error) if error.is_timeout() => Outcome::Overload,
            Err(_) => Outcome::Failure,
        }
    }
}

fn guard<C: Clock + 'static>(response: Response, token: Held<C>, outcome: Outcome) -> Response {
    let url = response.url().clone();
    let mut response =
        GuardedBody::guard(HttpResponse::<Body>::from(response), token, outcome, Outcome::Success);
    response.extensions_mut().extend(address(url));
    Response::from(response.map(Body::wrap))
}

/// What tells reqwest where a response came from; it is lost when a response is taken apart.
fn address(url: Url) -> Extensions {
    let (parts, ()) = HttpResponse::builder()
        .url(url)
        .body(())
        .expect("a response with nothing but an address is valid")
        .into_parts();
    parts.extensions
}
