//! Other settings while running.

use goodput::{
    Gate, GateConfig, Key, ManualClock, Outcome, RefusalReason, Request,
    algorithms::{AimdSettings, Algorithm, FixedSettings},
    priority::{CriticalityShares, PartitionsSettings},
    share::Share,
    waiting::{QueueBound, WaitingSettings},
};

use crate::support::{SHEDDABLE, answer, ask, queued};

fn config(limit: usize) -> GateConfig {
    GateConfig {
        limiter: Some(Algorithm::Fixed(FixedSettings { limit })),
        waiting: WaitingSettings { max_waiting: QueueBound::Count(10), ..WaitingSettings::default() },
        ..GateConfig::default()
    }
}

fn gate(config: &GateConfig) -> Gate<ManualClock> {
    config.builder().unwrap().clock(ManualClock::new()).build()
}

#[test]
fn a_higher_limit_lets_waiters_in_and_a_lower_one_drains() {
    let gate = gate(&config(1));
    let token = ask(&gate, Request::DEFAULT).unwrap();
    let mut waiters: Vec<_> = (0..3).map(|_| queued(&gate, Request::DEFAULT)).collect();
    gate.reconfigure(&config(3)).unwrap();
    let woken: Vec<_> = waiters.iter().map(|waiter| waiter.is_woken()).collect();
    assert_eq!(woken, [true, true, false]);
    gate.reconfigure(&config(1)).unwrap();
    assert_eq!((gate.limit(), gate.in_flight()), (1, 3));
    token.release(Outcome::Success);
    assert!(!waiters[2].is_woken());
    drop(answer(&mut waiters[0]).unwrap());
    drop(answer(&mut waiters[1]).unwrap());
    assert!(waiters[2].is_woken());
}

#[test]
fn shares_and_waiting_change_with_the_next_request() {
    let mut config = config(10);
    let gate = gate(&config);
    let _tokens: Vec<_> = (0..8).map(|_| ask(&gate, SHEDDABLE).unwrap()).collect();
    config.shares = Some(CriticalityShares::default());
    config.waiting = WaitingSettings::none();
    gate.reconfigure(&config).unwrap();
    assert_eq!(ask(&gate, SHEDDABLE).unwrap_err().reason, RefusalReason::CriticalityShareUsed);
    config.shares = None;
    gate.reconfigure(&config).unwrap();
    assert!(ask(&gate, SHEDDABLE).is_ok());
}

#[test]
fn partitions_may_come_and_go_while_their_tokens_are_out() {
    let mut config = config(4);
    let gate = gate(&config);
    let half = Share::new(0.5).unwrap();
    let a = Request::DEFAULT.in_partition(Key::of("a"));
    let before = ask(&gate, a).unwrap();
    config.partitions = Some(PartitionsSettings::default().with("a", half).with("b", half));
    gate.reconfigure(&config).unwrap();
    let during = ask(&gate, a).unwrap();
    config.partitions = Some(PartitionsSettings::default().with("a", half));
    gate.reconfigure(&config).unwrap();
    let after = ask(&gate, a).unwrap();
    drop((before, during));
    config.partitions = None;
    gate.reconfigure(&config).unwrap();
    drop(after);
    assert_eq!(gate.in_flight(), 0);
}

#[test]
fn a_limiter_of_the_same_kind_goes_on_from_where_the_old_one_was() {
    let aimd = |initial, min, max| {
        Some(Algorithm::Aimd(AimdSettings { initial, min, max, ..AimdSettings::default() }))
    };
    let mut config = GateConfig { limiter: aimd(40, 10, 100), ..GateConfig::default() };
    let gate = gate(&config);
    config.limiter = aimd(20, 10, 200);
    gate.reconfigure(&config).unwrap();
    assert_eq!(gate.limit(), 40);
    // Where the new bounds forbid it, it starts anew.
    config.limiter = aimd(20, 10, 30);
    gate.reconfigure(&config).unwrap();
    assert_eq!(gate.limit(), 20);
}

#[test]
fn what_did_not_change_keeps_its_state_and_what_is_not_given_stays() {
    let config = GateConfig { limiter: Some(Algorithm::Aimd(AimdSettings::default())), ..config(1) };
    let gate = gate(&config);
    for _ in 0..5 {
        let tokens: Vec<_> = (0..gate.limit()).map(|_| ask(&gate, Request::DEFAULT).unwrap()).collect();
        for token in tokens {
            token.release(Outcome::Success);
        }
    }
    let learned = gate.limit();
    assert!(learned > 20);
    gate.reconfigure(&GateConfig { limiter: None, observe_only: true, ..config.clone() }).unwrap();
    assert_eq!(gate.limit(), learned);
    assert_eq!(gate.config(), GateConfig { observe_only: true, ..config });
}

#[test]
fn a_contradiction_changes_nothing() {
    let gate = gate(&config(5));
    let mut wrong = config(7);
    wrong.partitions = Some(PartitionsSettings::default().with("a", Share::ALL).with("b", Share::ALL));
    assert_eq!(gate.reconfigure(&wrong).unwrap_err().field, "partitions.shares");
    let renamed = GateConfig { name: String::from("another"), ..config(7) };
    assert_eq!(gate.reconfigure(&renamed).unwrap_err().field, "name");
    assert_eq!((gate.limit(), gate.config()), (5, config(5)));
    assert_eq!(GateConfig::default().builder().unwrap_err().field, "limiter");
}
