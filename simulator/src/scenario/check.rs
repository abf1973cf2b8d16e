//! What no scenario may say.

use std::time::Duration;

use super::{
    Clients, Closed, Contradiction, Door, ErrorEpisode, Open, Pauses, Retries, Scenario, Service, nanos,
};

/// No run is longer: a century leaves room to add any two times.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// No more pauses, bursts or steps of a wave in a run: each is an entry of a table.
const MOST_REPEATS: u128 = 1_000_000;

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
        self.service.check(self.length)?;
        if self.clients.is_empty() {
            return wrong("clients", "must hold at least one entry: [[clients]]");
        }
        for (index, clients) in self.clients.iter().enumerate() {
            clients.check(&format!("clients[{index}]"), self.length)?;
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
}

impl Service {
    fn check(&self, length: Duration) -> Checked {
        self.work.check("service.work")?;
        let kinds = [self.pool.is_some(), self.sharing.is_some(), self.usl.is_some()];
        if kinds.iter().filter(|&&present| present).count() != 1 {
            return wrong("service", "must have exactly one of `pool`, `sharing` and `usl`");
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
        self.errors.iter().enumerate().try_for_each(|(index, episode)| episode.check(index))
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
        let kinds = [self.open.is_some(), self.closed.is_some(), !self.requests.is_empty()];
        if kinds.iter().filter(|&&present| present).count() != 1 {
            return wrong(field, "must have exactly one of `open`, `closed` and `requests`");
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
        check_order(self.requests.iter().map(|request| request.at), &format!("{field}.requests"))?;
        self.retries.as_ref().map_or(Ok(()), |retries| retries.check(&format!("{field}.retries")))
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
        Ok(())
    }
}

fn check_door(door: Option<&Door>, field: &str) -> Checked {
    let Some(door) = door else { return Ok(()) };
    if door.tick.is_some_and(|tick| tick.is_zero()) {
        return wrong(format!("{field}.tick"), "must be above 0; leave it out if there is none");
    }
    match &door.limiter {
        Some(limiter) => limiter
            .build()
            .map(drop)
            .map_err(|error| Contradiction::new(format!("{field}.limiter.{}", error.field), error.problem)),
        None => Ok(()),
    }
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
