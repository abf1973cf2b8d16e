//! Other settings for a gate that is in use.

use goodput_algorithms::{Algorithm, InvalidSettings, Limiter};

use super::{classes::Classes, shared::Shared};
use crate::{
    Clock, GateConfig,
    priority::{Cohorts, Partitions, Tenants},
    sync::lock,
};

impl<C: Clock> Shared<C> {
    pub(super) fn config(&self) -> GateConfig {
        lock(&self.config).clone()
    }

    pub(super) fn reconfigure(&self, config: &GateConfig) -> Result<(), InvalidSettings> {
        let mut current = lock(&self.config);
        if config.name != current.name {
            let problem = format!("must stay `{}`: a gate keeps its name", current.name);
            return Err(InvalidSettings::new("name", problem));
        }
        config.waiting.check().map_err(|error| error.within("waiting"))?;
        let classes = Classes::of(config)?;
        let limiter = match &config.limiter {
            Some(algorithm) if current.limiter.as_ref() != Some(algorithm) => {
                Some(self.build_limiter(algorithm, current.limiter.as_ref())?)
            }
            _ => None,
        };

        let now = self.clock.now();
        let mut desk = lock(&self.desk);
        if current.waiting != config.waiting {
            desk.room.reconfigure(config.waiting.clone()).map_err(|error| error.within("waiting"))?;
        }
        let before = desk.classes.replace(classes, &current, config);
        drop(desk);
        drop(before);
        let limiter_before = current.limiter.take();
        *current = config.clone();
        if current.limiter.is_none() {
            current.limiter = limiter_before;
        }
        self.publish_rules(&current);
        if let Some(limiter) = limiter {
            self.replace_limiter(limiter);
        }
        self.let_waiters_in(now);
        Ok(())
    }

    pub(super) fn set_observe_only(&self, observe_only: bool) {
        let mut config = lock(&self.config);
        config.observe_only = observe_only;
        self.publish_rules(&config);
        self.let_waiters_in(self.clock.now());
    }

    pub(super) fn replace_limiter_by_hand(&self, limiter: Box<dyn Limiter>) {
        let mut config = lock(&self.config);
        config.limiter = None;
        self.replace_limiter(limiter);
    }

    /// A limiter that goes on from where the present one is, if it is of the same kind and its bounds allow.
    fn build_limiter(
        &self,
        algorithm: &Algorithm,
        previous: Option<&Algorithm>,
    ) -> Result<Box<dyn Limiter>, InvalidSettings> {
        let build = || algorithm.build().map_err(|error| error.within("limiter"));
        let mut limiter = build()?;
        if previous.is_none_or(|previous| previous.name() != algorithm.name()) {
            return Ok(limiter);
        }
        match limiter.resume(&self.limiter_state()) {
            Ok(()) => Ok(limiter),
            Err(_) => build(),
        }
    }
}

impl Classes {
    /// As a config tells requests apart.
    pub(super) fn of(config: &GateConfig) -> Result<Self, InvalidSettings> {
        let cohorts = config.cohorts.clone().map(Cohorts::new).transpose();
        let partitions = config.partitions.clone().map(Partitions::new).transpose();
        let tenants = config.tenants.clone().map(Tenants::new).transpose();
        Ok(Self::new(
            cohorts.map_err(|error| error.within("cohorts"))?,
            partitions.map_err(|error| error.within("partitions"))?,
            tenants.map_err(|error| error.within("tenants"))?,
        ))
    }

    /// Takes what differs between two configs from `other`. Gives back what it was.
    fn replace(&mut self, mut other: Self, before: &GateConfig, after: &GateConfig) -> Self {
        if before.cohorts != after.cohorts {
            std::mem::swap(&mut self.cohorts, &mut other.cohorts);
        }
        if before.partitions != after.partitions || before.tenants != after.tenants {
            std::mem::swap(&mut self.partitions, &mut other.partitions);
            std::mem::swap(&mut self.tenants, &mut other.tenants);
            self.start_epoch();
        }
        other
    }
}
