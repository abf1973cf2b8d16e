//! A published model of a retry storm, tick by tick, on the waiting room, the retry budget and the retry rules that
//! ship: four workers of 30 ms, a request every 10 ms, one in five critical, a trigger of one second in which service
//! takes longer, and callers that time out after 500 ms and try up to four times.

use std::collections::{BTreeMap, VecDeque};

use goodput::{
    Criticality, Request,
    algorithms::Instant,
    client::{
        BackoffSettings, Call, Failure, Jitter, PaymentSettings, Retries, RetryBudgetSettings, RetrySettings,
    },
    priority::CriticalityShares,
    share::Allowance,
    waiting::{Fit, Served, WaitingRoom, WaitingSettings},
};

const UNBOUNDED: usize = usize::MAX;

#[derive(Clone, Copy)]
struct Policy {
    max_waiting: usize,
    others: usize,
    drop_expired: bool,
}

const NO_SHEDDING: Policy = Policy { max_waiting: UNBOUNDED, others: UNBOUNDED, drop_expired: false };
const BOUNDED: Policy = Policy { max_waiting: 40, others: 40, drop_expired: false };
const DROPPING: Policy = Policy { drop_expired: true, ..BOUNDED };
const PRIORITY: Policy = Policy { others: 20, ..DROPPING };

#[derive(Clone, Copy)]
struct Callers {
    max_attempts: u32,
    budget: bool,
}

const NO_RETRIES: Callers = Callers { max_attempts: 1, budget: false };
const RETRIES: Callers = Callers { max_attempts: 4, budget: false };
const BUDGET: Callers = Callers { max_attempts: 4, budget: true };

#[derive(Debug, Default, PartialEq)]
struct Counts {
    attempts: u64,
    refused: u64,
    dropped: u64,
    on_time: u64,
    too_late: u64,
    wasted_ms: u64,
    max_queue: usize,
    waiting: usize,
    in_service: usize,
}

#[derive(Clone, Copy)]
struct Attempt {
    request: usize,
    deadline: u64,
}

struct InService {
    attempt: Attempt,
    done: u64,
    takes: u64,
}

struct UserRequest {
    start: u64,
    critical: bool,
    call: Call,
    succeeded: bool,
    attempts: u32,
}

struct Lab {
    policy: Policy,
    trigger_ms: u64,
    room: WaitingRoom<Attempt>,
    retries: Retries,
    requests: Vec<UserRequest>,
    due: BTreeMap<u64, VecDeque<usize>>,
    timeouts: VecDeque<Attempt>,
    serving: Vec<InService>,
    counts: Counts,
}

fn at(tick: u64) -> Instant {
    Instant::from_nanos(tick * 1_000_000)
}

impl Lab {
    fn new(policy: Policy, callers: Callers, trigger_ms: u64) -> Self {
        let shares =
            CriticalityShares { sheddable: Allowance::AtMost(policy.others), ..CriticalityShares::EQUAL };
        let settings = WaitingSettings { shares, ..WaitingSettings::plain(policy.max_waiting) };
        let budget = RetryBudgetSettings { one_every: None, initial: 0, ..RetryBudgetSettings::default() };
        let retries = RetrySettings {
            max_attempts: callers.max_attempts,
            backoff: BackoffSettings { jitter: Jitter::None, ..BackoffSettings::default() },
            payment: if callers.budget { PaymentSettings::Share(budget) } else { PaymentSettings::Free },
        };
        Self {
            policy,
            trigger_ms,
            room: WaitingRoom::new(settings).unwrap(),
            retries: Retries::new(retries).unwrap(),
            requests: Vec::new(),
            due: BTreeMap::new(),
            timeouts: VecDeque::new(),
            serving: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn run(mut self) -> Self {
        for tick in 0..12_000 {
            self.complete(tick);
            self.time_out(tick);
            for request in self.due.remove(&tick).unwrap_or_default() {
                self.send(request, tick);
            }
            if tick % 10 == 0 && tick < 8_000 {
                let call = self.retries.start(at(tick));
                let critical = self.requests.len().is_multiple_of(5);
                self.requests.push(UserRequest {
                    start: tick,
                    critical,
                    call,
                    succeeded: false,
                    attempts: 0,
                });
                self.send(self.requests.len() - 1, tick);
            }
            self.dispatch(tick);
            self.counts.max_queue = self.counts.max_queue.max(self.room.waiting());
        }
        self.counts.waiting = self.room.waiting();
        self.counts.in_service = self.serving.len();
        let counts = &self.counts;
        let accounted = counts.refused + counts.dropped + counts.on_time + counts.too_late;
        assert_eq!(counts.attempts, accounted + (counts.waiting + counts.in_service) as u64);
        self
    }

    fn complete(&mut self, tick: u64) {
        let (done, serving) =
            std::mem::take(&mut self.serving).into_iter().partition(|served| served.done == tick);
        self.serving = serving;
        for InService { attempt, takes, .. } in done {
            if tick <= attempt.deadline {
                self.counts.on_time += 1;
                self.requests[attempt.request].succeeded = true;
                self.timeouts.retain(|waiting| waiting.request != attempt.request);
            } else {
                self.counts.too_late += 1;
                self.counts.wasted_ms += takes;
            }
        }
    }

    fn time_out(&mut self, tick: u64) {
        while self.timeouts.front().is_some_and(|attempt| attempt.deadline == tick) {
            let attempt = self.timeouts.pop_front().unwrap();
            self.fail(attempt.request, tick);
        }
    }

    fn fail(&mut self, request: usize, tick: u64) {
        let call = &mut self.requests[request].call;
        if let Ok(wait) = self.retries.failed(call, Failure::PLAIN, None, 0.0, at(tick)) {
            self.due.entry(tick + wait.as_millis() as u64).or_default().push_back(request);
        }
    }

    fn send(&mut self, request: usize, tick: u64) {
        self.counts.attempts += 1;
        self.requests[request].attempts += 1;
        let attempt = Attempt { request, deadline: tick + 500 };
        let criticality =
            if self.requests[request].critical { Criticality::CriticalPlus } else { Criticality::Sheddable };
        let mut asks = Request::DEFAULT.of(criticality);
        asks.deadline = self.policy.drop_expired.then(|| at(attempt.deadline));
        match self.room.join(&asks, self.serving.len(), 4, at(tick), attempt) {
            Ok(_) => self.timeouts.push_back(attempt),
            Err(_) => {
                self.counts.refused += 1;
                self.fail(request, tick);
            }
        }
    }

    fn dispatch(&mut self, tick: u64) {
        while self.serving.len() < 4 {
            match self.room.serve(at(tick), |_| Fit::Now) {
                Some(Served::Admitted(waiter)) => {
                    let takes = if (1_000..2_000).contains(&tick) { self.trigger_ms } else { 30 };
                    self.serving.push(InService { attempt: waiter.payload, done: tick + takes, takes });
                }
                Some(Served::Refused(..)) => self.counts.dropped += 1,
                None => return,
            }
        }
    }

    /// Success in per cent of the requests that started in a window.
    fn success(&self, from: u64, to: u64, count: impl Fn(&UserRequest) -> bool) -> f64 {
        let window =
            self.requests.iter().filter(|request| (from..to).contains(&request.start) && count(request));
        let (all, good) =
            window.fold((0, 0), |(all, good), request| (all + 1, good + u32::from(request.succeeded)));
        f64::from(good) * 100.0 / f64::from(all)
    }

    /// Success in the four windows, and tries per request in the second.
    fn row(&self) -> [f64; 5] {
        let tries: u32 = self
            .requests
            .iter()
            .filter(|request| (1_000..2_000).contains(&request.start))
            .map(|r| r.attempts)
            .sum();
        let all = |from, to| self.success(from, to, |_| true);
        [all(0, 1_000), all(1_000, 2_000), all(2_000, 4_000), all(4_000, 8_000), f64::from(tries) / 100.0]
    }
}

#[test]
fn without_a_trigger_every_policy_serves_everybody() {
    for policy in [NO_SHEDDING, BOUNDED, DROPPING, PRIORITY] {
        assert_eq!(Lab::new(policy, RETRIES, 30).run().row(), [100.0, 100.0, 100.0, 100.0, 1.0]);
    }
}

#[test]
fn the_published_success_of_each_policy_and_caller_is_reproduced() {
    for (policy, callers, row) in [
        (NO_SHEDDING, RETRIES, [100.0, 62.0, 1.0, 0.0, 2.22]),
        (BOUNDED, RETRIES, [100.0, 100.0, 100.0, 100.0, 2.02]),
        (DROPPING, RETRIES, [100.0, 100.0, 100.0, 100.0, 1.74]),
        (PRIORITY, RETRIES, [100.0, 99.0, 100.0, 100.0, 2.22]),
        (NO_SHEDDING, NO_RETRIES, [100.0, 54.0, 100.0, 100.0, 1.0]),
        (NO_SHEDDING, BUDGET, [100.0, 66.0, 94.0, 100.0, 1.15]),
        (DROPPING, NO_RETRIES, [100.0, 57.0, 100.0, 100.0, 1.0]),
        (DROPPING, BUDGET, [100.0, 61.0, 100.0, 100.0, 1.14]),
    ] {
        assert_eq!(Lab::new(policy, callers, 90).run().row(), row);
    }
}

#[test]
fn the_published_counts_of_each_policy_are_reproduced() {
    for (
        policy,
        callers,
        [attempts, refused, dropped, on_time, too_late, wasted_ms, max_queue, waiting, in_service],
    ) in [
        (NO_SHEDDING, RETRIES, [2_716, 0, 0, 164, 1_308, 39_780, 1_510, 1_240, 4]),
        (BOUNDED, RETRIES, [1_139, 299, 0, 800, 40, 1_740, 40, 0, 0]),
        (DROPPING, RETRIES, [985, 157, 6, 800, 22, 1_200, 40, 0, 0]),
        (PRIORITY, RETRIES, [1_064, 256, 0, 799, 9, 810, 21, 0, 0]),
        (NO_SHEDDING, NO_RETRIES, [800, 0, 0, 754, 46, 1_920, 55, 0, 0]),
        (NO_SHEDDING, BUDGET, [818, 0, 0, 754, 64, 2_460, 66, 0, 0]),
        (DROPPING, NO_RETRIES, [800, 15, 6, 757, 22, 1_200, 40, 0, 0]),
        (DROPPING, BUDGET, [814, 25, 6, 761, 22, 1_200, 40, 0, 0]),
    ] {
        let expected = Counts {
            attempts,
            refused,
            dropped,
            on_time,
            too_late,
            wasted_ms,
            max_queue: max_queue as usize,
            waiting: waiting as usize,
            in_service: in_service as usize,
        };
        assert_eq!(Lab::new(policy, callers, 90).run().counts, expected);
    }
}

#[test]
fn the_published_share_of_the_critical_is_reproduced() {
    for (policy, critical, other, refused, dropped, max_queue) in
        [(DROPPING, 35.0, 40.0, 21, 28, 40), (PRIORITY, 60.0, 30.0, 48, 10, 22)]
    {
        let lab = Lab::new(policy, NO_RETRIES, 150).run();
        assert_eq!(lab.success(1_000, 2_000, |request| request.critical), critical);
        assert_eq!(lab.success(1_000, 2_000, |request| !request.critical), other);
        let counts = &lab.counts;
        assert_eq!((counts.refused, counts.dropped, counts.max_queue), (refused, dropped, max_queue));
    }
}
