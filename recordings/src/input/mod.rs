//! From any byte stream to its plain bytes: compression is recognised and undone, and a stream that is cut or
//! damaged ends at its last whole line, with a note.

mod bounded;
mod decompress;
mod lines;
mod prefix;
mod sample;

use std::io::{self, Read};

use memchr::memrchr;
use serde::Serialize;

pub(crate) use bounded::Bounded;
pub(crate) use decompress::Decoded;
pub(crate) use lines::{Line, MAX_LINE};
pub(crate) use prefix::Prefix;
pub(crate) use sample::Sample;

use crate::error::ReadError;
use crate::formats::Format;

/// Bytes from which a format is recognised.
const SAMPLE: usize = 64 * 1024;
/// Bytes that a document may have which must be held whole.
const MAX_DOCUMENT: usize = 256 * 1024 * 1024;
const READ_SIZE: usize = 256 * 1024;

/// How a file was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard, of one or several frames.
    Zstd,
}

/// A decompressed stream with a buffer that can be looked into ahead of reading.
pub(crate) struct Input<'r> {
    source: Decoded<'r>,
    buffer: Vec<u8>,
    position: usize,
    filled: usize,
    ended: bool,
    /// Lines handed out so far.
    line: u64,
    /// Within a line that was too long, whose rest is still to be dropped.
    dropping: bool,
    /// Bytes of a piece of a line at the end of a damaged stream, kept out of `filled`.
    piece: usize,
    /// The bytes are no text: pieces of lines count as well.
    binary: bool,
}

impl<'r> Input<'r> {
    /// Recognises the compression and fills the first buffer.
    pub(crate) fn open(reader: impl Read + 'r) -> Result<Self, ReadError> {
        let source = Decoded::open(reader)?;
        let mut input = Self {
            source,
            buffer: vec![0; READ_SIZE],
            position: 0,
            filled: 0,
            ended: false,
            line: 0,
            dropping: false,
            piece: 0,
            binary: false,
        };
        while input.filled < SAMPLE && !input.ended {
            input.fill()?;
        }
        if input.buffered().starts_with(b"\xEF\xBB\xBF") {
            input.position = 3;
        }
        Ok(input)
    }

    pub(crate) fn compression(&self) -> Compression {
        self.source.compression()
    }

    /// Why the stream ended early, once it has.
    pub(crate) fn damage(&self) -> Option<String> {
        self.source.damage()
    }

    /// The first bytes, for recognition.
    pub(crate) fn sample(&self) -> Sample {
        let bytes = self.buffered();
        let whole = self.ended && bytes.len() <= SAMPLE;
        Sample::new(&bytes[..bytes.len().min(SAMPLE)], whole)
    }

    /// Everything from here to the end, for formats that have to be held whole.
    pub(crate) fn document(&mut self, format: Format) -> Result<Vec<u8>, ReadError> {
        let mut document = self.buffered().to_vec();
        self.position = self.filled;
        while !self.ended {
            self.position = 0;
            self.filled = 0;
            self.fill()?;
            document.extend_from_slice(self.buffered());
            if document.len() > MAX_DOCUMENT {
                return Err(ReadError::TooLarge { format, limit: (MAX_DOCUMENT / 1024 / 1024) as u64 });
            }
        }
        self.position = self.filled;
        Ok(document)
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.position..self.filled]
    }

    /// Reads once from the source into the free end of the buffer.
    fn fill(&mut self) -> io::Result<()> {
        if self.filled == self.buffer.len() {
            if self.position > 0 {
                self.buffer.copy_within(self.position..self.filled, 0);
                self.filled -= self.position;
                self.position = 0;
            }
            if self.filled * 2 > self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let read = self.source.read(&mut self.buffer[self.filled..])?;
        self.filled += read;
        self.ended = read == 0;
        if self.ended && !self.binary && self.source.damage().is_some() {
            // What follows the last line end of a damaged stream is a piece of a line.
            let end = self.position + memrchr(b'\n', self.buffered()).map_or(0, |at| at + 1);
            self.piece = self.filled - end;
            self.filled = end;
        }
        Ok(())
    }
}

impl Read for Input<'_> {
    /// Hands out whole lines as far as possible, so that the piece of a line at the end of a damaged stream never
    /// gets out.
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = match memrchr(b'\n', self.buffered()) {
                Some(at) => at + 1,
                None if self.ended || self.filled - self.position >= READ_SIZE / 2 => self.buffered().len(),
                None => 0,
            };
            if ready > 0 || self.ended {
                let count = ready.min(target.len());
                target[..count].copy_from_slice(&self.buffered()[..count]);
                self.position += count;
                return Ok(count);
            }
            self.fill()?;
        }
    }
}

/// A stream of raw bytes that is not text at all needs this instead of [`Read`], which waits for line ends.
pub(crate) struct Binary<'i, 'r>(&'i mut Input<'r>);

impl<'i, 'r> Binary<'i, 'r> {
    pub(crate) fn new(input: &'i mut Input<'r>) -> Self {
        input.binary = true;
        input.filled += std::mem::take(&mut input.piece);
        Self(input)
    }

    /// Why the stream ended early, once it has.
    pub(crate) fn damage(&self) -> Option<String> {
        self.0.damage()
    }
}

impl Read for Binary<'_, '_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.0.buffered().is_empty() && !self.0.ended {
            self.0.position = 0;
            self.0.filled = 0;
            self.0.fill()?;
        }
        let count = self.0.buffered().len().min(target.len());
        target[..count].copy_from_slice(&self.0.buffered()[..count]);
        self.0.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
