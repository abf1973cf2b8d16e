use axum_core::{
    body::Body,
    response::{IntoResponse, Response},
};

use super::http::http_refusal;
use crate::{Refusal, refusal::Answers};

/// 503, or 429 where the caller has too much, with why and, where the gate can tell, how long to wait: for handlers that
/// ask a gate themselves.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        http_refusal(&self, &Answers::DEFAULT).map(|()| Body::empty())
    }
}
