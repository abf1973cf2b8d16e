use hyper::service::Service;

use super::{Call, GateService, Protocol, ResponseFuture};
use crate::Clock;

/// A gate in front of a service of hyper's own kind, for servers without tower.
impl<Req, S, P, C> Service<Req> for GateService<S, P, C>
where
    S: Service<Req> + Clone,
    P: Protocol<Req, S::Response, S::Error, C> + Clone,
    C: Clock,
{
    type Response = P::Response;
    type Error = P::Error;
    type Future = ResponseFuture<HyperCall<S>, Req, P, C>;

    fn call(&self, request: Req) -> Self::Future {
        ResponseFuture::new(&self.layer, request, || HyperCall(self.inner.clone()))
    }
}

/// A service of hyper's own kind, to be called once its request is admitted.
#[derive(Clone, Debug)]
pub struct HyperCall<S>(S);

impl<S: Service<Req>, Req> Call<Req> for HyperCall<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(self, request: Req) -> S::Future {
        self.0.call(request)
    }
}
