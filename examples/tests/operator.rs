//! What operators and other services meet on real sockets: metrics, health checks, deadlines, gates in line. All waiting
//! is on channels, so every count is exact.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::HeaderMap, routing::get};
use goodput::{
    Criticality, Gate, Outcome, Request,
    algorithms::{Aimd, AimdSettings},
    deadline::DeadlineHeader,
    middleware::{
        GateLayer, GateMiddleware, Http,
        http::{ByHeaders, NextHop},
    },
    observe::{self, METRICS, MetricKind, Reporter},
    reload::ConfigFile,
};
use http::HeaderName;
use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use support::{Ended, gate};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

const DEADLINE: DeadlineHeader = DeadlineHeader::XEnvoyExpectedRqTimeoutMs;
const CRITICALITY: HeaderName = HeaderName::from_static("x-criticality");

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

fn by_headers() -> ByHeaders {
    ByHeaders::new().deadline(DEADLINE).criticality(CRITICALITY).bypass("/health")
}

/// A server that works until told to go on.
async fn worker(gate: &Gate, go_on: &Arc<Semaphore>) -> SocketAddr {
    let go_on = Arc::clone(go_on);
    let work = move || async move {
        go_on.acquire().await.unwrap().forget();
        "done"
    };
    let app = Router::new()
        .route("/work", get(work))
        .route("/health", get(|| async { "well" }))
        .layer(GateLayer::speaking(Http::new().read(by_headers()), gate.clone()));
    serve(app).await
}

#[tokio::test]
async fn every_request_driven_past_capacity_is_served_or_refused_and_none_leaks() {
    const SENT: usize = 60;
    const LIMIT: usize = 4;
    let (gate, ledger) = gate(LIMIT);
    let go_on = Arc::new(Semaphore::new(0));
    let address = worker(&gate, &go_on).await;

    let mut answers: JoinSet<_> = (0..SENT)
        .map(|_| async move { reqwest::get(format!("http://{address}/work")).await.unwrap().status() })
        .collect();
    for _ in LIMIT..SENT {
        assert_eq!(answers.join_next().await.unwrap().unwrap(), 503);
    }
    assert_eq!(gate.in_flight(), LIMIT);
    // Nobody has been served yet, and a health check is answered all the same.
    let health = reqwest::get(format!("http://{address}/health")).await.unwrap();
    assert_eq!((health.status(), health.text().await.unwrap().as_str()), (http::StatusCode::OK, "well"));

    go_on.add_permits(LIMIT);
    for _ in 0..LIMIT {
        assert_eq!(answers.join_next().await.unwrap().unwrap(), 200);
    }
    let snapshot = gate.snapshot();
    assert_eq!((snapshot.admitted, snapshot.refused.total(), snapshot.bypassed), (4, 56, 1));
    assert_eq!((gate.in_flight(), snapshot.outside), (0, 0));
    assert_eq!(ledger.ended(&gate), Ended { success: 4, ..Ended::default() });
}

#[tokio::test]
async fn who_has_no_time_left_is_refused_at_the_door_and_told_not_to_try_again() {
    let (gate, _) = gate(1);
    let address = worker(&gate, &Arc::new(Semaphore::new(1))).await;
    let ask = |left: &'static str| {
        reqwest::Client::new().get(format!("http://{address}/work")).header(DEADLINE.name(), left).send()
    };
    let refused = ask("0").await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["goodput-refusal"], "deadline_expired");
    assert_eq!(refused.headers()["x-overloaded"], "do-not-retry");
    assert!(!refused.headers().contains_key("retry-after"));
    assert_eq!(ask("3600000").await.unwrap().status(), 200);
}

/// Calls the service that `x-behind` names, on behalf of each request.
async fn caller(server: &Gate, client: &Gate) -> SocketAddr {
    let next_hop =
        NextHop::new().deadline(DEADLINE, Duration::from_secs(1)).unwrap().criticality(CRITICALITY);
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(GateMiddleware::new(client.clone()).next_hop(next_hop))
        .build();
    let call = |State(client): State<ClientWithMiddleware>, request: axum::extract::Request| async move {
        let asked = *request.extensions().get::<Request>().unwrap();
        let url =
            format!("http://{}{}", request.headers()["x-behind"].to_str().unwrap(), request.uri().path());
        let answer = client.get(url).with_extension(asked).send().await.unwrap();
        let mut headers = HeaderMap::new();
        if let Some(refusal) = answer.headers().get("goodput-refusal") {
            headers.insert("goodput-refusal", refusal.clone());
        }
        (answer.status(), headers, answer.text().await.unwrap())
    };
    let app = Router::new()
        .fallback(get(call))
        .layer(GateLayer::speaking(Http::new().read(by_headers()).share_request(), server.clone()))
        .with_state(client);
    serve(app).await
}

#[tokio::test]
async fn deadline_and_criticality_reach_the_service_behind_reduced_and_unchanged() {
    let heard = |headers: HeaderMap| async move {
        format!("{} {}", headers[DEADLINE.name()].to_str().unwrap(), headers[CRITICALITY].to_str().unwrap())
    };
    let behind = serve(Router::new().route("/", get(heard))).await;
    let ((server, _), (client, _)) = (gate(1), gate(1));
    let address = caller(&server, &client).await;
    let answer = reqwest::Client::new()
        .get(format!("http://{address}/"))
        .header("x-behind", behind.to_string())
        .header(DEADLINE.name(), "3600000")
        .header(CRITICALITY, "sheddable-plus")
        .send()
        .await
        .unwrap();
    let text = answer.text().await.unwrap();
    let (left, criticality) = text.split_once(' ').unwrap();
    // Less the reserve of a second.
    assert!(left.parse::<u64>().unwrap() <= 3_599_000, "{left}");
    assert_eq!(criticality, "sheddable-plus");
}

#[tokio::test]
async fn two_gates_in_line_do_not_count_each_others_refusals() {
    let (inner, _) = gate(1);
    let held = inner.try_acquire().unwrap();
    let behind = worker(&inner, &Arc::new(Semaphore::new(1))).await;
    let ((server, server_ledger), (client, client_ledger)) = (gate(10), gate(10));
    let address = caller(&server, &client).await;
    let ask = || {
        let request = reqwest::Client::new().get(format!("http://{address}/work"));
        request.header("x-behind", behind.to_string()).send()
    };
    for _ in 0..3 {
        let answer = ask().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (503, ""));
    }
    drop(held);
    assert_eq!(ask().await.unwrap().text().await.unwrap(), "done");
    // The outer server learns from what was worked on, its client from what the host can do.
    assert_eq!(server_ledger.ended(&server), Ended { success: 1, cancelled: 3, ..Ended::default() });
    assert_eq!(client_ledger.ended(&client), Ended { success: 1, overload: 3, ..Ended::default() });
}

/// Samples of Prometheus text by name and labels, and types by name.
fn scraped(text: &str) -> (BTreeMap<&str, f64>, BTreeMap<&str, &str>) {
    let (comments, samples): (Vec<_>, Vec<_>) =
        text.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with('#'));
    let samples = samples.iter().map(|line| line.rsplit_once(' ').unwrap());
    let types = comments.iter().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    (samples.map(|(name, value)| (name, value.parse().unwrap())).collect(), types.collect())
}

#[test]
fn prometheus_scrapes_every_metric_of_the_table_with_its_type_and_the_true_count() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let gate = Gate::builder(Box::new(
        Aimd::new(AimdSettings { initial: 2, min: 1, max: 2, ..AimdSettings::default() }).unwrap(),
    ))
    .name("api")
    .build();
    metrics::with_local_recorder(&recorder, || {
        observe::describe();
        let mut reporter = Reporter::new(gate.clone());
        let held = [gate.try_acquire().unwrap(), gate.try_acquire().unwrap()];
        for criticality in [Criticality::Sheddable, Criticality::Sheddable, Criticality::Critical] {
            assert!(gate.try_acquire_for(&Request::DEFAULT.of(criticality)).is_err());
        }
        reporter.publish();
        let [first, second] = held;
        first.release(Outcome::Overload);
        gate.set_observe_only(true);
        gate.try_acquire().unwrap().release(Outcome::Success);
        gate.try_acquire_for(&Request::DEFAULT.bypassing()).unwrap().release(Outcome::Success);
        second.release(Outcome::Success);
        drop(gate.try_acquire().unwrap());
        reporter.publish();
        let path = format!("{}/no-such-file.toml", env!("CARGO_TARGET_TMPDIR"));
        assert!(ConfigFile::new(path, gate.clone()).check_now().is_err());
    });

    let text = recorder.handle().render();
    let (samples, types) = scraped(&text);
    let table: BTreeMap<&str, &str> = METRICS
        .iter()
        .map(|metric| match metric.kind {
            MetricKind::Counter => (metric.name, "counter"),
            MetricKind::Gauge => (metric.name, "gauge"),
        })
        .collect();
    assert_eq!(types, table);
    for metric in METRICS {
        assert!(text.contains(&format!("# HELP {} {}", metric.name, metric.help)), "{}", metric.name);
    }
    for (sample, value) in [
        (r#"goodput_refused_total{gate="api",reason="limit_reached",criticality="sheddable"}"#, 2.0),
        (r#"goodput_refused_total{gate="api",reason="limit_reached",criticality="critical"}"#, 1.0),
        (
            r#"goodput_would_have_refused_total{gate="api",reason="limit_reached",criticality="critical"}"#,
            1.0,
        ),
        (r#"goodput_admitted_total{gate="api"}"#, 3.0),
        (r#"goodput_demand_total{gate="api"}"#, 7.0),
        (r#"goodput_bypassed_total{gate="api"}"#, 1.0),
        (r#"goodput_completed_total{gate="api",outcome="success"}"#, 1.0),
        (r#"goodput_completed_total{gate="api",outcome="overload"}"#, 1.0),
        (r#"goodput_completed_total{gate="api",outcome="cancelled"}"#, 1.0),
        (r#"goodput_limit_moves_total{gate="api",reason="overload"}"#, 1.0),
        (r#"goodput_observe_only{gate="api"}"#, 1.0),
        (r#"goodput_in_flight{gate="api"}"#, 0.0),
        (r#"goodput_config_reloads_total{gate="api",result="refused"}"#, 1.0),
    ] {
        assert_eq!(samples.get(sample), Some(&value), "{sample} in\n{text}");
    }
}
