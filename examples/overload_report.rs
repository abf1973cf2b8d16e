//! An axum server and a tonic server, each driven on loopback at three times what it can do, and what came of it beside
//! what theory allows. One client in ten loses patience and leaves.
//!
//! A gate of limit `L` in front of a service that works first in, first out on `W` requests at once, each taking `s`:
//! whoever is admitted finds at most `L − 1` before it, so its answer is there within `(L − 1) · s / W + s`, the limit
//! over the capacity and the service itself, however many are sent. Without a gate, latency would grow for as long as
//! the overload lasts.
//!
//! `cargo run --release --example overload_report`

#[path = "tonic/echo.rs"]
#[allow(dead_code, reason = "this example needs one of its two methods")]
mod echo;

use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use echo::{Echo, EchoClient, EchoServer};
use goodput::{Gate, algorithms::Algorithm, middleware::GateLayer};
use goodput_examples::{Answer, Phase, Report, Stopwatch, drive, quantile};
use hyper::body::Bytes;
use reqwest::StatusCode;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tonic::{
    Code, Request, Status,
    transport::{Endpoint, Server, server::TcpIncoming},
};

const WORKERS: usize = 8;
const SERVICE: Duration = Duration::from_millis(20);
/// Three times the 400 a second that the service can do.
const OVERLOAD: [Phase; 1] = [Phase { per_second: 1_200, lasting: Duration::from_secs(10) }];
/// One client in so many waits no longer than this.
const IMPATIENT: usize = 10;
const PATIENCE: Duration = Duration::from_millis(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{} requests a second, of which the service can do {:.0}",
        OVERLOAD[0].per_second,
        capacity(SERVICE)
    );
    let (server, address) = Watched::start(|service, gate, stopwatch, bound| async move {
        let app = Router::new()
            .route("/", get(move || async move { service.work().await }))
            .layer(GateLayer::http(gate))
            .layer(stopwatch);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let _ = bound.send(listener.local_addr().expect("an address"));
        axum::serve(listener, app).await.expect("to serve");
    })?;
    let client = reqwest::Client::new();
    let reports = load(|| {
        let asking = client.get(format!("http://{address}/")).send();
        async move {
            match asking.await {
                Ok(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => Answer::Refused,
                Ok(answer) if answer.status().is_success() => Answer::Served,
                _ => Answer::Failed,
            }
        }
    });
    let reports = reports.await;
    drop(client);
    server.report("axum", &reports).await;

    let (server, address) = Watched::start(|service, gate, stopwatch, bound| async move {
        let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let _ = bound.send(incoming.local_addr().expect("an address"));
        let server = Server::builder().layer(stopwatch).layer(GateLayer::http(gate));
        server.serve_with_incoming(EchoServer::new(service), incoming).await.expect("to serve");
    })?;
    let channel = Endpoint::try_from(format!("http://{address}"))?.connect().await?;
    let reports = load(|| {
        let mut client = EchoClient::new(channel.clone());
        async move {
            match client.say(Bytes::from_static(b"hello")).await {
                Ok(_) => Answer::Served,
                Err(status) if status.code() == Code::Unavailable => Answer::Refused,
                Err(_) => Answer::Failed,
            }
        }
    });
    let reports = reports.await;
    drop(channel);
    server.report("tonic", &reports).await;
    Ok(())
}

/// Overloads a server, and collects what its clients saw.
async fn load<F>(ask: impl Fn() -> F) -> Vec<Report>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let (sender, mut reports) = mpsc::unbounded_channel();
    let number = AtomicUsize::new(0);
    let ask = || {
        let is_patient = !number.fetch_add(1, Ordering::Relaxed).is_multiple_of(IMPATIENT);
        let asking = ask();
        async move {
            if is_patient { asking.await } else { timeout(PATIENCE, asking).await.unwrap_or(Answer::Failed) }
        }
    };
    drive(&OVERLOAD, sender, ask).await;
    let mut seen = Vec::new();
    while let Some(report) = reports.recv().await {
        seen.push(report);
    }
    seen
}

/// What is behind the gate: so many at once, first in, first out. What each really took is noted.
#[derive(Clone)]
struct Service {
    workers: Arc<Semaphore>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl Service {
    fn new() -> Self {
        Self { workers: Arc::new(Semaphore::new(WORKERS)), took: Arc::default() }
    }

    async fn work(&self) -> &'static str {
        let _worker = self.workers.acquire().await.expect("never closed");
        let begun = Instant::now();
        sleep(SERVICE).await;
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push(begun.elapsed());
        "done"
    }
}

impl Echo for Service {
    async fn say(&self, _: Request<Bytes>) -> Result<Bytes, Status> {
        Ok(Bytes::from_static(self.work().await.as_bytes()))
    }

    fn repeat(&self, _: Request<Bytes>) -> mpsc::Receiver<Result<Bytes, Status>> {
        mpsc::channel(1).1
    }
}

/// A server on a thread of its own, and what is seen of it.
struct Watched {
    gate: Gate,
    greatest_limit: Arc<AtomicUsize>,
    service: Service,
    stopwatch: Stopwatch,
}

impl Watched {
    fn start<F: Future<Output = ()>>(
        serve: impl FnOnce(Service, Gate, Stopwatch, std::sync::mpsc::Sender<SocketAddr>) -> F + Send + 'static,
    ) -> Result<(Self, SocketAddr), Box<dyn Error>> {
        let limiter = Algorithm::default().build()?;
        let greatest_limit = Arc::new(AtomicUsize::new(limiter.limit()));
        let seen = Arc::clone(&greatest_limit);
        let gate = Gate::builder(limiter)
            .on_decision(move |decision| _ = seen.fetch_max(decision.decision.limit, Ordering::Relaxed))
            .build();
        let server = Self { gate, greatest_limit, service: Service::new(), stopwatch: Stopwatch::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (bound, address) = std::sync::mpsc::channel();
        let (service, gate) = (server.service.clone(), server.gate.clone());
        let stopwatch = server.stopwatch.clone();
        thread::spawn(move || runtime.block_on(serve(service, gate, stopwatch, bound)));
        Ok((server, address.recv()?))
    }

    async fn report(&self, name: &str, reports: &[Report]) {
        // Whoever left is noticed by the server a moment later.
        for _ in 0..100 {
            if self.gate.in_flight() == 0 {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        let count = |answer| reports.iter().filter(|report| report.answer == answer).count();
        let (served, refused) = (count(Answer::Served), count(Answer::Refused));
        let left = count(Answer::Failed);
        let mut outside: Vec<_> = reports
            .iter()
            .filter(|report| report.answer == Answer::Served)
            .map(|report| report.latency)
            .collect();
        outside.sort_unstable();
        let times = self.stopwatch.times();
        let limit = self.greatest_limit.load(Ordering::Relaxed);
        let mut took = self.service.took.lock().unwrap_or_else(PoisonError::into_inner).clone();
        took.sort_unstable();
        // What a request really took at worst, as timers and other processes let it: theory is told no less.
        let service = quantile(&took, 0.99).unwrap_or(SERVICE);
        let allowed = Duration::from_secs_f64((limit - 1) as f64 / capacity(service)) + service;

        println!("\n{name}: {served} served, {refused} refused, {left} left or failed");
        println!("  in flight at the end         {}", self.gate.in_flight());
        println!("  greatest limit               {limit}");
        println!("  service, p99                 {}", milliseconds(Some(service)));
        println!("  admitted, p99 in the server  {}", milliseconds(quantile(&times.admitted, 0.99)));
        println!("  admitted, p99 at the client  {}", milliseconds(quantile(&outside, 0.99)));
        println!("  allowed by theory            {}", milliseconds(Some(allowed)));
        for (name, part) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            println!("  refused, {name} in the server  {}", milliseconds(quantile(&times.refused, part)));
        }
    }
}

/// Requests that the service can do in a second.
fn capacity(service: Duration) -> f64 {
    WORKERS as f64 / service.as_secs_f64()
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or_else(|| String::from("-"), |time| format!("{:8.3} ms", time.as_secs_f64() * 1e3))
}
