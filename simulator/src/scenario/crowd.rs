use super::Crowd;

impl Crowd {
    /// How many times as long the work takes of one who comes as the `there`-th, as that of one alone.
    pub(crate) fn slowness(&self, there: f64) -> f64 {
        let bend = self
            .knee
            .as_ref()
            .map_or(0.0, |knee| libm::pow(knee.growth, (there - f64::from(knee.from)).max(0.0)) - 1.0);
        1.0 + self.slows_by * (there - 1.0) + bend
    }

    /// How many requests' worth of work it does at once where it does most.
    pub(crate) fn peak(&self) -> f64 {
        let done = |there: f64| there / self.slowness(there);
        let most = self.at_most.map_or(f64::INFINITY, f64::from);
        match &self.knee {
            Some(knee) if knee.growth > 1.0 => {
                // A number over a convex function of it rises to its one peak and falls; so halve the way to it.
                let (mut rises, mut falls) = (0_u64, most.min(1e12) as u64);
                while falls - rises > 1 {
                    let middle = rises.midpoint(falls);
                    let still = done(middle as f64 + 1.0) > done(middle as f64);
                    *if still { &mut rises } else { &mut falls } = middle;
                }
                done(falls as f64)
            }
            _ if most.is_finite() => done(most),
            _ => 1.0 / self.slows_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Knee;

    #[test]
    fn latency_grows_with_the_crowd_as_the_formula_says() {
        let link = Crowd { slows_by: 1.0, ..Crowd::default() };
        assert_eq!([1.0, 2.0, 7.0].map(|there| link.slowness(there)), [1.0, 2.0, 7.0]);
        let bent = Crowd { knee: Some(Knee { from: 10, growth: 2.0 }), ..Crowd::default() };
        assert_eq!([1.0, 10.0, 11.0, 13.0].map(|there| bent.slowness(there)), [1.0, 1.0, 2.0, 8.0]);
    }

    #[test]
    fn it_does_most_where_one_more_brings_nothing() {
        assert_eq!(Crowd { slows_by: 0.5, ..Crowd::default() }.peak(), 2.0);
        assert_eq!(Crowd { at_most: Some(5), ..Crowd::default() }.peak(), 5.0);
        assert_eq!(Crowd::default().peak(), f64::INFINITY);
        // n / 2^(n - 10) falls from n = 10 on: 11 / 2 < 10.
        let bent = Crowd { knee: Some(Knee { from: 10, growth: 2.0 }), ..Crowd::default() };
        assert_eq!(bent.peak(), 10.0);
    }
}
