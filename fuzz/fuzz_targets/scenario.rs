#![no_main]

use goodput_simulator::Scenario;

// What is read can be written, and is the same when it is read again.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(scenario) = Scenario::parse(text) {
        let written = toml::to_string(&scenario).expect("a scenario is a table");
        assert_eq!(Scenario::parse(&written).expect("what was read once"), scenario);
    }
});
