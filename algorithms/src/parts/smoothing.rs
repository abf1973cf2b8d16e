/// The exponential average of the Netflix family: the plain mean of the first `warm_up` values, then
/// `v ← v (1 − f) + x f` with `f = 2 / (age + 1)`.
#[derive(Clone, Debug)]
pub(crate) struct WarmingMean {
    factor: f64,
    warm_up: u32,
    count: u32,
    sum: f64,
    value: f64,
}

impl WarmingMean {
    pub(crate) fn new(age: u32, warm_up: u32) -> Self {
        Self { factor: 2.0 / (f64::from(age) + 1.0), warm_up, count: 0, sum: 0.0, value: 0.0 }
    }

    /// Adds a value and answers with the mean.
    pub(crate) fn add(&mut self, value: f64) -> f64 {
        if self.count < self.warm_up {
            self.count += 1;
            self.sum += value;
            self.value = self.sum / f64::from(self.count);
        } else {
            self.value = self.value * (1.0 - self.factor) + value * self.factor;
        }
        self.value
    }

    /// Zero before the first value.
    pub(crate) const fn value(&self) -> f64 {
        self.value
    }

    /// Continues from a saved mean: the warm-up is over.
    pub(crate) const fn resume(&mut self, value: f64) {
        self.value = value;
        self.count = self.warm_up;
    }
}

/// The median of the last five values; the first four pass through as they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct MedianOfFive {
    values: [f64; 5],
    next: usize,
    seen: usize,
}

impl MedianOfFive {
    /// Adds a value and answers with the median.
    pub(crate) fn add(&mut self, value: f64) -> f64 {
        self.values[self.next] = value;
        self.next = (self.next + 1) % self.values.len();
        if self.seen + 1 < self.values.len() {
            self.seen += 1;
            return value;
        }
        let mut sorted = self.values;
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warming_mean_is_plain_at_first_and_then_exponential() {
        let mut mean = WarmingMean::new(3, 2);
        assert_eq!(mean.add(10.0), 10.0);
        assert_eq!(mean.add(20.0), 15.0);
        // f = 2 / 4
        assert_eq!(mean.add(25.0), 20.0);
    }

    #[test]
    fn the_median_filter_lets_four_values_pass_and_then_takes_the_middle_one() {
        // The sequence of failsafe-go's own test.
        let mut median = MedianOfFive::default();
        let medians = [100.0, 300.0, 200.0, 200.0, 250.0].map(|value| median.add(value));
        assert_eq!(medians, [100.0, 300.0, 200.0, 200.0, 200.0]);
        // 300, 200, 200, 250, 400
        assert_eq!(median.add(400.0), 250.0);
    }
}
