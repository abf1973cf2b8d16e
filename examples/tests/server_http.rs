//! An axum server and a hyper server behind gates, on real sockets. One thread runs clients and server, and all
//! waiting is on channels, so every count below is exact.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{Request, Response, StatusCode},
    routing::get,
};
use goodput::{
    Gate, Outcome,
    keyed::{KeyedGates, KeyedSettings},
    middleware::{GateLayer, GateMiddleware, GateService},
};
use hyper_util::rt::TokioIo;
use reqwest::Client;
use support::{Ended, Ledger, gate, waiting_gate};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

/// Handlers that say when they begin and when they are gone, and go on when told to.
#[derive(Clone)]
struct Handlers {
    begun: mpsc::UnboundedSender<String>,
    gone: mpsc::UnboundedSender<String>,
    go_on: Arc<Semaphore>,
}

struct Stage {
    begun: mpsc::UnboundedReceiver<String>,
    gone: mpsc::UnboundedReceiver<String>,
    go_on: Arc<Semaphore>,
}

/// Says when it is dropped.
struct Presence {
    name: String,
    gone: mpsc::UnboundedSender<String>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = self.gone.send(self.name.clone());
    }
}

impl Handlers {
    fn new() -> (Self, Stage) {
        let (begun, begun_seen) = mpsc::unbounded_channel();
        let (gone, gone_seen) = mpsc::unbounded_channel();
        let go_on = Arc::new(Semaphore::new(0));
        let stage = Stage { begun: begun_seen, gone: gone_seen, go_on: Arc::clone(&go_on) };
        (Self { begun, gone, go_on }, stage)
    }

    fn enter(&self, name: String) -> Presence {
        self.begun.send(name.clone()).unwrap();
        Presence { name, gone: self.gone.clone() }
    }

    async fn work(Path(name): Path<String>, State(handlers): State<Self>) -> String {
        let presence = handlers.enter(name);
        handlers.go_on.acquire().await.unwrap().forget();
        presence.name.clone()
    }

    async fn fail(Path(status): Path<u16>, State(handlers): State<Self>) -> (StatusCode, &'static str) {
        let _presence = handlers.enter(status.to_string());
        (StatusCode::from_u16(status).unwrap(), "as you wish")
    }

    async fn panic(State(handlers): State<Self>) -> &'static str {
        let _presence = handlers.enter(String::from("panic"));
        panic!("as the test wants it")
    }

    async fn stream(Path(name): Path<String>, State(handlers): State<Self>) -> Body {
        Body::new(Stream { presence: handlers.enter(name), go_on: handlers.go_on, waits: None })
    }

    async fn serve(self, gate: &Gate) -> SocketAddr {
        let app = Router::new()
            .route("/work/{name}", get(Self::work))
            .route("/fail/{status}", get(Self::fail))
            .route("/panic", get(Self::panic))
            .route("/stream/{name}", get(Self::stream))
            .layer(GateLayer::http(gate.clone()))
            .route("/health", get(|| async { "well" }))
            .with_state(self);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }
}

impl Stage {
    fn release(&self, handlers: usize) {
        self.go_on.add_permits(handlers);
    }

    async fn begun(&mut self) -> String {
        self.begun.recv().await.unwrap()
    }

    async fn gone(&mut self) -> String {
        self.gone.recv().await.unwrap()
    }
}

type Wait = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body of three chunks, the first at once, each of the others when told to.
struct Stream {
    presence: Presence,
    go_on: Arc<Semaphore>,
    waits: Option<(u8, Wait)>,
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let sent = match &mut self.waits {
            None => 0,
            Some((3, _)) => return std::task::Poll::Ready(None),
            Some((sent, wait)) => {
                std::task::ready!(wait.as_mut().poll(context));
                *sent
            }
        };
        let go_on = Arc::clone(&self.go_on);
        let wait = Box::pin(async move { go_on.acquire_owned().await.unwrap().forget() });
        self.waits = Some((sent + 1, wait));
        let chunk = Bytes::from(self.presence.name.clone());
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(chunk))))
    }
}

/// Sends a request and keeps the connection open until dropped.
async fn raw_request(address: SocketAddr, path: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

async fn status_and_text(client: Client, url: String) -> (StatusCode, String) {
    let answer = client.get(url).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

async fn many(address: SocketAddr, count: usize) -> JoinSet<(StatusCode, String)> {
    let client = Client::new();
    (0..count).map(|n| status_and_text(client.clone(), format!("http://{address}/work/{n}"))).collect()
}

async fn refused(answers: &mut JoinSet<(StatusCode, String)>, count: usize) {
    for _ in 0..count {
        assert_eq!(answers.join_next().await.unwrap().unwrap().0, 503);
    }
}

async fn served(mut answers: JoinSet<(StatusCode, String)>, count: usize) {
    assert_eq!(answers.len(), count);
    while let Some(answer) = answers.join_next().await {
        assert_eq!(answer.unwrap().0, 200);
    }
}

#[tokio::test]
async fn of_sixty_four_at_once_the_limit_is_served_and_the_rest_refused() {
    let (gate, ledger) = gate(8);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;

    let mut answers = many(address, 64).await;
    refused(&mut answers, 56).await;
    for _ in 0..8 {
        stage.begun().await;
    }
    assert!(stage.begun.try_recv().is_err());
    assert_eq!(gate.in_flight(), 8);
    assert_eq!(reqwest::get(format!("http://{address}/health")).await.unwrap().status(), 200);

    stage.release(8);
    served(answers, 8).await;
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.read(&gate).refused, 56);
    assert_eq!(ledger.ended(&gate), Ended { success: 8, ..Ended::default() });
}

#[tokio::test]
async fn as_many_wait_as_may_and_are_served_in_their_turn() {
    let (gate, ledger) = waiting_gate(8, 16);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;

    let mut answers = many(address, 64).await;
    refused(&mut answers, 40).await;
    assert_eq!((gate.in_flight(), gate.waiting()), (8, 16));
    for _ in 0..24 {
        stage.begun().await;
        stage.release(1);
        stage.gone().await;
        assert!(gate.in_flight() <= 8);
    }
    served(answers, 24).await;
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    assert_eq!(ledger.read(&gate).refused, 40);
    assert_eq!(ledger.ended(&gate), Ended { success: 24, ..Ended::default() });
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_its_place() {
    let (gate, ledger) = gate(2);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;

    let leaving = [raw_request(address, "/work/a").await, raw_request(address, "/work/b").await];
    stage.begun().await;
    stage.begun().await;
    assert_eq!(gate.in_flight(), 2);
    drop(leaving);
    stage.gone().await;
    stage.gone().await;
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 2, ..Ended::default() });
}

#[tokio::test]
async fn clients_that_disconnect_while_they_wait_do_not_swallow_the_place_of_the_next() {
    let (gate, _) = waiting_gate(1, 10);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;

    let mut holding = raw_request(address, "/work/holding").await;
    assert_eq!(stage.begun().await, "holding");
    let impatient =
        [raw_request(address, "/work/impatient").await, raw_request(address, "/work/impatient").await];
    while gate.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    let mut patient = raw_request(address, "/work/patient").await;
    while gate.waiting() < 3 {
        tokio::task::yield_now().await;
    }
    drop(impatient);
    stage.release(1);
    while stage.begun().await != "patient" {}
    stage.release(1);
    for connection in [&mut holding, &mut patient] {
        let mut head = [0; 15];
        connection.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
    }
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[tokio::test]
async fn a_panicking_handler_leaves_its_place() {
    let (gate, ledger) = gate(1);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;
    for _ in 0..3 {
        let mut connection = raw_request(address, "/panic").await;
        assert_eq!(connection.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        assert_eq!(stage.gone().await, "panic");
        assert_eq!(gate.in_flight(), 0);
    }
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 3, ..Ended::default() });
}

#[tokio::test]
async fn a_stream_holds_its_place_to_its_end_or_until_its_reader_goes() {
    let (gate, ledger) = gate(1);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&gate).await;

    let mut answer = reqwest::get(format!("http://{address}/stream/read")).await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "read");
    assert_eq!(gate.in_flight(), 1);
    assert_eq!(reqwest::get(format!("http://{address}/work/x")).await.unwrap().status(), 503);
    stage.release(2);
    assert_eq!(answer.text().await.unwrap(), "readread");
    assert_eq!(stage.gone().await, "read");
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 1, ..Ended::default() });

    let connection = raw_request(address, "/stream/left").await;
    while stage.begun().await != "left" {}
    drop(connection);
    assert_eq!(stage.gone().await, "left");
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 1, cancelled: 1, ..Ended::default() });
}

#[tokio::test]
async fn outcomes_are_seen_through_a_real_server() {
    let (gate, ledger) = gate(1);
    let (handlers, _stage) = Handlers::new();
    let address = handlers.serve(&gate).await;
    let client = Client::new();
    for status in [200, 404, 429, 500, 503, 504] {
        client.get(format!("http://{address}/fail/{status}")).send().await.unwrap().text().await.unwrap();
    }
    client.head(format!("http://{address}/fail/200")).send().await.unwrap();
    client.get(format!("http://{address}/fail/204")).send().await.unwrap();
    assert_eq!(ledger.ended(&gate), Ended { success: 4, overload: 3, failure: 1, cancelled: 0 });
    assert_eq!(gate.in_flight(), 0);
}

#[tokio::test]
async fn a_hyper_service_is_guarded_without_tower() {
    let (gate, ledger) = gate(1);
    let (handlers, mut stage) = Handlers::new();
    let layer = GateLayer::http(gate.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let handlers = handlers.clone();
            let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                let (handlers, path) = (handlers.clone(), request.uri().path().to_owned());
                async move {
                    let presence = handlers.enter(path);
                    handlers.go_on.acquire().await.unwrap().forget();
                    Ok::<_, Infallible>(Response::new(Body::from(presence.name.clone())))
                }
            });
            let service = GateService::new(service, layer.clone());
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });

    let mut answers = many(address, 5).await;
    refused(&mut answers, 4).await;
    stage.release(1);
    served(answers, 1).await;
    assert_eq!(gate.in_flight(), 0);

    let leaving = raw_request(address, "/leaving").await;
    while stage.begun().await != "/leaving" {}
    drop(leaving);
    while stage.gone().await != "/leaving" {}
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 1, cancelled: 1, ..Ended::default() });
}

#[tokio::test]
async fn a_reqwest_client_limits_itself() {
    let (server_gate, server_ledger) = gate(100);
    let (handlers, mut stage) = Handlers::new();
    let address = handlers.serve(&server_gate).await;
    let (gate, ledger): (Gate, Ledger) = waiting_gate(3, 2);
    let client =
        reqwest_middleware::ClientBuilder::new(Client::new()).with(GateMiddleware::new(gate.clone())).build();

    let mut calls: JoinSet<_> = (0..10)
        .map(|n| {
            let call = client.get(format!("http://{address}/work/{n}"));
            async move { call.send().await?.text().await.map_err(reqwest_middleware::Error::from) }
        })
        .collect();
    for _ in 0..5 {
        let error = calls.join_next().await.unwrap().unwrap().unwrap_err();
        let reqwest_middleware::Error::Middleware(error) = error else { panic!("not refused: {error}") };
        assert_eq!(error.downcast_ref::<goodput::Refusal>().unwrap().limit, 3);
    }
    for _ in 0..3 {
        stage.begun().await;
    }
    assert_eq!((gate.in_flight(), gate.waiting(), server_gate.in_flight()), (3, 2, 3));
    stage.release(5);
    while let Some(answer) = calls.join_next().await {
        answer.unwrap().unwrap();
    }
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));

    // Nobody reads these bodies; the status says enough. The address of the answer is not lost.
    for status in [200, 429] {
        let url = format!("http://{address}/fail/{status}");
        let answer = client.get(&url).send().await.unwrap();
        assert_eq!(answer.url().as_str(), url);
        assert_eq!(answer.content_length(), Some(11));
    }
    let nobody_listens = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    client.get(format!("http://{nobody_listens}/")).send().await.unwrap_err();
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 6, overload: 1, failure: 1, cancelled: 0 });
    assert_eq!(server_ledger.ended(&server_gate).success, 6);
}

#[tokio::test]
async fn a_host_that_is_slow_takes_no_places_of_another() {
    let (server_gate, _) = gate(100);
    let ((slow, mut slow_stage), (fast, _fast_stage)) = (Handlers::new(), Handlers::new());
    let (slow, fast) = (slow.serve(&server_gate).await, fast.serve(&server_gate).await);
    let gates = KeyedGates::new(KeyedSettings::default(), |_: Option<&String>| gate(2).0).unwrap();
    let gates = Arc::new(gates);
    let client = reqwest_middleware::ClientBuilder::new(Client::new())
        .with(GateMiddleware::per_host(Arc::clone(&gates)))
        .build();

    let ask = |address: SocketAddr, path: &str| client.get(format!("http://{address}/{path}")).send();
    let mut held: JoinSet<_> = (0..2).map(|n| ask(slow, &format!("work/{n}"))).collect();
    for _ in 0..2 {
        slow_stage.begun().await;
    }
    assert!(ask(slow, "work/third").await.is_err());
    assert_eq!(ask(fast, "fail/200").await.unwrap().status(), 200);
    slow_stage.release(2);
    while let Some(answer) = held.join_next().await {
        answer.unwrap().unwrap().text().await.unwrap();
    }
    let mut hosts: Vec<_> = gates.gates().into_iter().map(|(host, gate)| (host, gate.in_flight())).collect();
    hosts.sort();
    let mut expected = [(slow.to_string(), 0), (fast.to_string(), 0)];
    expected.sort();
    assert_eq!(hosts, expected);
}

#[tokio::test]
async fn a_token_asked_for_in_a_handler_refuses_as_an_axum_response() {
    let (gate, _) = gate(1);
    let asked = gate.clone();
    let app = Router::new().route(
        "/",
        get(move || async move {
            let token = asked.try_acquire()?;
            token.release(Outcome::Success);
            Ok::<_, goodput::Refusal>("done")
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 200);
    let _taken = gate.try_acquire().unwrap();
    let refused = reqwest::get(&url).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["goodput-refusal"], "limit_reached");
}
