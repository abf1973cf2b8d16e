use std::sync::Arc;

use goodput_algorithms::Instant;
use http::{Extensions, HeaderMap, HeaderName, Request as HttpRequest};

use crate::{Criticality, Key, Request, deadline::DeadlineHeader, middleware::ReadRequest};

/// Reads from headers what a gate needs to know of a request.
///
/// Only the headers that are named here are looked at. One that cannot be read counts as missing: a caller does not
/// make its request worse, or better, by a header that says nothing. A service on the edge names none that outsiders
/// may set, or has its proxy strip them.
///
/// A [`Request`] among the extensions, as [`Http::share_request`](super::Http::share_request) puts it there and a
/// handler hands it on, is what the headers add to: its criticality, tenant, cohort and continuation hold where no
/// header says otherwise, and of two deadlines the earlier one.
///
/// ```
/// use goodput::{Criticality, Gate, deadline::DeadlineHeader};
/// use goodput::algorithms::{Aimd, AimdSettings};
/// use goodput::middleware::{GateLayer, Http, http::ByHeaders};
/// use http::HeaderName;
///
/// let read = ByHeaders::new()
///     .deadline(DeadlineHeader::XEnvoyExpectedRqTimeoutMs)
///     .criticality(HeaderName::from_static("x-criticality"))
///     .bypass("/health");
/// let gate = Gate::new(Aimd::new(AimdSettings::default()).unwrap());
/// let layer = GateLayer::speaking(Http::new().read(read), gate);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ByHeaders(Arc<Names>);

#[derive(Clone, Debug, Default)]
struct Names {
    deadline: Option<DeadlineHeader>,
    criticality: Option<HeaderName>,
    tenant: Option<HeaderName>,
    partition: Option<HeaderName>,
    cohort: Option<HeaderName>,
    continuation: Option<HeaderName>,
    bypassing: Vec<String>,
}

impl ByHeaders {
    /// Looks at no header yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with the time left from this header.
    #[must_use]
    pub fn deadline(mut self, header: DeadlineHeader) -> Self {
        self.names().deadline = Some(header);
        self
    }

    /// The same, with the criticality from this header, as [`Criticality::as_str`] writes it. Letters of either case.
    #[must_use]
    pub fn criticality(mut self, header: HeaderName) -> Self {
        self.names().criticality = Some(header);
        self
    }

    /// The same, with the tenant from this header: the [`Key`] of its value.
    #[must_use]
    pub fn tenant(mut self, header: HeaderName) -> Self {
        self.names().tenant = Some(header);
        self
    }

    /// The same, with the partition from this header: the [`Key`] of its value.
    #[must_use]
    pub fn partition(mut self, header: HeaderName) -> Self {
        self.names().partition = Some(header);
        self
    }

    /// The same, with the cohort from this header: the [`Key`] of its value.
    #[must_use]
    pub fn cohort(mut self, header: HeaderName) -> Self {
        self.names().cohort = Some(header);
        self
    }

    /// The same, taking every request that has this header, whatever its value, for a later step of work that was begun
    /// already ([`Request::continuation`]).
    #[must_use]
    pub fn continuation(mut self, header: HeaderName) -> Self {
        self.names().continuation = Some(header);
        self
    }

    /// The same, letting requests to this path past the limit: a health check that waits or is refused under load has
    /// the service restarted when it is needed most. In gRPC `/grpc.health.v1.Health/Check`.
    #[must_use]
    pub fn bypass(mut self, path: impl Into<String>) -> Self {
        self.names().bypassing.push(path.into());
        self
    }

    fn names(&mut self) -> &mut Names {
        Arc::make_mut(&mut self.0)
    }

    /// What these say of a request that arrived `now`.
    #[must_use]
    pub fn read_parts(
        &self,
        path: &str,
        headers: &HeaderMap,
        extensions: &Extensions,
        now: Instant,
    ) -> Request {
        let Names { deadline, criticality, tenant, partition, cohort, continuation, bypassing } = &*self.0;
        let value = |name: &Option<HeaderName>| headers.get(name.as_ref()?)?.to_str().ok();
        let key = |name: &Option<HeaderName>| value(name).map(Key::of);
        let handed_on = extensions.get::<Request>().copied().unwrap_or_default().handed_on();
        let left = deadline
            .as_ref()
            .and_then(|header| header.parse(headers.get(header.name())?.to_str().ok()?).ok());
        Request {
            continuation: handed_on.continuation
                || continuation.as_ref().is_some_and(|name| headers.contains_key(name)),
            criticality: value(criticality).and_then(named).unwrap_or(handed_on.criticality),
            bypass: bypassing.iter().any(|bypassing| bypassing == path),
            deadline: handed_on.deadline.into_iter().chain(left.map(|left| now + left)).min(),
            tenant: key(tenant).or(handed_on.tenant),
            partition: key(partition),
            cohort: key(cohort).or(handed_on.cohort),
            ..handed_on
        }
    }
}

fn named(criticality: &str) -> Option<Criticality> {
    Criticality::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(criticality.trim()))
}

impl<B> ReadRequest<HttpRequest<B>> for ByHeaders {
    fn read(&self, request: &HttpRequest<B>, now: Instant) -> Request {
        self.read_parts(request.uri().path(), request.headers(), request.extensions(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn reader() -> ByHeaders {
        ByHeaders::new()
            .deadline(DeadlineHeader::XEnvoyExpectedRqTimeoutMs)
            .criticality(HeaderName::from_static("x-criticality"))
            .tenant(HeaderName::from_static("x-tenant"))
            .bypass("/health")
    }

    fn read(request: http::request::Builder) -> Request {
        reader().read(&request.body(()).unwrap(), NOW)
    }

    #[test]
    fn headers_say_deadline_criticality_and_tenant() {
        let request = HttpRequest::builder()
            .header("x-envoy-expected-rq-timeout-ms", "250")
            .header("x-criticality", "Sheddable-Plus")
            .header("x-tenant", "crawler");
        let expected = Request::DEFAULT
            .of(Criticality::SheddablePlus)
            .by(Instant::from_nanos(1_250_000_000))
            .from_tenant(Key::of("crawler"));
        assert_eq!(read(request), expected);
    }

    #[test]
    fn a_header_marks_later_steps_of_work_that_was_begun() {
        let reader = ByHeaders::new().continuation(HeaderName::from_static("x-step"));
        let read =
            |request: http::request::Builder| reader.read(&request.body(()).unwrap(), NOW).continuation;
        assert!(read(HttpRequest::builder().header("x-step", "2")));
        assert!(!read(HttpRequest::builder()));
        assert!(read(HttpRequest::builder().extension(Request::DEFAULT.continuing())));
    }

    #[test]
    fn headers_that_cannot_be_read_say_nothing() {
        let request = HttpRequest::builder()
            .header("x-envoy-expected-rq-timeout-ms", "soon")
            .header("x-criticality", "utmost")
            .header("x-tenant", &b"\xff"[..]);
        assert_eq!(read(request), Request::DEFAULT);
    }

    #[test]
    fn headers_that_are_not_named_are_not_looked_at() {
        let request = HttpRequest::builder().header("x-criticality", "sheddable").body(()).unwrap();
        assert_eq!(ByHeaders::new().read(&request, NOW), Request::DEFAULT);
    }

    #[test]
    fn a_time_left_beyond_all_time_is_no_overflow() {
        let request = HttpRequest::builder().header("x-envoy-expected-rq-timeout-ms", u64::MAX.to_string());
        assert_eq!(read(request).deadline, Some(Instant::FAR_FUTURE));
    }

    #[test]
    fn a_health_check_bypasses_by_its_path_alone() {
        assert!(read(HttpRequest::builder().uri("/health?verbose")).bypass);
        assert!(!read(HttpRequest::builder().uri("/healthy")).bypass);
    }

    #[test]
    fn what_a_handler_hands_on_holds_where_no_header_says_otherwise() {
        let incoming = Request::DEFAULT
            .of(Criticality::Sheddable)
            .by(Instant::from_nanos(1_100_000_000))
            .in_partition(Key::of("here"))
            .weighing(5);
        let request =
            HttpRequest::builder().extension(incoming).header("x-envoy-expected-rq-timeout-ms", "250");
        let expected = Request::DEFAULT.of(Criticality::Sheddable).by(Instant::from_nanos(1_100_000_000));
        assert_eq!(read(request), expected);
    }
}
