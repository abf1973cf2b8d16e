//! How strongly the limit and throughput swing, at the frequency of the wave and beside it.

use crate::parts::float;

/// A complex amplitude.
type Amplitude = (f64, f64);

/// Listens to the last intervals: as many whole waves as they hold, up to `history` intervals.
///
/// The frequencies are those of a Fourier transform over these intervals, so what one of them adds to a sum returns
/// after as many: a new one takes the place of the one it displaces, and a step costs the same however many there are.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    period: usize,
    /// The last ones, a ring.
    intervals: Box<[Interval]>,
    /// Intervals so far.
    pub(super) total: usize,
    /// The place of the next one in the ring.
    next: usize,
    /// How many are listened to; zero before there are two waves.
    count: usize,
    /// By how much an interval counts, by its number modulo `count`.
    phases: Box<[Phases]>,
    sums: Sums,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    throughput: f64,
    limit: f64,
}

/// Cosine and sine at the frequency of the wave, and at the two beside it.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    wave: Amplitude,
    lower: Amplitude,
    upper: Amplitude,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    throughput: f64,
    limit: f64,
    wave: Amplitude,
    lower: Amplitude,
    upper: Amplitude,
    limit_wave: Amplitude,
}

/// Means and complex amplitudes.
pub(super) struct Sounds {
    pub(super) throughput: f64,
    pub(super) limit: f64,
    pub(super) wave: Amplitude,
    pub(super) neighbours: [Amplitude; 2],
    pub(super) limit_wave: Amplitude,
}

impl Listener {
    pub(super) fn new(period: usize, history: usize) -> Self {
        Self {
            period,
            intervals: vec![Interval::default(); history].into_boxed_slice(),
            total: 0,
            next: 0,
            count: 0,
            phases: vec![Phases::default(); history].into_boxed_slice(),
            sums: Sums::default(),
        }
    }

    /// What is heard once there are two whole waves, after one interval that is left out.
    pub(super) fn hear(&mut self, throughput: f64, limit: f64) -> Option<Sounds> {
        let place = self.next;
        let history = self.intervals.len();
        let (number, before) = (self.total, self.count);
        if before < history {
            self.count = number.min(history) / self.period * self.period;
        }
        // Before the new one takes its place.
        let first = if place >= self.count { place - self.count } else { place + history - self.count };
        let displaced = self.intervals[first];
        self.intervals[place] = Interval { throughput, limit };
        self.next = if place + 1 == history { 0 } else { place + 1 };
        self.total += 1;
        if self.count <= self.period {
            return None;
        }
        let phase = if self.count == history { place } else { number % self.count };
        if self.count != before {
            self.tune();
            self.listen_anew();
        } else if phase == 0 {
            // So that errors of rounding do not add up.
            self.listen_anew();
        } else {
            let change =
                Interval { throughput: throughput - displaced.throughput, limit: limit - displaced.limit };
            self.sums.add(change, &self.phases[phase]);
        }
        Some(self.sums.over(float(self.count as u64)))
    }

    fn tune(&mut self) {
        let periods = self.count / self.period;
        let count = self.count;
        for (number, phases) in self.phases[..count].iter_mut().enumerate() {
            let of = |cycles: usize| {
                let angle = std::f64::consts::TAU * (number * cycles % count) as f64 / count as f64;
                (libm::cos(angle), libm::sin(angle))
            };
            *phases = Phases { wave: of(periods), lower: of(periods - 1), upper: of(periods + 1) };
        }
    }

    fn listen_anew(&mut self) {
        self.sums = Sums::default();
        let first = self.total - self.count;
        let (mut place, mut phase) = (first % self.intervals.len(), first % self.count);
        for _ in 0..self.count {
            self.sums.add(self.intervals[place], &self.phases[phase]);
            place = if place + 1 == self.intervals.len() { 0 } else { place + 1 };
            phase = if phase + 1 == self.count { 0 } else { phase + 1 };
        }
    }
}

impl Sums {
    #[inline]
    fn add(&mut self, interval: Interval, phases: &Phases) {
        let Interval { throughput, limit } = interval;
        let add = |sum: &mut Amplitude, heard: f64, (cos, sin): Amplitude| {
            sum.0 += heard * cos;
            sum.1 += heard * sin;
        };
        self.throughput += throughput;
        self.limit += limit;
        add(&mut self.wave, throughput, phases.wave);
        add(&mut self.lower, throughput, phases.lower);
        add(&mut self.upper, throughput, phases.upper);
        add(&mut self.limit_wave, limit, phases.wave);
    }

    fn over(&self, count: f64) -> Sounds {
        let share = 1.0 / count;
        let mean = |(re, im): Amplitude| (re * share, im * share);
        Sounds {
            throughput: self.throughput * share,
            limit: self.limit * share,
            wave: mean(self.wave),
            neighbours: [mean(self.lower), mean(self.upper)],
            limit_wave: mean(self.limit_wave),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size((re, im): Amplitude) -> f64 {
        (re * re + im * im).sqrt()
    }

    /// By the definition of the transform, over the last `count` of them.
    fn amplitude(heard: &[f64], count: usize, cycles: usize) -> f64 {
        let last = &heard[heard.len() - count..];
        let angle = |i: usize| std::f64::consts::TAU * (i * cycles) as f64 / count as f64;
        let sum = |part: fn(f64) -> f64| {
            last.iter().enumerate().map(|(i, heard)| heard * part(angle(i))).sum::<f64>()
        };
        size((sum(libm::cos), sum(libm::sin))) / count as f64
    }

    #[test]
    fn the_amplitude_of_a_wave_is_half_of_its_height_at_its_own_period_and_none_at_another() {
        let mut listener = Listener::new(4, 16);
        let wave = |i: i32| 10.0 + 4.0 * libm::cos(std::f64::consts::TAU * f64::from(i) / 4.0);
        let sounds = (0..=16).map(|i| listener.hear(wave(i), 10.0)).last().unwrap().unwrap();
        assert!((size(sounds.wave) - 2.0).abs() < 1e-12, "{}", size(sounds.wave));
        // At 16/5 and 16/3 intervals.
        assert!(sounds.neighbours.into_iter().all(|neighbour| size(neighbour) < 1e-12));
        assert!(size(sounds.limit_wave) < 1e-12);
        assert!((sounds.throughput - 10.0).abs() < 1e-12 && (sounds.limit - 10.0).abs() < 1e-12);
    }

    #[test]
    fn at_every_step_the_sounds_are_those_of_the_last_whole_waves() {
        let (period, history) = (6, 24);
        let mut listener = Listener::new(period, history);
        let (mut throughputs, mut limits) = (Vec::new(), Vec::new());
        for i in 0..200_usize {
            let (throughput, limit) = ((i * i * 7919 % 1013) as f64 + 1.0, (i * 31 % 17) as f64 + 1.0);
            throughputs.push(throughput);
            limits.push(limit);
            let count = i.min(history) / period * period;
            let Some(sounds) = listener.hear(throughput, limit) else {
                assert!(count <= period);
                continue;
            };
            let periods = count / period;
            let near = |heard: f64, expected: f64| {
                assert!((heard - expected).abs() < 1e-9, "{heard} {expected} at {i}");
            };
            near(size(sounds.wave), amplitude(&throughputs, count, periods));
            near(size(sounds.neighbours[0]), amplitude(&throughputs, count, periods - 1));
            near(size(sounds.neighbours[1]), amplitude(&throughputs, count, periods + 1));
            near(size(sounds.limit_wave), amplitude(&limits, count, periods));
            near(sounds.throughput, amplitude(&throughputs, count, 0));
            near(sounds.limit, amplitude(&limits, count, 0));
        }
    }
}
