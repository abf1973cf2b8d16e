#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| goodput_fuzz::read(bytes));
