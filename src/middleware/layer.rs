use std::fmt;

use goodput_algorithms::Instant;
use tower_layer::Layer;

#[cfg(feature = "http")]
use super::Http;
use super::{GateService, Plain};
use crate::{Clock, Gate, SystemClock};

/// What becomes of a request that finds no room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WhenFull {
    /// It waits as far as the gate's bounds on waiting allow, which may be not at all.
    #[default]
    Wait,
    /// It is refused at once, though others may wait at the same gate.
    Refuse,
}

/// Puts a gate in front of a service. All services made by one layer, and by its clones, share the gate.
///
/// ```
/// use goodput::{Gate, middleware::{GateError, GateLayer}};
/// use goodput::algorithms::{Fixed, FixedSettings};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let gate = Gate::new(Fixed::new(FixedSettings { limit: 1 }).unwrap());
/// let mut service = ServiceBuilder::new()
///     .layer(GateLayer::new(gate))
///     .service_fn(|name: &'static str| async move {
///         tokio::task::yield_now().await;
///         Ok::<_, std::io::Error>(format!("hello {name}"))
///     });
///
/// let first = service.ready().await.unwrap().call("first");
/// let second = service.ready().await.unwrap().call("second");
/// let (first, second) = tokio::join!(first, second);
/// assert_eq!(first.unwrap(), "hello first");
/// assert!(matches!(second, Err(GateError::Refused(_))));
/// # }
/// ```
pub struct GateLayer<P = Plain, C: Clock = SystemClock> {
    pub(super) gate: Gate<C>,
    pub(super) when_full: WhenFull,
    pub(super) protocol: P,
}

impl<C: Clock> GateLayer<Plain, C> {
    /// For any service: refusals are errors.
    #[must_use]
    pub const fn new(gate: Gate<C>) -> Self {
        Self::speaking(Plain::new(), gate)
    }
}

#[cfg(feature = "http")]
impl<C: Clock> GateLayer<Http, C> {
    /// For services that speak HTTP or gRPC: refusals are answers.
    #[must_use]
    pub const fn http(gate: Gate<C>) -> Self {
        Self::speaking(Http::new(), gate)
    }
}

impl<P, C: Clock> GateLayer<P, C> {
    /// For services that speak the given protocol.
    #[must_use]
    pub const fn speaking(protocol: P, gate: Gate<C>) -> Self {
        Self { gate, when_full: WhenFull::Wait, protocol }
    }

    /// The same with another way to treat requests that find no room.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// The gate.
    #[must_use]
    pub const fn gate(&self) -> &Gate<C> {
        &self.gate
    }

    pub(super) fn now(&self) -> Instant {
        self.gate.clock().now()
    }
}

impl<S, P: Clone, C: Clock> Layer<S> for GateLayer<P, C> {
    type Service = GateService<S, P, C>;

    fn layer(&self, inner: S) -> Self::Service {
        GateService::new(inner, self.clone())
    }
}

impl<P: Clone, C: Clock> Clone for GateLayer<P, C> {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone(), when_full: self.when_full, protocol: self.protocol.clone() }
    }
}

impl<P: fmt::Debug, C: Clock> fmt::Debug for GateLayer<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateLayer")
            .field("gate", &self.gate)
            .field("when_full", &self.when_full)
            .field("protocol", &self.protocol)
            .finish()
    }
}
