use std::fmt;

use crate::{CannotResume, Decision, Instant, State, Window};

/// An algorithm: a state machine that turns windows of observations into a limit.
///
/// Whoever drives it (a gate, a simulator, a test) collects a window as [`Limiter::next_window`] asks, hands it
/// to [`Limiter::update`], and asks again. All methods are called by one thread at a time.
pub trait Limiter: fmt::Debug + Send {
    /// Requests that may be in flight now.
    fn limit(&self) -> usize;

    /// When the next window opens and closes. Asked once at the start and once after each update.
    fn next_window(&self) -> WindowRule;

    /// Learns from a closed window. Must not allocate.
    fn update(&mut self, window: &Window) -> Decision;

    /// The inner state by name, for a person who looks and for [`Limiter::resume`]. May allocate.
    fn state(&self) -> State {
        State::new().with("limit", self.limit() as f64)
    }

    /// Continues from a saved state, so that a restarted service does not start from nothing.
    ///
    /// # Errors
    ///
    /// [`CannotResume`] when a needed number is missing, not finite or out of the settings' bounds; the limiter is
    /// then unchanged.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume>;
}

impl<L: Limiter + ?Sized> Limiter for Box<L> {
    fn limit(&self) -> usize {
        (**self).limit()
    }

    fn next_window(&self) -> WindowRule {
        (**self).next_window()
    }

    fn update(&mut self, window: &Window) -> Decision {
        (**self).update(window)
    }

    fn state(&self) -> State {
        (**self).state()
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        (**self).resume(state)
    }
}

/// When a window opens and when it closes.
///
/// A window closes at the first completion at which it holds [`WindowRule::min_samples`] samples (once the limit is
/// felt, [`WindowRule::samples_once_felt`]) and [`WindowRule::not_before`] has passed, or as soon as anybody looks after
/// [`WindowRule::deadline`], however few samples it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowRule {
    /// Keep what the last window held and go on collecting, instead of opening an empty one.
    pub extend: bool,
    /// When the window opens. If this has passed when the last window closes, the new one opens at once; otherwise
    /// completions before it are discarded, and the window opens with the first completion at or after it (which is
    /// itself not counted). Ignored with [`WindowRule::extend`].
    pub opens_at: Instant,
    /// Samples (successes and overloads) that the window must hold.
    pub min_samples: u64,
    /// Samples that will do as soon as the limit was felt in the window ([`Window::limit_hits`]), if that is fewer:
    /// while nobody feels the limit there is nothing to decide, and long windows cost less.
    pub samples_once_felt: u64,
    /// The window stays open until then even with enough samples.
    pub not_before: Instant,
    /// The window closes then even without enough samples. [`Instant::FAR_FUTURE`] for never.
    pub deadline: Instant,
}

impl WindowRule {
    /// A window that opens at once and closes as soon as it holds `min_samples` samples.
    #[must_use]
    pub const fn samples(min_samples: u64) -> Self {
        Self {
            extend: false,
            opens_at: Instant::ZERO,
            min_samples,
            samples_once_felt: min_samples,
            not_before: Instant::ZERO,
            deadline: Instant::FAR_FUTURE,
        }
    }

    /// One sample at a time, for algorithms that step with every request.
    pub const EACH: Self = Self::samples(1);

    /// How many samples such a window must hold, as far as it has come.
    #[must_use]
    pub fn samples_wanted(&self, window: &Window) -> u64 {
        let was_felt = window.limit_hits > 0;
        if was_felt { self.min_samples.min(self.samples_once_felt) } else { self.min_samples }
    }

    /// The same, going on with the samples of the last window.
    #[must_use]
    pub const fn extending(mut self) -> Self {
        self.extend = true;
        self
    }

    /// The same, opening no earlier than `instant`.
    #[must_use]
    pub const fn opening_at(mut self, instant: Instant) -> Self {
        self.opens_at = instant;
        self
    }

    /// The same, closing no earlier than `instant`.
    #[must_use]
    pub const fn not_before(mut self, instant: Instant) -> Self {
        self.not_before = instant;
        self
    }

    /// The same, closing no later than `instant`.
    #[must_use]
    pub const fn no_later_than(mut self, instant: Instant) -> Self {
        self.deadline = instant;
        self
    }
}
