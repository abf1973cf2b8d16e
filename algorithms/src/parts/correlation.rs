/// Pearson's correlation over the last `capacity` pairs.
#[derive(Clone, Debug)]
pub(crate) struct Correlation {
    pairs: Box<[(f64, f64)]>,
    next: usize,
    len: usize,
    warm_up: usize,
}

/// What the pairs say. All zero until there are enough of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Correlated {
    /// In `[−1, 1]`; zero where x or y varies by less than 1 %.
    pub(crate) correlation: f64,
    /// Mean of products less product of means, in the units of x times those of y.
    pub(crate) covariance: f64,
    /// Coefficient of variation of y.
    pub(crate) y_variation: f64,
}

/// A signal that varies less than this says nothing.
const LEAST_VARIATION: f64 = 0.01;

impl Correlation {
    pub(crate) fn new(capacity: usize, warm_up: usize) -> Self {
        Self { pairs: vec![(0.0, 0.0); capacity.max(2)].into_boxed_slice(), next: 0, len: 0, warm_up }
    }

    /// Adds a pair and answers with what all say.
    pub(crate) fn add(&mut self, x: f64, y: f64) -> Correlated {
        self.pairs[self.next] = (x, y);
        self.next = (self.next + 1) % self.pairs.len();
        self.len = (self.len + 1).min(self.pairs.len());
        if self.len < self.warm_up.max(2) {
            return Correlated::default();
        }
        self.read()
    }

    /// Recomputed from the pairs: running sums would never forget the rounding of one absurd value.
    fn read(&self) -> Correlated {
        let pairs = &self.pairs[..self.len];
        let n = pairs.len() as f64;
        let (x_mean, y_mean) = pairs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
        let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
        for (x, y) in pairs {
            xx += (x - x_mean) * (x - x_mean) / n;
            yy += (y - y_mean) * (y - y_mean) / n;
            xy += (x - x_mean) * (y - y_mean) / n;
        }
        if x_mean <= 0.0 || y_mean <= 0.0 {
            return Correlated::default();
        }
        let (x_variation, y_variation) = (xx.sqrt() / x_mean, yy.sqrt() / y_mean);
        let correlation = if x_variation < LEAST_VARIATION || y_variation < LEAST_VARIATION {
            0.0
        } else {
            xy / (xx.sqrt() * yy.sqrt())
        };
        Correlated { correlation, covariance: xy, y_variation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_correlates_fully() {
        let mut window = Correlation::new(10, 3);
        assert_eq!(window.add(1.0, 3.0), Correlated::default());
        assert_eq!(window.add(2.0, 5.0), Correlated::default());
        let up = window.add(3.0, 7.0);
        assert!((up.correlation - 1.0).abs() < 1e-12);
        // (1, 2, 3) and (3, 5, 7): covariance 4/3; y varies by √(8/3) around 5.
        assert!((up.covariance - 4.0 / 3.0).abs() < 1e-12);
        assert!((up.y_variation - (8.0_f64 / 3.0).sqrt() / 5.0).abs() < 1e-12);
    }

    #[test]
    fn opposite_moves_correlate_negatively_and_old_pairs_fall_out() {
        let mut window = Correlation::new(2, 2);
        window.add(1.0, 1.0);
        window.add(2.0, 2.0);
        assert!((window.add(1.0, 4.0).correlation + 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_says_nothing() {
        let mut window = Correlation::new(4, 2);
        window.add(5.0, 1.0);
        assert_eq!(window.add(5.0, 2.0).correlation, 0.0);
    }
}
