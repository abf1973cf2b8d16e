//! The tower layer against mocked services, polled by hand: nothing here waits for time to pass.

mod support;

use std::{
    convert::Infallible,
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Waker},
};

use goodput::{
    Gate, Outcome, RefusalReason, Request,
    middleware::{GateError, GateLayer, Plain, SharedToken, WhenFull},
};
use support::{Ended, gate, waiting_gate};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Service, ServiceBuilder, service_fn};
use tower_test::mock;

type Mock = mock::Mock<&'static str, &'static str>;
type Handle = mock::Handle<&'static str, &'static str>;

fn refusing(gate: &Gate) -> GateLayer {
    GateLayer::new(gate.clone()).when_full(WhenFull::Refuse)
}

fn guarded(layer: GateLayer) -> (mock::Spawn<goodput::middleware::GateService<Mock>>, Handle) {
    mock::spawn_layer(layer)
}

/// The request that the service behind the gate has been called with, to be answered.
fn received(handle: &mut Handle, expected: &str) -> mock::SendResponse<&'static str> {
    let (request, answer) = assert_ready!(handle.poll_request()).unwrap();
    assert_eq!(request, expected);
    answer
}

#[test]
fn an_answer_passes_through_and_frees_the_place_while_its_future_still_lives() {
    let (gate, ledger) = gate(1);
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));

    assert_ready_ok!(service.poll_ready());
    let mut answer = task::spawn(service.call("hello"));
    assert_pending!(answer.poll());
    assert_eq!(gate.in_flight(), 1);
    received(&mut handle, "hello").send_response("world");
    assert_eq!(assert_ready_ok!(answer.poll()), "world");

    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { success: 1, ..Ended::default() });
}

#[test]
fn five_hundred_ready_clones_hold_no_place() {
    let (gate, _) = gate(1);
    let (mut service, mut handle) = guarded(refusing(&gate));
    let mut idle: Vec<_> = (0..500).map(|_| service.clone()).collect();
    for clone in &mut idle {
        assert_ready_ok!(clone.poll_ready());
    }
    assert_eq!(gate.in_flight(), 0);

    for round in ["first", "second", "third"] {
        assert_ready_ok!(service.poll_ready());
        let mut answer = task::spawn(service.call(round));
        received(&mut handle, round).send_response("served");
        assert_eq!(assert_ready_ok!(answer.poll()), "served");
    }
}

#[test]
fn the_inner_service_decides_on_readiness_whether_or_not_there_is_room() {
    let (gate, _) = gate(1);
    let _taken = gate.try_acquire().unwrap();
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));
    assert_ready_ok!(service.poll_ready());

    let (mut busy, mut busy_handle) = guarded(GateLayer::new(gate.clone()));
    busy_handle.allow(0);
    assert_pending!(busy.poll_ready());
    busy_handle.allow(1);
    assert!(busy.is_woken());
    assert_ready_ok!(busy.poll_ready());

    let mut other = service.clone();
    handle.send_error("broken");
    assert!(matches!(assert_ready_err!(other.poll_ready()), GateError::Service(_)));
}

#[test]
fn a_shed_call_leaves_no_acquire_behind_that_would_swallow_the_next_place() {
    let (gate, ledger) = waiting_gate(1, 10);
    let (mut service, mut handle) = guarded(refusing(&gate));

    assert_ready_ok!(service.poll_ready());
    let mut first = task::spawn(service.call("first"));
    // Refused calls whose services and futures are all kept.
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut clone = service.clone();
        assert_ready_ok!(clone.poll_ready());
        let mut shed = task::spawn(clone.call("shed"));
        let error = assert_ready_err!(shed.poll());
        assert_eq!(error.refusal().unwrap().reason, RefusalReason::LimitReached);
        kept.push((clone, shed));
    }
    assert_eq!(gate.waiting(), 0);

    received(&mut handle, "first").send_response("done");
    assert_ready_ok!(first.poll());
    assert_ready_ok!(service.poll_ready());
    let mut second = task::spawn(service.call("second"));
    received(&mut handle, "second").send_response("done");
    assert_ready_ok!(second.poll());
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.read(&gate).refused, 5);
}

#[test]
fn a_refused_request_never_reaches_the_service() {
    let (gate, _) = gate(1);
    let _taken = gate.try_acquire().unwrap();
    for when_full in [WhenFull::Wait, WhenFull::Refuse] {
        let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()).when_full(when_full));
        assert_ready_ok!(service.poll_ready());
        let mut answer = task::spawn(service.call("too much"));
        let error = assert_ready_err!(answer.poll());
        assert!(error.to_string().starts_with("refused: limit_reached"), "{error}");
        assert_pending!(handle.poll_request());
    }
}

#[test]
fn a_waiting_call_is_admitted_when_the_one_before_it_ends() {
    let (gate, _) = waiting_gate(1, 10);
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));

    assert_ready_ok!(service.poll_ready());
    let mut first = task::spawn(service.call("first"));
    assert_pending!(first.poll());
    assert_ready_ok!(service.poll_ready());
    let mut second = task::spawn(service.call("second"));
    assert_pending!(second.poll());
    assert_eq!((gate.in_flight(), gate.waiting()), (1, 1));

    received(&mut handle, "first").send_response("one");
    assert_pending!(handle.poll_request());
    assert_ready_ok!(first.poll());
    assert!(second.is_woken());
    assert_pending!(second.poll());
    received(&mut handle, "second").send_response("two");
    assert_eq!(assert_ready_ok!(second.poll()), "two");
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[test]
fn a_waiting_call_that_is_dropped_makes_way_for_the_next() {
    let (gate, _) = waiting_gate(1, 10);
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));
    let mut calls: Vec<_> = ["first", "second", "third"]
        .into_iter()
        .map(|name| {
            assert_ready_ok!(service.poll_ready());
            let mut call = task::spawn(service.call(name));
            assert_pending!(call.poll());
            call
        })
        .collect();

    drop(calls.remove(1));
    assert_eq!(gate.waiting(), 1);
    received(&mut handle, "first").send_response("done");
    assert_ready_ok!(calls[0].poll());
    assert!(calls[1].is_woken());
    assert_pending!(calls[1].poll());
    received(&mut handle, "third").send_response("done");
    assert_ready_ok!(calls[1].poll());
}

#[test]
fn a_dropped_call_gives_its_place_back_and_teaches_nothing() {
    let (gate, ledger) = gate(1);
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));
    for _ in 0..3 {
        assert_ready_ok!(service.poll_ready());
        let mut call = task::spawn(service.call("hello"));
        assert_pending!(call.poll());
        drop(call);
        received(&mut handle, "hello").send_response("to nobody");
    }
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 3, ..Ended::default() });
}

#[test]
fn an_error_gives_its_place_back_and_is_a_failure() {
    let (gate, ledger) = gate(1);
    let (mut service, mut handle) = guarded(GateLayer::new(gate.clone()));
    for _ in 0..3 {
        assert_ready_ok!(service.poll_ready());
        let mut call = task::spawn(service.call("hello"));
        assert_pending!(call.poll());
        received(&mut handle, "hello").send_error("broken");
        assert!(matches!(assert_ready_err!(call.poll()), GateError::Service(_)));
    }
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { failure: 3, ..Ended::default() });
}

#[test]
fn a_panic_gives_its_place_back_whether_in_the_call_or_in_its_future() {
    let (gate, ledger) = gate(1);
    let in_future = |_: ()| async { panic!("in the future") };
    let in_call = |_: ()| -> std::future::Pending<Result<(), Infallible>> { panic!("in the call") };
    let mut context = Context::from_waker(Waker::noop());
    for when_full in [WhenFull::Wait, WhenFull::Refuse] {
        let layer = GateLayer::new(gate.clone()).when_full(when_full);
        let mut service = ServiceBuilder::new().layer(layer.clone()).service_fn(in_future);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _: Result<(), GateError<Infallible>> =
                assert_ready!(pin!(service.call(())).poll(&mut context));
        }));
        assert!(panicked.is_err());
        assert_eq!(gate.in_flight(), 0);

        let mut service = ServiceBuilder::new().layer(layer).service_fn(in_call);
        let panicked =
            catch_unwind(AssertUnwindSafe(|| pin!(service.call(())).poll(&mut context).is_ready()));
        assert!(panicked.is_err());
        assert_eq!(gate.in_flight(), 0);
    }
    assert_eq!(ledger.ended(&gate), Ended { cancelled: 4, ..Ended::default() });
}

#[test]
fn a_classifier_and_a_reader_of_the_users_own_are_asked() {
    let (gate, ledger) = gate(5);
    let protocol = Plain::new().read(|weight: &u32, _| Request::DEFAULT.weighing(*weight)).classify(
        |answer: &Result<u32, &str>| match answer {
            Err("timeout") => Outcome::Overload,
            Err(_) => Outcome::Failure,
            Ok(_) => Outcome::Success,
        },
    );
    let layer = GateLayer::speaking(protocol, gate.clone());
    let mut timing_out = ServiceBuilder::new().layer(layer.clone()).service_fn(|_| async { Err("timeout") });
    assert_ready_err!(task::spawn(timing_out.call(1)).poll());
    assert_eq!(ledger.ended(&gate), Ended { overload: 1, ..Ended::default() });

    let mut endless = ServiceBuilder::new().layer(layer).service_fn(|_| pending::<Result<u32, &str>>());
    let mut heavy = task::spawn(endless.call(4));
    assert_pending!(heavy.poll());
    assert_eq!(gate.in_flight(), 4);
    assert!(assert_ready_err!(task::spawn(endless.call(2)).poll()).refusal().is_some());
}

#[test]
fn attempts_are_admitted_one_by_one_and_no_place_is_held_between_them() {
    let (gate, ledger) = gate(1);
    let (service, mut handle) = guarded(refusing(&gate));
    let service = service.into_inner();
    let mut retrying = task::spawn(async move {
        for _ in 0..2 {
            let mut attempt = service.clone();
            if let Ok(answer) = tower::ServiceExt::ready(&mut attempt).await.unwrap().call("try").await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
        "given up"
    });

    assert_pending!(retrying.poll());
    received(&mut handle, "try").send_error("busy");
    assert_pending!(retrying.poll());
    assert_eq!(gate.in_flight(), 0);
    let between = gate.try_acquire().unwrap();
    drop(between);
    assert_pending!(retrying.poll());
    received(&mut handle, "try").send_response("served");
    assert_eq!(assert_ready!(retrying.poll()), "served");
    assert_eq!(ledger.ended(&gate), Ended { success: 1, failure: 1, cancelled: 1, ..Ended::default() });
}

#[test]
fn a_shared_token_holds_its_place_until_the_last_holder_is_gone() {
    let (gate, ledger) = gate(1);
    let token = SharedToken::new(gate.try_acquire_owned(&Request::DEFAULT).unwrap());
    let spawned_work = token.clone();
    token.end(Outcome::Failure);
    assert_eq!(gate.in_flight(), 1);
    spawned_work.end(Outcome::Success);
    assert_eq!(gate.in_flight(), 0);
    assert_eq!(ledger.ended(&gate), Ended { failure: 1, ..Ended::default() });

    drop(SharedToken::new(gate.try_acquire_owned(&Request::DEFAULT).unwrap()));
    assert_eq!(ledger.ended(&gate), Ended { failure: 1, cancelled: 1, ..Ended::default() });
}

#[test]
fn services_of_one_layer_share_its_gate() {
    let (gate, _) = gate(1);
    let layer = refusing(&gate);
    let endless = || service_fn(|_: ()| pending::<Result<(), Infallible>>());
    let mut one = ServiceBuilder::new().layer(layer.clone()).service(endless());
    let mut other = ServiceBuilder::new().layer(layer).service(endless());
    let mut call = task::spawn(one.call(()));
    assert_pending!(call.poll());
    assert!(assert_ready_err!(task::spawn(other.call(())).poll()).refusal().is_some());
}
