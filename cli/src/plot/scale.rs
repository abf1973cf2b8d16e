//! Axes: from values to pixels, and where the ticks stand.

/// An axis of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    pixels: f64,
}

impl Scale {
    /// From zero to at least `high`, evenly.
    pub(super) const fn linear(high: f64, pixels: f64) -> Self {
        Self { logarithmic: false, low: 0.0, high, pixels }
    }

    /// From `low` to `high`, both above zero, by factors.
    pub(super) const fn logarithmic(low: f64, high: f64, pixels: f64) -> Self {
        Self { logarithmic: true, low, high, pixels }
    }

    pub(super) const fn high(&self) -> f64 {
        self.high
    }

    /// How far from the beginning of the axis a value lies, in pixels. What lies beyond an end is put there.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if !self.logarithmic {
            (value - self.low) / (self.high - self.low)
        } else if value > 0.0 {
            libm::log2(value / self.low) / libm::log2(self.high / self.low)
        } else {
            0.0
        };
        share.clamp(0.0, 1.0) * self.pixels
    }

    /// Round values that lie at least `apart` pixels from each other.
    pub(super) fn ticks(&self, apart: f64) -> Vec<f64> {
        if self.logarithmic { self.round_factors(apart) } else { self.round_steps(apart) }
    }

    fn round_steps(&self, apart: f64) -> Vec<f64> {
        let least = (self.high - self.low) * apart / self.pixels;
        let power = libm::pow(10.0, libm::floor(libm::log10(least)));
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|&step| step >= least * 0.999);
        let step = step.unwrap_or(least);
        let count = libm::floor((self.high - self.low) / step + 1e-6) as u32;
        (0..=count).map(|index| self.low + f64::from(index) * step).collect()
    }

    fn round_factors(&self, apart: f64) -> Vec<f64> {
        let decades = libm::floor(libm::log10(self.low)) as i32..=libm::ceil(libm::log10(self.high)) as i32;
        let with = |digits: &[f64]| -> Vec<f64> {
            decades
                .clone()
                .flat_map(|decade| digits.iter().map(move |digit| digit * libm::pow(10.0, f64::from(decade))))
                .filter(|&tick| tick >= self.low * 0.999 && tick <= self.high * 1.001)
                .collect()
        };
        let roomy =
            |ticks: &Vec<f64>| ticks.windows(2).all(|tick| self.at(tick[1]) - self.at(tick[0]) >= apart);
        [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].into_iter().map(with).find(roomy).unwrap_or_default()
    }
}

/// The least of 1, 2, 2.5 or 5 times a power of ten that is not below `value`, for the end of an axis.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = libm::pow(10.0, libm::floor(libm::log10(value)));
    let digits = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    digits.into_iter().map(|digit| digit * power).find(|&round| round >= value * 0.999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_far_enough_apart() {
        assert_eq!(Scale::linear(5000.0, 100.0).ticks(22.0), [0.0, 2000.0, 4000.0]);
        assert_eq!(Scale::linear(45.0, 120.0).ticks(24.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(
            Scale::logarithmic(2.0, 400.0, 100.0).ticks(12.0),
            [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
        );
        assert_eq!(Scale::logarithmic(2.0, 400.0, 50.0).ticks(16.0), [10.0, 100.0]);
    }

    #[test]
    fn values_beyond_an_end_are_put_there() {
        let scale = Scale::logarithmic(1.0, 100.0, 80.0);
        assert_eq!(
            [0.0, 0.5, 1.0, 10.0, 100.0, 1e9].map(|value| scale.at(value)),
            [0.0, 0.0, 0.0, 40.0, 80.0, 80.0]
        );
    }
}
