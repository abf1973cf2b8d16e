use std::time::Duration;

use goodput_algorithms::Instant;
use http::{HeaderMap, HeaderName, HeaderValue, header::InvalidHeaderName};

use crate::{
    Request,
    deadline::{DeadlineHeader, DeadlineUnit},
};

/// What a client tells the host it calls: how much time is left, and how much the request matters.
///
/// The time is what is left when the request is admitted, after it has waited at the client's own gate, less a reserve.
/// If nothing is left, zero is told: a gate over there refuses it at the door, and nobody works for nothing.
#[derive(Clone, Debug, Default)]
pub struct NextHop {
    deadline: Option<(HeaderName, DeadlineHeader)>,
    reserve: Duration,
    criticality: Option<HeaderName>,
}

impl NextHop {
    /// Tells nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with the time left in this header, less `reserve` for the way there and back and for what is still to
    /// be done here.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderName`] if that is no name for a header.
    pub fn deadline(mut self, header: DeadlineHeader, reserve: Duration) -> Result<Self, InvalidHeaderName> {
        self.deadline = Some((HeaderName::try_from(header.name())?, header));
        self.reserve = reserve;
        Ok(self)
    }

    /// The same, with the criticality in this header, as [`Criticality::as_str`](crate::Criticality::as_str) writes it.
    #[must_use]
    pub fn criticality(mut self, header: HeaderName) -> Self {
        self.criticality = Some(header);
        self
    }

    /// Writes into the headers of `request`, which is sent `now`.
    pub fn tell(&self, headers: &mut HeaderMap, request: &Request, now: Instant) {
        if let (Some((name, header)), Some(deadline)) = (&self.deadline, request.deadline) {
            let left = header.for_next_hop(deadline, now, self.reserve);
            let value = left.and_then(|left| HeaderValue::try_from(left).ok());
            headers.insert(name, value.unwrap_or_else(|| nothing_left(header)));
        }
        if let Some(name) = &self.criticality {
            headers.insert(name, HeaderValue::from_static(request.criticality.as_str()));
        }
    }
}

const fn nothing_left(header: &DeadlineHeader) -> HeaderValue {
    HeaderValue::from_static(match header {
        DeadlineHeader::GrpcTimeout => "0n",
        DeadlineHeader::XEnvoyExpectedRqTimeoutMs
        | DeadlineHeader::Custom { unit: DeadlineUnit::Milliseconds | DeadlineUnit::Seconds, .. } => "0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Criticality;

    fn told(request: Request, now_ms: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", HeaderValue::from_static("30S"));
        NextHop::new()
            .deadline(DeadlineHeader::GrpcTimeout, Duration::from_millis(100))
            .unwrap()
            .criticality(HeaderName::from_static("x-criticality"))
            .tell(&mut headers, &request, Instant::from_nanos(now_ms * 1_000_000));
        headers
    }

    #[test]
    fn the_next_hop_hears_what_is_left_and_how_much_it_matters() {
        let request = Request::DEFAULT.of(Criticality::Sheddable).by(Instant::from_nanos(2_000_000_000));
        let headers = told(request, 500);
        assert_eq!(headers["grpc-timeout"], "1400000u");
        assert_eq!(headers["x-criticality"], "sheddable");
    }

    #[test]
    fn nothing_left_is_told_as_nothing() {
        let request = Request::DEFAULT.by(Instant::from_nanos(2_000_000_000));
        assert_eq!(told(request, 1_950)["grpc-timeout"], "0n");
        assert_eq!(DeadlineHeader::GrpcTimeout.parse("0n"), Ok(Duration::ZERO));
    }

    #[test]
    fn without_a_deadline_the_time_out_stays_what_it_was() {
        assert_eq!(told(Request::DEFAULT, 0)["grpc-timeout"], "30S");
    }

    #[test]
    fn a_header_that_cannot_be_named_is_an_error() {
        let header = DeadlineHeader::Custom { name: String::from("time left"), unit: DeadlineUnit::Seconds };
        assert!(NextHop::new().deadline(header, Duration::ZERO).is_err());
    }
}
