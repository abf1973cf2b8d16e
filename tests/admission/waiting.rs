//! For how long.

use std::time::Duration;

use goodput::{
    Clock, Gate, Outcome, RefusalReason, Request,
    algorithms::Instant,
    priority::CriticalityShares,
    share::{Allowance, Share},
    waiting::{CoDelSettings, Expiry, Order, QueueBound, WaitingSettings},
};

use crate::support::{CRITICAL_PLUS, SHEDDABLE, answer, ask, at, expires, fixed, ms, plain, queued, waiting};

#[test]
fn by_default_a_short_queue_of_half_the_limit_waits_for_a_second() {
    assert_eq!(Gate::default().config().waiting, WaitingSettings::default());
    let (gate, _clock) = waiting(4, WaitingSettings::default());
    let _tokens: Vec<_> = (0..4).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
    let mut waiters: Vec<_> = (0..2).map(|_| queued(&gate, Request::DEFAULT)).collect();
    let refusal = ask(&gate, Request::DEFAULT).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::QueueFull);
    assert_eq!(expires(&mut waiters[0]), Some(at(1_000)));
    assert_eq!((gate.waiting(), gate.in_flight()), (2, 4));
}

#[test]
fn who_has_waited_too_long_is_refused_when_he_asks_again() {
    let (gate, clock) = waiting(1, WaitingSettings::default());
    let _token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiter = queued(&gate, Request::DEFAULT);
    clock.advance(ms(999));
    assert!(waiter.poll().is_pending());
    clock.advance(ms(1));
    assert_eq!(answer(&mut waiter).unwrap_err().reason, RefusalReason::WaitedTooLong);
    assert_eq!(gate.waiting(), 0);
}

#[test]
fn whose_time_is_up_is_told_by_the_next_release_and_costs_no_place() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(10), ..WaitingSettings::default() };
    let (gate, clock) = waiting(1, settings);
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut late = queued(&gate, Request::DEFAULT);
    clock.advance(ms(600));
    let mut next = queued(&gate, Request::DEFAULT);
    clock.advance(ms(600));
    token.release(Outcome::Success);
    assert!(late.is_woken() && next.is_woken());
    assert_eq!(answer(&mut late).unwrap_err().reason, RefusalReason::WaitedTooLong);
    assert!(answer(&mut next).is_ok());
    let snapshot = gate.snapshot();
    assert_eq!(snapshot.refused.by_reason(RefusalReason::WaitedTooLong), 1);
    assert_eq!(snapshot.totals.refused, 1);
}

#[test]
fn time_that_passes_alone_turns_nobody_away_until_somebody_says_so() {
    let (gate, clock) = waiting(1, WaitingSettings::default());
    let _token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiter = queued(&gate, Request::DEFAULT);
    clock.advance(ms(1_500));
    assert_eq!(gate.snapshot().queue_age, ms(1_500));
    gate.tick();
    assert!(waiter.is_woken());
    assert!(answer(&mut waiter).is_err());
}

#[test]
fn a_deadline_that_has_passed_is_refused_even_where_there_is_room() {
    let (gate, clock) = waiting(1, WaitingSettings::default());
    clock.set(at(100));
    let late = Request::DEFAULT.by(at(100));
    assert_eq!(ask(&gate, late).unwrap_err().reason, RefusalReason::DeadlineExpired);
    assert_eq!(gate.try_acquire_for(&late).unwrap_err().reason, RefusalReason::DeadlineExpired);
    // It says nothing about the limit.
    assert_eq!(gate.snapshot().totals.refused, 0);
    assert!(ask(&gate, Request::DEFAULT.by(at(101))).is_ok());
}

#[test]
fn nobody_waits_past_his_deadline() {
    let (gate, clock) = waiting(2, WaitingSettings::default());
    let _tokens = [(); 2].map(|()| ask(&gate, Request::DEFAULT).unwrap());
    let mut waiter = queued(&gate, Request::DEFAULT.by(at(300)));
    assert_eq!(expires(&mut waiter), Some(at(300)));
    clock.set(at(300));
    let refusal = answer(&mut waiter).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::DeadlineExpired);
    assert_eq!(refusal.retry_after, None);
}

#[test]
fn a_wait_that_would_outlast_the_deadline_is_refused_at_the_door() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(100),
        max_wait: ms(60_000),
        ..WaitingSettings::default()
    };
    let (gate, clock) = waiting(1, settings);
    let mut token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiters: Vec<_> = (0..30).map(|_| queued(&gate, Request::DEFAULT)).collect();
    // Ten leave, one each 100 ms. So the 20 that are left take 2 s.
    for waiter in waiters.drain(..10) {
        clock.advance(ms(100));
        token.release(Outcome::Success);
        token = answer(&mut { waiter }).unwrap();
    }
    let soon = Request::DEFAULT.by(clock.now() + ms(1_500));
    let refusal = ask(&gate, soon).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::DeadlineUnreachable);
    let _later = queued(&gate, Request::DEFAULT.by(clock.now() + ms(2_500)));
}

#[test]
fn the_more_critical_are_served_first_and_take_the_place_of_the_less() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(2),
        shares: CriticalityShares::EQUAL,
        ..WaitingSettings::default()
    };
    let (gate, _clock) = waiting(1, settings);
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut first = queued(&gate, SHEDDABLE);
    let mut second = queued(&gate, SHEDDABLE);
    let mut critical = queued(&gate, CRITICAL_PLUS);
    assert!(second.is_woken() && !first.is_woken());
    assert_eq!(answer(&mut second).unwrap_err().reason, RefusalReason::Displaced);
    token.release(Outcome::Success);
    assert!(critical.is_woken() && !first.is_woken());
    answer(&mut critical).unwrap().release(Outcome::Success);
    assert!(answer(&mut first).is_ok());
}

#[test]
fn work_already_begun_goes_before_new_work() {
    let (gate, _clock) = waiting(4, WaitingSettings::default());
    let mut tokens: Vec<_> = (0..4).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
    let new = queued(&gate, CRITICAL_PLUS);
    let mut begun = queued(&gate, SHEDDABLE.continuing());
    tokens.pop().unwrap().release(Outcome::Success);
    assert!(begun.is_woken() && !new.is_woken());
    assert!(answer(&mut begun).is_ok());
}

#[test]
fn the_last_to_come_is_served_first_if_so_configured() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(5),
        order: Order::LastIn,
        ..WaitingSettings::default()
    };
    let (gate, _clock) = waiting(1, settings);
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let early = queued(&gate, Request::DEFAULT);
    let late = queued(&gate, Request::DEFAULT);
    token.release(Outcome::Success);
    assert!(late.is_woken() && !early.is_woken());
}

#[test]
fn a_standing_queue_is_cut_at_its_head_and_the_place_goes_to_the_next() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(50),
        max_wait: ms(60_000),
        codel: Some(CoDelSettings { target: ms(5), interval: ms(100) }),
        ..WaitingSettings::default()
    };
    let (gate, clock) = waiting(1, settings);
    let mut token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiters: std::collections::VecDeque<_> =
        (0..20).map(|_| queued(&gate, Request::DEFAULT)).collect();
    let mut cut = 0;
    for _ in 0..12 {
        clock.advance(ms(20));
        token.release(Outcome::Success);
        token = loop {
            match answer(&mut waiters.pop_front().unwrap()) {
                Ok(token) => break token,
                Err(refusal) => assert_eq!(refusal.reason, RefusalReason::QueueStanding),
            }
            cut += 1;
        };
        assert_eq!(gate.in_flight(), 1);
    }
    // Above the target since 20 ms, so the first goes at 120 ms, the next 100 ms later.
    assert_eq!(cut, 2);
    drop(token);
    drop(waiters);
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[test]
fn one_who_waits_for_his_share_only_does_not_stand_in_the_way_of_others() {
    let (builder, _clock) = plain(4);
    let half = Allowance::Share(Share::new(0.5).unwrap());
    let gate = builder
        .shares(CriticalityShares { sheddable: half, ..CriticalityShares::EQUAL })
        .waiting(WaitingSettings::default())
        .unwrap()
        .build();
    let mut sheddable: Vec<_> = (0..2).map(|_| ask(&gate, SHEDDABLE).unwrap()).collect();
    let mut waiter = queued(&gate, SHEDDABLE);
    let mut critical: Vec<_> = vec![ask(&gate, Request::DEFAULT).unwrap()];
    critical.push(gate.try_acquire_owned(&Request::DEFAULT).unwrap());
    assert_eq!(gate.in_flight(), 4);
    critical.clear();
    assert!(!waiter.is_woken(), "its share of two is used up");
    sheddable.pop();
    assert!(waiter.is_woken());
    assert!(answer(&mut waiter).is_ok());
}

#[test]
fn nobody_passes_a_heavy_one_who_waits_for_the_limit() {
    let (gate, _clock) =
        waiting(4, WaitingSettings { max_waiting: QueueBound::Count(5), ..WaitingSettings::default() });
    let mut tokens: Vec<_> = (0..3).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
    let mut heavy = queued(&gate, Request::DEFAULT.weighing(3));
    assert_eq!(gate.try_acquire().unwrap_err().reason, RefusalReason::LimitReached);
    let mut light = queued(&gate, Request::DEFAULT);
    tokens.pop();
    assert!(!heavy.is_woken() && !light.is_woken());
    tokens.pop();
    assert!(heavy.is_woken() && !light.is_woken());
    drop(answer(&mut heavy).unwrap());
    assert!(answer(&mut light).is_ok());
}

#[test]
fn everybody_who_waits_learns_what_became_of_him_when_many_places_come_at_once() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(1_000), ..WaitingSettings::default() };
    let (gate, _clock) = waiting(1, settings);
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiters: Vec<_> = (0..1_000).map(|_| queued(&gate, Request::DEFAULT)).collect();
    gate.replace_limiter(fixed(1_001));
    let tokens: Vec<_> = waiters.iter_mut().map(|waiter| answer(waiter).unwrap()).collect();
    assert_eq!(gate.in_flight(), 1_001);
    drop((token, tokens));
    assert_eq!(gate.in_flight(), 0);
}

/// tokio's clock, which tests can move.
#[derive(Debug)]
struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_timer_a_wait_ends_by_itself() {
    let clock = TokioClock(tokio::time::Instant::now());
    let gate = Gate::builder(fixed(1)).clock(clock).waiting(WaitingSettings::default()).unwrap().build();
    let token = gate.acquire_timed(Request::DEFAULT).await.unwrap();
    let refusal = gate.acquire_timed(Request::DEFAULT).await.unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::WaitedTooLong);
    let waited = gate.clock().now();
    assert!((at(1_000)..at(1_003)).contains(&waited), "{waited:?}");
    let (next, ()) = tokio::join!(gate.acquire_timed(Request::DEFAULT), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        token.release(Outcome::Success);
    });
    assert!(next.is_ok());
}

#[test]
fn whose_time_is_up_keeps_his_place_until_his_turn_if_so_configured() {
    let settings = WaitingSettings {
        max_waiting: QueueBound::Count(1),
        expiry: Expiry::AtTurn,
        ..WaitingSettings::default()
    };
    let (gate, clock) = waiting(1, settings);
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut late = queued(&gate, Request::DEFAULT);
    assert_eq!(expires(&mut late), None);
    clock.advance(ms(5_000));
    assert!(late.poll().is_pending());
    assert_eq!(ask(&gate, Request::DEFAULT).unwrap_err().reason, RefusalReason::QueueFull);
    assert_eq!(gate.waiting(), 1);
    token.release(Outcome::Success);
    assert_eq!(answer(&mut late).unwrap_err().reason, RefusalReason::WaitedTooLong);
    assert_eq!((gate.waiting(), gate.in_flight()), (0, 0));
}

#[test]
fn who_comes_in_a_pause_waits_and_is_let_in_in_order_when_it_ends() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(3), ..WaitingSettings::default() };
    let (gate, clock) = waiting(2, settings);
    let inside = ask(&gate, Request::DEFAULT).unwrap();
    gate.pause();
    assert_eq!(gate.try_acquire().unwrap_err().reason, RefusalReason::LimitReached);
    let mut first = queued(&gate, Request::DEFAULT);
    let mut better = queued(&gate, CRITICAL_PLUS);
    clock.advance(ms(10));
    inside.release(Outcome::Success);
    assert!(!first.is_woken() && !better.is_woken());
    let mut third = queued(&gate, Request::DEFAULT);
    gate.resume();
    assert!(better.is_woken() && first.is_woken() && !third.is_woken());
    let tokens = [answer(&mut better).unwrap(), answer(&mut first).unwrap()];
    assert!(third.poll().is_pending());
    assert_eq!((gate.in_flight(), gate.waiting()), (2, 1));
    drop(tokens);
    assert!(answer(&mut third).is_ok());
}

#[test]
fn a_pause_refuses_whom_it_cannot_let_wait_and_outlives_new_settings() {
    let (gate, _clock) = waiting(2, WaitingSettings::none());
    gate.pause();
    assert_eq!(ask(&gate, Request::DEFAULT).unwrap_err().reason, RefusalReason::LimitReached);
    gate.reconfigure(&gate.config()).unwrap();
    assert!(ask(&gate, Request::DEFAULT).is_err());
    gate.resume();
    assert!(ask(&gate, Request::DEFAULT).is_ok());
}
