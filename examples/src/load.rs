//! An open-loop load generator: requests leave at the instants of a fixed schedule, however slowly answers come, and
//! latency counts from the scheduled instant. A generator that waits for answers before it goes on would send the
//! less the slower the server is, and would not see what its users see ("coordinated omission").

use std::{future::Future, time::Duration};

use reqwest::{Client, StatusCode};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// So many requests a second, for so long.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// How many, evenly spaced.
    pub per_second: u32,
    /// For how long.
    pub lasting: Duration,
}

/// How one request ended.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// What came back.
    pub answer: Answer,
    /// From the instant at which it was due to leave.
    pub latency: Duration,
}

/// What came back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// A success with its whole body.
    Served,
    /// 503.
    Refused,
    /// Anything else, or nothing.
    Failed,
}

/// Sends requests to `url` as the phases say, and reports on each. Ends when the last has left.
pub async fn run(url: String, phases: &[Phase], reports: mpsc::UnboundedSender<Report>) {
    let client = Client::new();
    drive(phases, reports, || get(client.clone(), url.clone())).await;
}

/// Has requests asked as the phases say, and reports on each. Ends when the last has left.
pub async fn drive<F>(phases: &[Phase], reports: mpsc::UnboundedSender<Report>, ask: impl Fn() -> F)
where
    F: Future<Output = Answer> + Send + 'static,
{
    let start = Instant::now();
    for due in schedule(phases) {
        sleep_until(start + due).await;
        let (asking, reports) = (ask(), reports.clone());
        tokio::spawn(async move {
            let answer = asking.await;
            let _ = reports.send(Report { answer, latency: start.elapsed() - due });
        });
    }
}

async fn get(client: Client, url: String) -> Answer {
    match client.get(url).send().await {
        Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => Answer::Refused,
        Ok(response) if response.status().is_success() => match response.bytes().await {
            Ok(_) => Answer::Served,
            Err(_) => Answer::Failed,
        },
        _ => Answer::Failed,
    }
}

/// When each request is due to leave, from the start.
fn schedule(phases: &[Phase]) -> impl Iterator<Item = Duration> + '_ {
    let mut begin = Duration::ZERO;
    phases.iter().flat_map(move |phase| {
        let phase_begin = begin;
        begin += phase.lasting;
        let gap = Duration::from_secs(1) / phase.per_second;
        let count = (phase.lasting.as_secs_f64() * f64::from(phase.per_second)) as u32;
        (0..count).map(move |n| phase_begin + gap * n)
    })
}
