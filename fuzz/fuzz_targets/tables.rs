#![no_main]

use goodput_recordings::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| goodput_fuzz::read_as(
    &[Format::Goodput, Format::Truth, Format::Ab, Format::TraceCsv, Format::GenericCsv],
    bytes
));
