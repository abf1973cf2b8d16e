//! The scenarios by which algorithms are compared.

use crate::{Scenario, ScenarioError};

macro_rules! suite {
    ($($name:literal,)*) => {
        /// Names and texts of the suite's files, in order.
        pub const SUITE: &[(&str, &str)] = &[$(($name, include_str!(concat!("../suite/", $name, ".toml"))),)*];
    };
}

suite! {
    "01_fifo_exp",
    "02_const_c256",
    "03_logn_cv2",
    "04_bimodal",
    "05_pareto",
    "06_ps_cpu8",
    "07_usl",
    "08_dep_delay",
    "09_cap_down_up",
    "10_cap_up_8x",
    "11_speed_steps",
    "12_lat_step_over",
    "13_lat_step_under",
    "14_gc_under",
    "15_gc_over",
    "16_cold_start",
    "17_arrival_steps",
    "18_bursts",
    "19_diurnal",
    "20_low_2rps",
    "21_low_then_surge",
    "22_retry_storm",
    "23_closed_loop",
    "24_multi8",
    "25_latecomers",
    "26_fast_errors",
    "27_tight_deadline",
    "28_micro_100us",
    "29_slow_10s",
    "30_one_worker",
    "31_c10000",
    "32_under80_cv2",
    "33_multi32",
}

/// The scenarios of the suite, in order.
///
/// # Errors
///
/// None as the suite is delivered: each file is tested.
pub fn suite() -> Result<Vec<Scenario>, ScenarioError> {
    SUITE
        .iter()
        .map(|&(name, text)| {
            let mut scenario = Scenario::parse(text)?;
            name.clone_into(&mut scenario.name);
            Ok(scenario)
        })
        .collect()
}
