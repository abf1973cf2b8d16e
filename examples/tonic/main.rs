//! A tonic server behind a gate, and a client with a gate of its own.
//!
//! `cargo run --example tonic`

mod echo;

use std::{error::Error, time::Duration};

use echo::{Echo, EchoClient, EchoServer};
use goodput::{
    Gate,
    algorithms::{Fixed, FixedSettings},
    middleware::{GateLayer, Http, tonic::ByStatusOrTimeout},
};
use hyper::body::Bytes;
use tokio::{sync::mpsc, task::JoinSet, time::sleep};
use tonic::{
    Request, Status,
    transport::{Endpoint, Server, server::TcpIncoming},
};
use tower::ServiceBuilder;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server_gate = Gate::new(Fixed::new(FixedSettings { limit: 4 })?);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let server = Server::builder().layer(GateLayer::http(server_gate.clone()));
    tokio::spawn(server.serve_with_incoming(EchoServer::new(SlowEcho), incoming));

    // The client limits itself to 8 calls under way; up to 100 wait their turn.
    let limiter = Box::new(Fixed::new(FixedSettings { limit: 8 })?);
    let client_gate = Gate::builder(limiter).max_waiting(100).build();
    let protocol = Http::new().for_client().classify(ByStatusOrTimeout);
    let channel = Endpoint::try_from(format!("http://{address}"))?.connect().await?;
    let channel =
        ServiceBuilder::new().layer(GateLayer::speaking(protocol, client_gate.clone())).service(channel);

    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let mut client = EchoClient::new(channel.clone());
        calls.spawn(async move { client.say(Bytes::from_static(b"hello")).await });
    }
    while let Some(answer) = calls.join_next().await {
        match answer? {
            Ok(message) => println!("{message:?}"),
            Err(status) => println!("{:?}: {}", status.code(), status.message()),
        }
    }
    let mut stream = EchoClient::new(channel).repeat(Bytes::from_static(b"again")).await?;
    println!("in flight while a stream runs: {}", server_gate.in_flight());
    while let Some(message) = stream.message().await? {
        println!("{message:?}");
    }
    println!("in flight: {} there, {} here", server_gate.in_flight(), client_gate.in_flight());
    Ok(())
}

struct SlowEcho;

impl Echo for SlowEcho {
    async fn say(&self, request: Request<Bytes>) -> Result<Bytes, Status> {
        sleep(Duration::from_millis(50)).await;
        Ok(request.into_inner())
    }

    fn repeat(&self, request: Request<Bytes>) -> mpsc::Receiver<Result<Bytes, Status>> {
        let (sender, messages) = mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..3 {
                sleep(Duration::from_millis(10)).await;
                if sender.send(Ok(request.get_ref().clone())).await.is_err() {
                    break;
                }
            }
        });
        messages
    }
}
