#![no_main]

use goodput_recordings::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| goodput_fuzz::read_as(&[Format::Iis], bytes));
