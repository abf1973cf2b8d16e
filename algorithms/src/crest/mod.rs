//! The algorithm of this crate. `start` brackets the knee, `run` holds the queue there and checks what surprises it,
//! `cuts` doubts a queue that cuts do not lower, `dip` measures the baseline again and again; `look` reads windows,
//! `baseline` knows how well it knows, `role` who else is there.

mod baseline;
mod cuts;
mod dip;
mod look;
mod role;
mod run;
mod start;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::role::Role;
use self::{
    baseline::Baseline,
    cuts::Cuts,
    look::{Look, Seen},
    start::Bracket,
};
use crate::{CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule};

/// The least samples that any decision rests on,
const LEAST_SAMPLES: f64 = 16.0;
/// but two rounds will do where they hold fewer, down to this.
const FEWEST_SAMPLES: f64 = 8.0;
/// After so many looks at light load without the limit being felt, nothing is likely to be decided soon,
const CALM: u32 = 32;
/// and long looks of so many samples cost less. They end as soon as the limit is felt.
const LONG_LOOK: u64 = 128;

/// Estimates the queue inside the service by Little's law, and holds it small.
///
/// ```text
/// N = in flight on average,   R = mean latency (both from the integral of in flight),   B = baseline latency
/// knee K = N · B / R          throughput × baseline: the requests that are being worked on
/// queue q = N − K             the rest
/// q > h                       limit ← limit − (q − h)
/// q < h / 2, limit felt       limit ← limit + a share of h, and after three times in a row climb anew, by half
/// h = 2 + ½ √K + 0.15 K       headroom; less below K = 2.5, and otherwise where a role is told
/// ```
///
/// It starts by **climbing**: the limit is multiplied while latency does not follow concurrency. Then it **runs** on
/// the law above. The baseline is never trusted for long: in short **dips** to 0.8 of the knee, at instants that all
/// limiters of one service find by themselves, it is measured again. A latency that suddenly fits no error of the limit
/// is **checked**: the limit is lowered once, and if latency does not fall with it, the service itself has become
/// slower; the baseline follows and the limit goes back up.
///
/// Every time is a multiple of the measured latency, every size of the measured concurrency and spread, so one default
/// serves 100 µs and 10 s, and limits of 1 and of 10,000.
///
/// **Choose it** unless you know better: it is told nothing about the service.
///
/// **Known to go wrong:**
/// - Many limiters of one small service believe each other's queue to be latency without one. Where the service changes
///   its speed under them, this lasts.
/// - A single worker behind one limiter idles now and then, for it looks like a part of a larger service, unless it is
///   told its [`Role`].
/// - A service that becomes slower by less than half is taken for a queue, and loses a third of its limit or so, until
///   two dips have said otherwise.
/// - A service whose latency rises smoothly from the first request on (no knee) is held below its best throughput.
/// - After a cold start some of what a calm service could have served is refused, until the limit has grown past it: resume
///   a saved state, or say `initial`.
/// - Bursts beyond the knee are refused, also where a service would have worked them off before their deadlines.
/// - A service that answers fewer than 8 requests in a long while teaches nothing, and its limit stays.
#[derive(Clone, Debug)]
pub struct Crest {
    min: f64,
    max: f64,
    role: Role,
    without: Option<Part>,
    limit: f64,
    mode: Mode,
    rule: WindowRule,
    now: Instant,
    /// A window closes after whole rounds: the next instant at which it may.
    round_ends: Instant,
    baseline: Baseline,
    knee: f64,
    /// How long a request takes at present, ns.
    round_ns: f64,
    /// Looks since the limit was last felt.
    unfelt_looks: u32,
    bracket: Bracket,
    /// Times in a row that the limit grew.
    grown: usize,
    last_run: Seen,
    /// How many would lately have been in flight if none had been refused.
    wanted: f64,
    /// The last look saw a sudden rise of latency.
    alarmed: bool,
    above: Seen,
    above_limit: f64,
    cuts: Cuts,
    /// The limit after the dip.
    returns_to: f64,
    next_dip: Instant,
    dip_rounds: f64,
    next_dip_is_deep: bool,
    last_dip: Seen,
    /// What the baseline has been for some time, ns; zero before the first run.
    usual_ns: f64,
    /// A dip was due since the last look in the run.
    dip_was_due: bool,
    usual_silence_ns: f64,
    skipped: bool,
    /// Looks at light load since the limit was last felt.
    calm_looks: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// Learns how long a round is.
    FirstLook,
    /// Multiplies the limit while latency does not follow concurrency.
    Climb,
    /// Halves it while latency does follow.
    Descend,
    /// Holds the queue at the headroom.
    Run,
    /// Measures the baseline just below the knee.
    Dip,
    /// Lowers the limit once, to see whether latency falls with it.
    Check,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::FirstLook => "first_look",
            Self::Climb => "climb",
            Self::Descend => "descend",
            Self::Run => "run",
            Self::Dip => "dip",
            Self::Check => "check",
        }
    }

    const ALL: [Self; 6] = [Self::FirstLook, Self::Climb, Self::Descend, Self::Run, Self::Dip, Self::Check];
}

impl Crest {
    /// # Errors
    ///
    /// [`InvalidSettings`] when the bounds contradict each other.
    pub fn new(settings: CrestSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        let initial = settings.initial as f64;
        Ok(Self {
            min: settings.min as f64,
            max: settings.max as f64,
            role: settings.role,
            without: settings.without,
            limit: initial,
            mode: Mode::FirstLook,
            rule: WindowRule::samples((settings.initial as u64).max(start::LEAST_FIRST_SAMPLES)),
            now: Instant::ZERO,
            round_ends: Instant::ZERO,
            baseline: Baseline::UNKNOWN,
            knee: 0.0,
            round_ns: 0.0,
            unfelt_looks: dip::LATELY,
            bracket: Bracket::NEW,
            grown: 0,
            last_run: Seen::default(),
            wanted: 0.0,
            alarmed: false,
            above: Seen::default(),
            above_limit: initial,
            cuts: Cuts::NONE,
            returns_to: initial,
            next_dip: Instant::FAR_FUTURE,
            dip_rounds: 0.0,
            next_dip_is_deep: false,
            last_dip: Seen::default(),
            usual_ns: 0.0,
            dip_was_due: false,
            usual_silence_ns: 0.0,
            skipped: false,
            calm_looks: 0,
        })
    }

    fn decide(&mut self, window: &Window) -> (Reason, Option<Look>) {
        if self.mode == Mode::Run
            && self.now >= self.next_dip
            && let Some(reason) = self.begin_dip()
        {
            return (reason, None);
        }
        if self.paused(window) {
            self.skipped = true;
            let samples =
                if self.mode == Mode::Dip { self.rule.samples_once_felt as f64 } else { LEAST_SAMPLES };
            self.open_after(1.0, samples);
            return (Reason::ServiceShift, None);
        }
        if window.limit_hits > 0 {
            self.calm_looks = 0;
            if self.rule.min_samples > self.rule.samples_once_felt {
                // A long look at light load, until now. From here on it is another.
                self.open_after(0.0, self.least_samples());
                return (Reason::Undecided, None);
            }
        }
        let Some(look) = self.look(window) else { return (Reason::Undecided, None) };
        self.skipped = false;
        self.note_what_is_wanted(&look);
        let reason = match self.mode {
            Mode::FirstLook => self.first_look(&look),
            Mode::Climb => self.climb(&look),
            Mode::Descend => self.descend(&look),
            Mode::Run => self.hold_queue(&look),
            Mode::Dip => self.end_dip(&look),
            Mode::Check => self.check(&look),
        };
        (reason, Some(look))
    }

    /// The least samples of a window at the present limit.
    fn least_samples(&self) -> f64 {
        (2.0 * self.limit).clamp(FEWEST_SAMPLES, LEAST_SAMPLES)
    }

    fn set_limit(&mut self, limit: f64) {
        self.limit = limit.max(self.min).min(self.max);
    }

    /// A new window, which opens after so many rounds.
    fn open_after(&mut self, rounds: f64, samples: f64) {
        self.round_ends = Instant::ZERO;
        self.rule = WindowRule::samples(libm::ceil(samples.max(1.0)) as u64)
            .opening_at(self.now.plus_nanos((rounds * self.round_ns) as u64))
            .no_later_than(self.deadline());
    }

    /// A new window at once, which may be long if load has been light for long.
    fn look_on(&mut self) {
        self.open_after(0.0, self.least_samples());
        self.calm_looks = self.calm_looks.saturating_add(1);
        if self.calm_looks >= CALM {
            self.rule.min_samples = self.rule.min_samples.max(LONG_LOOK);
        }
    }

    /// The same window, until it holds so many samples and its round ends.
    fn go_on(&mut self, samples: f64) {
        self.rule = WindowRule::samples(libm::ceil(samples.max(1.0)) as u64)
            .extending()
            .not_before(self.round_ends)
            .no_later_than(self.deadline());
    }

    fn undecided(&mut self, samples: f64) -> Reason {
        self.go_on(samples);
        Reason::Undecided
    }

    /// Dips begin by the clock, in the middle of a window if need be.
    const fn deadline(&self) -> Instant {
        if matches!(self.mode, Mode::Run) { self.next_dip } else { Instant::FAR_FUTURE }
    }
}

impl Limiter for Crest {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn next_window(&self) -> WindowRule {
        self.rule
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.now = window.closed;
        let (reason, look) = self.decide(window);
        let decision = Decision::new(self.limit(), reason);
        let Some(look) = look else { return decision };
        let working = look.in_flight * (self.baseline.latency_ns / look.latency_ns).min(1.0);
        decision
            .with("samples", look.samples)
            .with("in_flight", look.in_flight)
            .with("latency_ns", look.latency_ns)
            .with("baseline_ns", self.baseline.latency_ns)
            .with("queue", look.in_flight - working)
    }

    /// `mode` counts first look, climb, descent, run, dip, check from 0; `mode_<name>` is 1 for the one that is on.
    fn state(&self) -> State {
        let mode = Mode::ALL.iter().position(|mode| *mode == self.mode).unwrap_or(0);
        let run = self.last_run;
        let working = run.in_flight * (self.baseline.latency_ns / run.latency_ns.max(1.0)).min(1.0);
        let state = State::new()
            .with("limit", self.limit() as f64)
            .with("returns_to", if self.mode == Mode::Dip { self.returns_to } else { self.limit })
            .with("mode", mode as f64)
            .with("baseline_ns", self.baseline.latency_ns)
            .with("baseline_samples", self.baseline.samples)
            .with("spread", self.baseline.spread)
            .with("knee", self.knee)
            .with("queue", run.in_flight - working)
            .with("headroom", self.role.headroom(self.knee))
            .with("round_ns", self.round_ns);
        Mode::ALL.iter().fold(state, |state, mode| {
            state.with(format!("mode_{}", mode.name()), f64::from(u8::from(*mode == self.mode)))
        })
    }

    /// Goes on as it runs, with the baseline it had, which the next dips correct; before there was one, it starts.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.min, self.max)?;
        let returns_to = state.number_within("returns_to", self.min, self.max)?;
        let latency_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        let samples = state.number_within("baseline_samples", 1.0, f64::MAX)?;
        let spread = state.number_within("spread", 0.0, 100.0)?;
        let knee = state.number_within("knee", 0.0, f64::MAX)?;
        let round_ns = state.number_within("round_ns", 0.0, f64::MAX)?;
        self.limit = limit;
        if latency_ns > 0.0 {
            self.baseline = Baseline { latency_ns, samples: samples.min(start::START_MEMORY), spread };
            (self.knee, self.round_ns, self.usual_ns) = (knee, round_ns, latency_ns);
            self.returns_to = returns_to.max(limit);
            self.mode = if returns_to > limit { Mode::Dip } else { Mode::Run };
            // The clock is another one now: the first dip is planned at the first look.
            self.next_dip = Instant::ZERO;
            self.rule = WindowRule::samples(LEAST_SAMPLES as u64);
        }
        Ok(())
    }
}

/// Settings of [`Crest`]. None is tuning: bounds, a start from a limit that is known, and who else limits the service.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrestSettings {
    /// The limit to start from. Default 1: many limiters of one service do not flood it before they have learned anything,
    /// and what is refused meanwhile tells a lone one how far its first step may go.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 20,000.
    pub max: usize,
    /// Whether others limit the same service, each for itself: `unknown`, `alone` or `shared`. To say so helps most where
    /// few requests are worked on, as by a single worker, or by each of many limiters. Default `unknown`.
    pub role: Role,
    /// A part to do without, to measure what it is worth. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<Part>,
}

impl Default for CrestSettings {
    fn default() -> Self {
        Self { initial: 1, min: 1, max: 20_000, role: Role::Unknown, without: None }
    }
}

/// A part of [`Crest`] that can be switched off.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Recognising that the service stood still.
    Pauses,
    /// Dips that measure the baseline.
    Dips,
    /// Believing a dip that reads higher only when a second one agrees.
    SecondDip,
    /// Checking a sudden rise of latency by an experiment.
    Checks,
    /// Waiting for a dip when cuts do not lower latency.
    Cuts,
    /// Growing only right after a dip where few requests are worked on.
    Together,
    /// Climbing anew after growing three times in a row.
    Climbs,
    /// Climbing by longer steps where much more is wanted than is in flight.
    LongSteps,
    /// Stopping an obvious overshoot before its window is full.
    EarlyStop,
    /// Halving the limit when most answers come too late.
    Overloads,
    /// A first step as long as what is wanted asks for.
    FirstStep,
    /// Dipping with the others where the limit was felt lately, though not in the last look.
    Lately,
    /// Dipping twice as often while the service is slower than usual.
    Slower,
    /// A deep dip after answers came faster than before.
    Faster,
}
