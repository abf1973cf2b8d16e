//! A server whose operator sees what its gate does: metrics as Prometheus scrapes them, events as lines, and a config
//! file that takes effect when it is written.
//!
//! It overloads itself, then changes its own config file for the worse and for the better, and prints what the
//! operator sees. `dashboards/` at the root of the repository reads these metrics.
//!
//! `cargo run --example telemetry`

use std::{
    error::Error,
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, routing::get};
use goodput::{
    middleware::{GateLayer, Http, http::ByHeaders},
    observe::{self, Reporter},
    reload::{ConfigFile, read},
};
use http::HeaderName;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time::sleep};
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

const CONFIG: &str = r#"
name = "api"

[limiter]
algorithm = "fixed"
limit = 2

[waiting]
max_waiting = 1
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let events = Targets::new().with_target("goodput", tracing_subscriber::filter::LevelFilter::DEBUG);
    tracing_subscriber::registry().with(fmt::layer().without_time()).with(events).init();
    let prometheus = PrometheusBuilder::new().install_recorder()?;
    observe::describe();

    let path = std::env::temp_dir().join(format!("goodput-telemetry-{}.toml", std::process::id()));
    fs::write(&path, CONFIG)?;
    let gate = read(&path)?.builder()?.build();

    // Published as the page is scraped, so that it is never stale.
    let reporter = Arc::new(Mutex::new(Reporter::new(gate.clone())));
    let metrics = move || {
        let (reporter, prometheus) = (reporter.clone(), prometheus.clone());
        async move {
            if let Ok(mut reporter) = reporter.lock() {
                reporter.publish();
            }
            prometheus.render()
        }
    };
    let read_headers =
        ByHeaders::new().criticality(HeaderName::from_static("x-criticality")).bypass("/health");
    let app = Router::new()
        .route("/work", get(work))
        .route("/health", get(|| async { "well" }))
        .layer(GateLayer::speaking(Http::new().read(read_headers), gate.clone()))
        .route("/metrics", get(metrics));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });

    let (told, mut reloads) = mpsc::unbounded_channel();
    let watch = ConfigFile::new(&path, gate).watch(Duration::from_millis(50), move |result| {
        let _ = told.send(result);
    })?;
    tokio::spawn(watch);
    reloads.recv().await;

    let burst = || async move {
        let mut burst = JoinSet::new();
        for n in 0..6 {
            let client = reqwest::Client::new();
            let criticality = if n % 2 == 0 { "critical" } else { "sheddable" };
            let request = client.get(format!("http://{address}/work")).header("x-criticality", criticality);
            burst.spawn(request.send());
        }
        burst.join_all().await;
    };
    burst().await;
    reqwest::get(format!("http://{address}/health")).await?;
    fs::write(&path, CONFIG.replace("limit = 2", "limit = 0"))?;
    reloads.recv().await;
    fs::write(&path, CONFIG.replace("limit = 2", "limit = 8"))?;
    reloads.recv().await;
    burst().await;

    let text = reqwest::get(format!("http://{address}/metrics")).await?.text().await?;
    println!("\n{text}");
    fs::remove_file(&path)?;
    Ok(())
}

async fn work() -> &'static str {
    sleep(Duration::from_millis(50)).await;
    "done"
}
