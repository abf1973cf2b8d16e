//! Go's gob encoding, as far as a stream of structs needs it: the stream describes its types, and values are read
//! by those descriptions, so that fields may come, go and change their order between versions.
//!
//! Specification: the documentation of Go's package `encoding/gob`.

use std::collections::BTreeMap;
use std::io::{self, Read};

/// Bytes that a message may have. A body of a response is part of it.
const MAX_MESSAGE: u64 = 64 * 1024 * 1024;
/// Types that a stream may describe; that of a result needs five.
const MAX_TYPES: usize = 1_000;
/// Bytes that the description of a type may have.
const MAX_DESCRIPTION: u64 = 64 * 1024;
/// How deep values may nest.
const MAX_DEPTH: usize = 16;

const BOOL: i64 = 1;
const INT: i64 = 2;
const UINT: i64 = 3;
const FLOAT: i64 = 4;
const BYTES: i64 = 5;
const STRING: i64 = 6;
const COMPLEX: i64 = 7;
const INTERFACE: i64 = 8;

/// A value of a field, as far as it matters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Uint(u64),
    /// Strings, byte slices, and what a type encodes by itself (`time.Time`).
    Bytes(Vec<u8>),
    /// Maps, lists and the like.
    Other,
}

/// Why a stream ends before its end.
#[derive(Debug)]
pub(super) enum Stop {
    Io(io::Error),
    /// The stream ends within a message.
    Cut,
    Broken(&'static str),
}

#[derive(Clone, Debug)]
enum Kind {
    Struct(Vec<(String, i64)>),
    /// Arrays and slices: the type of the elements.
    List(i64),
    Map(i64, i64),
    /// Encodes itself.
    Own,
}

/// Reads a stream of structs.
pub(super) struct Decoder<R> {
    source: R,
    types: BTreeMap<i64, Kind>,
    message: Vec<u8>,
}

impl<R: Read> Decoder<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, types: BTreeMap::new(), message: Vec::new() }
    }

    pub(super) fn source(&self) -> &R {
        &self.source
    }

    /// The fields of the next struct; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Vec<(String, Value)>>, Stop> {
        loop {
            let Some(length) = self.length()? else { return Ok(None) };
            if length > MAX_MESSAGE {
                return Err(Stop::Broken("a message of impossible length"));
            }
            self.message.clear();
            self.source.by_ref().take(length).read_to_end(&mut self.message).map_err(Stop::Io)?;
            if (self.message.len() as u64) < length {
                return Err(Stop::Cut);
            }
            let message = std::mem::take(&mut self.message);
            let mut bytes = Bytes(&message);
            let id = bytes.int()?;
            let value = if id < 0 {
                if length > MAX_DESCRIPTION || self.types.len() >= MAX_TYPES {
                    return Err(Stop::Broken("more types than results have"));
                }
                let kind = definition(&mut bytes)?;
                self.types.insert(id.checked_neg().ok_or(Stop::Broken("an impossible type"))?, kind);
                None
            } else {
                let Some(Kind::Struct(fields)) = self.types.get(&id) else {
                    return Err(Stop::Broken("a value of a type that is no struct, or was never described"));
                };
                Some(self.fields(fields, &mut bytes, 0)?)
            };
            self.message = message;
            if value.is_some() {
                return Ok(value);
            }
        }
    }

    /// The length of the next message, an unsigned number that is read byte by byte.
    fn length(&mut self) -> Result<Option<u64>, Stop> {
        let mut first = [0];
        if self.source.read(&mut first).map_err(Stop::Io)? == 0 {
            return Ok(None);
        }
        if first[0] < 128 {
            return Ok(Some(u64::from(first[0])));
        }
        let count = usize::from(first[0].wrapping_neg());
        let mut rest = [0; 8];
        let rest = rest.get_mut(..count).ok_or(Stop::Broken("not a length"))?;
        match self.source.read_exact(rest) {
            Ok(()) => Ok(Some(rest.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Stop::Cut),
            Err(error) => Err(Stop::Io(error)),
        }
    }

    fn fields(
        &self,
        fields: &[(String, i64)],
        bytes: &mut Bytes<'_>,
        depth: usize,
    ) -> Result<Vec<(String, Value)>, Stop> {
        let mut values = Vec::with_capacity(fields.len());
        let mut at = 0_u64;
        loop {
            let delta = bytes.uint()?;
            if delta == 0 {
                return Ok(values);
            }
            at = at.checked_add(delta).ok_or(Stop::Broken("an impossible field"))?;
            let field = usize::try_from(at - 1).ok().and_then(|at| fields.get(at));
            let (name, id) = field.ok_or(Stop::Broken("a field that its type does not have"))?;
            let value = self.value(*id, bytes, depth + 1)?;
            values.push((name.clone(), value));
        }
    }

    fn value(&self, id: i64, bytes: &mut Bytes<'_>, depth: usize) -> Result<Value, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Broken("values nested too deeply"));
        }
        Ok(match id {
            BOOL | UINT => Value::Uint(bytes.uint()?),
            INT => Value::Int(bytes.int()?),
            FLOAT => Value::Uint(bytes.uint()?),
            BYTES | STRING => Value::Bytes(bytes.block()?.to_vec()),
            COMPLEX => {
                bytes.uint()?;
                bytes.uint()?;
                Value::Other
            }
            INTERFACE => return Err(Stop::Broken("a value of an interface, which a result does not have")),
            _ => {
                match self.types.get(&id).ok_or(Stop::Broken("a value of a type that was never described"))? {
                    Kind::Own => Value::Bytes(bytes.block()?.to_vec()),
                    Kind::Struct(fields) => {
                        self.fields(fields, bytes, depth)?;
                        Value::Other
                    }
                    Kind::List(element) => {
                        for _ in 0..bytes.uint()? {
                            self.value(*element, bytes, depth + 1)?;
                        }
                        Value::Other
                    }
                    Kind::Map(key, element) => {
                        for _ in 0..bytes.uint()? {
                            self.value(*key, bytes, depth + 1)?;
                            self.value(*element, bytes, depth + 1)?;
                        }
                        Value::Other
                    }
                }
            }
        })
    }
}

/// A description of a type: a struct of which one field is set. Fields 1 to 7 stand for arrays, slices, structs, maps,
/// and the three ways in which types encode themselves.
fn definition(bytes: &mut Bytes<'_>) -> Result<Kind, Stop> {
    let which = bytes.uint()?;
    let kind = match which {
        1 | 2 => {
            // Array: common, element, length. Slice: common, element.
            let mut element = None;
            each_field(bytes, |field, bytes| {
                match field {
                    1 => common(bytes)?,
                    2 => element = Some(bytes.int()?),
                    _ => drop(bytes.int()?),
                }
                Ok(())
            })?;
            Kind::List(element.ok_or(Stop::Broken("a list of nothing"))?)
        }
        3 => {
            let mut fields = Vec::new();
            each_field(bytes, |field, bytes| {
                if field == 1 {
                    return common(bytes);
                }
                for _ in 0..bytes.uint()? {
                    let (mut name, mut id) = (String::new(), None);
                    each_field(bytes, |field, bytes| {
                        match field {
                            1 => name = String::from_utf8_lossy(bytes.block()?).into_owned(),
                            _ => id = Some(bytes.int()?),
                        }
                        Ok(())
                    })?;
                    fields.push((name, id.ok_or(Stop::Broken("a field without a type"))?));
                }
                Ok(())
            })?;
            Kind::Struct(fields)
        }
        4 => {
            let (mut key, mut element) = (None, None);
            each_field(bytes, |field, bytes| {
                match field {
                    1 => common(bytes)?,
                    2 => key = Some(bytes.int()?),
                    _ => element = Some(bytes.int()?),
                }
                Ok(())
            })?;
            let missing = Stop::Broken("a map of nothing");
            key.zip(element).map(|(key, element)| Kind::Map(key, element)).ok_or(missing)?
        }
        5..=7 => Kind::Own,
        _ => return Err(Stop::Broken("a type of an unknown kind")),
    };
    Ok(kind)
}

/// Calls `read` for each field of a struct, by its number from 1 on.
fn each_field<'b>(
    bytes: &mut Bytes<'b>,
    mut read: impl FnMut(u64, &mut Bytes<'b>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut field = 0_u64;
    loop {
        let delta = bytes.uint()?;
        if delta == 0 {
            return Ok(());
        }
        field = field.checked_add(delta).ok_or(Stop::Broken("an impossible field"))?;
        read(field, bytes)?;
    }
}

/// The name and number that every description begins with.
fn common(bytes: &mut Bytes<'_>) -> Result<(), Stop> {
    each_field(bytes, |field, bytes| {
        match field {
            1 => drop(bytes.block()?),
            _ => drop(bytes.int()?),
        }
        Ok(())
    })
}

/// The rest of a message.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], Stop> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(Stop::Broken("a message shorter than its values"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// One byte below 128, or the negative of a count of bytes that follow, most significant first.
    fn uint(&mut self) -> Result<u64, Stop> {
        let first = self.take(1)?[0];
        if first < 128 {
            return Ok(u64::from(first));
        }
        let count = usize::from(first.wrapping_neg());
        if count > 8 {
            return Err(Stop::Broken("a number of more than eight bytes"));
        }
        Ok(self.take(count)?.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)))
    }

    /// An unsigned number whose lowest bit says that the rest is complemented.
    fn int(&mut self) -> Result<i64, Stop> {
        let bits = self.uint()?;
        let value = (bits >> 1).cast_signed();
        Ok(if bits & 1 == 1 { !value } else { value })
    }

    fn block(&mut self) -> Result<&'b [u8], Stop> {
        let length = usize::try_from(self.uint()?).map_err(|_| Stop::Broken("an impossible length"))?;
        self.take(length)
    }
}
