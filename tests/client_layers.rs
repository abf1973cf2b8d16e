//! What a client is made of: tower's retry layer, a throttle, and a gate, on virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use goodput::{
    Gate, Outcome, RefusalReason,
    algorithms::{Fixed, FixedSettings, Instant},
    client::{Failure, PaymentSettings, PushBack, RetryBudgetSettings, RetrySettings, ThrottleSettings},
    middleware::{
        GateError, GateLayer, Http, ThrottleLayer,
        http::{REFUSAL_HEADER, RetryByStatus},
        retry::{Judge, RetryPolicy},
    },
    refusal::RetryWatchSettings,
};
use http::{Request, Response};
use http_body_util::Empty;
use tokio::time::{advance, sleep};
use tower::{Service, ServiceBuilder, ServiceExt, retry::RetryLayer, service_fn};

type Answer = Result<u32, GateError<GateError<&'static str>>>;

fn any_error<Req>(_: &Req, answer: &Answer) -> Option<Failure> {
    answer.is_err().then_some(Failure::PLAIN)
}

fn gate() -> Gate {
    Gate::new(Fixed::new(FixedSettings { limit: 5 }).unwrap())
}

/// Retries that cost what they earn, and nothing else.
fn a_tenth() -> RetrySettings {
    let payment = RetryBudgetSettings { one_every: None, initial: 0, ..RetryBudgetSettings::default() };
    RetrySettings { payment: PaymentSettings::Share(payment), ..RetrySettings::default() }
}

fn free() -> RetrySettings {
    RetrySettings { payment: PaymentSettings::Free, ..RetrySettings::default() }
}

/// The counter of attempts, and a service that fails each but every third.
fn every_third(
    attempts: &Arc<AtomicU32>,
) -> impl Service<(), Response = u32, Error = &'static str, Future: Send> + Clone + use<> {
    let attempts = Arc::clone(attempts);
    service_fn(move |()| {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            sleep(Duration::from_millis(10)).await;
            if attempt.is_multiple_of(3) { Ok(attempt) } else { Err("not yet") }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn attempts_have_a_token_each_and_waits_have_none() {
    let (gate, attempts) = (gate(), Arc::new(AtomicU32::new(0)));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::new(free(), any_error).unwrap()))
        .layer(ThrottleLayer::new(ThrottleSettings::default()).unwrap())
        .layer(GateLayer::new(gate.clone()))
        .service(every_third(&attempts));
    let asking = tokio::spawn(client.oneshot(()));
    let mut seen_at_work = 0;
    while !asking.is_finished() {
        seen_at_work += gate.in_flight();
        advance(Duration::from_millis(1)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(asking.await.unwrap().unwrap(), 3);
    let snapshot = gate.snapshot();
    assert_eq!(
        (snapshot.admitted, snapshot.totals.failures.count, snapshot.totals.successes.count),
        (3, 2, 1)
    );
    // Three attempts of ten milliseconds, and nothing in the waits of up to 300.
    assert!((27..=36).contains(&seen_at_work), "{seen_at_work}");
    assert_eq!(gate.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_clones_of_a_policy_retry_out_of_one_budget() {
    let attempts = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&attempts);
    let broken = service_fn(move |()| {
        seen.fetch_add(1, Ordering::Relaxed);
        async { Err::<u32, _>(GateError::Service(GateError::Service("broken"))) }
    });
    let policy = RetryPolicy::new(a_tenth(), any_error).unwrap();
    let client = ServiceBuilder::new().layer(RetryLayer::new(policy.clone())).service(broken);
    for _ in 0..1_000 {
        client.clone().oneshot(()).await.unwrap_err();
    }
    assert_eq!(attempts.swap(0, Ordering::Relaxed), 1_100);
    policy.reconfigure(RetrySettings { max_attempts: 1, ..a_tenth() }).unwrap();
    for _ in 0..1_000 {
        client.clone().oneshot(()).await.unwrap_err();
    }
    assert_eq!(attempts.load(Ordering::Relaxed), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_taken_at_its_word_and_a_deadline_as_the_end() {
    struct Told(PushBack, Option<Instant>);
    impl Judge<(), u32, &'static str> for Told {
        fn failure(&self, (): &(), answer: &Result<u32, &'static str>) -> Option<Failure> {
            answer.is_err().then(|| Failure::pushed_back(self.0))
        }
        fn deadline(&self, (): &()) -> Option<Instant> {
            self.1
        }
    }
    impl Clone for Told {
        fn clone(&self) -> Self {
            Self(self.0, self.1)
        }
    }
    let hour = PushBack::After(Duration::from_secs(3_600));
    for (push_back, deadline, attempts, least) in [
        (hour, None, 3, Duration::from_secs(7_200)),
        (PushBack::Never, None, 1, Duration::ZERO),
        // The policy's clock is the system's: an hour from now is after this.
        (hour, Some(Instant::ZERO), 1, Duration::ZERO),
    ] {
        let counter = Arc::new(AtomicU32::new(0));
        let policy = RetryPolicy::new(free(), Told(push_back, deadline)).unwrap();
        let client = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(every_third(&counter));
        let begun = tokio::time::Instant::now();
        assert_eq!(client.oneshot(()).await.is_ok(), attempts == 3);
        assert_eq!(counter.load(Ordering::Relaxed), attempts);
        assert!(begun.elapsed() >= least);
    }
}

#[tokio::test]
async fn while_a_server_refuses_most_of_what_comes_most_is_not_sent_and_some_always_is() {
    let sent = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&sent);
    let full = service_fn(move |()| {
        seen.fetch_add(1, Ordering::Relaxed);
        async { Err::<(), _>("full") }
    });
    let classify = |answer: &Result<(), &'static str>| {
        if answer.is_ok() { Outcome::Success } else { Outcome::Overload }
    };
    let layer = ThrottleLayer::new(ThrottleSettings::default()).unwrap().classify(classify);
    let mut client = ServiceBuilder::new().layer(layer).service(full);
    let mut held_back = 0;
    for _ in 0..10_000 {
        match client.ready().await.unwrap().call(()).await.unwrap_err() {
            GateError::Refused(refusal) => {
                assert_eq!(refusal.reason, RefusalReason::Throttled);
                held_back += 1;
            }
            GateError::Service(error) => assert_eq!(error, "full"),
        }
    }
    let sent = sent.load(Ordering::Relaxed);
    assert_eq!(sent + held_back, 10_000);
    // A tenth is sent, by the cap, and a little more at the start: ten standard deviations of that around it.
    assert!((700..=1_400).contains(&sent), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sees_retries_of_all_hosts_refusals_tells_clients_not_to_try_again() {
    let full = gate();
    let _held: Vec<_> = (0..5).map(|_| full.try_acquire_owned(&goodput::Request::DEFAULT).unwrap()).collect();
    let protocol = Http::new().watch_retries(RetryWatchSettings::default()).unwrap();
    let server = ServiceBuilder::new().layer(GateLayer::speaking(protocol, full.clone())).service_fn(
        |_: Request<()>| async { Ok::<_, std::convert::Infallible>(Response::new(Empty::<Bytes>::new())) },
    );
    // All that clients send comes here and is refused; they retry a tenth.
    let policy = RetryPolicy::new(a_tenth(), RetryByStatus).unwrap();
    let client = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(server);
    let mut reasons = Vec::new();
    for _ in 0..1_000 {
        let answer = client.clone().oneshot(Request::new(())).await.unwrap();
        reasons.push(answer.headers()[REFUSAL_HEADER].to_str().unwrap().to_owned());
    }
    // Until a hundred requests have come nobody can tell. Then retries go on only as far as they stay below 5 %.
    assert!(reasons[..90].iter().all(|reason| reason == "limit_reached"));
    assert!(reasons.iter().any(|reason| reason == "overloaded"));
    let attempts = full.snapshot().refused.total();
    assert!((1_020..=1_056).contains(&attempts), "{attempts}");
}

#[tokio::test(start_paused = true)]
async fn what_a_guarded_http_service_refuses_is_tried_again_when_there_may_be_room() {
    let behind = gate();
    let held: Vec<_> =
        (0..5).map(|_| behind.try_acquire_owned(&goodput::Request::DEFAULT).unwrap()).collect();
    let policy = RetryPolicy::new(free(), RetryByStatus).unwrap();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .layer(GateLayer::http(behind.clone()))
        .service_fn(|_: Request<()>| async {
            Ok::<_, std::convert::Infallible>(Response::new(Empty::<Bytes>::new()))
        });
    let asking = tokio::spawn(client.clone().oneshot(Request::new(())));
    tokio::task::yield_now().await;
    drop(held);
    assert_eq!(asking.await.unwrap().unwrap().status(), 200);
    assert_eq!(behind.snapshot().refused.total(), 1);
}
