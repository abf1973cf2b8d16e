#![no_main]

use goodput::GateConfig;

// What is read can be built, or says why not; and it can be written, and is the same when it is read again.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(config) = GateConfig::from_toml(text) {
        let _ = config.builder().map(|builder| builder.build());
        let written = toml::to_string(&config).expect("a config is a table");
        assert_eq!(GateConfig::from_toml(&written).expect("what was read once"), config);
    }
});
