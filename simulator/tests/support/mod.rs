//! What several tests need.

pub mod mersenne_twister;
