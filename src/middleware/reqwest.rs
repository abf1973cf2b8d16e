//! reqwest: a gate around a client.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use goodput_algorithms::Instant;
use http::{Extensions, Method, Response as HttpResponse};
use reqwest::{Body, Request as ClientRequest, Response, ResponseBuilderExt, Url};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::{
    Classify, GuardedBody, ReadRequest, Unmarked, WhenFull,
    http::{ByHeaders, ByStatus, Held, NextHop, status_outcome},
};
use crate::{Clock, Gate, Outcome, Request, SystemClock, keyed::KeyedGates};

/// Limits how many requests a client has under way.
///
/// The token is held to the end of the response's body, its error, or its drop; who drops a body unread has seen all
/// it wanted, and the status stands. A refusal is [`Error::Middleware`] with a [`Refusal`](crate::Refusal) inside. Put
/// it nearer to the client than anything that retries: attempts are then admitted and timed one by one, and none holds a
/// place while it waits for the next.
///
/// A call that is made on behalf of an incoming request says so by an extension, as
/// `client.get(url).with_extension(incoming)` with the [`Request`] that
/// [`Http::share_request`](super::Http::share_request) left in that request's own extensions: its deadline and
/// criticality then count here, rather than what is read from the call, and [`GateMiddleware::next_hop`] passes them on.
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
///
/// A client that calls several hosts has a gate for each ([`GateMiddleware::per_host`]), so that a slow one does not
/// take the places of the others.
pub struct GateMiddleware<R = Unmarked, K = ByStatus, C: Clock = SystemClock> {
    gates: Gates<C>,
    when_full: WhenFull,
    read: R,
    classify: K,
    next_hop: Option<NextHop>,
}

impl<C: Clock> GateMiddleware<Unmarked, ByStatus, C> {
    /// All requests alike; outcomes by status, and a time-out is an overload.
    #[must_use]
    pub const fn new(gate: Gate<C>) -> Self {
        Self::at(Gates::One(gate))
    }

    /// The same with a gate for each host and port, as `example.org:443`.
    #[must_use]
    pub const fn per_host(gates: Arc<KeyedGates<String, C>>) -> Self {
        Self::at(Gates::PerHost(gates))
    }

    const fn at(gates: Gates<C>) -> Self {
        Self { gates, when_full: WhenFull::Wait, read: Unmarked, classify: ByStatus, next_hop: None }
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
        let Self { gates, when_full, classify, next_hop, .. } = self;
        GateMiddleware { gates, when_full, read, classify, next_hop }
    }

    /// The same with another way to tell outcomes: a closure
    /// `Fn(&Result<reqwest::Response, reqwest_middleware::Error>) -> Outcome`.
    #[must_use]
    pub fn classify<L>(self, classify: L) -> GateMiddleware<R, L, C> {
        let Self { gates, when_full, read, next_hop, .. } = self;
        GateMiddleware { gates, when_full, read, classify, next_hop }
    }

    /// The same, telling the next hop how much time is left when a call is admitted, and how much it matters.
    #[must_use]
    pub fn next_hop(mut self, next_hop: NextHop) -> Self {
        self.next_hop = Some(next_hop);
        self
    }
}

/// Which gate a request has to pass.
#[derive(Debug)]
enum Gates<C: Clock> {
    One(Gate<C>),
    PerHost(Arc<KeyedGates<String, C>>),
}

impl<C: Clock> Gates<C> {
    fn of(&self, url: &Url) -> Gate<C> {
        match self {
            Self::One(gate) => gate.clone(),
            Self::PerHost(gates) => {
                let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
                gates.gate(&format!("{host}:{}", port.unwrap_or_default()))
            }
        }
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
        mut request: ClientRequest,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let gate = self.gates.of(request.url());
        let asked = match extensions.get::<Request>() {
            Some(incoming) => incoming.handed_on(),
            None => self.read.read(&request, gate.clock().now()),
        };
        let admission = match self.when_full {
            WhenFull::Wait => gate.acquire_timed(asked).await,
            WhenFull::Refuse => gate.try_acquire_owned(&asked),
        };
        let token = admission.map_err(Error::middleware)?;
        if let Some(next_hop) = &self.next_hop {
            next_hop.tell(request.headers_mut(), &asked, token.admitted_at());
        }
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
            .field("gates", &self.gates)
            .field("when_full", &self.when_full)
            .field("next_hop", &self.next_hop)
            .finish_non_exhaustive()
    }
}

impl ReadRequest<ClientRequest> for ByHeaders {
    fn read(&self, request: &ClientRequest, now: Instant) -> Request {
        self.read_parts(request.url().path(), request.headers(), &Extensions::new(), now)
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
