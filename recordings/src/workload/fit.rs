//! How the service's throughput follows from the number of requests in it: four families of curves, fitted by
//! maximum likelihood and chosen among by their fit.
//!
//! The completions of a cell are taken as a Poisson number with mean λ ∫ g(n(t)) dt, where n(t) is the number in the
//! service and g the family's curve; more (or less) scatter than Poisson's is allowed for by a factor (quasi-likelihood,
//! McCullagh and Nelder 1989, ch. 9). Integrating over the real course of n within a cell, instead of putting its mean
//! into the curve, keeps the bend of the curve sharp.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::cells::Cell;
use super::interval::Estimate;

/// Ratio of neighbouring candidates for the bend of a curve.
const GRID_RATIO: f64 = 1.05;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 200;
/// The bootstrap's generator always starts here: the same recording gives the same numbers.
const SEED: u64 = 0x676f_6f64_7075_7431;

/// A curve of throughput over the number in the service, up to its factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Curve {
    /// g(n) = n: nobody waits for anybody.
    Linear,
    /// g(n) = min(n, k): k requests are worked on at once, be it one worker each or by sharing.
    Saturating {
        /// The bend.
        k: f64,
    },
    /// The universal scalability law, g(n) = n / (1 + σ (n − 1) + κ n (n − 1)) (Gunther, "Guerrilla Capacity Planning",
    /// 2007).
    Scalability {
        /// Contention.
        sigma: f64,
        /// Coherency.
        kappa: f64,
    },
    /// g(n) = min(n, k) / (1 + (n − k)⁺ / s): k are worked on at once, and more slowly the more wait.
    Slowed {
        /// The bend.
        k: f64,
        /// So many waiting ones double the time that work takes.
        s: f64,
    },
}

impl Curve {
    pub(crate) fn at(self, n: f64) -> f64 {
        match self {
            Self::Linear => n,
            Self::Saturating { k } => n.min(k),
            // Below one request there is no second one to contend with.
            Self::Scalability { sigma, kappa } => n / (1.0 + (sigma + kappa * n) * (n - 1.0).max(0.0)),
            Self::Slowed { k, s } => n.min(k) / (1.0 + (n - k).max(0.0) / s),
        }
    }

    /// The number at which the curve is highest, or bends towards its highest value, if there is one.
    pub(crate) fn peak(self) -> Option<f64> {
        match self {
            Self::Linear => None,
            Self::Saturating { k } | Self::Slowed { k, .. } => Some(k),
            // It never ends rising; the line that it begins with would reach the highest value here.
            Self::Scalability { sigma, kappa: 0.0 } => (sigma > 0.0).then(|| 1.0 / sigma),
            Self::Scalability { sigma, kappa } => Some(((1.0 - sigma).max(0.0) / kappa).sqrt().max(1.0)),
        }
    }

    /// The curve's highest value at a whole number of requests: between two of them nothing was ever seen.
    pub(crate) fn most(self) -> Option<f64> {
        match self {
            Self::Scalability { sigma, kappa: 0.0 } => (sigma > 0.0).then(|| 1.0 / sigma),
            _ => self.peak().map(|n| self.at(n.floor()).max(self.at(n.ceil()))),
        }
    }

    fn parameters(self) -> f64 {
        match self {
            Self::Linear => 1.0,
            Self::Saturating { .. } => 2.0,
            Self::Scalability { .. } | Self::Slowed { .. } => 3.0,
        }
    }
}

/// A fitted curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) curve: Curve,
    /// Completions per second at one request in the service.
    pub(crate) rate: f64,
    /// Twice the lack of log-likelihood against a model that knows every cell.
    pub(crate) deviance: f64,
}

impl Fit {
    /// Most completions per second.
    pub(crate) fn capacity(&self) -> Option<f64> {
        self.curve.most().map(|most| most * self.rate)
    }
}

/// The curves of one family on a grid, each with the exposure of every cell.
struct Family {
    curves: Vec<Curve>,
    /// By curve, by cell.
    exposures: Vec<Vec<Exposure>>,
}

/// What a cell would have completed at a factor of one.
#[derive(Clone, Copy)]
struct Exposure {
    value: f64,
    /// Its logarithm, which resamples need again and again.
    log: f64,
}

impl Family {
    fn new(curves: Vec<Curve>, cells: &[Cell]) -> Self {
        let exposures = curves
            .iter()
            .map(|curve| {
                let values = cells.iter().map(|cell| cell.integral(|n| curve.at(n)));
                values.map(|value| Exposure { value, log: value.ln() }).collect()
            })
            .collect();
        Self { curves, exposures }
    }

    /// The best curve when each cell counts as often as `weights` say.
    fn best(&self, completed: &[f64], weights: &[f64]) -> Option<Fit> {
        let mut best: Option<(f64, usize, f64)> = None;
        for (index, exposures) in self.exposures.iter().enumerate() {
            let (mut done, mut exposure, mut log) = (0.0, 0.0, 0.0);
            for ((d, b), w) in completed.iter().zip(exposures).zip(weights) {
                if b.value > 0.0 {
                    done += w * d;
                    exposure += w * b.value;
                    log += w * d * b.log;
                }
            }
            if exposure <= 0.0 || done <= 0.0 {
                continue;
            }
            let rate = done / exposure;
            let likelihood = log + done * rate.ln() - done;
            if best.is_none_or(|(most, ..)| likelihood > most + 1e-9) {
                best = Some((likelihood, index, rate));
            }
        }
        let (_, index, rate) = best?;
        let deviance =
            completed.iter().zip(&self.exposures[index]).map(|(d, b)| deviance(*d, rate * b.value)).sum();
        Some(Fit { curve: self.curves[index], rate, deviance })
    }
}

/// A cell's share of the deviance of a Poisson model.
fn deviance(seen: f64, expected: f64) -> f64 {
    if expected <= 0.0 {
        return 0.0;
    }
    let log = if seen > 0.0 { seen * (seen / expected).ln() } else { 0.0 };
    2.0 * (log - (seen - expected))
}

/// The fits of all families.
pub(crate) struct Fits {
    pub(crate) linear: Fit,
    pub(crate) saturating: Fit,
    pub(crate) scalability: Fit,
    pub(crate) slowed: Fit,
    /// Variance of the completions over that of a Poisson model, by the best family's residuals; at least 1.
    pub(crate) dispersion: f64,
    saturating_family: Family,
    scalability_family: Family,
    slowed_family: Family,
    completed: Vec<f64>,
}

impl Fits {
    /// Fits all families, with bends from `least` on; `None` if there is nothing to fit.
    pub(crate) fn of(cells: &[Cell], least: f64) -> Option<Self> {
        let most = cells.iter().flat_map(|cell| &cell.levels).map(|(n, _)| *n).fold(0.0, f64::max);
        if cells.len() < 2 || most <= 0.0 {
            return None;
        }
        let completed: Vec<f64> = cells.iter().map(|cell| cell.completed).collect();
        let ones = vec![1.0; cells.len()];
        let bends = grid(least, most * 1.3);
        let linear = Family::new(vec![Curve::Linear], cells).best(&completed, &ones)?;
        let saturating_family = Family::new(bends.iter().map(|&k| Curve::Saturating { k }).collect(), cells);
        let scalability_family = Family::new(scalability_curves(most), cells);
        let slowed_family = Family::new(slowed_curves(&bends), cells);
        let saturating = saturating_family.best(&completed, &ones)?;
        let scalability = scalability_family.best(&completed, &ones)?;
        let slowed = slowed_family.best(&completed, &ones)?;
        let best = [linear, saturating, scalability, slowed]
            .into_iter()
            .min_by(|a, b| a.deviance.total_cmp(&b.deviance))?;
        let degrees = (cells.len() as f64 - best.curve.parameters()).max(1.0);
        let pearson: f64 = cells
            .iter()
            .map(|cell| (cell.completed, best.rate * cell.integral(|n| best.curve.at(n))))
            .filter(|(_, expected)| *expected > 0.0)
            .map(|(seen, expected)| (seen - expected) * (seen - expected) / expected)
            .sum();
        let dispersion = (pearson / degrees).max(1.0);
        Some(Self {
            linear,
            saturating,
            scalability,
            slowed,
            dispersion,
            saturating_family,
            scalability_family,
            slowed_family,
            completed,
        })
    }

    /// How much better a fit is than the linear one, in units of scatter: about χ² of one degree of freedom if the
    /// truth is linear.
    pub(crate) fn gain(&self, fit: &Fit) -> f64 {
        (self.linear.deviance - fit.deviance) / self.dispersion
    }

    /// The best of the bent families, by Akaike's criterion for quasi-likelihoods. Those that fall again have to be clearly
    /// better: they can imitate a bend, and not the other way round.
    pub(crate) fn bent(&self) -> Fit {
        let criterion = |fit: &Fit| fit.deviance / self.dispersion + 2.0 * fit.curve.parameters();
        let falling = if criterion(&self.slowed) < criterion(&self.scalability) {
            self.slowed
        } else {
            self.scalability
        };
        if criterion(&falling) + 10.0 < criterion(&self.saturating) { falling } else { self.saturating }
    }

    /// Cells of a block that shares its weather.
    fn block(&self) -> usize {
        (self.completed.len() as f64).cbrt().ceil() as usize
    }

    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> usize {
        self.completed.len().div_ceil(self.block())
    }

    /// The capacity and the bend or peak of a fit's family, with intervals from a block bootstrap over the cells
    /// (Künsch 1989): neighbouring cells share their weather. `tail` tells, by the number of blocks, the share of resamples
    /// that is left out at each end.
    pub(crate) fn uncertainty(
        &self,
        fit: &Fit,
        tail: impl FnOnce(usize) -> f64,
    ) -> (Option<Estimate>, Option<Estimate>) {
        let family = match fit.curve {
            Curve::Linear => return (None, None),
            Curve::Saturating { .. } => &self.saturating_family,
            Curve::Scalability { .. } => &self.scalability_family,
            Curve::Slowed { .. } => &self.slowed_family,
        };
        let (count, block) = (self.completed.len(), self.block());
        let tail = tail(self.blocks());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let (mut capacities, mut peaks) = (Vec::new(), Vec::new());
        let mut weights = vec![0.0; count];
        for _ in 0..RESAMPLES {
            weights.fill(0.0);
            for _ in 0..count.div_ceil(block) {
                let start = (random.next_u64() % count as u64) as usize;
                for step in 0..block {
                    weights[(start + step) % count] += 1.0;
                }
            }
            if let Some(fit) = family.best(&self.completed, &weights) {
                capacities.push(fit.capacity().unwrap_or(f64::INFINITY));
                peaks.push(fit.curve.peak().unwrap_or(f64::INFINITY));
            }
        }
        let around = |value: Option<f64>, sample: &mut Vec<f64>| {
            sample.sort_by(f64::total_cmp);
            let at = |q: f64| sample.get(((sample.len() as f64 - 1.0) * q).round() as usize).copied();
            Some(Estimate::new(value?, at(tail)?, at(1.0 - tail)?))
        };
        (around(fit.capacity(), &mut capacities), around(fit.curve.peak(), &mut peaks))
    }
}

/// Candidates from one number to another, in equal ratios.
fn grid(from: f64, to: f64) -> Vec<f64> {
    let mut candidates = Vec::new();
    let mut candidate = from;
    while candidate <= to.max(from) {
        candidates.push(candidate);
        candidate *= GRID_RATIO;
    }
    candidates
}

/// Curves of the universal scalability law by their contention and their peak.
fn scalability_curves(most: f64) -> Vec<Curve> {
    let mut curves = Vec::new();
    for sigma in [0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8] {
        curves.push(Curve::Scalability { sigma, kappa: 0.0 });
        let mut peak = 1.0;
        while peak < most * 3.0 {
            curves.push(Curve::Scalability { sigma, kappa: (1.0 - sigma) / (peak * peak) });
            peak *= GRID_RATIO;
        }
    }
    curves
}

/// Curves of a service that its queue slows, by their bend and by how much.
fn slowed_curves(bends: &[f64]) -> Vec<Curve> {
    let slows = [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0];
    bends.iter().flat_map(|&k| slows.map(|times| Curve::Slowed { k, s: times * k })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells at constant numbers in the service, with the completions that a curve gives.
    fn cells(rate: f64, curve: Curve) -> Vec<Cell> {
        (0..60)
            .map(|index| {
                let n = f64::from(1 + index % 30);
                let completed = (rate * curve.at(n) * 10.0).round();
                Cell { seconds: 10.0, levels: vec![(n, 10.0)], completed, in_service: n, ..Cell::default() }
            })
            .collect()
    }

    #[test]
    fn the_bend_of_a_service_of_eight_workers_is_found() {
        let fits = Fits::of(&cells(10.0, Curve::Saturating { k: 8.0 }), 0.5).unwrap();
        let fit = fits.bent();
        assert!((fit.capacity().unwrap() - 80.0).abs() < 2.0, "{fit:?}");
        assert!((fit.curve.peak().unwrap() - 8.0).abs() < 0.4, "{fit:?}");
        let (capacity, peak) = fits.uncertainty(&fit, |_| 0.025);
        assert!(capacity.unwrap().low > 75.0 && capacity.unwrap().high < 85.0);
        assert!(peak.unwrap().low > 7.0 && peak.unwrap().high < 9.0);
    }

    #[test]
    fn a_retrograde_service_is_told_from_a_saturating_one() {
        let truth = Curve::Scalability { sigma: 0.02, kappa: 0.002 };
        let fits = Fits::of(&cells(100.0, truth), 0.5).unwrap();
        let fit = fits.bent();
        assert!(matches!(fit.curve, Curve::Scalability { .. }), "{fit:?}");
        let capacity = truth.at((0.98_f64 / 0.002).sqrt()) * 100.0;
        assert!((fit.capacity().unwrap() / capacity - 1.0).abs() < 0.03, "{fit:?} {capacity}");
    }

    #[test]
    fn a_service_that_its_queue_slows_is_told_from_a_retrograde_one() {
        let fits = Fits::of(&cells(100.0, Curve::Slowed { k: 8.0, s: 40.0 }), 0.5).unwrap();
        let fit = fits.bent();
        assert!(matches!(fit.curve, Curve::Slowed { .. }), "{fit:?}");
        assert!((fit.curve.peak().unwrap() - 8.0).abs() < 0.4, "{fit:?}");
        assert!((fit.capacity().unwrap() / 800.0 - 1.0).abs() < 0.03, "{fit:?}");
    }

    /// Between one request and two, this curve would reach 1.2; with one it is 1, with two 1.2 / (1 + 0.8 / 4) = 1.
    #[test]
    fn no_capacity_lies_between_two_numbers_of_requests() {
        let most = Curve::Slowed { k: 1.2, s: 4.0 }.most().unwrap();
        assert!((most - 1.0).abs() < 1e-12, "{most}");
        assert_eq!(Curve::Saturating { k: 1.2 }.most(), Some(1.2));
    }

    #[test]
    fn where_nobody_waits_no_bend_gains_anything() {
        let fits = Fits::of(&cells(10.0, Curve::Linear), 0.5).unwrap();
        assert!(fits.gain(&fits.bent()) < 3.0);
    }
}
