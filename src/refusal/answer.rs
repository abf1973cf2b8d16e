//! Refusals as HTTP and gRPC say them, as plain data: whoever has the protocol's types turns them into a response.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Refusal, hint::spread};
use crate::share::Share;

/// The response header that says that another attempt can only do harm.
pub const OVERLOADED_HEADER: &str = "x-overloaded";

/// The value of [`OVERLOADED_HEADER`].
pub const OVERLOADED_VALUE: &str = "do-not-retry";

/// How refusals are put into words of a protocol.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// By how much of itself a hint may be lengthened at random, so that those who are refused together do not come
    /// back together. Default 0: exactly the estimate.
    pub spread: Share,
    /// The status when the service has too much. Default 503.
    pub overload_status: RefusalStatus,
    /// The status when the caller has too much: its quota or fair share is used up. Default 429.
    pub quota_status: RefusalStatus,
}

impl Answers {
    /// 503 when the service has too much, 429 when the caller has, and hints that are exactly the estimate.
    pub const DEFAULT: Self = Self {
        spread: Share::NONE,
        overload_status: RefusalStatus::ServiceUnavailable,
        quota_status: RefusalStatus::TooManyRequests,
    };
}

impl Default for Answers {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The two HTTP statuses of a refusal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalStatus {
    /// 429 (RFC 6585). Proxies do not take a service for broken that says so.
    TooManyRequests,
    /// 503 (RFC 9110, section 15.6.4). Proxies and clients understand it that understand nothing else.
    ServiceUnavailable,
}

impl RefusalStatus {
    /// The status as a number.
    #[must_use]
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::TooManyRequests => 429,
            Self::ServiceUnavailable => 503,
        }
    }
}

/// A refusal in HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HttpAnswer {
    /// 503, or 429 where the caller has too much.
    pub status: u16,
    /// The value of `Retry-After` (RFC 9110, section 10.2.3), in seconds, rounded up and at least 1.
    pub retry_after_seconds: Option<u64>,
    /// Whether to send [`OVERLOADED_HEADER`]. There is no `Retry-After` then.
    pub do_not_retry: bool,
}

/// A refusal in gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcAnswer {
    /// The status code.
    pub code: GrpcCode,
    /// The value of the trailer `grpc-retry-pushback-ms` (gRFC A6): milliseconds to wait, rounded up, or −1 for "do
    /// not retry".
    pub pushback_ms: Option<i32>,
}

/// The two gRPC status codes of a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GrpcCode {
    /// 8, where the caller has too much, or [`Answers::overload_status`] says 429. Not retried by usual policies.
    ResourceExhausted,
    /// 14, where the service has too much. Retried by usual policies, as far as push-back allows.
    Unavailable,
}

impl GrpcCode {
    /// The code as a number.
    #[must_use]
    pub const fn as_i32(self) -> i32 {
        match self {
            Self::ResourceExhausted => 8,
            Self::Unavailable => 14,
        }
    }
}

impl Answers {
    /// The refusal in HTTP. `random` (within 0 and 1) matters only with [`Answers::spread`].
    #[must_use]
    pub fn http(&self, refusal: &Refusal, random: f64) -> HttpAnswer {
        let status = if refusal.reason.is_of_the_caller() { self.quota_status } else { self.overload_status };
        let do_not_retry = refusal.reason.forbids_retry();
        let hint = self.hint(refusal, random).filter(|_| !do_not_retry);
        HttpAnswer {
            status: status.as_u16(),
            retry_after_seconds: hint.map(|hint| rounded_up(hint, Duration::from_secs(1)).max(1)),
            do_not_retry,
        }
    }

    /// The refusal in gRPC. `random` (within 0 and 1) matters only with [`Answers::spread`].
    #[must_use]
    pub fn grpc(&self, refusal: &Refusal, random: f64) -> GrpcAnswer {
        let exhausted =
            refusal.reason.is_of_the_caller() || self.overload_status == RefusalStatus::TooManyRequests;
        let code = if exhausted { GrpcCode::ResourceExhausted } else { GrpcCode::Unavailable };
        let pushback_ms = if refusal.reason.forbids_retry() {
            Some(-1)
        } else {
            let whole = |hint| rounded_up(hint, Duration::from_millis(1));
            self.hint(refusal, random).map(|hint| i32::try_from(whole(hint)).unwrap_or(i32::MAX))
        };
        GrpcAnswer { code, pushback_ms }
    }

    fn hint(&self, refusal: &Refusal, random: f64) -> Option<Duration> {
        refusal.retry_after.map(|hint| spread(hint, self.spread, random))
    }
}

/// How many units.
fn rounded_up(time: Duration, unit: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(unit.as_nanos())).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalReason;

    fn refusal(reason: RefusalReason) -> Refusal {
        Refusal { reason, limit: 10, in_flight: 10, retry_after: Some(Duration::from_secs(3)) }
    }

    #[test]
    fn an_overloaded_service_says_503_and_when_to_come_back() {
        let answers = Answers::default();
        let refusal = refusal(RefusalReason::QueueFull);
        assert_eq!(
            answers.http(&refusal, 0.0),
            HttpAnswer { status: 503, retry_after_seconds: Some(3), do_not_retry: false }
        );
        assert_eq!(
            answers.grpc(&refusal, 0.0),
            GrpcAnswer { code: GrpcCode::Unavailable, pushback_ms: Some(3_000) }
        );
    }

    #[test]
    fn a_caller_over_its_quota_hears_429_and_resource_exhausted() {
        let refusal = refusal(RefusalReason::QuotaExceeded);
        let answers = Answers::default();
        assert_eq!(answers.http(&refusal, 0.0).status, 429);
        assert_eq!(answers.grpc(&refusal, 0.0).code, GrpcCode::ResourceExhausted);
        let only_503 = Answers { quota_status: RefusalStatus::ServiceUnavailable, ..answers };
        assert_eq!(only_503.http(&refusal, 0.0).status, 503);
    }

    #[test]
    fn a_service_that_proxies_must_not_take_for_broken_says_429_throughout() {
        let answers = Answers { overload_status: RefusalStatus::TooManyRequests, ..Answers::default() };
        let refusal = refusal(RefusalReason::LimitReached);
        assert_eq!(answers.http(&refusal, 0.0).status, 429);
        assert_eq!(answers.grpc(&refusal, 0.0).code, GrpcCode::ResourceExhausted);
    }

    #[test]
    fn a_wait_is_rounded_up_in_the_unit_of_the_protocol() {
        let told = |wait| {
            let refusal = Refusal { retry_after: Some(wait), ..refusal(RefusalReason::LimitReached) };
            let answers = Answers::default();
            (answers.http(&refusal, 0.0).retry_after_seconds, answers.grpc(&refusal, 0.0).pushback_ms)
        };
        for (wait, seconds, milliseconds) in [
            (Duration::ZERO, 1, 0),
            (Duration::from_micros(1_500), 1, 2),
            (Duration::from_secs(1), 1, 1_000),
            (Duration::from_millis(1_001), 2, 1_001),
            (Duration::MAX, u64::MAX, i32::MAX),
        ] {
            assert_eq!(told(wait), (Some(seconds), Some(milliseconds)), "{wait:?}");
        }
        let unknown = Refusal { retry_after: None, ..refusal(RefusalReason::LimitReached) };
        assert_eq!(Answers::default().http(&unknown, 0.0).retry_after_seconds, None);
        assert_eq!(Answers::default().grpc(&unknown, 0.0).pushback_ms, None);
    }

    #[test]
    fn do_not_retry_leaves_no_hint_beside_it() {
        for reason in [RefusalReason::Overloaded, RefusalReason::DeadlineExpired] {
            let http = Answers::default().http(&refusal(reason), 0.0);
            assert_eq!((http.do_not_retry, http.retry_after_seconds), (true, None));
            assert_eq!(Answers::default().grpc(&refusal(reason), 0.0).pushback_ms, Some(-1));
        }
    }

    #[test]
    fn a_hint_is_spread_only_on_request() {
        let refusal = refusal(RefusalReason::LimitReached);
        assert_eq!(Answers::default().http(&refusal, 0.9).retry_after_seconds, Some(3));
        let spreading = Answers { spread: Share::ALL, ..Answers::default() };
        assert_eq!(spreading.http(&refusal, 1.0).retry_after_seconds, Some(6));
    }
}
