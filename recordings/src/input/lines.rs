//! Lines, without their ends, from a buffer that grows no further than one long line needs.

use std::io;

use memchr::memchr;

use super::Input;

/// Bytes that a line may have: exports of spans put thousands of them into one.
pub(crate) const MAX_LINE: usize = 64 * 1024 * 1024;

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its number, counted from 1, and its bytes without the line end.
    Text(u64, &'a [u8]),
    /// Its number; it was longer than [`MAX_LINE`] and has been dropped.
    TooLong(u64),
}

impl Input<'_> {
    /// The next line, or `None` at the end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            // The end of a damaged stream takes the piece of a line away again that was searched already.
            searched = searched.min(self.filled - self.position);
            let buffered = &self.buffer[self.position + searched..self.filled];
            if let Some(at) = memchr(b'\n', buffered) {
                let start = self.position;
                let end = start + searched + at;
                self.position = end + 1;
                self.line += 1;
                if std::mem::take(&mut self.dropping) {
                    return Ok(Some(Line::TooLong(self.line)));
                }
                return Ok(Some(Line::Text(self.line, without_return(&self.buffer[start..end]))));
            }
            if self.ended {
                let start = self.position;
                self.position = self.filled;
                if start == self.filled && !self.dropping {
                    return Ok(None);
                }
                self.line += 1;
                if std::mem::take(&mut self.dropping) {
                    return Ok(Some(Line::TooLong(self.line)));
                }
                return Ok(Some(Line::Text(self.line, without_return(&self.buffer[start..self.filled]))));
            }
            searched = self.filled - self.position;
            if self.dropping || searched > MAX_LINE {
                self.dropping = true;
                self.position = self.filled;
                searched = 0;
            }
            self.fill()?;
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
