//! A limiter's `update` allocates nothing.

mod support;

use goodput_algorithms::Algorithm;
use support::{Driver, Outcome};

#[test]
fn updates_of_every_algorithm_allocate_nothing() {
    for algorithm in variants() {
        let mut driver = Driver::new(algorithm.build().unwrap());
        let mut decisions = 0;
        let measured = allocation_counter::measure(|| {
            for request in 0_u64..20_000 {
                let latency_ns = 1_000_000 * (10 + request % 7 + request / 1_000);
                let outcome = if request % 500 == 499 { Outcome::Overload } else { Outcome::Success };
                decisions += u64::from(driver.saturated_request(latency_ns, outcome).is_some());
            }
        });
        assert_eq!(measured.count_total, 0, "{} allocated", algorithm.name());
        assert!(decisions > 0 || algorithm.name() == "fixed", "{} decided nothing", algorithm.name());
    }
}

fn variants() -> Vec<Algorithm> {
    let percentile = "algorithm = \"windowed\"\n\
                      windowing = { summary = { percentile = { fraction = 0.9, capacity = 100 } } }";
    let mut variants = Algorithm::all_defaults();
    variants.push(toml::from_str(percentile).unwrap());
    variants
}
