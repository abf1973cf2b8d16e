use std::hash::{BuildHasher, RandomState};

/// Evenly from 0 to 1, for what is spread so that not all do the same at once.
pub(super) fn random() -> f64 {
    // Each is keyed anew, so its hash of anything is as good as a random number.
    let bits = RandomState::new().hash_one(0_u8);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
