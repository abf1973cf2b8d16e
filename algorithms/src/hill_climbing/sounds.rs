//! How strongly the limit and throughput swing, at the frequency of the wave and beside it.

/// Listens to the last intervals: as many whole waves as they hold, up to `history` intervals.
///
/// The frequencies are those of a Fourier transform over these intervals, so what one of them adds to a sum returns
/// after as many: a new one takes the place of the one it displaces, and a step costs the same however many there are.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    period: usize,
    /// Throughput and limit of the last ones, a ring once it is full.
    intervals: Box<[(f64, f64)]>,
    /// Intervals so far.
    pub(super) total: usize,
    /// How many of them since a wave began.
    within: usize,
    /// How many are listened to: whole waves.
    count: usize,
    /// The place of the last one among as many.
    phase: usize,
    /// By how much an interval counts, by its phase.
    weights: Box<[Weights]>,
    sums: Sums,
}

/// What goes with the cosine, and what with the sine.
type Amplitude = [f64; 2];

/// By how much an interval counts at the frequency of the wave, and at the two beside it.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    wave: Amplitude,
    lower: Amplitude,
    upper: Amplitude,
}

/// Sums over the intervals: means and amplitudes before they are divided by the number of intervals, which cancels out
/// wherever one is divided by another.
///
/// Their squares and cubes are far from overflow: throughput is at most 2⁶⁴ in a nanosecond, a limit at most 2⁶⁴, and there
/// are at most a million intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) throughput: f64,
    pub(super) limit: f64,
    /// Of throughput at the frequency of the wave, and at the two beside it.
    pub(super) wave: Amplitude,
    pub(super) lower: Amplitude,
    pub(super) upper: Amplitude,
    /// Of the limit at the frequency of the wave.
    pub(super) limit_wave: Amplitude,
}

impl Listener {
    pub(super) fn new(period: usize, history: usize) -> Self {
        Self {
            period,
            intervals: vec![(0.0, 0.0); history].into_boxed_slice(),
            total: 0,
            within: 0,
            count: 0,
            phase: 0,
            weights: vec![Weights::default(); history].into_boxed_slice(),
            sums: Sums::default(),
        }
    }

    /// What is heard once there are two whole waves, after one interval that is left out.
    pub(super) fn hear(&mut self, throughput: f64, limit: f64) -> Option<Sums> {
        let (number, history) = (self.total, self.intervals.len());
        let has_grown = self.within == 0 && self.count < history;
        if has_grown {
            self.count = number;
        }
        self.phase = if has_grown || self.phase + 1 == self.count { 0 } else { self.phase + 1 };
        self.total += 1;
        self.within = if self.within + 1 == self.period { 0 } else { self.within + 1 };
        let place = if self.count < history { number } else { self.phase };
        let displaced = self.intervals[self.phase];
        self.intervals[place] = (throughput, limit);
        if self.count <= self.period {
            return None;
        }
        if has_grown {
            self.tune();
        }
        if self.phase == 0 {
            // Also without a new wave, so that errors of rounding do not add up.
            self.listen_anew(throughput, limit);
        } else {
            let weights = &self.weights[self.phase];
            self.sums.add_throughput(throughput - displaced.0, weights);
            // As a rule it is the same, and a processor then goes on without waiting for what the last step made of it.
            if limit != displaced.1 {
                self.sums.add_limit(limit - displaced.1, weights);
            }
        }
        Some(self.sums)
    }

    /// Whether the limit is at its highest next: in the later half of a wave.
    pub(super) fn is_crest(&self) -> bool {
        self.within >= self.period / 2
    }

    fn tune(&mut self) {
        let (count, waves) = (self.count, self.count / self.period);
        for (phase, weights) in self.weights[..count].iter_mut().enumerate() {
            let at = |cycles: usize| {
                let angle = std::f64::consts::TAU * (phase * cycles % count) as f64 / count as f64;
                [libm::cos(angle), libm::sin(angle)]
            };
            *weights = Weights { wave: at(waves), lower: at(waves - 1), upper: at(waves + 1) };
        }
    }

    /// To the last interval, at phase 0, and to those at every other.
    fn listen_anew(&mut self, throughput: f64, limit: f64) {
        let mut sums = Sums::default();
        sums.add_throughput(throughput, &self.weights[0]);
        sums.add_limit(limit, &self.weights[0]);
        for (interval, weights) in self.intervals[1..self.count].iter().zip(&self.weights[1..]) {
            sums.add_throughput(interval.0, weights);
            sums.add_limit(interval.1, weights);
        }
        self.sums = sums;
    }
}

impl Sums {
    #[inline]
    fn add_throughput(&mut self, throughput: f64, weights: &Weights) {
        self.throughput += throughput;
        add(&mut self.wave, throughput, weights.wave);
        add(&mut self.lower, throughput, weights.lower);
        add(&mut self.upper, throughput, weights.upper);
    }

    #[inline]
    fn add_limit(&mut self, limit: f64, weights: &Weights) {
        self.limit += limit;
        add(&mut self.limit_wave, limit, weights.wave);
    }
}

#[inline]
fn add(sum: &mut Amplitude, heard: f64, weight: Amplitude) {
    sum[0] += heard * weight[0];
    sum[1] += heard * weight[1];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size([re, im]: Amplitude) -> f64 {
        (re * re + im * im).sqrt()
    }

    /// By the definition of the transform, over the last `count` of them.
    fn amplitude(heard: &[f64], count: usize, cycles: usize) -> f64 {
        let last = &heard[heard.len() - count..];
        let angle = |i: usize| std::f64::consts::TAU * (i * cycles) as f64 / count as f64;
        let sum = |part: fn(f64) -> f64| {
            last.iter().enumerate().map(|(i, heard)| heard * part(angle(i))).sum::<f64>()
        };
        size([sum(libm::cos), sum(libm::sin)])
    }

    #[test]
    fn the_amplitude_of_a_wave_is_half_of_its_height_at_its_own_period_and_none_at_another() {
        let mut listener = Listener::new(4, 16);
        let wave = |i: i32| 10.0 + 4.0 * libm::cos(std::f64::consts::TAU * f64::from(i) / 4.0);
        let sums = (0..=16).map(|i| listener.hear(wave(i), 10.0)).last().unwrap().unwrap();
        assert!((size(sums.wave) / 16.0 - 2.0).abs() < 1e-12, "{sums:?}");
        // At 16/3 and 16/5 intervals.
        assert!(
            [sums.lower, sums.upper, sums.limit_wave].into_iter().all(|sum| size(sum) < 1e-11),
            "{sums:?}"
        );
        assert!((sums.throughput / 16.0 - 10.0).abs() < 1e-12 && sums.limit == 160.0, "{sums:?}");
    }

    #[test]
    fn at_every_step_the_sums_are_those_of_the_last_whole_waves() {
        let (period, history) = (6, 24);
        let mut listener = Listener::new(period, history);
        let (mut throughputs, mut limits) = (Vec::new(), Vec::new());
        for i in 0..200_usize {
            let (throughput, limit) = ((i * i * 7919 % 1013) as f64 + 1.0, (i * 31 % 17) as f64 + 1.0);
            throughputs.push(throughput);
            limits.push(limit);
            let count = i.min(history) / period * period;
            let Some(sums) = listener.hear(throughput, limit) else {
                assert!(count <= period);
                continue;
            };
            let waves = count / period;
            let near = |sum: f64, expected: f64| {
                assert!((sum - expected).abs() < 1e-8, "{sum} {expected} at {i}");
            };
            near(size(sums.wave), amplitude(&throughputs, count, waves));
            near(size(sums.lower), amplitude(&throughputs, count, waves - 1));
            near(size(sums.upper), amplitude(&throughputs, count, waves + 1));
            near(size(sums.limit_wave), amplitude(&limits, count, waves));
            near(sums.throughput, amplitude(&throughputs, count, 0));
            near(sums.limit, amplitude(&limits, count, 0));
        }
    }
}
