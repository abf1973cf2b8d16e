//! gzip with several members, zstd with several frames, or neither; cut and damaged streams give what they can.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::Compression;

/// What the streams begin with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The plain bytes of a stream.
pub(crate) struct Decoded<'r> {
    kind: Kind<'r>,
    /// Bytes handed out so far.
    bytes: u64,
    damage: Option<String>,
    /// An error of the reader below, to be told from damage of the compressed stream.
    below: Rc<RefCell<Option<io::Error>>>,
}

enum Kind<'r> {
    Plain(Tap<'r>),
    Gzip(Box<MultiGzDecoder<Tap<'r>>>),
    Zstd(Option<Box<StreamingDecoder<Tap<'r>, ruzstd::decoding::FrameDecoder>>>),
}

impl<'r> Decoded<'r> {
    pub(crate) fn open(reader: impl Read + 'r) -> io::Result<Self> {
        let below = Rc::new(RefCell::new(None));
        let mut tap = Tap {
            reader: BufReader::with_capacity(64 * 1024, Box::new(reader)),
            pushed_back: Vec::new(),
            error: Rc::clone(&below),
        };
        tap.peek(4)?;
        let kind = if tap.pushed_back.starts_with(&GZIP) {
            Kind::Gzip(Box::new(MultiGzDecoder::new(tap)))
        } else if tap.pushed_back.starts_with(&ZSTD) {
            Kind::Zstd(Some(Box::new(StreamingDecoder::new(tap).map_err(io::Error::other)?)))
        } else {
            Kind::Plain(tap)
        };
        Ok(Self { kind, bytes: 0, damage: None, below })
    }

    pub(crate) fn compression(&self) -> Compression {
        match self.kind {
            Kind::Plain(_) => Compression::None,
            Kind::Gzip(_) => Compression::Gzip,
            Kind::Zstd(_) => Compression::Zstd,
        }
    }

    pub(crate) fn damage(&self) -> Option<String> {
        self.damage.clone()
    }

    /// A zstd frame has ended: goes on with the next one, if there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        let Kind::Zstd(slot) = &mut self.kind else { return Ok(false) };
        let Some(decoder) = slot.take() else { return Ok(false) };
        let mut tap = decoder.into_inner();
        tap.peek(4)?;
        if tap.pushed_back.is_empty() {
            return Ok(false);
        }
        *slot = Some(Box::new(StreamingDecoder::new(tap).map_err(io::Error::other)?));
        Ok(true)
    }
}

impl Read for Decoded<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.damage.is_some() {
            return Ok(0);
        }
        loop {
            let read = match &mut self.kind {
                Kind::Plain(tap) => return tap.read(target),
                Kind::Gzip(decoder) => decoder.read(target),
                Kind::Zstd(Some(decoder)) => decoder.read(target),
                Kind::Zstd(None) => return Ok(0),
            };
            let read = match read {
                Ok(0) if matches!(self.kind, Kind::Zstd(_)) => match self.next_frame() {
                    Ok(true) => continue,
                    Ok(false) => Ok(0),
                    Err(error) => Err(error),
                },
                other => other,
            };
            return match read {
                Ok(count) => {
                    self.bytes += count as u64;
                    Ok(count)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    if let Some(below) = self.below.borrow_mut().take() {
                        return Err(below);
                    }
                    let how = if error.kind() == ErrorKind::UnexpectedEof { "is cut" } else { "is damaged" };
                    self.damage = Some(format!(
                        "the compressed stream {how} after {} plain bytes ({error}); whole lines before it were read",
                        self.bytes
                    ));
                    Ok(0)
                }
            };
        }
    }
}

/// The reader below a decoder: lets its first bytes be looked at, and keeps its errors.
struct Tap<'r> {
    reader: BufReader<Box<dyn Read + 'r>>,
    pushed_back: Vec<u8>,
    error: Rc<RefCell<Option<io::Error>>>,
}

impl Tap<'_> {
    /// Makes up to `count` bytes visible in `pushed_back`; fewer at the end of the stream.
    fn peek(&mut self, count: usize) -> io::Result<()> {
        while self.pushed_back.len() < count {
            let mut byte = [0];
            match self.reader.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => self.pushed_back.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&self, error: io::Error) -> io::Error {
        if error.kind() == ErrorKind::Interrupted {
            return error;
        }
        let kind = error.kind();
        *self.error.borrow_mut() = Some(error);
        io::Error::from(kind)
    }
}

impl Read for Tap<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if !self.pushed_back.is_empty() {
            let count = self.pushed_back.len().min(target.len());
            target[..count].copy_from_slice(&self.pushed_back[..count]);
            self.pushed_back.drain(..count);
            return Ok(count);
        }
        self.reader.read(target).map_err(|error| self.keep(error))
    }
}

impl BufRead for Tap<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.pushed_back.is_empty() {
            return Ok(&self.pushed_back);
        }
        let error = Rc::clone(&self.error);
        self.reader.fill_buf().map_err(|e| {
            let kind = e.kind();
            if kind != ErrorKind::Interrupted {
                *error.borrow_mut() = Some(e);
            }
            io::Error::from(kind)
        })
    }

    fn consume(&mut self, count: usize) {
        if self.pushed_back.is_empty() {
            self.reader.consume(count);
        } else {
            self.pushed_back.drain(..count.min(self.pushed_back.len()));
        }
    }
}
