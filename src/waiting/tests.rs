use proptest::prelude::*;

use super::*;
use crate::{
    priority::CriticalityShares,
    share::{Allowance, Share},
};

const CRITICAL: Request = Request::DEFAULT;
const SHEDDABLE: Request = Request::DEFAULT.of(Criticality::Sheddable);

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn room(settings: WaitingSettings) -> WaitingRoom<&'static str> {
    WaitingRoom::new(settings).unwrap()
}

/// A room for ten, whatever the criticality.
fn ten() -> WaitingSettings {
    WaitingSettings {
        max_waiting: QueueBound::Count(10),
        shares: CriticalityShares::EQUAL,
        ..WaitingSettings::default()
    }
}

fn join(room: &mut WaitingRoom<&'static str>, request: Request, millis: u64, name: &'static str) -> Ticket {
    room.join(&request, 10, 10, at(millis), name).unwrap().ticket
}

/// The names of those served until nobody fits, and the reason of those refused.
fn serve_all(
    room: &mut WaitingRoom<&'static str>,
    millis: u64,
) -> Vec<(&'static str, Option<RefusalReason>)> {
    std::iter::from_fn(|| room.serve(at(millis), |_| Fit::Now))
        .map(|served| match served {
            Served::Admitted(waiter) => (waiter.payload, None),
            Served::Refused(waiter, reason) => (waiter.payload, Some(reason)),
        })
        .collect()
}

fn names(room: &mut WaitingRoom<&'static str>, millis: u64) -> Vec<&'static str> {
    serve_all(room, millis).into_iter().map(|(name, _)| name).collect()
}

fn refusal(room: &mut WaitingRoom<&'static str>, request: Request, millis: u64) -> RefusalReason {
    room.join(&request, 10, 10, at(millis), "refused").unwrap_err().reason
}

#[test]
fn by_default_half_as_many_as_the_limit_may_wait() {
    let mut room = room(WaitingSettings::default());
    for _ in 0..5 {
        join(&mut room, CRITICAL, 0, "waits");
    }
    assert_eq!(refusal(&mut room, CRITICAL, 0), RefusalReason::QueueFull);
}

#[test]
fn where_nobody_may_wait_the_limit_is_the_reason() {
    assert_eq!(refusal(&mut room(WaitingSettings::none()), CRITICAL, 0), RefusalReason::LimitReached);
}

#[test]
fn the_first_in_is_served_first_or_the_last_in_as_the_order_says() {
    for (order, expected) in [(Order::FirstIn, ["a", "b", "c"]), (Order::LastIn, ["c", "b", "a"])] {
        let mut room = room(WaitingSettings { order, ..ten() });
        for (millis, name) in ["a", "b", "c"].into_iter().enumerate() {
            join(&mut room, CRITICAL, millis as u64, name);
        }
        assert_eq!(names(&mut room, 3), expected);
    }
}

#[test]
fn the_adaptive_order_turns_round_while_a_queue_stands() {
    let mut room = room(WaitingSettings { order: Order::Adaptive, ..ten() });
    for (millis, name) in [(0, "a"), (10, "b"), (20, "c"), (30, "d")] {
        join(&mut room, CRITICAL, millis, name);
    }
    let mut next = |millis| match room.serve(at(millis), |_| Fit::Now) {
        Some(Served::Admitted(waiter)) => waiter.payload,
        other => panic!("{other:?}"),
    };
    assert_eq!([next(99), next(100), next(101), next(102)], ["a", "d", "c", "b"]);
}

#[test]
fn newest_first_above_a_threshold_is_the_adaptive_order_without_a_time() {
    let settings = WaitingSettings {
        order: Order::Adaptive,
        standing_above: Allowance::AtMost(2),
        standing_for: Duration::ZERO,
        ..ten()
    };
    let mut room = room(settings);
    for name in ["a", "b", "c", "d"] {
        join(&mut room, CRITICAL, 0, name);
    }
    // Four and three wait: the newest. Two and one: the oldest.
    assert_eq!(names(&mut room, 0), ["d", "c", "a", "b"]);
}

#[test]
fn the_more_critical_go_first_and_work_already_begun_before_all() {
    let mut room = room(ten());
    join(&mut room, SHEDDABLE, 0, "sheddable");
    join(&mut room, Request::DEFAULT.of(Criticality::SheddablePlus), 1, "sheddable-plus");
    join(&mut room, CRITICAL, 2, "critical");
    join(&mut room, Request::DEFAULT.of(Criticality::CriticalPlus), 3, "critical-plus");
    join(&mut room, SHEDDABLE.continuing(), 4, "begun");
    assert_eq!(names(&mut room, 5), ["begun", "critical-plus", "critical", "sheddable-plus", "sheddable"]);
}

#[test]
fn in_one_line_criticality_does_not_change_the_order() {
    let mut room = room(WaitingSettings::plain(10));
    join(&mut room, SHEDDABLE, 0, "first");
    join(&mut room, CRITICAL, 1, "second");
    assert_eq!(names(&mut room, 2), ["first", "second"]);
}

#[test]
fn each_criticality_may_use_its_share_of_the_queue() {
    let settings = WaitingSettings { displace: false, ..WaitingSettings::default() };
    let mut room = room(WaitingSettings { max_waiting: QueueBound::Count(40), ..settings });
    for _ in 0..10 {
        join(&mut room, SHEDDABLE, 0, "sheddable");
    }
    assert_eq!(refusal(&mut room, SHEDDABLE, 0), RefusalReason::QueueFull);
    for _ in 0..30 {
        join(&mut room, CRITICAL, 0, "critical");
    }
    assert_eq!(refusal(&mut room, CRITICAL, 0), RefusalReason::QueueFull);
}

#[test]
fn in_a_full_queue_the_more_critical_displaces_the_least_critical_that_came_last() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(3), ..ten() };
    let mut room = room(settings);
    join(&mut room, CRITICAL, 0, "critical");
    join(&mut room, SHEDDABLE, 1, "early");
    join(&mut room, SHEDDABLE, 2, "late");
    let displaced = room.join(&CRITICAL, 10, 10, at(3), "new").unwrap().displaced.unwrap();
    assert_eq!(displaced.payload, "late");
    assert_eq!(refusal(&mut room, SHEDDABLE, 4), RefusalReason::QueueFull);
    assert_eq!(names(&mut room, 5), ["critical", "new", "early"]);
}

#[test]
fn the_less_critical_get_one_place_of_twenty_at_least() {
    let mut room = room(WaitingSettings { max_waiting: QueueBound::Count(1_000), ..ten() });
    for _ in 0..100 {
        join(&mut room, CRITICAL, 0, "critical");
        join(&mut room, SHEDDABLE, 0, "sheddable");
    }
    let served = names(&mut room, 1);
    let places: Vec<_> =
        (0..100).filter(|&place| served[place] == "sheddable").map(|place| place + 1).collect();
    assert_eq!(places, [20, 40, 60, 80, 100]);
}

#[test]
fn a_strict_order_passes_over_for_ever() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(1_000), passed_over_at_most: 0, ..ten() };
    let mut room = room(settings);
    join(&mut room, SHEDDABLE, 0, "sheddable");
    for _ in 0..100 {
        join(&mut room, CRITICAL, 0, "critical");
    }
    assert_eq!(names(&mut room, 1).last(), Some(&"sheddable"));
}

#[test]
fn the_expired_are_dropped_when_their_turn_comes_and_cost_no_place() {
    let mut room = room(ten());
    join(&mut room, CRITICAL.by(at(50)), 0, "gone");
    join(&mut room, CRITICAL.by(at(51)), 0, "there");
    join(&mut room, CRITICAL, 0, "patient");
    // A deadline in this very instant is past.
    assert_eq!(
        serve_all(&mut room, 50),
        [("gone", Some(RefusalReason::DeadlineExpired)), ("there", None), ("patient", None)]
    );
}

#[test]
fn a_request_that_could_not_be_served_in_time_any_more_is_expired() {
    let mut room = room(WaitingSettings { least_time_left: Duration::from_millis(50), ..ten() });
    join(&mut room, CRITICAL.by(at(1_000)), 0, "doomed");
    assert_eq!(room.next_expiry(), Some(at(950)));
    assert_eq!(serve_all(&mut room, 950), [("doomed", Some(RefusalReason::DeadlineExpired))]);
    assert_eq!(refusal(&mut room, CRITICAL.by(at(1_000)), 950), RefusalReason::DeadlineExpired);
}

#[test]
fn nobody_waits_longer_than_allowed() {
    let mut room = room(ten());
    join(&mut room, CRITICAL, 0, "a");
    join(&mut room, CRITICAL.by(at(500)), 10, "b");
    join(&mut room, CRITICAL, 20, "c");
    let mut expired = |millis| room.expire(at(millis)).map(|(waiter, reason)| (waiter.payload, reason));
    assert_eq!(expired(499), None);
    assert_eq!(expired(500), Some(("b", RefusalReason::DeadlineExpired)));
    assert_eq!(expired(1_000), Some(("a", RefusalReason::WaitedTooLong)));
    assert_eq!(expired(1_019), None);
    assert_eq!(expired(1_020), Some(("c", RefusalReason::WaitedTooLong)));
    assert!(room.is_empty() && room.next_expiry().is_none());
}

/// A full room that drains at 100 a second, as ten departures have shown.
fn draining() -> WaitingRoom<&'static str> {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(100), ..ten() };
    let mut room = room(settings);
    for _ in 0..20 {
        join(&mut room, CRITICAL, 0, "ahead");
    }
    for departure in 1..=10 {
        room.departed(1, at(departure * 10));
    }
    room
}

#[test]
fn a_deadline_that_the_wait_ahead_exceeds_is_refused_at_the_door() {
    let mut room = draining();
    assert_eq!(room.drain_per_second(at(100)), Some(100.0));
    // 20 ahead and itself: 210 ms.
    assert_eq!(refusal(&mut room, CRITICAL.by(at(309)), 100), RefusalReason::DeadlineUnreachable);
    join(&mut room, CRITICAL.by(at(310)), 100, "in time");
    // What goes before all others need not wait for them.
    join(&mut room, CRITICAL.continuing().by(at(110)), 100, "begun");
}

#[test]
fn a_wait_longer_than_allowed_is_refused_at_the_door() {
    let mut room = draining();
    room.reconfigure(WaitingSettings {
        max_wait: Duration::from_millis(200),
        max_waiting: QueueBound::Count(100),
        ..ten()
    })
    .unwrap();
    assert_eq!(refusal(&mut room, CRITICAL, 100), RefusalReason::QueueFull);
}

#[test]
fn an_estimate_never_keeps_the_room_empty() {
    let mut room = draining();
    assert_eq!(serve_all(&mut room, 100).len(), 20);
    // Long ago it drained slowly; now nobody waits, so anybody may.
    join(&mut room, CRITICAL.by(at(101)), 100, "hopeful");
}

#[test]
fn the_refused_are_told_the_queue_ahead_divided_by_its_rate() {
    let settings = WaitingSettings { max_waiting: QueueBound::Count(60), ..WaitingSettings::plain(60) };
    let mut room = room(settings);
    for _ in 0..60 {
        join(&mut room, CRITICAL, 0, "ahead");
    }
    let silent = room.join(&CRITICAL, 10, 10, at(0), "refused").unwrap_err();
    assert_eq!((silent.retry_after, silent.limit, silent.in_flight), (None, 10, 10));
    for departure in 1..=10 {
        room.departed(1, at(departure * 50));
    }
    // 60 ahead and itself at 20 a second: 3.05 s.
    let told = room.join(&CRITICAL, 10, 10, at(500), "refused").unwrap_err();
    assert_eq!(told.retry_after, Some(Duration::from_secs(4)));
}

#[test]
fn one_who_leaves_is_gone_at_once_and_only_once() {
    let mut room = room(ten());
    join(&mut room, CRITICAL, 0, "a");
    let ticket = join(&mut room, CRITICAL.by(at(5)), 0, "b");
    join(&mut room, CRITICAL, 0, "c");
    assert_eq!(room.leave(ticket, at(1)).map(|waiter| waiter.payload), Some("b"));
    assert_eq!(room.leave(ticket, at(1)), None);
    // The place is given to another, with another ticket.
    let reused = join(&mut room, CRITICAL, 1, "d");
    assert!(reused != ticket && room.get(ticket).is_none());
    assert_eq!(names(&mut room, 10), ["a", "c", "d"]);
}

#[test]
fn nobody_passes_a_heavy_request_that_waits_for_room() {
    let mut room = room(ten());
    join(&mut room, CRITICAL.weighing(5), 0, "heavy");
    join(&mut room, CRITICAL, 0, "light");
    let fits = |free| move |request: &Request| if request.weight <= free { Fit::Now } else { Fit::NotYet };
    assert_eq!(room.serve(at(1), fits(4)), None);
    assert!(
        matches!(room.serve(at(1), fits(5)), Some(Served::Admitted(waiter)) if waiter.payload == "heavy")
    );
}

#[test]
fn others_pass_one_that_waits_for_something_of_its_own() {
    let mut room = room(ten());
    let partition = Some(crate::Key::of("full"));
    join(&mut room, Request { partition, ..CRITICAL }, 0, "blocked");
    join(&mut room, CRITICAL, 1, "free");
    join(&mut room, SHEDDABLE, 2, "less");
    let fits = |request: &Request| if request.partition == partition { Fit::Pass } else { Fit::Now };
    let served: Vec<_> = std::iter::from_fn(|| room.serve(at(3), fits)).collect();
    assert_eq!(served.len(), 2);
    assert_eq!(room.oldest_wait(at(10)), Duration::from_millis(10));
    assert_eq!(names(&mut room, 10), ["blocked"]);
}

#[test]
fn controlled_delay_cuts_a_standing_queue_from_its_head() {
    let settings =
        WaitingSettings { codel: Some(CoDelSettings::default()), ..WaitingSettings::plain(100_000) };
    let mut room = room(settings);
    // Two come each ms and one is served: the queue stands from the first ms on.
    let (mut admitted, mut cuts) = (0, Vec::new());
    for millis in 0..400 {
        join(&mut room, CRITICAL, millis, "a");
        join(&mut room, CRITICAL, millis, "b");
        loop {
            match room.serve(at(millis), |_| Fit::Now) {
                Some(Served::Refused(_, RefusalReason::QueueStanding)) => cuts.push(millis),
                Some(Served::Admitted(_)) => break admitted += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(admitted, 400);
    // The one served at m ms came at m/2 ms: at 9 ms the wait is 5 ms for the first time. The first cut is 100 ms later,
    // the next 100 ms, 100/√2 and 100/√3 apart, each at the next whole ms.
    assert_eq!(cuts[..4], [109, 209, 280, 338]);
}

#[derive(Clone, Debug)]
enum Step {
    Join { level: usize, weight: u32, deadline: Option<u64>, continuation: bool },
    Serve { free: u32 },
    Leave { pick: usize },
    Expire,
    Depart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..4, 1_u32..4, prop::option::of(0_u64..2_000), any::<bool>()).prop_map(
            |(level, weight, deadline, continuation)| Step::Join { level, weight, deadline, continuation }
        ),
        2 => (0_u32..5).prop_map(|free| Step::Serve { free }),
        1 => any::<usize>().prop_map(|pick| Step::Leave { pick }),
        1 => Just(Step::Expire),
        1 => Just(Step::Depart),
    ]
}

fn settings() -> impl Strategy<Value = WaitingSettings> {
    let order = prop_oneof![Just(Order::FirstIn), Just(Order::LastIn), Just(Order::Adaptive)];
    let bound = prop_oneof![(0_usize..20).prop_map(QueueBound::Count), Just(QueueBound::OfLimit(Share::ALL))];
    (order, bound, any::<[bool; 4]>(), 0_u32..5).prop_map(|(order, max_waiting, flags, passed_over)| {
        WaitingSettings {
            order,
            max_waiting,
            by_criticality: flags[0],
            displace: flags[1],
            refuse_hopeless: flags[2],
            codel: flags[3].then(CoDelSettings::default),
            passed_over_at_most: if passed_over == 1 { 0 } else { passed_over },
            ..WaitingSettings::default()
        }
    })
}

proptest! {
    #[test]
    fn everybody_who_joined_leaves_exactly_once_and_nobody_is_served_late(
        settings in settings(), steps in prop::collection::vec((step(), 0_u64..200), 0..300),
    ) {
        let mut room = WaitingRoom::new(settings.clone()).unwrap();
        let (mut now, mut number) = (0, 0_u32);
        let mut inside = std::collections::BTreeMap::new();
        for (step, gap) in steps {
            now += gap;
            match step {
                Step::Join { level, weight, deadline, continuation } => {
                    let deadline = deadline.map(|left| at(now + left));
                    let criticality = Criticality::ALL[level];
                    let request = Request { weight, criticality, deadline, continuation, ..Request::DEFAULT };
                    if let Ok(joined) = room.join(&request, 12, 12, at(now), number) {
                        if let Some(displaced) = joined.displaced {
                            prop_assert!(displaced.request.criticality < criticality || continuation);
                            prop_assert_eq!(inside.remove(&displaced.ticket), Some(displaced.payload));
                        }
                        prop_assert_eq!(inside.insert(joined.ticket, number), None);
                    }
                    prop_assert!(room.waiting() <= settings.max_waiting.under(12));
                    number += 1;
                }
                Step::Serve { free } => {
                    let fits = |request: &Request| if request.weight <= free { Fit::Now } else { Fit::NotYet };
                    match room.serve(at(now), fits) {
                        Some(Served::Admitted(waiter)) => {
                            prop_assert!(waiter.request.weight <= free);
                            prop_assert!(waiter.request.deadline.is_none_or(|deadline| at(now) < deadline));
                            prop_assert!(at(now).since(waiter.joined) < settings.max_wait);
                            prop_assert_eq!(inside.remove(&waiter.ticket), Some(waiter.payload));
                        }
                        Some(Served::Refused(waiter, _)) => {
                            prop_assert_eq!(inside.remove(&waiter.ticket), Some(waiter.payload));
                        }
                        None => {}
                    }
                }
                Step::Leave { pick } => {
                    let ticket = inside.keys().nth(pick % inside.len().max(1)).copied();
                    if let Some(ticket) = ticket {
                        prop_assert_eq!(room.leave(ticket, at(now)).map(|waiter| waiter.payload), inside.remove(&ticket));
                    }
                }
                Step::Expire => {
                    while let Some((waiter, _)) = room.expire(at(now)) {
                        prop_assert!(waiter.expires <= at(now));
                        prop_assert_eq!(inside.remove(&waiter.ticket), Some(waiter.payload));
                    }
                    prop_assert!(room.next_expiry().is_none_or(|next| next > at(now)));
                }
                Step::Depart => room.departed(1, at(now)),
            }
            prop_assert_eq!(room.waiting(), inside.len());
            prop_assert!(inside.keys().all(|&ticket| room.get(ticket).is_some()));
        }
        while let Some(Served::Admitted(waiter) | Served::Refused(waiter, _)) = room.serve(at(now), |_| Fit::Now) {
            prop_assert_eq!(inside.remove(&waiter.ticket), Some(waiter.payload));
        }
        prop_assert!(inside.is_empty() && room.is_empty() && room.next_expiry().is_none());
    }
}
