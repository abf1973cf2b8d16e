//! What no scenario may say.

use std::{collections::BTreeMap, time::Duration};

use goodput::{
    Criticality,
    algorithms::Algorithm,
    client::{Jitter, Throttle},
    priority::{Cohorts, Partitions},
    producer::PushBackQueue,
    waiting::WaitingRoom,
};

use super::{
    Beyond, Class, Clients, Closed, Contradiction, Crowd, Door, ErrorEpisode, Open, OutageRequests, Paced,
    Pauses, Retries, Scenario, Service, nanos,
};

/// No run is longer: a century leaves room to add any two times.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// No more pauses, bursts or steps of a wave in a run: each is an entry of a table.
const MOST_REPEATS: u128 = 1_000_000;

/// Each has counts of its own in every part of a run.
const MOST_CLASSES: usize = 1_000;

type Checked = Result<(), Contradiction>;

impl Scenario {
    /// Says what contradicts itself, for scenarios that do not come from [`Scenario::parse`].
    ///
    /// # Errors
    ///
    /// [`Contradiction`] names the field, and says what would be right.
    pub fn check(&self) -> Checked {
        if self.length.is_zero() || self.length > LONGEST {
            return wrong("length", "must be above 0 and at most 100 years");
        }
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return wrong("deadline", "must be above 0; leave it out if there is none");
        }
        if self.timer.is_some_and(|timer| timer.is_zero()) {
            return wrong("timer", "must be above 0; leave it out if there is none");
        }
        self.service.check(self.length)?;
        if self.clients.is_empty() {
            return wrong("clients", "must hold at least one entry: [[clients]]");
        }
        let mut classes = BTreeMap::new();
        for (index, clients) in self.clients.iter().enumerate() {
            let field = format!("clients[{index}]");
            clients.check(&field, self.length)?;
            self.check_with_doors(clients, &field)?;
            check_same_classes(&clients.classes, &mut classes, &field)?;
        }
        check_door(self.door.service.as_ref(), "door.service")?;
        if self.door.service.as_ref().is_some_and(|door| door.shared) {
            return wrong(
                "door.service.shared",
                "is only for gates at clients; before the service there is one",
            );
        }
        check_door(self.door.clients.as_ref(), "door.clients")
    }

    /// What clients, doors and service must agree on.
    fn check_with_doors(&self, clients: &Clients, field: &str) -> Checked {
        if clients.tells_deadline && clients.timeout.is_none() && self.deadline.is_none() {
            return wrong(
                format!("{field}.tells_deadline"),
                "needs a `timeout` here or a `deadline` of the scenario",
            );
        }
        let lost = self.service.outages.iter().any(|outage| outage.requests == OutageRequests::Lost)
            || self.service.crowd.as_ref().is_some_and(|crowd| crowd.beyond == Beyond::Lost);
        if lost && clients.timeout.is_none() {
            return wrong(
                format!("{field}.timeout"),
                "must be set where an outage or a crowd leaves requests unanswered",
            );
        }
        if clients.retries.as_ref().is_some_and(|retries| retries.keeps_place) && self.door.clients.is_none()
        {
            return wrong(
                format!("{field}.retries.keeps_place"),
                "needs a gate at clients: `[door.clients]`",
            );
        }
        let first_door = self.door.clients.as_ref().or(self.door.service.as_ref());
        let pushes_back = first_door.is_some_and(|door| door.push_back.is_some());
        if clients.paced.as_ref().is_some_and(|paced| paced.pauses) && !pushes_back {
            return wrong(
                format!("{field}.paced.pauses"),
                "needs `push_back` at the first door that its requests meet",
            );
        }
        Ok(())
    }
}

impl Service {
    fn check(&self, length: Duration) -> Checked {
        self.work.check("service.work")?;
        let kinds = [self.pool.is_some(), self.sharing.is_some(), self.usl.is_some(), self.crowd.is_some()];
        if kinds.iter().filter(|&&present| present).count() != 1 {
            return wrong("service", "must have exactly one of `pool`, `sharing`, `usl` and `crowd`");
        }
        if let Some(pool) = &self.pool {
            if pool.workers == 0 {
                return wrong("service.pool.workers", "must be at least 1, not 0");
            }
            if pool.slows_with_queue == Some(0) {
                return wrong(
                    "service.pool.slows_with_queue",
                    "must be at least 1; leave it out if it does not slow",
                );
            }
        }
        if self.sharing.as_ref().is_some_and(|sharing| sharing.cores == 0) {
            return wrong("service.sharing.cores", "must be at least 1, not 0");
        }
        if let Some(usl) = &self.usl {
            if !(0.0..=1.0).contains(&usl.contention) {
                return wrong(
                    "service.usl.contention",
                    format!("must lie within 0 and 1, not {}", usl.contention),
                );
            }
            if !(usl.crosstalk.is_finite() && usl.crosstalk >= 0.0) {
                return wrong(
                    "service.usl.crosstalk",
                    format!("must be a number from 0 up, not {}", usl.crosstalk),
                );
            }
        }
        self.crowd.as_ref().map_or(Ok(()), Crowd::check)?;
        check_factor(self.speed, "service.speed")?;
        check_factor(self.stretch, "service.stretch")?;
        check_order(self.changes.iter().map(|change| change.at), "service.changes")?;
        for (index, change) in self.changes.iter().enumerate() {
            let field = |name: &str| format!("service.changes[{index}].{name}");
            if change.workers.is_some() && self.pool.is_none() {
                return wrong(field("workers"), "is only for a `pool`");
            }
            if change.cores.is_some() && self.sharing.is_none() {
                return wrong(field("cores"), "is only for a `sharing` service");
            }
            check_factor(change.speed.unwrap_or(1.0), &field("speed"))?;
            check_factor(change.stretch.unwrap_or(1.0), &field("stretch"))?;
        }
        self.pauses.as_ref().map_or(Ok(()), |pauses| pauses.check(length))?;
        self.errors.iter().enumerate().try_for_each(|(index, episode)| episode.check(index))?;
        let mut last = Duration::ZERO;
        for (index, outage) in self.outages.iter().enumerate() {
            if outage.from < last {
                return wrong(
                    format!("service.outages[{index}].from"),
                    "must not be before the end of the outage above it",
                );
            }
            if outage.until <= outage.from {
                return wrong(format!("service.outages[{index}].until"), "must be after `from`");
            }
            last = outage.until;
        }
        Ok(())
    }
}

impl Crowd {
    fn check(&self) -> Checked {
        check_factor(self.slows_by, "service.crowd.slows_by")?;
        if let Some(knee) = &self.knee
            && !(1.0..=1e6).contains(&knee.growth)
        {
            return wrong(
                "service.crowd.knee.growth",
                format!("must lie within 1 and 1e6, not {}", knee.growth),
            );
        }
        for (name, most) in [("at_most", self.at_most), ("at_most_per_second", self.at_most_per_second)] {
            if most == Some(0) {
                return wrong(
                    format!("service.crowd.{name}"),
                    "must be at least 1; leave it out for any number",
                );
            }
        }
        Ok(())
    }
}

impl Pauses {
    fn check(&self, length: Duration) -> Checked {
        if self.lasting.is_zero() || self.lasting >= self.every {
            return wrong("service.pauses.lasting", "must be above 0 and below `every`");
        }
        check_repeats(length, self.every, "service.pauses.every")
    }
}

impl ErrorEpisode {
    fn check(&self, index: usize) -> Checked {
        let field = |name: &str| format!("service.errors[{index}].{name}");
        if !(0.0..=1.0).contains(&self.share) {
            return wrong(field("share"), format!("must lie within 0 and 1, not {}", self.share));
        }
        if self.until.is_some_and(|until| until <= self.from) {
            return wrong(field("until"), "must be after `from`");
        }
        Ok(())
    }
}

impl Clients {
    fn check(&self, field: &str, length: Duration) -> Checked {
        let kinds =
            [self.open.is_some(), self.closed.is_some(), self.paced.is_some(), !self.requests.is_empty()];
        if kinds.iter().filter(|&&present| present).count() != 1 {
            return wrong(field, "must have exactly one of `open`, `closed`, `paced` and `requests`");
        }
        if self.count == 0 {
            return wrong(format!("{field}.count"), "must be at least 1, not 0");
        }
        if self.leaves.is_some_and(|leaves| leaves <= self.joins) {
            return wrong(format!("{field}.leaves"), "must be after `joins`");
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return wrong(format!("{field}.timeout"), "must be above 0; leave it out if there is none");
        }
        self.open.as_ref().map_or(Ok(()), |open| open.check(&format!("{field}.open"), length))?;
        self.closed.as_ref().map_or(Ok(()), |closed| closed.check(&format!("{field}.closed")))?;
        self.paced.as_ref().map_or(Ok(()), |paced| paced.check(&format!("{field}.paced"), length))?;
        check_order(self.requests.iter().map(|request| request.at), &format!("{field}.requests"))?;
        self.check_classes(field)?;
        if let Some(throttle) = &self.throttle
            && let Err(error) = Throttle::new(throttle.clone())
        {
            return wrong(format!("{field}.throttle.{}", error.field), error.problem);
        }
        let already_failed = self.closed.as_ref().is_some_and(|closed| closed.already_failed > 0);
        if already_failed && self.retries.is_none() {
            return wrong(format!("{field}.closed.already_failed"), "needs `retries`: who gives up, is gone");
        }
        self.retries.as_ref().map_or(Ok(()), |retries| retries.check(&format!("{field}.retries")))
    }

    fn check_classes(&self, field: &str) -> Checked {
        let field_of = |index: usize, name: &str| format!("{field}.classes[{index}].{name}");
        for (index, class) in self.classes.iter().enumerate() {
            if class.name.is_empty() {
                return wrong(field_of(index, "name"), "must not be empty");
            }
            if self.classes[..index].iter().any(|other| other.name == class.name) {
                return wrong(field_of(index, "name"), "must differ from those above it");
            }
            if class.share.is_some_and(|share| !(share.is_finite() && share >= 0.0)) {
                return wrong(field_of(index, "share"), "must be a number from 0 up");
            }
        }
        let listed = !self.requests.is_empty() && self.requests.iter().all(|request| request.class.is_some());
        let shares = self.classes.iter().filter_map(|class| class.share).sum::<f64>();
        let turns = self.classes.iter().filter_map(|class| class.turns).any(|turns| turns > 0);
        let all_shares = self.classes.iter().all(|class| class.share.is_some() && class.turns.is_none());
        let all_turns = self.classes.iter().all(|class| class.turns.is_some() && class.share.is_none());
        let decided = (all_shares && shares > 0.0) || (all_turns && turns) || listed;
        if !self.classes.is_empty() && !decided {
            return wrong(
                format!("{field}.classes"),
                "must all have `share`, or all `turns`, and not all 0, unless a list names the class of each request",
            );
        }
        for (index, request) in self.requests.iter().enumerate() {
            let known = request
                .class
                .as_ref()
                .is_none_or(|name| self.classes.iter().any(|class| class.name == *name));
            if !known {
                return wrong(
                    format!("{field}.requests[{index}].class"),
                    "must be the name of one of `classes`",
                );
            }
        }
        Ok(())
    }
}

impl Paced {
    fn check(&self, field: &str, length: Duration) -> Checked {
        check_rate(self.per_second, &format!("{field}.per_second"))?;
        if self.tick.is_zero() {
            return wrong(format!("{field}.tick"), "must be above 0");
        }
        check_repeats(length, self.tick, &format!("{field}.tick"))
    }
}

impl Open {
    fn check(&self, field: &str, length: Duration) -> Checked {
        let shapes = [!self.changes.is_empty(), self.sine.is_some(), self.bursts.is_some()];
        if shapes.iter().filter(|&&present| present).count() > 1 {
            return wrong(field, "must have at most one of `changes`, `sine` and `bursts`");
        }
        check_rate(self.per_second, &format!("{field}.per_second"))?;
        check_order(self.changes.iter().map(|change| change.at), &format!("{field}.changes"))?;
        for (index, change) in self.changes.iter().enumerate() {
            check_rate(change.per_second, &format!("{field}.changes[{index}].per_second"))?;
            if self.changes.get(index + 1).is_some_and(|next| change.at + change.over > next.at) {
                return wrong(
                    format!("{field}.changes[{index}].over"),
                    "must end before the next change begins",
                );
            }
        }
        if let Some(sine) = &self.sine {
            if !(sine.swing_per_second.is_finite()
                && (0.0..=self.per_second).contains(&sine.swing_per_second))
            {
                return wrong(
                    format!("{field}.sine.swing_per_second"),
                    format!("must lie within 0 and `per_second`, not {}", sine.swing_per_second),
                );
            }
            if sine.step.is_zero() || sine.step > sine.period {
                return wrong(format!("{field}.sine.step"), "must be above 0 and at most `period`");
            }
            check_repeats(length, sine.step, &format!("{field}.sine.step"))?;
        }
        if let Some(bursts) = &self.bursts {
            check_rate(bursts.per_second, &format!("{field}.bursts.per_second"))?;
            if bursts.lasting.is_zero() || bursts.lasting >= bursts.every {
                return wrong(format!("{field}.bursts.lasting"), "must be above 0 and below `every`");
            }
            check_repeats(length, bursts.every, &format!("{field}.bursts.every"))?;
        }
        Ok(())
    }
}

impl Closed {
    fn check(&self, field: &str) -> Checked {
        if self.users == 0 {
            return wrong(format!("{field}.users"), "must be at least 1, not 0");
        }
        self.think.check(&format!("{field}.think"))
    }
}

impl Retries {
    fn check(&self, field: &str) -> Checked {
        if self.at_most.is_none() && self.wait.is_zero() {
            return wrong(format!("{field}.wait"), "must be above 0 where retries go on for ever");
        }
        if !(self.growth.is_finite() && self.growth >= 1.0) {
            return wrong(
                format!("{field}.growth"),
                format!("must be a number from 1 up, not {}", self.growth),
            );
        }
        if self.longest.is_some_and(|longest| longest < self.wait) {
            return wrong(format!("{field}.longest"), "must be at least `wait`");
        }
        if self.at_most.is_none() && self.then.iter().any(|wait| wait.is_zero()) {
            return wrong(format!("{field}.then"), "must hold no 0 where retries go on for ever");
        }
        if !self.then.is_empty() && (self.growth != 1.0 || self.longest.is_some()) {
            return wrong(format!("{field}.then"), "says all waits: leave out `growth` and `longest`");
        }
        if !self.then.is_empty() && self.jitter != Jitter::None {
            return wrong(format!("{field}.then"), "knows no `jitter`");
        }
        if self.from_send && self.keeps_place {
            return wrong(
                format!("{field}.keeps_place"),
                "cannot be where attempts follow each other unanswered (`from_send`)",
            );
        }
        if self.from_send && self.wait.is_zero() {
            return wrong(format!("{field}.wait"), "must be above 0 where it counts from the sending");
        }
        goodput::client::Retries::new(self.settings())
            .map(drop)
            .map_err(|error| Contradiction::new(format!("{field}.payment.{}", error.field), error.problem))
    }
}

fn check_door(door: Option<&Door>, field: &str) -> Checked {
    let Some(door) = door else { return Ok(()) };
    if door.tick.is_some_and(|tick| tick.is_zero()) {
        return wrong(format!("{field}.tick"), "must be above 0; leave it out if there is none");
    }
    let queues = [door.max_waiting > 0, door.waiting.is_some(), door.push_back.is_some()];
    if queues.iter().filter(|&&present| present).count() > 1 {
        return wrong(field, "must have at most one of `max_waiting`, `waiting` and `push_back`");
    }
    if let (Some(shares), Some(Algorithm::Fixed(fixed))) = (&door.shares, &door.limiter)
        && let Err(error) = shares.check_against(fixed.limit)
    {
        return wrong(format!("{field}.shares.{}", error.field), error.problem);
    }
    if let Some(cohorts) = &door.cohorts
        && let Err(error) = Cohorts::new(cohorts.clone())
    {
        return wrong(format!("{field}.cohorts.{}", error.field), error.problem);
    }
    if let Some(partitions) = &door.partitions
        && let Err(error) = Partitions::new(partitions.clone())
    {
        return wrong(format!("{field}.partitions.{}", error.field), error.problem);
    }
    if let Some(waiting) = &door.waiting
        && let Err(error) = WaitingRoom::<()>::new(waiting.clone())
    {
        return wrong(format!("{field}.waiting.{}", error.field), error.problem);
    }
    if let Some(capacity) = door.push_back
        && let Err(error) = PushBackQueue::<()>::new(capacity)
    {
        return wrong(format!("{field}.push_back"), error.problem);
    }
    match &door.limiter {
        Some(limiter) => limiter
            .build()
            .map(drop)
            .map_err(|error| Contradiction::new(format!("{field}.limiter.{}", error.field), error.problem)),
        None => Ok(()),
    }
}

/// Classes of the same name are the same class, whoever sends it.
fn check_same_classes<'s>(
    classes: &'s [Class],
    known: &mut BTreeMap<&'s str, Criticality>,
    field: &str,
) -> Checked {
    if known.len() + classes.len() > MOST_CLASSES {
        return wrong(format!("{field}.classes"), format!("must not be more than {MOST_CLASSES} in all"));
    }
    for (index, class) in classes.iter().enumerate() {
        if *known.entry(&class.name).or_insert(class.criticality) != class.criticality {
            return wrong(
                format!("{field}.classes[{index}].criticality"),
                "must be what it is where other clients have a class of this name",
            );
        }
    }
    Ok(())
}

fn check_order(times: impl Iterator<Item = Duration>, field: &str) -> Checked {
    let mut last = Duration::ZERO;
    for (index, at) in times.enumerate() {
        if at < last {
            return wrong(format!("{field}[{index}].at"), "must not be before the entry above it");
        }
        last = at;
    }
    Ok(())
}

fn check_rate(per_second: f64, field: &str) -> Checked {
    if (0.0..=1e9).contains(&per_second) {
        return Ok(());
    }
    wrong(field, format!("must lie within 0 and 1e9 requests per second, not {per_second}"))
}

fn check_factor(factor: f64, field: &str) -> Checked {
    if (0.0..=1e6).contains(&factor) {
        return Ok(());
    }
    wrong(field, format!("must lie within 0 and 1e6, not {factor}"))
}

fn check_repeats(length: Duration, every: Duration, field: &str) -> Checked {
    if u128::from(nanos(length)) / u128::from(nanos(every).max(1)) > MOST_REPEATS {
        return wrong(field, "must be at least a millionth of `length`");
    }
    Ok(())
}

fn wrong(field: impl Into<String>, problem: impl Into<String>) -> Checked {
    Err(Contradiction::new(field, problem))
}
