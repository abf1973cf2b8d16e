//! JTL as XML: `<httpSample t="207" lt="102" ts="1440785666520" s="true" lb="…" rc="200">`. Samples within samples
//! are parts of them and are not read. A file without its end (JMeter was killed) is read as far as it goes.

use std::io::BufReader;

use quick_xml::Reader as XmlReader;
use quick_xml::events::{BytesStart, Event};

use super::with_verdict;
use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Bounded, Input, Sample};
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::{Cell, in_unit};
use crate::reading::Output;
use crate::record::{Basis, Record};

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let start = &sample.bytes()[..sample.bytes().len().min(4096)];
    if !sample.first_line().starts_with(b"<") || memchr::memmem::find(start, b"<testResults").is_none() {
        return Ok(None);
    }
    let basis = options.fields.basis.unwrap_or(Basis::Start);
    Ok(Some(Recognised::new(Format::Jmeter, "JTL XML", basis, "ms", Xml { basis })))
}

struct Xml {
    basis: Basis,
}

impl Reader for Xml {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let (input, bound) = Bounded::new(input);
        let mut xml = XmlReader::from_reader(BufReader::new(LineCount { input, lines: 0 }));
        xml.config_mut().check_end_names = false;
        let mut buffer = Vec::new();
        let mut depth = 0_usize;
        let mut closed = false;
        loop {
            buffer.clear();
            bound.begin();
            let event = match xml.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(quick_xml::Error::Io(_)) if bound.is_exceeded() => {
                    let line = xml.get_ref().get_ref().lines + 1;
                    out.bad(line, "an element that never ends: nothing after it was read");
                    break;
                }
                Err(quick_xml::Error::Io(error)) => {
                    return Err(std::io::Error::other(error.to_string()).into());
                }
                Err(error) => {
                    let line = xml.get_ref().get_ref().lines + 1;
                    out.bad(line, format!("broken XML ({error}): reading ends here"));
                    break;
                }
            };
            let line = xml.get_ref().get_ref().lines + 1;
            match event {
                Event::Start(element) if is_sample(&element) => {
                    if depth == 0 {
                        self.sample(line, &element, out);
                    }
                    depth += 1;
                }
                Event::Empty(element) if is_sample(&element) && depth == 0 => {
                    self.sample(line, &element, out);
                }
                Event::End(element) if matches!(element.name().as_ref(), "sample" | "httpSample") => {
                    depth = depth.saturating_sub(1);
                }
                Event::End(element) if element.name().as_ref() == "testResults" => closed = true,
                Event::Eof => break,
                _ => {}
            }
        }
        out.reading.lines = xml.get_ref().get_ref().lines;
        if !closed {
            out.note("the XML document is not closed: JMeter was probably killed");
        }
        Ok(())
    }
}

fn is_sample(element: &BytesStart<'_>) -> bool {
    matches!(element.name().as_ref(), "sample" | "httpSample")
}

impl Xml {
    fn sample(&self, line: u64, element: &BytesStart<'_>, out: &mut Output<'_>) {
        let (mut stamp, mut elapsed, mut success) = (None, None, None);
        let (mut code, mut message) = (Vec::new(), Vec::new());
        for attribute in element.attributes().with_checks(false).flatten() {
            let value = attribute.value;
            match attribute.key.as_ref() {
                "ts" => {
                    let nanos = in_unit(value.as_bytes(), Unit::Milliseconds);
                    stamp = nanos.and_then(|ns| i64::try_from(ns).ok());
                }
                "t" => elapsed = Cell::read(value.as_bytes(), Unit::Milliseconds, b'.').value(),
                "s" => success = Some(value == "true"),
                "rc" => code = value.as_bytes().to_vec(),
                "rm" => message = value.as_bytes().to_vec(),
                _ => {}
            }
        }
        match stamp {
            Some(_) => {
                out.record(with_verdict(
                    Record::stamped(stamp, self.basis, elapsed),
                    &code,
                    success,
                    &message,
                ));
            }
            None => out.bad(line, "a sample without a time stamp"),
        }
    }
}

/// Counts the lines that pass by.
struct LineCount<'i, 'r> {
    input: Bounded<'i, 'r>,
    lines: u64,
}

impl std::io::Read for LineCount<'_, '_> {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(target)?;
        self.lines += memchr::memchr_iter(b'\n', &target[..count]).count() as u64;
        Ok(count)
    }
}
