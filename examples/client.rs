//! A client that does not become the overload: retries within a budget, a throttle, and a limit on what is under way,
//! each a layer, against a server that is away for four seconds.
//!
//! A hundred calls a second, up to three attempts each: 300 a second while all fail, if nothing were done. The budget
//! keeps retries to a tenth of the calls, and the throttle sends the less the longer it lasts.
//!
//! `cargo run --release --example client`

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use goodput::{
    Gate, Outcome,
    client::{Failure, PushBack, RetrySettings, ThrottleSettings},
    middleware::{GateError, GateLayer, Plain, ThrottleLayer, http::status_outcome, retry::RetryPolicy},
};
use reqwest::{Client, Response};
use tokio::{
    net::TcpListener,
    time::{Instant, interval, sleep},
};
use tower::{ServiceBuilder, ServiceExt, retry::RetryLayer, service_fn};

const CALLS_PER_SECOND: u32 = 100;
const SECONDS: u32 = 10;
const AWAY: std::ops::Range<Duration> = Duration::from_secs(2)..Duration::from_secs(6);

/// What a call comes to: refused by the throttle, or by our own gate, or as the server and the network have it.
type Answer = Result<Response, GateError<GateError<reqwest::Error>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server { since: Instant::now(), attempts: Arc::default() };
    let url = serve(server.clone()).await?;
    let (client, gate) = (Client::new(), Gate::default());

    let call = service_fn(move |url: String| client.get(url).send());
    // From the outside in: each attempt is held back or sent, admitted and timed by itself.
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::new(RetrySettings::default(), failure)?))
        .layer(ThrottleLayer::new(ThrottleSettings::default())?.classify(throttle_outcome))
        .layer(GateLayer::speaking(Plain::new().classify(outcome), gate.clone()))
        .service(call);

    let served = Arc::new(AtomicU32::new(0));
    let mut ticks = interval(Duration::from_secs(1) / CALLS_PER_SECOND);
    println!("second  attempts at the server  calls served  in flight");
    for second in 0..SECONDS {
        for _ in 0..CALLS_PER_SECOND {
            ticks.tick().await;
            let (calling, served) = (client.clone().oneshot(url.clone()), Arc::clone(&served));
            tokio::spawn(async move {
                let is_served = calling.await.is_ok_and(|answer| answer.status().is_success());
                served.fetch_add(u32::from(is_served), Ordering::Relaxed);
            });
        }
        println!(
            "{second:>6}  {:>22}  {:>12}  {:>9}",
            server.attempts.swap(0, Ordering::Relaxed),
            served.swap(0, Ordering::Relaxed),
            gate.in_flight()
        );
    }
    Ok(())
}

/// What is worth another attempt: a server that refuses, when it says so, and a network that fails.
fn failure(_: &String, answer: &Answer) -> Option<Failure> {
    match answer {
        Ok(answer) if status_outcome(answer.status()) == Outcome::Overload => {
            let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
            Some(Failure { timeout: false, push_back: retry_after.and_then(PushBack::from_retry_after) })
        }
        Err(GateError::Service(GateError::Service(_))) => Some(Failure::PLAIN),
        _ => None,
    }
}

fn outcome(answer: &Result<Response, reqwest::Error>) -> Outcome {
    answer.as_ref().map_or(Outcome::Failure, |answer| status_outcome(answer.status()))
}

fn throttle_outcome(answer: &Result<Response, GateError<reqwest::Error>>) -> Outcome {
    answer.as_ref().map_or(Outcome::Failure, |answer| status_outcome(answer.status()))
}

/// Refuses everything for a while.
#[derive(Clone)]
struct Server {
    since: Instant,
    attempts: Arc<AtomicU32>,
}

async fn serve(server: Server) -> Result<String, Box<dyn Error>> {
    let answer = async |State(server): State<Server>| {
        server.attempts.fetch_add(1, Ordering::Relaxed);
        if AWAY.contains(&server.since.elapsed()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        sleep(Duration::from_millis(10)).await;
        Ok("done")
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().route("/", get(answer)).with_state(server);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}
