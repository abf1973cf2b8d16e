//! Chance, the same on every machine.

use std::f64::consts::TAU;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream of chance decides. Each has its own, so that one draw more for one purpose moves no other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Arrivals = 1,
    Work = 2,
    Errors = 3,
    Waits = 4,
    Classes = 5,
    Scenarios = 100,
}

/// A stream of random numbers: xoshiro256++, with `libm` for whatever is not exact arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    generator: Xoshiro256PlusPlus,
    spare_normal: Option<f64>,
}

impl Stream {
    /// The stream of one purpose of the `index`-th client.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: usize) -> Self {
        let purpose = (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = (index as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
        Self {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed ^ purpose ^ index.rotate_left(17)),
            spare_normal: None,
        }
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Exponential with mean 1, by inversion.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// Standard normal, by the transformation of Box and Muller (1958), which makes two at a time.
    #[inline]
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        let radius = libm::sqrt(2.0 * self.exponential());
        let (sine, cosine) = libm::sincos(TAU * self.uniform());
        self.spare_normal = Some(radius * sine);
        radius * cosine
    }
}
