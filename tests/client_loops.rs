//! Callers that begin again as soon as they are told no: what throttle, budget and waits make of them together.

use std::collections::BTreeMap;

use goodput::{
    algorithms::Instant,
    client::{Call, Failure, Retries, RetrySettings, Throttle, ThrottleSettings},
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

const SECOND: u64 = 1_000_000_000;

/// What a worker does next.
enum Next {
    Begins,
    Tries(Call),
    Hears(Call),
}

#[test]
fn workers_whose_every_call_fails_slow_down_when_the_budget_is_empty_and_go_on_to_probe() {
    // 256 in a closed loop; the server fails each attempt in 5 ms, for a minute.
    let mut retries = Retries::new(RetrySettings::default()).unwrap();
    let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(59);
    let mut draw = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut agenda: BTreeMap<(u64, u64), Next> = (0..256).map(|worker| ((0, worker), Next::Begins)).collect();
    let mut sent = [0_u32; 60];
    while let Some(((now, worker), next)) = agenda.pop_first().filter(|((now, _), _)| *now < 60 * SECOND) {
        let at = Instant::from_nanos(now);
        let mut call = match next {
            Next::Begins => retries.start(at),
            Next::Tries(call) | Next::Hears(call) => call,
        };
        if matches!(next, Next::Hears(_)) {
            throttle.record(false, at);
        } else if throttle.admits(draw(), at) {
            sent[(now / SECOND) as usize] += 1;
            agenda.insert((now + 5_000_000, worker), Next::Hears(call));
            continue;
        }
        let (next, wait) = match retries.failed(&mut call, Failure::PLAIN, None, draw(), at) {
            Ok(wait) => (Next::Tries(call), wait),
            Err(give_up) => (Next::Begins, give_up.before_next),
        };
        agenda.insert((now + wait.as_nanos() as u64, worker), next);
    }
    // Without any of it each would send 200 a second.
    assert!(sent[10..].iter().all(|&sent| sent <= 2 * 256), "{sent:?}");
    assert!(sent.iter().all(|&sent| sent >= 1), "{sent:?}");
}
