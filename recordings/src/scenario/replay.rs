//! When the requests of a recording came, to be played again.

use std::time::Duration;

use crate::digest::{Digest, Request, is_coarse};
use crate::reading::Reading;

/// The arrivals of a recording, of its busiest stretch if it is long.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// Each request, counted from the first; in order of time.
    Each {
        /// Instants.
        at: Vec<Duration>,
        /// Whether the recording goes on before or behind.
        cut: bool,
    },
    /// Load steps: how long, and requests per second.
    Steps(Vec<(Duration, f64)>),
    /// The recording does not say.
    Unknown,
}

impl Replay {
    /// The arrivals of a recording, at most so many of them in a row: those that came in the shortest time.
    #[must_use]
    pub fn of(digest: &Digest, reading: &Reading, most: usize) -> Self {
        if !digest.steps.is_empty() {
            return steps(digest);
        }
        let mut starts: Vec<i64> = if is_coarse(reading) {
            let refined = digest.requests.refined(reading.order());
            refined.iter().filter(|request| !request.nested).filter_map(Request::start).collect()
        } else {
            digest.requests.iter().filter(|request| !request.nested).filter_map(Request::start).collect()
        };
        if starts.len() < 2 || most < 2 {
            return Self::Unknown;
        }
        starts.sort_unstable();
        // Of a thinned recording every so many-th is here: each stands for as many, evenly up to the next.
        let each = (digest.records as f64 / digest.requests.iter().count() as f64).round().max(1.0) as u32;
        let most = (most / each as usize).max(2);
        let cut = starts.len() > most;
        if cut {
            let width = |from: usize| starts[from + most - 1].abs_diff(starts[from]);
            let from = (0..=starts.len() - most).min_by_key(|&from| width(from)).unwrap_or(0);
            starts = starts[from..from + most].to_vec();
        }
        let first = starts[0];
        let since = |start: i64| Duration::from_nanos(start.abs_diff(first));
        let mut at = Vec::with_capacity(starts.len() * each as usize);
        for (index, &start) in starts.iter().enumerate() {
            let next = starts.get(index + 1).map_or(start, |next| *next);
            let gap = Duration::from_nanos(next.abs_diff(start)) / each;
            at.extend((0..each).map(|number| since(start) + gap * number));
        }
        Self::Each { at, cut }
    }

    /// From the first to the last.
    #[must_use]
    pub fn length(&self) -> Duration {
        match self {
            Self::Each { at, .. } => at.last().copied().unwrap_or_default(),
            Self::Steps(steps) => steps.iter().map(|(length, _)| *length).sum(),
            Self::Unknown => Duration::ZERO,
        }
    }

    /// Requests per second, as a mean over the length; `None` where nothing is known.
    #[must_use]
    pub fn mean_per_s(&self) -> Option<f64> {
        let seconds = self.length().as_secs_f64();
        let requests = match self {
            Self::Each { at, .. } => at.len() as f64,
            Self::Steps(steps) => steps.iter().map(|(length, rate)| length.as_secs_f64() * rate).sum(),
            Self::Unknown => 0.0,
        };
        (seconds > 0.0 && requests > 0.0).then(|| requests / seconds)
    }
}

/// Steps at most as long as a run should be: longer ones are cut, in proportion.
fn steps(digest: &Digest) -> Replay {
    const LONGEST: f64 = 600.0;
    let steps: Vec<(f64, f64)> = digest
        .steps
        .iter()
        .filter(|step| step.seconds > 0.0)
        .map(|step| {
            let rate = step.offered_per_s.unwrap_or((step.completed + step.timeouts) / step.seconds);
            (step.seconds, rate)
        })
        .filter(|(seconds, rate)| seconds.is_finite() && rate.is_finite() && *rate > 0.0)
        .collect();
    let total: f64 = steps.iter().map(|(seconds, _)| seconds).sum();
    let factor = (LONGEST / total).min(1.0);
    let steps: Vec<_> = steps
        .into_iter()
        .map(|(seconds, rate)| (Duration::from_secs_f64((seconds * factor).max(1e-3)), rate))
        .collect();
    if steps.is_empty() { Replay::Unknown } else { Replay::Steps(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::input::Compression;
    use crate::record::{Basis, Item, Record};

    fn digest(starts_ms: &[i64]) -> Digest {
        let mut digest = Digest::new();
        for start in starts_ms {
            let record = Record::stamped(Some(start * 1_000_000), Basis::Start, Some(1_000_000));
            digest.add(Item::Request(record));
        }
        digest
    }

    #[test]
    fn of_a_long_recording_the_busiest_stretch_is_taken_and_counted_from_its_beginning() {
        let digest = digest(&[0, 1000, 2000, 2100, 2150, 4000, 9000]);
        let reading = Reading::new(Format::Goodput, Compression::None);
        let ms = Duration::from_millis;
        let busiest = Replay::of(&digest, &reading, 3);
        assert_eq!(busiest, Replay::Each { at: vec![ms(0), ms(100), ms(150)], cut: true });
        assert_eq!(busiest.mean_per_s(), Some(20.0));
        let all = Replay::of(&digest, &reading, 100);
        assert_eq!(all.length(), ms(9000));
    }

    #[test]
    fn a_recording_without_stamps_has_no_arrivals() {
        let mut digest = Digest::new();
        digest.add(Item::Request(Record::unstamped(Some(5))));
        digest.add(Item::Request(Record::unstamped(Some(6))));
        let reading = Reading::new(Format::Goodput, Compression::None);
        assert_eq!(Replay::of(&digest, &reading, 100), Replay::Unknown);
        assert_eq!(Replay::Unknown.mean_per_s(), None);
    }
}
