use std::{fmt, num::NonZero, sync::Arc, sync::LazyLock, thread};

use goodput_algorithms::{InvalidSettings, Limiter};

use super::{Gate, TimedDecision, classes::Classes, desk::Waiting, shared::Shared};
use crate::{
    Clock, GateConfig, SystemClock,
    priority::{
        CohortSettings, Cohorts, CriticalityShares, Partitions, PartitionsSettings, TenantSettings, Tenants,
    },
    waiting::{WaitingRoom, WaitingSettings},
};

/// Is told of every decision.
pub(super) type OnDecision = Box<dyn Fn(&TimedDecision) + Send + Sync>;

/// Configures a [`Gate`].
///
/// ```
/// use goodput::{Criticality, Gate, Request, priority::CriticalityShares, waiting::WaitingSettings};
/// use goodput::algorithms::{Fixed, FixedSettings};
///
/// let limiter = Box::new(Fixed::new(FixedSettings { limit: 10 })?);
/// let gate = Gate::builder(limiter)
///     .name("search")
///     .waiting(WaitingSettings::default())?
///     .shares(CriticalityShares::default())
///     .build();
/// let batch = Request::DEFAULT.of(Criticality::Sheddable);
/// let tokens: Vec<_> = (0..8).map(|_| gate.try_acquire_for(&batch).unwrap()).collect();
/// assert!(gate.try_acquire_for(&batch).is_err());
/// assert!(gate.try_acquire().is_ok());
/// # drop(tokens);
/// # Ok::<(), goodput::algorithms::InvalidSettings>(())
/// ```
#[must_use = "it makes no gate before it is built"]
pub struct GateBuilder<C: Clock = SystemClock> {
    pub(super) limiter: Box<dyn Limiter>,
    pub(super) clock: C,
    pub(super) config: GateConfig,
    pub(super) room: WaitingRoom<Waiting>,
    pub(super) classes: Classes,
    pub(super) stripes: usize,
    pub(super) on_decision: Option<OnDecision>,
}

impl GateBuilder {
    pub(super) fn new(limiter: Box<dyn Limiter>) -> Self {
        Self {
            limiter,
            clock: SystemClock::new(),
            config: GateConfig { waiting: WaitingSettings::none(), ..GateConfig::default() },
            room: WaitingRoom::new(WaitingSettings::none()).expect("not to wait is always possible"),
            classes: Classes::new(None, None, None),
            stripes: default_stripes(),
            on_decision: None,
        }
    }
}

impl GateConfig {
    /// A gate with these settings, on the system's clock.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold, or `limiter` if there is none.
    pub fn builder(&self) -> Result<GateBuilder, InvalidSettings> {
        let algorithm = self.limiter.as_ref().ok_or_else(|| {
            InvalidSettings::new("limiter", "is missing: name an algorithm, as `algorithm = \"aimd\"`")
        })?;
        let limiter = algorithm.build().map_err(|error| error.within("limiter"))?;
        Ok(GateBuilder {
            room: WaitingRoom::new(self.waiting.clone()).map_err(|error| error.within("waiting"))?,
            classes: Classes::of(self)?,
            config: self.clone(),
            ..GateBuilder::new(limiter)
        })
    }
}

impl<C: Clock> GateBuilder<C> {
    /// The name that metrics, events and snapshots carry. Default `default`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Another clock.
    pub fn clock<D: Clock>(self, clock: D) -> GateBuilder<D> {
        GateBuilder {
            clock,
            limiter: self.limiter,
            config: self.config,
            room: self.room,
            classes: self.classes,
            stripes: self.stripes,
            on_decision: self.on_decision,
        }
    }

    /// How requests wait for room. Default: not at all.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn waiting(mut self, settings: WaitingSettings) -> Result<Self, InvalidSettings> {
        self.room.reconfigure(settings.clone())?;
        self.config.waiting = settings;
        Ok(self)
    }

    /// How many requests may wait for room, first in, first out, for as long as they like
    /// ([`WaitingSettings::plain`]). Default 0: refuse at once.
    pub fn max_waiting(self, max_waiting: usize) -> Self {
        self.waiting(WaitingSettings::plain(max_waiting)).expect("any number may wait")
    }

    /// How much of the limit each criticality may use. Default all of it.
    pub fn shares(mut self, shares: CriticalityShares) -> Self {
        self.config.shares = Some(shares);
        self
    }

    /// Sheds the least critical by cohorts under overload. Default off.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn cohorts(mut self, settings: CohortSettings) -> Result<Self, InvalidSettings> {
        self.classes.cohorts = Some(Cohorts::new(settings.clone())?);
        self.config.cohorts = Some(settings);
        Ok(self)
    }

    /// Guarantees parts of the limit to partitions. Default none.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn partitions(mut self, settings: PartitionsSettings) -> Result<Self, InvalidSettings> {
        self.classes.partitions = Some(Partitions::new(settings.clone())?);
        self.config.partitions = Some(settings);
        Ok(self)
    }

    /// Is fair between tenants, and keeps them to quotas. Default off.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn tenants(mut self, settings: TenantSettings) -> Result<Self, InvalidSettings> {
        self.classes.tenants = Some(Tenants::new(settings.clone())?);
        self.config.tenants = Some(settings);
        Ok(self)
    }

    /// Whether to admit everybody and only count ([`GateConfig::observe_only`]). Default no.
    pub const fn observe_only(mut self, observe_only: bool) -> Self {
        self.config.observe_only = observe_only;
        self
    }

    /// Is called with every decision of the limiter, by the thread whose request closed the window, while no lock of
    /// the gate is held. Decisions of two threads may come in either order; each says when it was taken.
    pub fn on_decision(mut self, listener: impl Fn(&TimedDecision) + Send + Sync + 'static) -> Self {
        self.on_decision = Some(Box::new(listener));
        self
    }

    /// How many threads note what they observe each in a stripe of its own, without a thought for the others; more
    /// threads than that take turns at two further ones. A stripe takes 640 bytes. Default: twice the machine's
    /// processors, at most 64.
    pub const fn stripes(mut self, stripes: usize) -> Self {
        self.stripes = stripes;
        self
    }

    /// The gate.
    #[must_use]
    pub fn build(self) -> Gate<C> {
        Gate { shared: Arc::new(Shared::new(self)) }
    }
}

impl<C: Clock> fmt::Debug for GateBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder")
            .field("limiter", &self.limiter)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Threads that wait for a processor are many, but those that run are few.
fn default_stripes() -> usize {
    static STRIPES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(8, NonZero::get).saturating_mul(2).min(64));
    *STRIPES
}
