//! An axum server behind a gate, and a burst of requests to show it.
//!
//! `cargo run --example axum`

use std::{error::Error, time::Duration};

use axum::{Router, extract::Path, http::Request, routing::get};
use goodput::{
    Criticality, Gate,
    algorithms::{Fixed, FixedSettings},
    middleware::{GateLayer, Http},
};
use tokio::{net::TcpListener, task::JoinSet};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Box::new(Fixed::new(FixedSettings { limit: 4 })?);
    let gate = Gate::builder(limiter).name("api").max_waiting(2).build();

    // What matters least is said by the route; a header or the user would do as well.
    let protocol = Http::new().read(|request: &Request<_>, _| {
        let report = request.uri().path().starts_with("/report");
        goodput::Request::DEFAULT.of(if report { Criticality::Sheddable } else { Criticality::Critical })
    });
    let app = Router::new()
        .route("/report/{name}", get(report))
        .layer(GateLayer::speaking(protocol, gate.clone()))
        // Added after the layer, so not behind it: a probe must not wait for a place.
        .route("/health", get(|| async { "well" }));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });

    let mut burst = JoinSet::new();
    for n in 0..10 {
        burst.spawn(reqwest::get(format!("http://{address}/report/{n}")));
    }
    while let Some(answer) = burst.join_next().await {
        let answer = answer??;
        let why = answer.headers().get("goodput-refusal").map(|reason| format!("{reason:?}"));
        println!("{} {}", answer.status(), why.unwrap_or(answer.text().await?));
    }
    println!("{}", reqwest::get(format!("http://{address}/health")).await?.text().await?);
    println!("limit {}, in flight {}", gate.limit(), gate.in_flight());
    Ok(())
}

async fn report(Path(name): Path<String>) -> String {
    tokio::time::sleep(Duration::from_millis(50)).await;
    format!("report {name}")
}
