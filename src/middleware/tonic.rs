//! tonic: refusals as statuses, and what a channel's errors mean. The gate on a server or a channel itself is a
//! [`GateLayer::http`](super::GateLayer::http).

use std::error::Error;

use http::Response;
use tonic::{Code, Status, TimeoutExpired, metadata::MetadataValue};

use super::{
    Classify,
    http::{ByStatus, PUSHBACK_HEADER},
};
use crate::{
    Outcome, Refusal,
    refusal::{Answers, GrpcCode},
};

/// [`ByStatus`]; an error behind which tonic's own time-out stands is an overload, any other a failure.
///
/// For channels, whose time-outs are errors: `GateLayer::speaking(Http::new().classify(ByStatusOrTimeout), gate)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByStatusOrTimeout;

impl<B, E: Error + 'static> Classify<Response<B>, E> for ByStatusOrTimeout {
    fn outcome(&self, answer: &Result<Response<B>, E>) -> Outcome {
        match answer {
            Err(error) if stems_from_timeout(error) => Outcome::Overload,
            _ => ByStatus.outcome(answer),
        }
    }
}

/// `UNAVAILABLE`, or `RESOURCE_EXHAUSTED` where the caller has too much, with why and, where the gate can tell, how long
/// to wait ([`PUSHBACK_HEADER`]): for handlers and interceptors that ask a gate themselves.
impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let answer = Answers::DEFAULT.grpc(&refusal, 0.0);
        let code = match answer.code {
            GrpcCode::ResourceExhausted => Code::ResourceExhausted,
            GrpcCode::Unavailable => Code::Unavailable,
        };
        let mut status = Self::new(code, refusal.to_string());
        if let Some(milliseconds) = answer.pushback_ms {
            status.metadata_mut().insert(PUSHBACK_HEADER, MetadataValue::from(milliseconds));
        }
        status
    }
}

fn stems_from_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}
