use axum_core::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::StatusCode;

use super::http::http_refusal;
use crate::Refusal;

/// 503, with why and, where the gate can tell, how long to wait: for handlers that ask a gate themselves.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        http_refusal(&self, StatusCode::SERVICE_UNAVAILABLE).map(|()| Body::empty())
    }
}
