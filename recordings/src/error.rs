//! Why a file could not be read, where, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::formats::Format;

/// Why a recording was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file named cannot be read; the reason follows.
    #[error("{}: {source}", if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() })]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Self>,
    },
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("the file is empty: nothing was recorded, or the log was rotated away")]
    Empty,
    /// It is compressed, and what can be unpacked is no recording yet.
    #[error("{how}, but nothing can be recognised in them: get the whole file")]
    Damaged {
        /// What is wrong with the stream.
        how: String,
    },
    /// The file is text in UTF-16, as PowerShell's `>` writes it.
    #[error("starts with a UTF-16 byte order mark, as PowerShell's `>` writes it: {remedy}")]
    Utf16 {
        /// How to get a readable file.
        remedy: &'static str,
    },
    /// No known format.
    #[error(
        "not recognised as any recording ({seen}). Give a file of a known format, or say which columns or keys \
         hold the time and the latency (--time-field, --latency-field with its unit, ...)"
    )]
    Unrecognised {
        /// What the file looks like instead.
        seen: String,
    },
    /// The user named a format that the file is not.
    #[error("does not look like {format}: {reason}")]
    NotThisFormat {
        /// The format asked for.
        format: Format,
        /// What is missing.
        reason: String,
    },
    /// The format is known, and these lines lack a duration.
    #[error(
        "a {format} log without any duration: nothing says how long a request took, so only its arrival rate \
         could be read. {remedy}"
    )]
    NoDuration {
        /// The format.
        format: Format,
        /// What to log in future, or how to name the field.
        remedy: String,
    },
    /// The file is known, and it holds no requests and no load steps.
    #[error("{what}: {remedy}")]
    NotARecording {
        /// What the file is.
        what: &'static str,
        /// What to give instead.
        remedy: &'static str,
    },
    /// A table or JSON lines whose columns do not tell by themselves which is which, or in which unit.
    #[error("the {missing} cannot be told from the names {columns:?} alone: {remedy}")]
    NeedsFields {
        /// What could not be found or was ambiguous.
        missing: &'static str,
        /// The columns or keys of the file.
        columns: Vec<String>,
        /// The option that says it.
        remedy: &'static str,
    },
    /// A field that the user named does not exist, or does not hold what was said.
    #[error("field `{field}`: {reason}")]
    Field {
        /// The field as the user named it.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// The format was recognised, and not one request came out.
    #[error(
        "looks like {format}, but holds no request that can be read ({lines} lines; first problem: {first})"
    )]
    NoRecords {
        /// The format.
        format: Format,
        /// Lines read.
        lines: u64,
        /// The first problem, with its line.
        first: String,
    },
    /// A document that has to be held whole is too large.
    #[error(
        "the {format} document is larger than {limit} MiB, and its format has to be read whole: split it"
    )]
    TooLarge {
        /// The format.
        format: Format,
        /// The limit in MiB.
        limit: u64,
    },
    /// A structured document is broken at its very root.
    #[error("broken {format} document at line {line}: {reason}")]
    Broken {
        /// The format.
        format: Format,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
}
