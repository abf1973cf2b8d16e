//! Which recording, and how to read it: what `choose`, `inspect` and `convert` are told alike.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use goodput_recordings::{
    Basis, Digest, FieldMap, Format, Inspection, Item, Options, ReadError, Recording, TimeForm, Unit,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// Requests between two moves of the progress shown.
const STRIDE: u64 = 1 << 14;

#[derive(Args, Debug)]
pub(crate) struct Source {
    /// An access log, a load-test result or a file of spans, plain or compressed; `-` is the standard input
    file: PathBuf,
    /// The format, instead of recognising it from what is in the file
    #[arg(long, value_name = "NAME", help_heading = "Reading")]
    format: Option<Format>,
    /// Accept a file without any latency, for its arrivals alone
    #[arg(long, help_heading = "Reading")]
    arrivals_only: bool,
    /// The column or key with the time stamp: a name, a number from 1 (from the end if negative), or a.b.c
    #[arg(long, value_name = "FIELD", help_heading = "Reading", allow_hyphen_values = true)]
    time_field: Option<String>,
    /// How the stamp is written: s, ms, us or ns since 1970, or a pattern as %d.%m.%Y %H:%M:%S
    #[arg(long, value_name = "FORM", help_heading = "Reading")]
    time_format: Option<TimeForm>,
    /// Which end of a request the stamp marks
    #[arg(long, value_name = "END", help_heading = "Reading")]
    time_basis: Option<StampedEnd>,
    /// The column or key with the latency
    #[arg(long, value_name = "FIELD", help_heading = "Reading", allow_hyphen_values = true)]
    latency_field: Option<String>,
    /// The unit of the latency: s, ms, us or ns
    #[arg(long, value_name = "UNIT", help_heading = "Reading")]
    latency_unit: Option<Unit>,
    /// The column or key with the status
    #[arg(long, value_name = "FIELD", help_heading = "Reading", allow_hyphen_values = true)]
    status_field: Option<String>,
    /// The column or key with the time in the service itself, without a proxy's queue
    #[arg(long, value_name = "FIELD", help_heading = "Reading", allow_hyphen_values = true)]
    service_field: Option<String>,
    /// What stands between columns
    #[arg(long, value_name = "CHARACTER", help_heading = "Reading")]
    delimiter: Option<char>,
    /// What stands before the fraction of a number: . or ,
    #[arg(long, value_name = "CHARACTER", help_heading = "Reading")]
    decimal_mark: Option<char>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum StampedEnd {
    Start,
    End,
}

/// A recording that was read to its end.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) digest: Digest,
    pub(crate) inspection: Inspection,
}

impl Source {
    /// What the file is called.
    pub(crate) fn name(&self) -> String {
        if self.file == Path::new("-") {
            "standard input".to_owned()
        } else {
            self.file.display().to_string()
        }
    }

    /// Recognises the format.
    pub(crate) fn open(&self) -> Result<Recording<'static>, Failure> {
        Ok(Recording::open(&self.file, &self.options()?)?)
    }

    /// Reads it to its end, and shows on a terminal how far it is.
    pub(crate) fn read(&self) -> Result<Read, Failure> {
        let recording = self.open()?;
        let progress = ProgressBar::no_length().with_style(
            ProgressStyle::with_template("{spinner} reading: {human_pos} requests")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        let mut digest = Digest::new();
        let mut requests = 0;
        let reading = recording.each(|item: Item| {
            digest.add(item);
            requests += 1;
            if requests % STRIDE == 0 {
                progress.set_position(requests);
            }
        });
        progress.finish_and_clear();
        let reading = reading.map_err(|error| self.named(error))?;
        Ok(Read { inspection: Inspection::new(&digest, reading), digest })
    }

    /// The error with the name of the file.
    pub(crate) fn named(&self, error: ReadError) -> ReadError {
        match error {
            error @ ReadError::InFile { .. } => error,
            error => ReadError::InFile { path: self.file.clone(), source: Box::new(error) },
        }
    }

    fn options(&self) -> Result<Options, Failure> {
        let byte = |name: &str, character: Option<char>| {
            character
                .map(|character| {
                    u8::try_from(character).ok().filter(u8::is_ascii).ok_or_else(|| {
                        Failure::Arguments(format!("{name}: must be an ASCII character, not `{character}`"))
                    })
                })
                .transpose()
        };
        Ok(Options {
            format: self.format,
            arrivals_only: self.arrivals_only,
            fields: FieldMap {
                time: self.time_field.clone(),
                time_form: self.time_format.clone(),
                basis: self.time_basis.map(|end| match end {
                    StampedEnd::Start => Basis::Start,
                    StampedEnd::End => Basis::End,
                }),
                latency: self.latency_field.clone(),
                latency_unit: self.latency_unit,
                status: self.status_field.clone(),
                service: self.service_field.clone(),
                delimiter: byte("--delimiter", self.delimiter)?,
                decimal_mark: byte("--decimal-mark", self.decimal_mark)?,
            },
        })
    }
}
