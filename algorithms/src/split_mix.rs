/// The generator SplitMix64 of Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014), which
/// limiters use for jitter. Its state is a seed and a count, so a saved limiter goes on where it was.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64 {
    seed: u64,
    draws: u64,
}

impl SplitMix64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, draws: 0 }
    }

    /// The generator after so many draws.
    pub(crate) const fn after(&self, draws: u64) -> Self {
        Self { seed: self.seed, draws }
    }

    /// How many numbers were drawn.
    pub(crate) const fn draws(&self) -> u64 {
        self.draws
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        let mut z = self.seed.wrapping_add(self.draws.wrapping_mul(Self::GAMMA));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `0..bound`; zero for a bound of zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_published_sequence_of_seed_1234567() {
        // As listed for splitmix64 by Rosetta Code, "Pseudo-random numbers/Splitmix64".
        let mut random = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| random.next()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
        assert_eq!(random.after(2).next(), drawn[2]);
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut random = SplitMix64::new(0);
        for _ in 0..1_000 {
            assert!((0.0..1.0).contains(&random.unit()));
            assert!(random.below(3) < 3);
            assert_eq!(random.below(0), 0);
        }
    }
}
