//! What a client sends, and when.

use goodput::{
    Criticality, Key,
    algorithms::Instant,
    client::{Call, Failure, Jitter, Retries as Rules, Throttle},
};

use super::classes::{Classes, Picker};
use crate::{
    RetryOn, ScenarioError,
    random::{Purpose, Stream},
    scenario::{Clients, Closed, Listed, Process, Retries, Scenario, Work, nanos},
};

/// One client with its traffic and its chances.
#[derive(Debug)]
pub(super) struct Client {
    traffic: Traffic,
    work: Work,
    arrivals: Stream,
    works: Stream,
    errors: Stream,
    waits: Stream,
    joins: u64,
    leaves: u64,
    pub(super) timeout: Option<u64>,
    /// For how long an answer is worth something to it, if it tells.
    deadline: Option<u64>,
    /// What doors are told of each of its requests.
    told: goodput::Request,
    picker: Picker,
    retries: Option<Retrying>,
    throttle: Option<Throttle>,
    /// Its gate, by number.
    pub(super) gate: Option<usize>,
}

/// A request that is to be sent now.
pub(super) struct Due {
    pub(super) work: u64,
    pub(super) class: u16,
    /// When the next one is, unless an answer decides that.
    pub(super) next: Option<u64>,
}

#[derive(Debug)]
struct Retrying {
    rules: Rules,
    /// What the scenario says.
    written: Retries,
}

#[derive(Debug)]
enum Traffic {
    Open { process: Process, arrivals: Arrivals },
    Closed(Closed),
    Listed { requests: Vec<Listed>, next: usize },
    Paced(Pace),
}

/// A producer at the ticks of its clock.
#[derive(Debug)]
pub(super) struct Pace {
    tick: u64,
    due_per_tick: f64,
    owed: f64,
    pub(super) pauses: bool,
    /// The request that a door did not take.
    pub(super) kept: Option<(u64, u16)>,
}

impl Pace {
    /// When the tick after this one is.
    pub(super) const fn next(&self, now: u64) -> u64 {
        now.saturating_add(self.tick)
    }

    pub(super) const fn tick(&self) -> u64 {
        self.tick
    }

    /// A tick passes.
    pub(super) fn owe(&mut self) {
        self.owed += self.due_per_tick;
    }

    /// Whether a whole request is owed; it is then no more.
    pub(super) fn pay(&mut self) -> bool {
        let whole = self.owed >= 1.0;
        if whole {
            self.owed -= 1.0;
        }
        whole
    }

    /// Keeps a request for later.
    pub(super) fn keep(&mut self, work: u64, class: u16) {
        self.owed += 1.0;
        self.kept = Some((work, class));
    }
}

impl Client {
    pub(super) fn new(
        scenario: &Scenario,
        clients: &Clients,
        classes: &mut Classes,
        seed: u64,
        index: usize,
        length_ns: u64,
    ) -> Result<Self, ScenarioError> {
        let joins = nanos(clients.joins);
        let traffic = match (&clients.open, &clients.closed, &clients.paced) {
            (Some(open), ..) => Traffic::Open {
                process: open.process,
                arrivals: Arrivals::from(joins, open.steps(length_ns)),
            },
            (_, Some(closed), _) => Traffic::Closed(closed.clone()),
            (.., Some(paced)) => Traffic::Paced(Pace {
                tick: nanos(paced.tick),
                due_per_tick: paced.per_second * nanos(paced.tick) as f64 / 1e9,
                owed: 0.0,
                pauses: paced.pauses,
                kept: None,
            }),
            (None, None, None) => Traffic::Listed { requests: clients.requests.clone(), next: 0 },
        };
        let invalid =
            |error: goodput::algorithms::InvalidSettings| ScenarioError::new(format!("`clients`: {error}"));
        let deadline = clients.tells_deadline.then(|| clients.timeout.or(scenario.deadline)).flatten();
        Ok(Self {
            traffic,
            work: scenario.service.work.clone(),
            arrivals: Stream::new(seed, Purpose::Arrivals, index),
            works: Stream::new(seed, Purpose::Work, index),
            errors: Stream::new(seed, Purpose::Errors, index),
            waits: Stream::new(seed, Purpose::Waits, index),
            joins,
            leaves: clients.leaves.map_or(u64::MAX, nanos),
            timeout: clients.timeout.map(nanos),
            deadline: deadline.map(nanos),
            told: goodput::Request {
                partition: clients.partition.as_deref().map(Key::of),
                cohort: clients.tells_user.then(|| Key::of_number(index as u64)),
                ..goodput::Request::DEFAULT
            },
            picker: classes.picker(&clients.classes, Stream::new(seed, Purpose::Classes, index)),
            retries: clients.retries.as_ref().map(Retrying::new).transpose().map_err(invalid)?,
            throttle: clients.throttle.clone().map(Throttle::new).transpose().map_err(invalid)?,
            gate: None,
        })
    }

    pub(super) const fn joins(&self) -> u64 {
        self.joins
    }

    /// When its first requests are sent, of each user one.
    pub(super) fn first_arrivals(&mut self) -> Vec<u64> {
        let joins = self.joins;
        match &mut self.traffic {
            Traffic::Open { process: Process::Constant, .. } | Traffic::Paced(_) => vec![joins],
            Traffic::Open { .. } => self.next_open_arrival().into_iter().collect(),
            Traffic::Closed(closed) => {
                let users = u64::from(closed.users);
                (0..users)
                    .map(|user| match closed.first_over {
                        Some(over) => {
                            let share = u128::from(nanos(over)) * u128::from(user) / u128::from(users);
                            joins.saturating_add(share as u64)
                        }
                        None => joins.saturating_add(closed.think.draw(&mut self.arrivals)),
                    })
                    .collect()
            }
            Traffic::Listed { requests, .. } => {
                requests.first().map(|request| nanos(request.at).max(joins)).into_iter().collect()
            }
        }
    }

    pub(super) const fn still_there(&self, now: u64) -> bool {
        now < self.leaves
    }

    /// The request that is sent now.
    #[inline]
    pub(super) fn send(&mut self) -> Due {
        match &mut self.traffic {
            Traffic::Open { .. } => {
                let next = self.next_open_arrival();
                Due { work: self.work.draw(&mut self.works), class: self.picker.pick(), next }
            }
            Traffic::Closed(_) | Traffic::Paced(_) => {
                Due { work: self.work.draw(&mut self.works), class: self.picker.pick(), next: None }
            }
            Traffic::Listed { requests, next } => {
                let listed = requests.get(*next);
                let work = listed.and_then(|request| request.work).map(nanos);
                let class = listed.and_then(|request| request.class.as_deref());
                let class = match class {
                    Some(name) => self.picker.named(name),
                    None => self.picker.pick(),
                };
                *next += 1;
                let following = requests.get(*next).map(|request| nanos(request.at).max(self.joins));
                let work = work.map_or_else(|| self.work.draw(&mut self.works), |work| work.max(1));
                Due { work, class, next: following }
            }
        }
    }

    /// How it sends, if at the ticks of a clock.
    pub(super) fn pace(&mut self) -> Option<&mut Pace> {
        if let Traffic::Paced(pace) = &mut self.traffic { Some(pace) } else { None }
    }

    /// How many attempts of the first request of each of its users were in vain before the run began, and how many
    /// users these are.
    pub(super) fn already_failed(&self) -> Option<(u32, u32)> {
        match &self.traffic {
            Traffic::Closed(closed) if closed.already_failed > 0 => {
                Some((closed.already_failed, closed.users))
            }
            _ => None,
        }
    }

    /// What doors are told of an attempt that is sent at `sent`.
    #[inline]
    pub(super) fn request(&self, criticality: Criticality, sent: u64) -> goodput::Request {
        let deadline = self.deadline.map(|deadline| Instant::from_nanos(sent.saturating_add(deadline)));
        goodput::Request { criticality, deadline, ..self.told }
    }

    /// A new request, for whoever counts them to pay for retries.
    #[inline]
    pub(super) fn start_call(&mut self, now: u64) -> Option<Call> {
        Some(self.retries.as_mut()?.rules.start(Instant::from_nanos(now)))
    }

    /// A request that failed before.
    pub(super) fn resume_call(&mut self, failed: u32, now: u64) -> Option<Call> {
        let mut call = self.start_call(now)?;
        for _ in 0..failed {
            let _ = self.wait_before_next(&mut call, now);
        }
        Some(call)
    }

    /// Whether an attempt may be sent, as far as the client's throttle is concerned.
    #[inline]
    pub(super) fn may_send(&mut self, now: u64) -> bool {
        self.throttle.as_mut().is_none_or(|throttle| throttle.admits_by_debt(Instant::from_nanos(now)))
    }

    /// The outcome of an attempt that was sent has become known.
    #[inline]
    pub(super) fn learn(&mut self, accepted: bool, now: u64) {
        if let Some(throttle) = &mut self.throttle {
            throttle.record(accepted, Instant::from_nanos(now));
        }
    }

    /// A request was answered well.
    #[inline]
    pub(super) fn succeeded(&mut self, call: Option<&Call>) {
        if let (Some(retries), Some(call)) = (&mut self.retries, call) {
            retries.rules.succeeded(call);
        }
    }

    /// How long to wait before the attempt after one that was in vain, which is paid for now. `None` if there is none.
    pub(super) fn wait_before_retry(
        &mut self,
        call: Option<&mut Call>,
        trouble: RetryOn,
        now: u64,
    ) -> Option<u64> {
        let retries = self.retries.as_ref()?;
        if !retries.written.on.contains(&trouble) {
            return None;
        }
        self.wait_before_next(call?, now)
    }

    /// The same, whatever the trouble.
    pub(super) fn wait_before_next(&mut self, call: &mut Call, now: u64) -> Option<u64> {
        let retries = self.retries.as_mut()?;
        let by_chance = retries.written.jitter != Jitter::None;
        let random = if by_chance { self.waits.uniform() } else { 0.0 };
        let listed = retries.written.listed_wait(call.attempts());
        let failed = retries.rules.failed(call, Failure::PLAIN, None, random, Instant::from_nanos(now));
        failed.ok().map(|wait| nanos(listed.unwrap_or(wait)))
    }

    /// Whether attempts follow each other without regard to their outcome.
    pub(super) fn retries_from_send(&self) -> bool {
        self.retries.as_ref().is_some_and(|retries| retries.written.from_send)
    }

    /// Whether a request keeps its place at the client's gate through all its attempts.
    #[inline]
    pub(super) fn keeps_place(&self) -> bool {
        self.retries.as_ref().is_some_and(|retries| retries.written.keeps_place)
    }

    /// When a user who has an answer, or none to expect, asks again.
    pub(super) fn next_of_user(&mut self, now: u64) -> Option<u64> {
        match &self.traffic {
            Traffic::Closed(closed) => Some(now.saturating_add(closed.think.draw(&mut self.arrivals))),
            _ => None,
        }
    }

    /// The luck of a first attempt, or of a retry.
    pub(super) fn luck(&mut self, retry: bool) -> f64 {
        if retry { self.waits.uniform() } else { self.errors.uniform() }
    }

    fn next_open_arrival(&mut self) -> Option<u64> {
        let Traffic::Open { process, arrivals } = &mut self.traffic else { return None };
        let amount = match process {
            Process::Poisson => self.arrivals.exponential(),
            Process::Constant => 1.0,
        };
        arrivals.after(amount)
    }
}

impl Retrying {
    fn new(retries: &Retries) -> Result<Self, goodput::algorithms::InvalidSettings> {
        Ok(Self { rules: Rules::new(retries.settings())?, written: retries.clone() })
    }
}

/// Arrivals at a rate that changes in steps: a unit process, its time stretched by the rate. So the same chances
/// meet every rate, and even arrivals stay even.
#[derive(Debug)]
struct Arrivals {
    steps: Vec<(u64, f64)>,
    step: usize,
    /// When the current step, or the client, began.
    from: u64,
    /// Requests due since then, with the fraction of the next.
    due: f64,
}

impl Arrivals {
    fn from(joins: u64, steps: Vec<(u64, f64)>) -> Self {
        let step = steps.partition_point(|&(from, _)| from <= joins).max(1) - 1;
        Self { steps, step, from: joins, due: 0.0 }
    }

    /// When `amount` more requests will have been due.
    #[inline]
    fn after(&mut self, amount: f64) -> Option<u64> {
        let mut target = self.due + amount;
        loop {
            let rate = self.steps[self.step].1;
            let until = self.steps.get(self.step + 1).map(|&(until, _)| until);
            let room = until.map_or(f64::INFINITY, |until| (until - self.from) as f64 * rate / 1e9);
            if rate > 0.0 && target <= room {
                self.due = target;
                return Some(self.from.saturating_add(libm::round(target * 1e9 / rate) as u64));
            }
            self.from = until?;
            self.step += 1;
            target -= if rate > 0.0 { room } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_arrivals_stay_even_to_the_nanosecond_and_follow_the_steps() {
        let mut arrivals = Arrivals::from(0, vec![(0, 100.0), (1_000_000_000, 0.0), (2_000_000_000, 200.0)]);
        let times: Vec<_> = (0..102).map(|_| arrivals.after(1.0).unwrap()).collect();
        assert!((0..100).all(|index| times[index] == 10_000_000 * (index as u64 + 1)));
        assert_eq!(times[100..], [2_005_000_000, 2_010_000_000]);
    }

    #[test]
    fn a_rate_that_falls_to_nothing_ends_the_arrivals() {
        let mut arrivals = Arrivals::from(0, vec![(0, 1.0), (1_000_000_000, 0.0)]);
        assert_eq!(arrivals.after(2.0), None);
    }
}
