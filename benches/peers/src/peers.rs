//! The peers, each the cheapest way its documentation offers, all with a limit that nobody reaches, and AIMD where
//! there is a choice: the cheapest of every crate's algorithms.

use std::{
    convert::Infallible,
    future::{Ready, poll_fn, ready},
    hint::black_box,
    task::{Context, Poll},
    time::Duration,
};

use congestion_limiter::{limiter, limits};
use throttle_net::AdaptiveLimiter;
use tokio::sync::Semaphore;
use tower::{Layer, Service, limit::ConcurrencyLimit};

use crate::contender::{Contender, Kind};

/// More than there are threads.
pub(crate) const LIMIT: usize = 1_000;

/// A request admitted, served at once, and released as a success.
pub(crate) fn visits() -> Vec<Contender> {
    vec![
        throttle_net(),
        congestion_limiter(),
        tower_acc(),
        tower_resilience(),
        little_loadshedder(),
        semaphore(),
        semaphore_awaited(),
        concurrency_limit(),
    ]
}

/// A request refused because the limit is reached, by those that can refuse without a task that waits.
pub(crate) fn refusals() -> Vec<Contender> {
    let semaphore = Semaphore::new(0);
    let adaptive = AdaptiveLimiter::builder().initial(1).ceiling(1).build(throttle_net::Aimd::default());
    // Nobody gives this place back.
    std::mem::forget(adaptive.try_acquire());
    vec![
        Contender::new("throttle-net: `AdaptiveLimiter::try_acquire`", Kind::Adaptive, move |slice| {
            slice.repeat(|| adaptive.try_acquire().is_none())
        }),
        Contender::new("tokio: `Semaphore::try_acquire`", Kind::Fixed, move |slice| {
            slice.repeat(|| semaphore.try_acquire().is_err())
        }),
    ]
}

fn throttle_net() -> Contender {
    let limit = LIMIT as u32;
    let limiter =
        AdaptiveLimiter::builder().initial(limit).ceiling(limit).build(throttle_net::Aimd::default());
    Contender::new("throttle-net: `AdaptiveLimiter`, AIMD", Kind::Adaptive, move |slice| {
        slice.repeat(|| limiter.try_acquire().map(|permit| permit.success()).is_some())
    })
}

fn congestion_limiter() -> Contender {
    use limiter::Limiter as _;

    let limiter = limiter::DefaultLimiter::new(limits::Aimd::new_with_initial_limit(LIMIT));
    Contender::new("congestion-limiter: `DefaultLimiter`, AIMD", Kind::Adaptive, move |slice| {
        slice.repeat_async(async || {
            let token = limiter.try_acquire().await.expect("nobody reaches the limit");
            limiter.release(token, Some(limiter::Outcome::Success)).await
        })
    })
}

fn tower_acc() -> Contender {
    let aimd = tower_acc::Aimd::builder().initial_limit(LIMIT).max_limit(LIMIT).build();
    layered(
        "tower-acc: `ConcurrencyLimit`, AIMD",
        Kind::Adaptive,
        tower_acc::ConcurrencyLimit::new(Instantly, aimd),
    )
}

fn tower_resilience() -> Contender {
    let aimd = tower_resilience_adaptive::Aimd::builder()
        .initial_limit(LIMIT)
        .max_limit(LIMIT)
        .latency_threshold(Duration::from_secs(1))
        .build()
        .expect("settings hold");
    let layer = tower_resilience_adaptive::AdaptiveLimiterLayer::new(aimd);
    layered("tower-resilience-adaptive: AIMD", Kind::Adaptive, layer.layer(Instantly))
}

/// It starts at 1, and refuses or queues what comes beyond that.
fn little_loadshedder() -> Contender {
    let service = little_loadshedder::LoadShed::new(Instantly, 0.01, Duration::from_secs(1));
    layered("little-loadshedder: `LoadShed`", Kind::Adaptive, service)
}

fn semaphore() -> Contender {
    let semaphore = Semaphore::new(LIMIT);
    Contender::new("tokio: `Semaphore::try_acquire`", Kind::Fixed, move |slice| {
        slice.repeat(|| drop(black_box(semaphore.try_acquire().expect("nobody reaches the limit"))))
    })
}

fn semaphore_awaited() -> Contender {
    let semaphore = Semaphore::new(LIMIT);
    Contender::new("tokio: `Semaphore::acquire().await`", Kind::Fixed, move |slice| {
        slice.repeat_async(async || drop(black_box(semaphore.acquire().await.expect("never closed"))))
    })
}

fn concurrency_limit() -> Contender {
    layered("tower: `ConcurrencyLimit`", Kind::Fixed, ConcurrencyLimit::new(Instantly, LIMIT))
}

/// A service behind a limiter, of which every thread has a clone.
fn layered<S>(name: &str, kind: Kind, service: S) -> Contender
where
    S: Service<()> + Clone + Sync + 'static,
{
    Contender::new(name, kind, move |slice| {
        let mut service = service.clone();
        slice.repeat_async(async || serve(&mut service).await.is_ok())
    })
}

/// One request, as a server would send it.
pub(crate) async fn serve<S: Service<()>>(service: &mut S) -> Result<S::Response, S::Error> {
    poll_fn(|context| service.poll_ready(context)).await?;
    service.call(()).await
}

/// A service that answers at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instantly;

impl Service<()> for Instantly {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        ready(Ok(()))
    }
}
