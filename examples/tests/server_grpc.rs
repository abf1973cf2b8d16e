//! A tonic server and a tonic client behind gates, on real sockets. One thread runs both, and all waiting is on
//! channels, so every count below is exact.

#[path = "../tonic/echo.rs"]
mod echo;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use echo::{Echo, EchoClient, EchoServer};
use goodput::{
    Gate,
    middleware::{GateLayer, Http, tonic::ByStatusOrTimeout},
};
use hyper::body::Bytes;
use support::{Ended, gate, waiting_gate};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tonic::{
    Code, Request, Status,
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};
use tower::ServiceBuilder;

/// Answers when told to, and says when it begins and when it is gone.
struct Staged {
    begun: mpsc::UnboundedSender<Bytes>,
    gone: mpsc::UnboundedSender<()>,
    go_on: Arc<Semaphore>,
}

struct Stage {
    begun: mpsc::UnboundedReceiver<Bytes>,
    gone: mpsc::UnboundedReceiver<()>,
    go_on: Arc<Semaphore>,
}

struct Presence(mpsc::UnboundedSender<()>);

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Echo for Staged {
    async fn say(&self, request: Request<Bytes>) -> Result<Bytes, Status> {
        let _presence = Presence(self.gone.clone());
        let message = request.into_inner();
        self.begun.send(message.clone()).unwrap();
        self.go_on.acquire().await.unwrap().forget();
        match &message[..] {
            b"panic" => panic!("as the test wants it"),
            b"overload" => Err(Status::resource_exhausted("too much")),
            b"invalid" => Err(Status::invalid_argument("not so")),
            b"broken" => Err(Status::internal("broken")),
            _ => Ok(message),
        }
    }

    fn repeat(&self, request: Request<Bytes>) -> mpsc::Receiver<Result<Bytes, Status>> {
        let (sender, messages) = mpsc::channel(1);
        let (presence, go_on) = (Presence(self.gone.clone()), Arc::clone(&self.go_on));
        tokio::spawn(async move {
            let _presence = presence;
            let message = request.into_inner();
            for _ in 0..3 {
                if sender.send(Ok(message.clone())).await.is_err() {
                    return;
                }
                // Told to go on, or nobody listens any more.
                tokio::select! {
                    permit = go_on.acquire() => permit.unwrap().forget(),
                    () = sender.closed() => return,
                }
            }
            if message == "overload" {
                let _ = sender.send(Err(Status::unavailable("too much"))).await;
            }
        });
        messages
    }
}

impl Stage {
    async fn serve(gate: &Gate) -> (Self, Channel) {
        let (begun, begun_seen) = mpsc::unbounded_channel();
        let (gone, gone_seen) = mpsc::unbounded_channel();
        let go_on = Arc::new(Semaphore::new(0));
        let echo = EchoServer::new(Staged { begun, gone, go_on: Arc::clone(&go_on) });
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = Server::builder().layer(GateLayer::http(gate.clone()));
        tokio::spawn(server.serve_with_incoming(echo, incoming));
        let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();
        (Self { begun: begun_seen, gone: gone_seen, go_on }, channel)
    }

    async fn say(&self, channel: &Channel, message: &'static str) -> Result<Bytes, Status> {
        self.go_on.add_permits(1);
        EchoClient::new(channel.clone()).say(Bytes::from_static(message.as_bytes())).await
    }
}

async fn call(channel: Channel) -> Result<Bytes, Status> {
    EchoClient::new(channel).say(Bytes::from_static(b"hello")).await
}

#[tokio::test]
async fn of_sixty_four_calls_the_limit_is_served_and_the_rest_unavailable() {
    let (gate, ledger) = gate(8);
    let (mut stage, channel) = Stage::serve(&gate).await;
    let mut calls: JoinSet<_> = (0..64).map(|_| call(channel.clone())).collect();
    for _ in 0..56 {
        let status = calls.join_next().await.unwrap().unwrap().unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "limit_reached"));
    }
    for _ in 0..8 {
        stage.begun.recv().await.unwrap();
    }
    assert_eq!(gate.in_flight(), 8);
    stage.go_on.add_permits(8);
    while let Some(answer) = calls.join_next().await {
        assert_eq!(answer.unwrap().unwrap(), "hello");
    }
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.read(&gate).refused, 56);
    assert_eq!(ledger.ended(&gate), Ended { success: 8, ..Ended::default() });
}

#[tokio::test]
async fn statuses_in_head_and_trailers_are_outcomes() {
    let (gate, ledger) = gate(1);
    let (stage, channel) = Stage::serve(&gate).await;
    assert_eq!(stage.say(&channel, "hello").await.unwrap(), "hello");
    assert_eq!(stage.say(&channel, "overload").await.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(stage.say(&channel, "invalid").await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(stage.say(&channel, "broken").await.unwrap_err().code(), Code::Internal);
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 2, overload: 1, failure: 1, cancelled: 0 });
}

#[tokio::test]
async fn a_cancelled_call_leaves_its_place() {
    let (gate, ledger) = gate(1);
    let (mut stage, channel) = Stage::serve(&gate).await;
    let calling = tokio::spawn(call(channel));
    stage.begun.recv().await.unwrap();
    assert_eq!(gate.in_flight(), 1);
    calling.abort();
    stage.gone.recv().await.unwrap();
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 1, ..Ended::default() });
}

#[tokio::test]
async fn a_panicking_handler_leaves_its_place() {
    let (gate, ledger) = gate(1);
    let (stage, channel) = Stage::serve(&gate).await;
    for _ in 0..3 {
        stage.say(&channel, "panic").await.unwrap_err();
        assert_eq!(gate.in_flight(), 0);
    }
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 3, ..Ended::default() });
    assert_eq!(stage.say(&channel, "hello").await.unwrap(), "hello");
}

#[tokio::test]
async fn a_stream_holds_its_place_to_its_end_or_until_its_reader_goes() {
    let (gate, ledger) = gate(1);
    let (mut stage, channel) = Stage::serve(&gate).await;
    let mut client = EchoClient::new(channel.clone());

    let mut stream = client.repeat(Bytes::from_static(b"hello")).await.unwrap();
    assert_eq!(stream.message().await.unwrap().unwrap(), "hello");
    assert_eq!(gate.in_flight(), 1);
    assert_eq!(call(channel).await.unwrap_err().code(), Code::Unavailable);
    stage.go_on.add_permits(3);
    while stream.message().await.unwrap().is_some() {}
    assert_eq!(gate.in_flight(), 0);
    stage.gone.recv().await.unwrap();

    let mut stream = client.repeat(Bytes::from_static(b"overload")).await.unwrap();
    stage.go_on.add_permits(3);
    while let Ok(Some(_)) = stream.message().await {}
    assert_eq!(gate.in_flight(), 0);
    stage.gone.recv().await.unwrap();

    let mut stream = client.repeat(Bytes::from_static(b"hello")).await.unwrap();
    stream.message().await.unwrap().unwrap();
    drop(stream);
    stage.gone.recv().await.unwrap();
    while gate.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ledger.ended(&gate), Ended { success: 1, overload: 1, failure: 0, cancelled: 1 });
}

#[tokio::test]
async fn a_channel_limits_itself() {
    let (server_gate, _) = gate(100);
    let (mut stage, channel) = Stage::serve(&server_gate).await;
    let (gate, ledger) = waiting_gate(3, 2);
    let protocol = Http::new().for_client().classify(ByStatusOrTimeout);
    let channel = ServiceBuilder::new().layer(GateLayer::speaking(protocol, gate.clone())).service(channel);
    let mut calls: JoinSet<_> = (0..10)
        .map(|_| {
            let mut client = EchoClient::new(channel.clone());
            async move { client.say(Bytes::from_static(b"hello")).await }
        })
        .collect();
    for _ in 0..5 {
        assert_eq!(calls.join_next().await.unwrap().unwrap().unwrap_err().message(), "queue_full");
    }
    for _ in 0..3 {
        stage.begun.recv().await.unwrap();
    }
    assert_eq!((gate.in_flight(), gate.waiting(), server_gate.in_flight()), (3, 2, 3));
    stage.go_on.add_permits(5);
    while let Some(answer) = calls.join_next().await {
        answer.unwrap().unwrap();
    }
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    assert_eq!(ledger.ended(&gate), Ended { success: 5, ..Ended::default() });
}

#[tokio::test(start_paused = true)]
async fn a_channels_timeout_is_an_overload() {
    let (server_gate, _) = gate(100);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let (begun, mut begun_seen) = mpsc::unbounded_channel();
    let (gone, _gone_seen) = mpsc::unbounded_channel();
    let echo = EchoServer::new(Staged { begun, gone, go_on: Arc::new(Semaphore::new(0)) });
    let server = Server::builder().layer(GateLayer::http(server_gate.clone()));
    tokio::spawn(server.serve_with_incoming(echo, incoming));

    let (gate, ledger) = gate(1);
    let protocol = Http::new().for_client().classify(ByStatusOrTimeout);
    let channel = Endpoint::try_from(format!("http://{address}"))
        .unwrap()
        .timeout(std::time::Duration::from_secs(5))
        .connect()
        .await
        .unwrap();
    let channel = ServiceBuilder::new().layer(GateLayer::speaking(protocol, gate.clone())).service(channel);
    let mut client = EchoClient::new(channel);
    let call = tokio::spawn(async move { client.say(Bytes::from_static(b"hello")).await });
    begun_seen.recv().await.unwrap();
    call.await.unwrap().unwrap_err();
    assert_eq!(ledger.ended(&gate), Ended { overload: 1, ..Ended::default() });
}
