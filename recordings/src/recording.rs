//! A recording: opened, recognised, and read as a stream.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::ReadError;
use crate::formats::{self, Format, Recognised};
use crate::input::Input;
use crate::options::Options;
use crate::reading::{Output, Reading};
use crate::record::Item;

/// A file whose format has been recognised, ready to be read from its first byte to its last.
///
/// ```
/// use goodput_recordings::{Item, Options, Recording};
///
/// let log = br#"127.0.0.1 - - [29/Nov/2026:23:01:48 +0000] "GET / HTTP/1.1" 200 72 "-" "-" 0.097 0.097
/// 127.0.0.1 - - [29/Nov/2026:23:01:49 +0000] "GET / HTTP/1.1" 200 72 "-" "-" 0.113 0.112
/// "#;
/// let recording = Recording::new(&log[..], &Options::default())?;
/// assert_eq!(recording.format().name(), "nginx");
/// let mut latencies = Vec::new();
/// let reading = recording.each(|item| {
///     if let Item::Request(request) = item {
///         latencies.extend(request.latency);
///     }
/// })?;
/// assert_eq!(latencies, [97_000_000, 113_000_000]);
/// assert_eq!(reading.unparseable_lines, 0);
/// # Ok::<(), goodput_recordings::ReadError>(())
/// ```
pub struct Recording<'r> {
    input: Input<'r>,
    recognised: Recognised,
}

impl Recording<'static> {
    /// Opens a file; `-` is the standard input. Errors name the file.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let in_file =
            |source: ReadError| ReadError::InFile { path: path.to_owned(), source: Box::new(source) };
        if path.as_os_str() == "-" {
            return Self::new(std::io::stdin(), options).map_err(in_file);
        }
        let file = File::open(path).map_err(|error| in_file(error.into()))?;
        Self::new(file, options).map_err(in_file)
    }
}

impl<'r> Recording<'r> {
    /// Recognises the format of a stream from its first 64 KiB. Compression is undone on the way.
    pub fn new(reader: impl Read + 'r, options: &Options) -> Result<Self, ReadError> {
        let input = Input::open(reader)?;
        let recognised =
            formats::recognise(&input.sample(), options).map_err(|error| match (error, input.damage()) {
                (ReadError::Empty | ReadError::Unrecognised { .. }, Some(how)) => ReadError::Damaged { how },
                (error, _) => error,
            })?;
        Ok(Self { input, recognised })
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.recognised.format
    }

    /// Reads everything, hands each request or load step to `sink`, and reports what was assumed and skipped.
    pub fn each(mut self, mut sink: impl FnMut(Item)) -> Result<Reading, ReadError> {
        let mut reading = Reading::new(self.recognised.format, self.input.compression());
        reading.variant = self.recognised.variant;
        reading.basis = self.recognised.basis;
        reading.basis_known_from = self.recognised.evidence;
        reading.latency_unit = self.recognised.unit;
        reading.assumed = self.recognised.assumed;
        reading.notes = self.recognised.notes;
        let mut output = Output::new(&mut reading, &mut sink);
        self.recognised.reader.read(&mut self.input, &mut output)?;
        output.finish();
        if reading.truncated.is_none() {
            reading.truncated = self.input.damage();
        }
        if reading.records == 0 && reading.steps == 0 {
            return Err(ReadError::NoRecords {
                format: reading.format,
                lines: reading.lines,
                first: reading.first_problem(),
            });
        }
        Ok(reading)
    }
}
