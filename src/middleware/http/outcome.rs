use http::{HeaderMap, Response, StatusCode};

use super::is_grpc;
use crate::{Outcome, Refusal, middleware::Classify};

/// Outcomes by HTTP status ([`status_outcome`]) or gRPC status ([`grpc_outcome`]); an error is a failure.
///
/// An answer that another gate in this process gave (it has a [`Refusal`] among its extensions) counts as cancelled:
/// it tells this gate nothing, since no work was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByStatus;

impl<B, E> Classify<Response<B>, E> for ByStatus {
    fn outcome(&self, answer: &Result<Response<B>, E>) -> Outcome {
        let Ok(response) = answer else {
            return Outcome::Failure;
        };
        if response.extensions().get::<Refusal>().is_some() {
            return Outcome::Cancelled;
        }
        if is_grpc(response.headers())
            && let Some(code) = grpc_status(response.headers())
        {
            return grpc_outcome(code);
        }
        status_outcome(response.status())
    }
}

/// What an HTTP status says about load.
///
/// | status | outcome |
/// |---|---|
/// | 429, 503, 504 | overload |
/// | 408 (the request itself came too slowly), other 5xx | failure |
/// | 499 (the client closed the connection, as nginx writes it) | cancelled |
/// | all others | success: it was answered, if perhaps not as the caller hoped |
#[must_use]
pub fn status_outcome(status: StatusCode) -> Outcome {
    match status.as_u16() {
        429 | 503 | 504 => Outcome::Overload,
        408 | 500.. => Outcome::Failure,
        499 => Outcome::Cancelled,
        _ => Outcome::Success,
    }
}

/// What a gRPC status code says about load.
///
/// | code | outcome |
/// |---|---|
/// | `DEADLINE_EXCEEDED` 4, `RESOURCE_EXHAUSTED` 8, `UNAVAILABLE` 14 | overload |
/// | `CANCELLED` 1 | cancelled |
/// | `UNKNOWN` 2, `UNIMPLEMENTED` 12, `INTERNAL` 13, `DATA_LOSS` 15, and codes that gRPC does not know | failure |
/// | all others | success: it was answered, if perhaps not as the caller hoped |
#[must_use]
pub fn grpc_outcome(code: i32) -> Outcome {
    match code {
        4 | 8 | 14 => Outcome::Overload,
        1 => Outcome::Cancelled,
        0 | 3 | 5 | 6 | 7 | 9 | 10 | 11 | 16 => Outcome::Success,
        _ => Outcome::Failure,
    }
}

/// The gRPC status among headers or trailers; one that is no number is unknown (2), as the gRPC protocol has it.
pub(super) fn grpc_status(headers: &HeaderMap) -> Option<i32> {
    const UNKNOWN: i32 = 2;
    let status = headers.get("grpc-status")?;
    Some(status.to_str().ok().and_then(|code| code.parse().ok()).unwrap_or(UNKNOWN))
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    fn outcome(response: Response<()>) -> Outcome {
        ByStatus.outcome(&Ok::<_, ()>(response))
    }

    #[test]
    fn a_status_that_speaks_of_load_is_an_overload_and_a_broken_service_is_not() {
        for (status, expected) in [
            (200, Outcome::Success),
            (404, Outcome::Success),
            (408, Outcome::Failure),
            (429, Outcome::Overload),
            (499, Outcome::Cancelled),
            (500, Outcome::Failure),
            (503, Outcome::Overload),
            (504, Outcome::Overload),
            (505, Outcome::Failure),
        ] {
            assert_eq!(outcome(Response::builder().status(status).body(()).unwrap()), expected, "{status}");
        }
    }

    #[test]
    fn a_grpc_status_in_the_head_counts_although_the_http_status_is_200() {
        let answer = |code: &str| {
            Response::builder()
                .header(CONTENT_TYPE, "application/grpc+proto")
                .header("grpc-status", code)
                .body(())
        };
        assert_eq!(outcome(answer("14").unwrap()), Outcome::Overload);
        assert_eq!(outcome(answer("5").unwrap()), Outcome::Success);
        assert_eq!(outcome(answer("1").unwrap()), Outcome::Cancelled);
        assert_eq!(outcome(answer("thirteen").unwrap()), Outcome::Failure);
    }

    #[test]
    fn grpc_web_and_lookalikes_are_not_grpc() {
        let of = |kind: &str| Response::builder().header(CONTENT_TYPE, kind).body(()).unwrap();
        assert!(is_grpc(of("application/grpc").headers()));
        assert!(is_grpc(of("application/grpc;charset=x").headers()));
        assert!(!is_grpc(of("application/grpc-web").headers()));
        assert!(!is_grpc(of("application/json").headers()));
    }
}
