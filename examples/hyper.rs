//! A hyper server behind a gate, without tower, and a burst of requests to show it.
//!
//! `cargo run --example hyper`

use std::{convert::Infallible, error::Error, time::Duration};

use goodput::{
    Gate,
    algorithms::{Fixed, FixedSettings},
    middleware::{GateLayer, GateService},
};
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(Fixed::new(FixedSettings { limit: 4 })?);
    // One service per connection, one gate for all.
    let layer = GateLayer::http(gate.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;

    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = GateService::new(service_fn(handle), layer.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });

    let mut burst = JoinSet::new();
    for _ in 0..10 {
        burst.spawn(reqwest::get(format!("http://{address}/")));
    }
    while let Some(answer) = burst.join_next().await {
        let answer = answer??;
        println!("{} {}", answer.status(), answer.text().await?);
    }
    println!("limit {}, in flight {}", gate.limit(), gate.in_flight());
    Ok(())
}

async fn handle(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(Response::new(Full::from("done")))
}
