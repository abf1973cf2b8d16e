use goodput_algorithms::Instant;
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, Response, header::RETRY_AFTER};

use super::{PREVIOUS_ATTEMPTS_HEADER, PUSHBACK_HEADER, REFUSAL_HEADER, is_grpc, outcome::grpc_status};
use crate::{
    Request,
    client::{Failure, PushBack},
    middleware::retry::Judge,
    refusal::{OVERLOADED_HEADER, OVERLOADED_VALUE},
};

/// Which answers of HTTP and gRPC are worth another attempt, for a
/// [`RetryPolicy`](crate::middleware::retry::RetryPolicy).
///
/// | answer | another attempt |
/// |---|---|
/// | refused by a gate ([`REFUSAL_HEADER`]), 429, 503, gRPC `UNAVAILABLE` in the head | yes: no work was done |
/// | 502, 504, an error | if the method is idempotent (RFC 9110, section 9.2.2) |
/// | [`OVERLOADED_HEADER`], negative push-back | never |
/// | all others | no |
///
/// `Retry-After` in seconds and [`PUSHBACK_HEADER`] say how long to wait at least. Attempts after the first say so in
/// [`PREVIOUS_ATTEMPTS_HEADER`], so that servers see when [all refuse](super::Http::watch_retries). The deadline is
/// that of the [`Request`] among the extensions, as [`Http::share_request`](super::Http::share_request) leaves it
/// there for a handler to hand on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryByStatus;

impl<A, B, E> Judge<HttpRequest<A>, Response<B>, E> for RetryByStatus {
    fn failure(&self, request: &HttpRequest<A>, answer: &Result<Response<B>, E>) -> Option<Failure> {
        let Ok(response) = answer else {
            return is_idempotent(request.method()).then_some(Failure::PLAIN);
        };
        let (headers, status) = (response.headers(), response.status().as_u16());
        let refused = headers.contains_key(REFUSAL_HEADER)
            || matches!(status, 429 | 503)
            || (is_grpc(headers) && grpc_status(headers) == Some(UNAVAILABLE));
        let broken = matches!(status, 502 | 504) && is_idempotent(request.method());
        (refused || broken).then(|| Failure { timeout: status == 504, push_back: push_back(headers) })
    }

    fn mark(&self, request: &mut HttpRequest<A>, previous_attempts: u32) {
        request.headers_mut().insert(PREVIOUS_ATTEMPTS_HEADER, HeaderValue::from(previous_attempts));
    }

    fn deadline(&self, request: &HttpRequest<A>) -> Option<Instant> {
        request.extensions().get::<Request>()?.deadline
    }
}

const UNAVAILABLE: i32 = 14;

fn is_idempotent(method: &Method) -> bool {
    method.is_safe() || method == Method::PUT || method == Method::DELETE
}

fn push_back(headers: &HeaderMap) -> Option<PushBack> {
    if headers.get(OVERLOADED_HEADER).is_some_and(|value| value == OVERLOADED_VALUE) {
        return Some(PushBack::Never);
    }
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let grpc = text(PUSHBACK_HEADER).map(PushBack::from_grpc_pushback);
    grpc.or_else(|| PushBack::from_retry_after(text(RETRY_AFTER.as_str())?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failure(method: Method, answer: Result<http::response::Builder, ()>) -> Option<Failure> {
        let request = HttpRequest::builder().method(method).body(()).unwrap();
        RetryByStatus.failure(&request, &answer.map(|response| response.body(()).unwrap()))
    }

    fn status(status: u16) -> http::response::Builder {
        Response::builder().status(status)
    }

    #[test]
    fn what_was_refused_is_tried_again_whatever_it_was_to_do() {
        for method in [Method::GET, Method::POST] {
            for refused in [
                status(429),
                status(503),
                status(200).header(REFUSAL_HEADER, "limit_reached"),
                status(200).header("content-type", "application/grpc").header("grpc-status", "14"),
            ] {
                assert_eq!(failure(method.clone(), Ok(refused)), Some(Failure::PLAIN));
            }
        }
    }

    #[test]
    fn what_may_have_been_done_is_tried_again_only_where_twice_is_as_good_as_once() {
        for (method, again) in
            [(Method::GET, true), (Method::PUT, true), (Method::POST, false), (Method::PATCH, false)]
        {
            assert_eq!(failure(method.clone(), Err(())).is_some(), again, "{method}");
            assert_eq!(failure(method.clone(), Ok(status(502))).is_some(), again, "{method}");
            assert_eq!(
                failure(method.clone(), Ok(status(504))).is_some_and(|failure| failure.timeout),
                again
            );
        }
        for answered in [200, 404, 500] {
            assert_eq!(failure(Method::GET, Ok(status(answered))), None);
        }
    }

    #[test]
    fn the_server_is_heard() {
        let pushed_back = |answer| failure(Method::GET, Ok(answer)).unwrap().push_back;
        let seconds = status(503).header("retry-after", "3");
        assert_eq!(pushed_back(seconds), Some(PushBack::After(Duration::from_secs(3))));
        let millis = status(503).header(PUSHBACK_HEADER, "250").header("retry-after", "3");
        assert_eq!(pushed_back(millis), Some(PushBack::After(Duration::from_millis(250))));
        assert_eq!(pushed_back(status(503).header(PUSHBACK_HEADER, "-1")), Some(PushBack::Never));
        let overloaded = status(503).header(OVERLOADED_HEADER, OVERLOADED_VALUE).header("retry-after", "3");
        assert_eq!(pushed_back(overloaded), Some(PushBack::Never));
    }

    #[test]
    fn the_deadline_is_that_of_the_request_it_is_made_for() {
        let deadline = Instant::from_nanos(7);
        let request = HttpRequest::builder().extension(Request::DEFAULT.by(deadline)).body(()).unwrap();
        let heard = Judge::<_, Response<()>, ()>::deadline(&RetryByStatus, &request);
        assert_eq!(heard, Some(deadline));
    }
}
