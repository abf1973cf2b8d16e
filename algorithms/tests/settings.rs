//! Algorithms as config files name them, and the errors of settings that cannot hold.

use goodput_algorithms::Algorithm;

#[test]
fn unknown_fields_are_errors_that_name_the_field() {
    for algorithm in Algorithm::all_defaults() {
        let text = format!("algorithm = \"{}\"\nmaximun = 7", algorithm.name());
        let error = toml::from_str::<Algorithm>(&text).unwrap_err().to_string();
        assert!(error.contains("maximun"), "{}: {error}", algorithm.name());
    }
    let nested = "algorithm = \"windowed\"\n[inner]\nalgorithm = \"vegas\"\nmaximun = 7";
    let error = toml::from_str::<Algorithm>(nested).unwrap_err().to_string();
    assert!(error.contains("maximun"), "{error}");
    let unknown = toml::from_str::<Algorithm>("algorithm = \"amid\"").unwrap_err().to_string();
    assert!(unknown.contains("amid") && unknown.contains("aimd"), "{unknown}");
}

#[test]
fn every_algorithm_is_found_by_its_name_and_has_no_other() {
    let all = Algorithm::all_defaults();
    let names: Vec<&str> = all.iter().map(Algorithm::name).collect();
    assert_eq!(names, Algorithm::NAMES);
    assert!(names.is_sorted(), "{names:?}");
    for algorithm in all {
        assert_eq!(Algorithm::from_name(algorithm.name()).unwrap(), algorithm);
        let named_only: Algorithm = toml::from_str(&format!("algorithm = \"{}\"", algorithm.name())).unwrap();
        assert_eq!(named_only, algorithm);
    }
}

#[test]
fn contradictions_are_errors_that_name_the_field() {
    let cases = [
        ("algorithm = \"fixed\"\nlimit = 0", "limit"),
        ("algorithm = \"aimd\"\nmin = 0", "min"),
        ("algorithm = \"aimd\"\nmin = 300", "max"),
        ("algorithm = \"aimd\"\ninitial = 300", "initial"),
        ("algorithm = \"aimd\"\nbackoff_ratio = 1.0", "backoff_ratio"),
        ("algorithm = \"aimd\"\nbackoff_ratio = nan", "backoff_ratio"),
        ("algorithm = \"aimd\"\ntimeout = \"0s\"", "timeout"),
        ("algorithm = \"vegas\"\nmax = 0", "max"),
        ("algorithm = \"vegas\"\nsmoothing = 0.0", "smoothing"),
        ("algorithm = \"vegas\"\nsmoothing = 1.1", "smoothing"),
        ("algorithm = \"vegas\"\nincrease = { constant = 0 }", "increase"),
        ("algorithm = \"vegas\"\ndecrease = { constant = 0 }", "decrease"),
        ("algorithm = \"vegas\"\nalpha = { constant = 7 }", "beta"),
        ("algorithm = \"vegas\"\nalpha = { log10_times = inf }", "alpha"),
        ("algorithm = \"vegas\"\nthreshold = { log10_times = nan }", "threshold"),
        ("algorithm = \"vegas\"\nprobe_multiplier = 0", "probe_multiplier"),
        ("algorithm = \"gradient\"\ntolerance = 0.9", "tolerance"),
        ("algorithm = \"gradient\"\nbackoff_ratio = 0.4", "backoff_ratio"),
        ("algorithm = \"gradient\"\nqueue_size = { constant = 0 }", "queue_size"),
        ("algorithm = \"gradient2\"\ntolerance = inf", "tolerance"),
        ("algorithm = \"gradient2\"\nlong_window = 0", "long_window"),
        ("algorithm = \"gradient2\"\nqueue_size = { log10_times = 0.0 }", "queue_size"),
        ("algorithm = \"windowed\"\nwindowing = { min_window = \"2s\" }", "windowing.max_window"),
        ("algorithm = \"windowed\"\nwindowing = { min_samples = 0 }", "windowing.min_samples"),
        (
            "algorithm = \"windowed\"\nwindowing = { summary = { percentile = { fraction = 1.0, capacity = 9 } } }",
            "windowing.summary.percentile.fraction",
        ),
        (
            "algorithm = \"windowed\"\nwindowing = { summary = { percentile = { fraction = 0.5, capacity = 0 } } }",
            "windowing.summary.percentile.capacity",
        ),
        ("algorithm = \"windowed\"\ninner = { algorithm = \"aimd\", max = 1 }", "inner.max"),
    ];
    for (text, field) in cases {
        let invalid = toml::from_str::<Algorithm>(text).unwrap().build().unwrap_err();
        assert_eq!(invalid.field, field, "{text}: {invalid}");
    }
}
