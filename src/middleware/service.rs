use std::{
    fmt, mem,
    task::{Context, Poll},
};

use tower_service::Service;

use super::{Call, GateLayer, Plain, Protocol, ResponseFuture};
use crate::{Clock, SystemClock};

/// A service with a gate in front. Made by [`GateLayer`].
pub struct GateService<S, P = Plain, C: Clock = SystemClock> {
    pub(super) inner: S,
    pub(super) layer: GateLayer<P, C>,
}

impl<S, P, C: Clock> GateService<S, P, C> {
    /// Guards `inner` as `layer` says.
    #[must_use]
    pub const fn new(inner: S, layer: GateLayer<P, C>) -> Self {
        Self { inner, layer }
    }

    /// The service behind the gate.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// The service behind the gate.
    pub const fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service behind the gate.
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<Req, S, P, C> Service<Req> for GateService<S, P, C>
where
    S: Service<Req> + Clone,
    P: Protocol<Req, S::Response, S::Error, C> + Clone,
    C: Clock,
{
    type Response = P::Response;
    type Error = P::Error;
    type Future = ResponseFuture<TowerCall<S>, Req, P, C>;

    /// Passes the inner service's readiness on. The gate is not asked: to be ready is not to be admitted.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(|error| self.layer.protocol.broken(error))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ResponseFuture::new(&self.layer, request, || {
            // The one that was made ready is the one to call; a clone takes its place.
            let clone = self.inner.clone();
            TowerCall(mem::replace(&mut self.inner, clone))
        })
    }
}

impl<S: Clone, P: Clone, C: Clock> Clone for GateService<S, P, C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S: fmt::Debug, P: fmt::Debug, C: Clock> fmt::Debug for GateService<S, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateService").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

/// A tower service that is ready, to be called once its request is admitted.
#[derive(Clone, Debug)]
pub struct TowerCall<S>(S);

impl<S: Service<Req>, Req> Call<Req> for TowerCall<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(mut self, request: Req) -> S::Future {
        self.0.call(request)
    }
}
