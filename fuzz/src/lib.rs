//! What the targets share. A target is a file in `fuzz_targets/`; `fuzz/run` gives them their seeds and starts them.

#[path = "../../recordings/tests/robustness/invariants.rs"]
mod invariants;

use goodput_recordings::{FieldMap, Format, Options, TimeForm};

/// Reads bytes as each of these formats, whatever they look like.
pub fn read_as(formats: &[Format], bytes: &[u8]) {
    for format in formats {
        invariants::read(
            bytes,
            &Options { format: Some(*format), arrivals_only: true, ..Options::default() },
        );
    }
}

/// Reads bytes as whatever they look like.
pub fn read(bytes: &[u8]) {
    invariants::read(bytes, &Options::default());
}

/// Reads bytes, and understands what was read.
pub fn understand(bytes: &[u8]) {
    invariants::understand(bytes, &Options::default());
}

/// Reads the first line as the names of the time, latency, status and service fields and the form of the time, with
/// `|` between them, and the rest as a file with these fields.
pub fn read_with_names(bytes: &[u8]) {
    let (names, file) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let names = String::from_utf8_lossy(names);
    let mut names = names.split('|').map(str::to_owned);
    let mut name = || names.next().filter(|name| !name.is_empty());
    let fields = FieldMap {
        time: name(),
        latency: name(),
        status: name(),
        service: name(),
        time_form: name().and_then(|form| form.parse::<TimeForm>().ok()),
        latency_unit: name().and_then(|unit| unit.parse().ok()),
        delimiter: name().map(|delimiter| delimiter.as_bytes()[0]),
        decimal_mark: name().map(|mark| mark.as_bytes()[0]),
        basis: None,
    };
    invariants::read(file.get(1..).unwrap_or_default(), &Options { fields, ..Options::default() });
}
