use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};

use crate::Refusal;

/// The header that tells a refusal by a gate from an answer of the service. Its value is the reason.
pub const REFUSAL_HEADER: &str = "goodput-refusal";

/// What a refused HTTP request is told: the status, why ([`REFUSAL_HEADER`]), and in `retry-after`, in whole
/// seconds rounded up and at least one, how long to wait, where the gate can tell.
#[must_use]
pub fn http_refusal(refusal: &Refusal, status: StatusCode) -> Response<()> {
    let mut response = marked(refusal);
    *response.status_mut() = status;
    if let Some(wait) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
    }
    response
}

/// What a refused gRPC call is told: HTTP status 200 and, already in the head, the gRPC status that corresponds to
/// `status` (429: `RESOURCE_EXHAUSTED`, else `UNAVAILABLE`), a message, and in `grpc-retry-pushback-ms` how long to
/// wait, where the gate can tell.
#[must_use]
pub fn grpc_refusal(refusal: &Refusal, status: StatusCode) -> Response<()> {
    let code = if status == StatusCode::TOO_MANY_REQUESTS { "8" } else { "14" };
    let mut response = marked(refusal);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static(code));
    headers.insert("grpc-message", HeaderValue::from_static(refusal.reason.as_str()));
    if let Some(wait) = refusal.retry_after {
        headers.insert("grpc-retry-pushback-ms", HeaderValue::from(whole_milliseconds(wait)));
    }
    response
}

fn marked(refusal: &Refusal) -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(REFUSAL_HEADER, HeaderValue::from_static(refusal.reason.as_str()));
    response.extensions_mut().insert(*refusal);
    response
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// Rounded up; as gRPC wants it, in 31 bits.
pub(crate) fn whole_milliseconds(wait: Duration) -> u32 {
    let milliseconds = wait.as_nanos().div_ceil(1_000_000).min(u128::from(i32::MAX as u32));
    u32::try_from(milliseconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalReason;

    fn refusal(retry_after: Option<Duration>) -> Refusal {
        Refusal { reason: RefusalReason::QueueFull, limit: 3, in_flight: 3, retry_after }
    }

    #[test]
    fn the_wait_is_rounded_up_to_whole_seconds_and_never_to_none() {
        for (wait_ms, seconds) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (90_000, "90")] {
            let refusal = refusal(Some(Duration::from_millis(wait_ms)));
            let answer = http_refusal(&refusal, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.headers()["retry-after"], seconds);
            assert_eq!(answer.headers()[REFUSAL_HEADER], "queue_full");
        }
    }

    #[test]
    fn a_wait_that_nobody_knows_is_not_made_up() {
        let answer = http_refusal(&refusal(None), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.status(), 429);
        assert!(!answer.headers().contains_key("retry-after"));
    }

    #[test]
    fn a_grpc_call_is_pushed_back_in_milliseconds() {
        let refusal = refusal(Some(Duration::from_micros(1_500)));
        let answer = grpc_refusal(&refusal, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["grpc-status"], "14");
        assert_eq!(answer.headers()["grpc-retry-pushback-ms"], "2");
        assert_eq!(grpc_refusal(&refusal, StatusCode::TOO_MANY_REQUESTS).headers()["grpc-status"], "8");
        assert_eq!(whole_milliseconds(Duration::MAX), i32::MAX as u32);
    }
}
