//! HTTP bodies that hold tokens, and what HTTP and gRPC callers are told; polled by hand.

mod support;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use goodput::{
    Criticality, Gate, Outcome, Refusal, Request,
    deadline::DeadlineHeader,
    middleware::{
        GateLayer, GuardedBody, Http, SharedToken, WhenFull,
        http::{ByHeaders, HoldUntil, NextHop, REFUSAL_HEADER},
    },
    refusal::{Answers, RefusalStatus},
};
use http::{HeaderMap, Method, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full};

use support::{Ended, gate};
use tokio::sync::mpsc;
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower::{Service, ServiceBuilder};

/// A body that gives what it is sent.
struct Sent {
    frames: mpsc::UnboundedReceiver<Result<Frame<Bytes>, &'static str>>,
    size: Option<u64>,
}

type Sender = mpsc::UnboundedSender<Result<Frame<Bytes>, &'static str>>;

impl Body for Sent {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.frames.poll_recv(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.size.map(SizeHint::with_exact).unwrap_or_default()
    }
}

fn sent_body(size: Option<u64>) -> (Sender, Sent) {
    let (sender, frames) = mpsc::unbounded_channel();
    (sender, Sent { frames, size })
}

fn data(text: &'static str) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn grpc_trailers(code: &'static str) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::trailers(HeaderMap::from_iter([("grpc-status".parse().unwrap(), code.parse().unwrap())])))
}

/// What a guarded service that answers `response` gives to `request`.
fn exchange<B: Body>(
    protocol: Http,
    gate: &Gate,
    request: http::Request<()>,
    response: Response<B>,
) -> Response<GuardedBody<B>> {
    let response = Mutex::new(Some(response));
    let mut service = ServiceBuilder::new()
        .layer(GateLayer::speaking(protocol, gate.clone()).when_full(WhenFull::Refuse))
        .service_fn(|_| std::future::ready(Ok::<_, Infallible>(response.lock().unwrap().take().unwrap())));
    let mut answer = task::spawn(service.call(request));
    assert_ready_ok!(answer.poll())
}

fn answered<B: Body>(gate: &Gate, response: Response<B>) -> GuardedBody<B> {
    exchange(Http::new(), gate, http::Request::new(()), response).into_body()
}

type NextFrame<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

fn next<B: Body + Unpin>(body: &mut GuardedBody<B>) -> Poll<NextFrame<B>> {
    task::spawn(body.frame()).poll()
}

const GRPC: &str = "application/grpc";

fn grpc<B>(body: B) -> Response<B> {
    Response::builder().header("content-type", GRPC).body(body).unwrap()
}

#[test]
fn a_streamed_body_holds_its_place_to_the_end() {
    let (gate, ledger) = gate(1);
    let (sender, body) = sent_body(None);
    let mut body = answered(&gate, Response::new(body));
    sender.send(data("one")).unwrap();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    assert_pending!(next(&mut body));
    assert_eq!(gate.in_flight(), 1);
    drop(sender);
    assert!(assert_ready!(next(&mut body)).is_none());
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 1, ..Ended::default() });
}

#[test]
fn a_body_dropped_before_its_end_is_cancelled() {
    let (gate, ledger) = gate(1);
    let (sender, body) = sent_body(None);
    let mut body = answered(&gate, Response::new(body));
    sender.send(data("one")).unwrap();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    drop(body);
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 1, ..Ended::default() });
}

#[test]
fn a_status_that_says_overload_stands_although_nobody_reads_the_body() {
    let (gate, ledger) = gate(1);
    for status in [429, 500] {
        let body = Full::new(Bytes::from_static(b"text"));
        drop(answered(&gate, Response::builder().status(status).body(body).unwrap()));
    }
    assert_eq!(ledger.ended(&gate), Ended { overload: 1, failure: 1, ..Ended::default() });
}

#[test]
fn a_client_that_looks_at_the_status_only_has_been_answered() {
    let (gate, ledger) = gate(1);
    let body = Full::new(Bytes::from_static(b"text"));
    drop(exchange(Http::new().for_client(), &gate, http::Request::new(()), Response::new(body)));
    assert_eq!(ledger.ended(&gate), Ended { success: 1, ..Ended::default() });

    let (_sender, stream) = sent_body(None);
    drop(exchange(Http::new().for_client(), &gate, http::Request::new(()), grpc(stream)));
    assert_eq!(ledger.ended(&gate), Ended { success: 1, cancelled: 1, ..Ended::default() });
}

#[test]
fn a_body_that_breaks_is_a_failure() {
    let (gate, ledger) = gate(1);
    let (sender, body) = sent_body(None);
    let mut body = answered(&gate, Response::new(body));
    sender.send(Err("broken")).unwrap();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Err("broken"))));
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { failure: 1, ..Ended::default() });
}

// Servers do not ask a body for its end when they know that they have all of it.
#[test]
fn a_body_of_known_length_frees_its_place_with_its_last_byte() {
    let (gate, ledger) = gate(1);

    // It says so itself.
    let mut full = answered(&gate, Response::new(Full::new(Bytes::from_static(b"hello"))));
    assert_eq!(gate.in_flight(), 1);
    assert!(matches!(assert_ready!(next(&mut full)), Some(Ok(_))));
    assert_eq!(gate.in_flight(), 0);

    // Its size does.
    let (sender, body) = sent_body(Some(5));
    let mut body = answered(&gate, Response::new(body));
    sender.send(data("hel")).unwrap();
    sender.send(data("lo")).unwrap();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    assert_eq!(gate.in_flight(), 1);
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    assert_eq!(gate.in_flight(), 0);

    // Its header does.
    let (sender, body) = sent_body(None);
    let mut body = answered(&gate, Response::builder().header("content-length", 3).body(body).unwrap());
    sender.send(data("all")).unwrap();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    assert_eq!(gate.in_flight(), 0);

    assert_eq!(ledger.ended(&gate), Ended { success: 3, ..Ended::default() });
}

#[test]
fn an_answer_whose_body_nobody_will_read_frees_its_place_at_once() {
    let (gate, ledger) = gate(1);
    let full = || Full::new(Bytes::from_static(b"hello"));
    let head = http::Request::builder().method(Method::HEAD).body(()).unwrap();
    let answers = [
        exchange(Http::new(), &gate, head, Response::new(full())),
        exchange(
            Http::new(),
            &gate,
            http::Request::new(()),
            Response::builder().status(304).body(full()).unwrap(),
        ),
        exchange(Http::new(), &gate, http::Request::new(()), Response::new(Full::new(Bytes::new()))),
        exchange(
            Http::new().hold_until(HoldUntil::Head),
            &gate,
            http::Request::new(()),
            Response::new(full()),
        ),
    ];
    assert_eq!(gate.in_flight(), 0);
    drop(answers);
    assert_eq!(ledger.ended(&gate), Ended { success: 4, ..Ended::default() });
}

#[test]
fn a_status_that_speaks_of_overload_counts_when_the_body_is_through() {
    let (gate, ledger) = gate(1);
    for status in [503, 500, 200] {
        let response =
            Response::builder().status(status).body(Full::new(Bytes::from_static(b"text"))).unwrap();
        let mut body = answered(&gate, response);
        assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    }
    assert_eq!(ledger.ended(&gate), Ended { success: 1, overload: 1, failure: 1, cancelled: 0 });
}

#[test]
fn a_grpc_call_ends_as_its_trailers_say() {
    let (gate, ledger) = gate(1);
    for code in ["0", "14", "13"] {
        let (sender, body) = sent_body(None);
        let mut body = answered(&gate, grpc(body));
        sender.send(data("message")).unwrap();
        sender.send(grpc_trailers(code)).unwrap();
        assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
        assert_eq!(gate.in_flight(), 1);
        assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
        assert_eq!(gate.in_flight(), 0);
    }
    assert_eq!(ledger.ended(&gate), Ended { success: 1, overload: 1, failure: 1, cancelled: 0 });
}

#[test]
fn a_grpc_call_without_a_status_has_failed() {
    let (gate, ledger) = gate(1);
    let (sender, body) = sent_body(None);
    let mut body = answered(&gate, grpc(body));
    drop(sender);
    assert!(assert_ready!(next(&mut body)).is_none());
    assert_eq!(ledger.ended(&gate), Ended { failure: 1, ..Ended::default() });
}

#[test]
fn http_and_grpc_callers_are_refused_in_their_own_language() {
    let (gate, _) = gate(1);
    let _taken = gate.try_acquire().unwrap();
    let response = || Response::new(Empty::<Bytes>::new());

    let refused = exchange(Http::new(), &gate, http::Request::new(()), response());
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["goodput-refusal"], "limit_reached");
    assert!(refused.body().is_end_stream());

    let answers = Answers { overload_status: RefusalStatus::TooManyRequests, ..Answers::default() };
    let refused = exchange(Http::new().answers(answers), &gate, http::Request::new(()), response());
    assert_eq!(refused.status(), 429);

    let call = http::Request::builder().header("content-type", GRPC).body(()).unwrap();
    let refused = exchange(Http::new(), &gate, call, response());
    assert_eq!(refused.status(), 200);
    assert_eq!(refused.headers()["grpc-status"], "14");
    assert_eq!(refused.extensions().get::<Refusal>().unwrap().limit, 1);
}

#[test]
fn the_refusal_of_an_inner_gate_teaches_the_outer_one_nothing() {
    let (outer, outer_ledger) = gate(10);
    let (inner, inner_ledger) = gate(1);
    let taken = inner.try_acquire().unwrap();
    let mut service = ServiceBuilder::new()
        .layer(GateLayer::http(outer.clone()))
        .layer(GateLayer::http(inner.clone()))
        .service_fn(|_: http::Request<()>| {
            std::future::ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
        });
    let refused = assert_ready_ok!(task::spawn(service.call(http::Request::new(()))).poll());
    assert_eq!(refused.status(), 503);
    assert_eq!(inner_ledger.read(&inner).refused, 1);
    drop(refused);
    assert_eq!(outer_ledger.ended(&outer), Ended { cancelled: 1, ..Ended::default() });

    drop(taken);
    assert_ready_ok!(task::spawn(service.call(http::Request::new(()))).poll());
    assert_eq!(outer_ledger.ended(&outer), Ended { cancelled: 1, success: 1, ..Ended::default() });
}

/// An answer as a gate in another process gives it.
fn refused_behind() -> Response<Empty<Bytes>> {
    Response::builder().status(503).header(REFUSAL_HEADER, "limit_reached").body(Empty::new()).unwrap()
}

#[test]
fn the_refusal_of_a_gate_in_another_process_teaches_a_server_nothing_and_a_client_something() {
    let (server, ledger) = gate(10);
    let passed_on = exchange(Http::new(), &server, http::Request::new(()), refused_behind());
    assert_eq!(passed_on.status(), 503);
    drop(passed_on);
    assert_eq!(ledger.ended(&server), Ended { cancelled: 1, ..Ended::default() });

    let (client, ledger) = gate(10);
    drop(exchange(Http::new().for_client(), &client, http::Request::new(()), refused_behind()));
    assert_eq!(ledger.ended(&client), Ended { overload: 1, ..Ended::default() });
}

#[test]
fn a_deadline_and_a_criticality_go_through_a_server_to_the_host_it_calls() {
    let (server, _) = gate(1);
    let (client, _) = gate(1);
    let criticality = http::HeaderName::from_static("x-criticality");
    let deadline = DeadlineHeader::XEnvoyExpectedRqTimeoutMs;
    let read = ByHeaders::new().deadline(deadline.clone()).criticality(criticality.clone());
    let next_hop =
        NextHop::new().deadline(deadline, Duration::from_secs(1)).unwrap().criticality(criticality);

    let (heard, mut hears) = mpsc::unbounded_channel();
    let host = move |request: http::Request<()>| {
        heard.send(request.headers().clone()).unwrap();
        std::future::ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
    };
    let call =
        GateLayer::speaking(Http::new().for_client().read(ByHeaders::new()).next_hop(next_hop), client);
    let call = ServiceBuilder::new().layer(call).service_fn(host);
    let handler = move |incoming: http::Request<()>| {
        let asked = *incoming.extensions().get::<Request>().unwrap();
        call.clone().call(http::Request::builder().extension(asked).body(()).unwrap())
    };
    let serve = GateLayer::speaking(Http::new().read(read).share_request(), server);
    let mut service = ServiceBuilder::new().layer(serve).service_fn(handler);

    let incoming = http::Request::builder()
        .header("x-envoy-expected-rq-timeout-ms", "3600000")
        .header("x-criticality", "sheddable")
        .body(())
        .unwrap();
    assert_ready_ok!(task::spawn(service.call(incoming)).poll());
    let headers = hears.try_recv().unwrap();
    let left: u64 = headers["x-envoy-expected-rq-timeout-ms"].to_str().unwrap().parse().unwrap();
    assert!(left <= 3_599_000, "{left}");
    assert_eq!(headers["x-criticality"], Criticality::Sheddable.as_str());
}

#[test]
fn work_that_outlives_its_cancelled_handler_keeps_its_place() {
    let (gate, ledger) = gate(1);
    let (spawn, mut spawned) = mpsc::unbounded_channel();
    let mut service = ServiceBuilder::new()
        .layer(GateLayer::speaking(Http::new().share_token(), gate.clone()))
        .service_fn(move |request: http::Request<()>| {
            spawn.send(request.extensions().get::<SharedToken>().unwrap().clone()).unwrap();
            std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>()
        });
    let mut handler = task::spawn(service.call(http::Request::new(())));
    assert_pending!(handler.poll());
    let work = spawned.try_recv().unwrap();

    drop(handler);
    assert_eq!(gate.in_flight(), 1);
    assert!(gate.try_acquire().is_err());
    drop(work);
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 1, ..Ended::default() });
}

#[test]
fn requests_are_read_and_answers_judged_by_the_users_own_closures() {
    let (gate, ledger) = gate(4);
    let protocol = Http::new()
        .read(|request: &http::Request<()>, _| {
            Request::DEFAULT.weighing(if request.uri().path() == "/report" { 3 } else { 1 })
        })
        .classify(|answer: &Result<Response<Full<Bytes>>, Infallible>| match answer {
            Ok(response) if response.status() == 409 => Outcome::Failure,
            _ => Outcome::Success,
        });
    let mut service = ServiceBuilder::new()
        .layer(GateLayer::speaking(protocol, gate.clone()).when_full(WhenFull::Refuse))
        .service_fn(|_| {
            let body = Full::new(Bytes::from_static(b"conflict"));
            std::future::ready(Ok(Response::builder().status(409).body(body).unwrap()))
        });
    let report = || http::Request::builder().uri("/report").body(()).unwrap();
    let first = assert_ready_ok!(task::spawn(service.call(report())).poll());
    assert_eq!(gate.in_flight(), 3);
    assert_eq!(assert_ready_ok!(task::spawn(service.call(report())).poll()).status(), 503);
    let mut body = first.into_body();
    assert!(matches!(assert_ready!(next(&mut body)), Some(Ok(_))));
    assert_eq!(ledger.ended(&gate), Ended { failure: 1, ..Ended::default() });
}
