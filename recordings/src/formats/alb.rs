//! Logs of AWS load balancers: application load balancers, and the classic ones before them.
//!
//! Three times in seconds (towards the target, in the target, back), each −1 when it was not reached. Application
//! load balancers stamp the end (`time`) and, in a later column, the start (`request_creation_time`); the classic ones
//! stamp the start, by AWS's documentation. Files are not in order.

use super::combined::tokens::{self, Token};
use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::duration::{Cell, Unit};
use crate::quantity::instant::iso;
use crate::reading::{Evidence, Output};
use crate::record::{Basis, Record, Status};

/// The column of `request_creation_time`.
const CREATION: usize = 21;

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let mut words = Vec::new();
    let mut shares = [Shape::Application, Shape::Classic]
        .map(|shape| (shape, sample.share(|line| shape.read(line, &mut words).is_ok())));
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (shape, share) = shares[0];
    if share < 0.5 {
        return Ok(None);
    }
    let (variant, basis) = match shape {
        Shape::Application => ("application load balancer", Basis::Both),
        Shape::Classic => ("classic load balancer", Basis::Start),
    };
    let reader = Lines::new(Alb { shape, words: Vec::new() }, sample);
    let mut recognised = Recognised::new(Format::AwsAlb, variant, basis, "s", reader);
    if shape == Shape::Classic {
        recognised.evidence = Evidence::Assumed;
        recognised.notes.push(
            "classic load balancers stamp the start by AWS's documentation; others disagree".to_owned(),
        );
    }
    Ok(Some(recognised))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Application,
    Classic,
}

struct Alb {
    shape: Shape,
    words: Vec<Token>,
}

impl LineReader for Alb {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match self.shape.read(line, &mut self.words) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(number, reason),
        }
    }
}

impl Shape {
    fn read(self, line: &[u8], words: &mut Vec<Token>) -> Result<Record, &'static str> {
        if !tokens::split(line, words) {
            return Err("a quote never closes: the line is cut");
        }
        let word = |at: usize| words.get(at).map(|w| w.value(line)).unwrap_or_default();
        let date_at = match self {
            Self::Application => 1,
            Self::Classic => 0,
        };
        let protocol: &[&[u8]] = &[b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];
        if self == Self::Application && !protocol.contains(&word(0)) {
            return Err("does not begin with a protocol");
        }
        let stamp = iso(word(date_at)).ok_or("no date")?;
        if words.len() < date_at + 12 {
            return Err("fewer fields than such a line has");
        }
        let mut parts = [None; 3];
        for (part, text) in parts.iter_mut().zip((date_at + 4..).map(word)) {
            *part = match Cell::read(text, Unit::Seconds, b'.') {
                Cell::Value(nanos) => Some(nanos),
                Cell::Missing => None,
                Cell::Bad => return Err("a processing time is no number"),
            };
        }
        let latency = parts.iter().copied().sum::<Option<u64>>();
        let creation = iso(word(CREATION)).filter(|_| self == Self::Application);
        let mut record = match (self, creation) {
            (Self::Application, Some(start)) => {
                Record { stamp: Some(stamp), latency, ..Record::spanning(start, stamp) }
            }
            (Self::Application, None) => Record::stamped(Some(stamp), Basis::End, latency),
            (Self::Classic, _) => Record::stamped(Some(stamp), Basis::Start, latency),
        };
        record.service = parts[1];
        Ok(record.with_status(Status::read(word(date_at + 7))))
    }
}
