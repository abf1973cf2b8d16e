//! Bytes for readers that gather pieces (rows, elements) in memory, none of which may be endless: a quote that never
//! closes makes one row of all that follows.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::{Input, MAX_LINE};

/// An input that fails when a piece of it is longer than [`MAX_LINE`].
pub(crate) struct Bounded<'i, 'r> {
    input: &'i mut Input<'r>,
    bound: Bound,
}

/// Where pieces begin, for whoever reads them.
#[derive(Clone)]
pub(crate) struct Bound(Rc<Cell<usize>>);

impl<'i, 'r> Bounded<'i, 'r> {
    pub(crate) fn new(input: &'i mut Input<'r>) -> (Self, Bound) {
        let bound = Bound(Rc::new(Cell::new(MAX_LINE)));
        (Self { input, bound: bound.clone() }, bound)
    }
}

impl Bound {
    /// A piece begins.
    pub(crate) fn begin(&self) {
        self.0.set(MAX_LINE);
    }

    /// Whether the piece was too long.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.get() == 0
    }
}

impl Read for Bounded<'_, '_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let left = self.bound.0.get();
        let most = target.len().min(left);
        if most == 0 && !target.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.input.read(&mut target[..most])?;
        self.bound.0.set(left - read);
        Ok(read)
    }
}
