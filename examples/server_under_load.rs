//! An axum server behind a gate, driven on loopback through a step overload.
//!
//! The service can do 400 requests a second: 8 at once, 20 ms each. It is sent 200 a second, then 1200, then 200
//! again. The gate is told none of that. Watch the limit move, the latency of the served stay within a few service
//! times, and the refused hear of it fast.
//!
//! `cargo run --release --example server_under_load`

use std::{error::Error, time::Duration};

use axum::{Router, routing::get};
use goodput::{Gate, middleware::GateLayer};
use goodput_examples::{Answer, Phase, Report};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    time::{Instant, interval_at, sleep},
};

const PHASES: [Phase; 3] = [
    Phase { per_second: 200, lasting: Duration::from_secs(3) },
    Phase { per_second: 1_200, lasting: Duration::from_secs(5) },
    Phase { per_second: 200, lasting: Duration::from_secs(3) },
];
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// What the service can do: 8 at once. More than that queue here, inside, where no gate sees them.
static WORKERS: Semaphore = Semaphore::const_new(8);
const SERVICE_TIME: Duration = Duration::from_millis(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::default();
    let app = Router::new().route("/", get(work)).layer(GateLayer::http(gate.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });

    let (sender, mut reports) = mpsc::unbounded_channel();
    let load = tokio::spawn(goodput_examples::run(url, &PHASES, sender));

    println!("   sent/s  limit  in flight  served/s  p50 ms  p99 ms  refused/s  p50 ms  p99 ms  failed");
    let mut ticks = interval_at(Instant::now() + REPORT_EVERY, REPORT_EVERY);
    let (mut elapsed, mut lines) = (Duration::ZERO, Vec::new());
    loop {
        tokio::select! {
            report = reports.recv() => match report {
                Some(report) => lines.push(report),
                None => break,
            },
            _ = ticks.tick() => {
                print_line(offered(elapsed), &gate, &lines);
                lines.clear();
                elapsed += REPORT_EVERY;
            }
        }
    }
    load.await?;
    println!("in flight at the end: {}", gate.in_flight());
    for last in gate.snapshot().decisions.iter().rev().take(3) {
        println!("at {:.2} s {}", last.at.nanos() as f64 / 1e9, last.decision);
    }
    Ok(())
}

async fn work() -> &'static str {
    let _worker = WORKERS.acquire().await.expect("never closed");
    sleep(SERVICE_TIME).await;
    "done"
}

fn offered(elapsed: Duration) -> u32 {
    let mut end = Duration::ZERO;
    PHASES
        .iter()
        .find(|phase| {
            end += phase.lasting;
            elapsed < end
        })
        .map_or(0, |phase| phase.per_second)
}

fn print_line(sent: u32, gate: &Gate, reports: &[Report]) {
    let latencies = |answer| {
        let mut sorted: Vec<Duration> =
            reports.iter().filter(|report| report.answer == answer).map(|report| report.latency).collect();
        sorted.sort_unstable();
        sorted
    };
    let (served, refused) = (latencies(Answer::Served), latencies(Answer::Refused));
    let per_second = |count: usize| count as f64 / REPORT_EVERY.as_secs_f64();
    println!(
        "{sent:>9}  {:>5}  {:>9}  {:>8}  {:>6}  {:>6}  {:>9}  {:>6}  {:>6}  {:>6}",
        gate.limit(),
        gate.in_flight(),
        per_second(served.len()),
        milliseconds(&served, 0.5),
        milliseconds(&served, 0.99),
        per_second(refused.len()),
        milliseconds(&refused, 0.5),
        milliseconds(&refused, 0.99),
        latencies(Answer::Failed).len(),
    );
}

/// The quantile of sorted latencies, in milliseconds, or a dash.
fn milliseconds(sorted: &[Duration], quantile: f64) -> String {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .map_or_else(|| String::from("-"), |latency| format!("{:.1}", latency.as_secs_f64() * 1e3))
}
