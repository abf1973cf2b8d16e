//! A reqwest client that finds out how many requests at once a server takes.
//!
//! `cargo run --example reqwest`

use std::{error::Error, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use goodput::{
    Gate,
    algorithms::{Aimd, AimdSettings},
    middleware::GateMiddleware,
};
use reqwest::Client;
use reqwest_middleware::ClientBuilder;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet, time::sleep};

/// The server takes this many at once and answers 429 to the rest. The client does not know it.
static SLOTS: Semaphore = Semaphore::const_new(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().route("/", get(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let settings = AimdSettings { initial: 1, min: 1, backoff_ratio: 0.5, ..AimdSettings::default() };
    let gate = Gate::builder(Box::new(Aimd::new(settings)?)).name("upstream").max_waiting(1_000).build();
    let client = ClientBuilder::new(Client::new()).with(GateMiddleware::new(gate.clone())).build();

    let mut requests = JoinSet::new();
    for _ in 0..1_000 {
        let request = client.get(&address);
        // Waits its turn at the gate.
        requests.spawn(async move { Ok::<_, reqwest_middleware::Error>(request.send().await?.status()) });
    }
    let (mut served, mut refused_there) = (0, 0);
    while let Some(status) = requests.join_next().await {
        if status?? == StatusCode::OK {
            served += 1;
        } else {
            refused_there += 1;
        }
        if (served + refused_there) % 200 == 0 {
            println!("limit {:>2}: {served} served, {refused_there} refused by the server", gate.limit());
        }
    }
    println!("in flight {}", gate.in_flight());
    Ok(())
}

async fn answer() -> Result<&'static str, StatusCode> {
    let _slot = SLOTS.try_acquire().map_err(|_| StatusCode::TOO_MANY_REQUESTS)?;
    sleep(Duration::from_millis(5)).await;
    Ok("done")
}
