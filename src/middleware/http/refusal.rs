use http::{HeaderValue, Response, StatusCode, header};

use crate::{
    Refusal,
    middleware::random::random,
    refusal::{Answers, OVERLOADED_HEADER, OVERLOADED_VALUE},
    share::Share,
};

/// The header that tells a refusal by a gate from an answer of the service. Its value is the reason.
pub const REFUSAL_HEADER: &str = "goodput-refusal";

/// What a refused HTTP request is told: the status, why ([`REFUSAL_HEADER`]), in `retry-after` how long to wait, where
/// the gate can tell, and in [`OVERLOADED_HEADER`] that another attempt can only do harm, where that is so.
#[must_use]
pub fn http_refusal(refusal: &Refusal, answers: &Answers) -> Response<()> {
    let answer = answers.http(refusal, spread(answers));
    let mut response = marked(refusal);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let headers = response.headers_mut();
    if let Some(seconds) = answer.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if answer.do_not_retry {
        headers.insert(OVERLOADED_HEADER, HeaderValue::from_static(OVERLOADED_VALUE));
    }
    response
}

/// What a refused gRPC call is told: HTTP status 200 and, already in the head, the gRPC status, a message, and in
/// [`PUSHBACK_HEADER`] how long to wait, where the gate can tell, or not to try again.
#[must_use]
pub fn grpc_refusal(refusal: &Refusal, answers: &Answers) -> Response<()> {
    let answer = answers.grpc(refusal, spread(answers));
    let mut response = marked(refusal);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(answer.code.as_i32()));
    headers.insert("grpc-message", HeaderValue::from_static(refusal.reason.as_str()));
    if let Some(milliseconds) = answer.pushback_ms {
        headers.insert(PUSHBACK_HEADER, HeaderValue::from(milliseconds));
    }
    response
}

/// Where gRPC says how many milliseconds to wait, or −1 for "do not retry" (gRFC A6).
pub const PUSHBACK_HEADER: &str = "grpc-retry-pushback-ms";

fn marked(refusal: &Refusal) -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(REFUSAL_HEADER, HeaderValue::from_static(refusal.reason.as_str()));
    response.extensions_mut().insert(*refusal);
    response
}

/// Within 0 and 1, and zero where nothing is to be spread.
fn spread(answers: &Answers) -> f64 {
    if answers.spread == Share::NONE { 0.0 } else { random() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::RefusalReason;

    fn refusal(reason: RefusalReason, retry_after: Option<Duration>) -> Refusal {
        Refusal { reason, limit: 3, in_flight: 3, retry_after }
    }

    #[test]
    fn a_refused_request_hears_why_and_for_how_long() {
        let refusal = refusal(RefusalReason::QueueFull, Some(Duration::from_millis(1_001)));
        let answer = http_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["retry-after"], "2");
        assert_eq!(answer.headers()[REFUSAL_HEADER], "queue_full");
        assert!(!answer.headers().contains_key(OVERLOADED_HEADER));
    }

    #[test]
    fn a_wait_that_nobody_knows_is_not_made_up() {
        let refusal = refusal(RefusalReason::QuotaExceeded, None);
        let answer = http_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.status(), 429);
        assert!(!answer.headers().contains_key("retry-after"));
        let answer = grpc_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.headers()["grpc-status"], "8");
        assert!(!answer.headers().contains_key(PUSHBACK_HEADER));
    }

    #[test]
    fn who_can_only_do_harm_by_another_attempt_is_told_so_in_both_protocols() {
        let refusal = refusal(RefusalReason::DeadlineExpired, Some(Duration::from_secs(1)));
        let answer = http_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.headers()[OVERLOADED_HEADER], OVERLOADED_VALUE);
        assert!(!answer.headers().contains_key("retry-after"));
        let answer = grpc_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.headers()[PUSHBACK_HEADER], "-1");
    }

    #[test]
    fn a_grpc_call_is_pushed_back_in_milliseconds() {
        let refusal = refusal(RefusalReason::QueueFull, Some(Duration::from_micros(1_500)));
        let answer = grpc_refusal(&refusal, &Answers::DEFAULT);
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["grpc-status"], "14");
        assert_eq!(answer.headers()[PUSHBACK_HEADER], "2");
    }

    #[test]
    fn spread_hints_differ_and_stay_within_their_share() {
        let refusal = refusal(RefusalReason::QueueFull, Some(Duration::from_secs(1_000)));
        let answers = Answers { spread: Share::ALL, ..Answers::DEFAULT };
        let hints: Vec<u64> = (0..20)
            .map(|_| {
                http_refusal(&refusal, &answers).headers()["retry-after"].to_str().unwrap().parse().unwrap()
            })
            .collect();
        assert!(hints.iter().all(|hint| (1_000..=2_000).contains(hint)), "{hints:?}");
        // Twenty equal ones of a thousand: one in 10⁵⁷.
        assert!(hints.iter().any(|hint| hint != &hints[0]), "{hints:?}");
    }
}
