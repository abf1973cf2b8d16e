//! Who is let in, who waits, and whom a free place goes to.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use goodput::{
    Acquire, Gate, ManualClock, Outcome, OwnedToken, Refusal, RefusalReason, Request,
    algorithms::{
        Aimd, AimdSettings, CannotResume, Decision, Fixed, FixedSettings, Limiter, Reason, State, Window,
        WindowRule,
    },
};

#[test]
fn in_flight_stops_at_the_limit() {
    let gate = gate(2, 0);
    let first = gate.try_acquire().unwrap();
    let second = gate.try_acquire().unwrap();
    let refusal = gate.try_acquire().unwrap_err();
    assert_eq!(
        refusal,
        Refusal { reason: RefusalReason::LimitReached, limit: 2, in_flight: 2, retry_after: None }
    );
    first.release(Outcome::Success);
    assert_eq!(gate.in_flight(), 1);
    drop(gate.try_acquire().unwrap());
    drop(second);
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn one_that_weighs_more_than_the_limit_runs_alone() {
    let gate = gate(10, 0);
    let one = gate.try_acquire().unwrap();
    assert!(gate.try_acquire_many(11).is_err());
    drop(one);
    let heavy = gate.try_acquire_many(u32::MAX).unwrap();
    assert_eq!(gate.in_flight(), u32::MAX as usize);
    assert!(gate.try_acquire().is_err());
    drop(heavy);
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn a_request_that_claims_to_weigh_nothing_weighs_one() {
    let gate = gate(1, 0);
    let weightless = Request { weight: 0, ..Request::DEFAULT };
    let token = gate.try_acquire_for(&weightless).unwrap();
    assert_eq!(gate.in_flight(), 1);
    assert!(gate.try_acquire_for(&weightless).is_err());
    drop(token);
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn a_limit_of_zero_admits_nobody_and_a_limit_beyond_all_bounds_is_the_greatest_there_is() {
    let closed = Gate::new(Bare(0));
    assert!(closed.try_acquire().is_err());
    assert!(closed.try_acquire_many(5).is_err());
    let open = Gate::new(Bare(usize::MAX));
    assert_eq!(open.limit(), (1 << 29) - 1);
    let token = open.try_acquire_many((1 << 29) - 2).unwrap();
    let other = open.try_acquire().unwrap();
    assert!(open.try_acquire().is_err());
    drop((token, other));
    assert_eq!(open.in_flight(), 0);
}

#[test]
fn a_token_comes_back_when_its_holder_panics() {
    let gate = gate(1, 0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _token = gate.try_acquire().unwrap();
        panic!("as handlers do");
    }));
    assert!(panicked.is_err());
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn a_forgotten_token_keeps_its_place_and_nothing_else_breaks() {
    let gate = gate(2, 0);
    std::mem::forget(gate.try_acquire().unwrap());
    assert_eq!(gate.in_flight(), 1);
    drop(gate.try_acquire().unwrap());
    assert_eq!(gate.in_flight(), 1);
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let gate = gate(1, 10);
    let token = gate.try_acquire_owned(&Request::DEFAULT).unwrap();
    let mut first = Waiting::on(&gate, 1);
    let mut second = Waiting::on(&gate, 1);
    assert!(first.poll().is_pending());
    assert!(second.poll().is_pending());
    assert_eq!(gate.waiting(), 2);
    token.release(Outcome::Success);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(second.poll().is_pending());
    let token = first.ready().unwrap();
    token.release(Outcome::Success);
    assert_eq!(second.wakes(), 1);
    drop(second.ready().unwrap());
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[test]
fn nobody_overtakes_those_who_wait() {
    let gate = gate(4, 10);
    let token = gate.try_acquire_owned(&Request::DEFAULT).unwrap();
    let mut heavy = Waiting::on(&gate, 4);
    assert!(heavy.poll().is_pending());
    assert_eq!(gate.try_acquire().unwrap_err().reason, RefusalReason::LimitReached);
    let mut light = Waiting::on(&gate, 1);
    assert!(light.poll().is_pending());
    drop(token);
    drop(heavy.ready().unwrap());
    drop(light.ready().unwrap());
    drop(gate.try_acquire().unwrap());
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn the_queue_is_bounded() {
    let gate = gate(1, 1);
    let _token = gate.try_acquire().unwrap();
    let mut first = Waiting::on(&gate, 1);
    assert!(first.poll().is_pending());
    assert_eq!(Waiting::on(&gate, 1).refused().reason, RefusalReason::QueueFull);
    drop(first);
    assert!(Waiting::on(&gate, 1).poll().is_pending());
    assert_eq!(gate.waiting(), 0);
}

#[test]
fn a_gate_without_a_queue_refuses_at_once() {
    let gate = gate(1, 0);
    let _token = gate.try_acquire().unwrap();
    assert_eq!(Waiting::on(&gate, 1).refused().reason, RefusalReason::LimitReached);
}

#[test]
fn a_waiter_who_leaves_makes_way_for_those_behind() {
    let gate = gate(4, 10);
    let _token = gate.try_acquire_many(2).unwrap();
    let mut heavy = Waiting::on(&gate, 4);
    assert!(heavy.poll().is_pending());
    let mut light = Waiting::on(&gate, 1);
    let mut lighter = Waiting::on(&gate, 1);
    assert!(light.poll().is_pending());
    assert!(lighter.poll().is_pending());
    drop(heavy);
    assert_eq!((light.wakes(), lighter.wakes()), (1, 1));
    drop(light.ready().unwrap());
    drop(lighter.ready().unwrap());
    assert_eq!(gate.in_flight(), 2);
}

#[test]
fn once_the_only_waiter_has_left_a_free_place_is_for_anybody() {
    let gate = gate(1, 10);
    let token = gate.try_acquire().unwrap();
    let mut only = Waiting::on(&gate, 1);
    assert!(only.poll().is_pending());
    drop(only);
    drop(token);
    drop(gate.try_acquire().unwrap());
}

#[test]
fn a_place_assigned_to_one_who_left_goes_to_the_next() {
    let gate = gate(1, 10);
    let token = gate.try_acquire().unwrap();
    let mut first = Waiting::on(&gate, 1);
    let mut second = Waiting::on(&gate, 1);
    assert!(first.poll().is_pending());
    assert!(second.poll().is_pending());
    drop(token);
    assert_eq!(gate.in_flight(), 1);
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second.ready().unwrap());
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[test]
fn a_raised_limit_lets_in_as_many_as_fit_at_once() {
    let gate = gate(1, 10);
    let _token = gate.try_acquire().unwrap();
    let mut waiting: Vec<_> = (0..5).map(|_| Waiting::on(&gate, 1)).collect();
    for waiter in &mut waiting {
        assert!(waiter.poll().is_pending());
    }
    gate.replace_limiter(fixed(4));
    assert_eq!(waiting.iter().map(Waiting::wakes).collect::<Vec<_>>(), [1, 1, 1, 0, 0]);
    assert_eq!((gate.in_flight(), gate.waiting()), (4, 2));
}

#[test]
fn a_lowered_limit_drains_under_a_standing_queue() {
    // Forty callers in a closed loop; every answer is an overload.
    let aimd =
        Aimd::new(AimdSettings { initial: 20, min: 1, max: 20, backoff_ratio: 0.5, ..Default::default() });
    let gate = Gate::builder(Box::new(aimd.unwrap())).clock(ManualClock::new()).max_waiting(40).build();
    let mut callers: Vec<_> = (0..40).map(|_| Waiting::on(&gate, 1)).collect();
    let mut tokens = Vec::new();
    for caller in &mut callers {
        if let Poll::Ready(token) = caller.poll() {
            tokens.push(token.unwrap());
        }
    }
    assert_eq!((gate.in_flight(), gate.waiting()), (20, 20));
    for round in 0..40 {
        tokens.remove(0).release(Outcome::Overload);
        callers.push(Waiting::on(&gate, 1));
        for caller in callers.iter_mut().filter(|caller| caller.token.is_none()) {
            if let Poll::Ready(token) = caller.poll() {
                tokens.push(token.unwrap());
            }
        }
        assert!(gate.in_flight() <= 20 - round.min(18), "round {round}: {} in flight", gate.in_flight());
        if tokens.is_empty() {
            break;
        }
    }
    assert_eq!((gate.limit(), gate.in_flight()), (1, 1));
}

#[test]
fn a_swapped_limiter_loses_no_token() {
    let gate = gate(3, 10);
    let tokens: Vec<_> = (0..3).map(|_| gate.try_acquire_owned(&Request::DEFAULT).unwrap()).collect();
    let mut waiter = Waiting::on(&gate, 1);
    assert!(waiter.poll().is_pending());
    gate.replace_limiter(fixed(1));
    assert_eq!((gate.limit(), gate.in_flight()), (1, 3));
    for (index, token) in tokens.into_iter().enumerate() {
        assert!(waiter.poll().is_pending(), "after {index}");
        token.release(Outcome::Success);
    }
    drop(waiter.ready().unwrap());
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn a_window_may_close_with_an_admission_after_its_deadline() {
    #[derive(Debug)]
    struct Hasty(usize);
    impl Limiter for Hasty {
        fn limit(&self) -> usize {
            self.0
        }
        fn next_window(&self) -> WindowRule {
            WindowRule::samples(u64::MAX).no_later_than(goodput::algorithms::Instant::from_nanos(10))
        }
        fn update(&mut self, _: &Window) -> Decision {
            self.0 += 1;
            Decision::new(self.0, Reason::Growing)
        }
        fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
            Ok(())
        }
    }
    let clock = ManualClock::new();
    let gate = Gate::builder(Box::new(Hasty(5))).clock(clock.clone()).build();
    let _early = gate.try_acquire().unwrap();
    assert_eq!(gate.limit(), 5);
    clock.advance(std::time::Duration::from_nanos(10));
    let _late = gate.try_acquire().unwrap();
    assert_eq!(gate.limit(), 6);
}

fn gate(limit: usize, max_waiting: usize) -> Gate<ManualClock> {
    Gate::builder(fixed(limit)).clock(ManualClock::new()).max_waiting(max_waiting).build()
}

fn fixed(limit: usize) -> Box<dyn Limiter> {
    Box::new(Fixed::new(FixedSettings { limit }).unwrap())
}

/// A limit that no settings allow.
#[derive(Debug)]
struct Bare(usize);

impl Limiter for Bare {
    fn limit(&self) -> usize {
        self.0
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(u64::MAX)
    }

    fn update(&mut self, _: &Window) -> Decision {
        Decision::new(self.0, Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

/// A request on its way in, with a count of how often it was woken.
struct Waiting {
    acquire: Acquire<ManualClock>,
    alarm: Arc<Alarm>,
    token: Option<()>,
}

#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Waiting {
    fn on(gate: &Gate<ManualClock>, weight: u32) -> Self {
        Self { acquire: gate.acquire(Request::DEFAULT.weighing(weight)), alarm: Arc::default(), token: None }
    }

    fn poll(&mut self) -> Poll<Result<OwnedToken<ManualClock>, Refusal>> {
        let waker = Waker::from(Arc::clone(&self.alarm));
        let polled = pin!(&mut self.acquire).poll(&mut Context::from_waker(&waker));
        self.token = polled.is_ready().then_some(());
        polled
    }

    fn ready(mut self) -> Result<OwnedToken<ManualClock>, Refusal> {
        match self.poll() {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("it still waits"),
        }
    }

    fn refused(self) -> Refusal {
        self.ready().expect_err("a refusal")
    }

    fn wakes(&self) -> usize {
        self.alarm.0.load(Ordering::Relaxed)
    }
}
