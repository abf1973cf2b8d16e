//! A guarded service driven far past capacity on virtual time, against what theory allows.

use std::{convert::Infallible, sync::Arc, time::Duration};

use goodput::{
    Clock, Gate,
    algorithms::{Aimd, AimdSettings, Fixed, FixedSettings, Instant, Limiter},
    middleware::GateLayer,
};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};
use tower::{Service, ServiceBuilder, service_fn};

/// tokio's clock, which stands still unless everybody sleeps.
#[derive(Clone, Debug)]
struct VirtualClock(tokio::time::Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
}

const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(20);

/// The greatest limit there was, and the latencies of the admitted, at three times the capacity for ten seconds.
async fn overload(limiter: Box<dyn Limiter>) -> (usize, Vec<Duration>) {
    let greatest = Arc::new(std::sync::Mutex::new(limiter.limit()));
    let seen = Arc::clone(&greatest);
    let gate = Gate::builder(limiter)
        .clock(VirtualClock(tokio::time::Instant::now()))
        .on_decision(move |decision| {
            let mut greatest = seen.lock().unwrap();
            *greatest = decision.decision.limit.max(*greatest);
        })
        .build();
    let workers = Arc::new(Semaphore::new(WORKERS as usize));
    let work = service_fn(move |()| {
        let workers = Arc::clone(&workers);
        async move {
            let _worker = workers.acquire().await.unwrap();
            sleep(SERVICE).await;
            Ok::<_, Infallible>(())
        }
    });
    let service = ServiceBuilder::new().layer(GateLayer::new(gate.clone())).service(work);
    let mut answers = JoinSet::new();
    for millisecond in 0..10_000_u32 {
        sleep(Duration::from_millis(1)).await;
        // 1,000 a second, and 200 more.
        for _ in 0..=u32::from(millisecond.is_multiple_of(5)) {
            let mut service = service.clone();
            answers.spawn(async move {
                let asked = tokio::time::Instant::now();
                service.call(()).await.is_ok().then(|| asked.elapsed())
            });
        }
    }
    let admitted = answers.join_all().await.into_iter().flatten().collect();
    assert_eq!(gate.in_flight(), 0);
    assert!(gate.snapshot().refused.total() > 5_000);
    let greatest = *greatest.lock().unwrap();
    (greatest, admitted)
}

/// Of those that a request finds before it, all but seven must have ended before it begins.
fn assert_allowed(limit: usize, admitted: &[Duration]) {
    let allowed = SERVICE * (limit as u32 - 1) / WORKERS + SERVICE;
    let slowest = *admitted.iter().max().unwrap();
    assert!(slowest <= allowed, "{slowest:?}, {allowed:?} allowed at a limit of {limit}");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_admitted_is_answered_within_the_limit_over_the_capacity_and_the_service() {
    for limit in [4, 8, 30, 100] {
        let fixed = Box::new(Fixed::new(FixedSettings { limit }).unwrap());
        let (_, admitted) = overload(fixed).await;
        assert_allowed(limit, &admitted);
        // And the places are used: as many at once as there are workers, or as the limit lets in.
        let at_work = limit.min(WORKERS as usize);
        assert!(admitted.len() >= 10_000 / 20 * at_work * 9 / 10, "{} at a limit of {limit}", admitted.len());
    }
}

#[tokio::test(start_paused = true)]
async fn so_it_is_at_a_limit_that_moves_by_the_greatest_that_it_was() {
    let settings =
        AimdSettings { initial: 20, min: 1, max: 200, timeout: SERVICE * 3, ..AimdSettings::default() };
    let (greatest, admitted) = overload(Box::new(Aimd::new(settings).unwrap())).await;
    assert!(greatest > 20);
    assert_allowed(greatest, &admitted);
}
