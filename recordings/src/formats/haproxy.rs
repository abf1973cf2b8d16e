//! HAProxy's HTTP log. (Its JSON look-alikes are read with the other JSON lines.)
//!
//! `client:port [date] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes cc sc state …`: stamps mark the start of
//! the request, timers are milliseconds, −1 stands for a stage that was not reached. Extra columns (a host name,
//! say) may stand before the timers. Ta includes the time in HAProxy's own queue; the service's time is what is left
//! of it after TR and Tw. Version 1.4 wrote Tq/Tw/Tc/Tr/Tt, in which Tq and Tt include the client's idle time.

use memchr::memchr;

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::instant::{Clock, Style};
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

/// Words between the date and the timers that may be there.
const WORDS_BEFORE: usize = 8;

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let mut clock = Clock::new(Style::Clf);
    if sample.share(|line| read(line, &mut clock).is_ok()) < 0.3 {
        return Ok(None);
    }
    let reader = Lines::new(Haproxy { clock, as_soon: 0 }, sample);
    let mut recognised = Recognised::new(Format::Haproxy, "HTTP log", Basis::Start, "ms", reader);
    recognised.notes.push("the dates carry no zone and were read as UTC".to_owned());
    Ok(Some(recognised))
}

/// Whether a value can be the session state at termination: two or four letters of a small alphabet each.
pub(crate) fn is_termination_state(value: &[u8]) -> bool {
    matches!(value.len(), 2 | 4)
        && b"-CSPRLIDUKcs".contains(&value[0])
        && b"-RCHDQLT".contains(&value[1])
        && value[2..].iter().all(|b| b"-NIDVEOUPRn".contains(b))
}

/// How a request ended, by the session state at termination.
pub(crate) fn judge(record: &mut Record, state: &[u8]) {
    let (Some(who), Some(when)) = (state.first(), state.get(1)) else { return };
    record.outcome = match (who, when) {
        (b'-' | b'L', _) => return,
        (b's' | b'S' | b'P' | b'R', b'Q') | (b'R', _) => Outcome::Refused,
        (b'P', _) if record.outcome == Outcome::Refused => Outcome::Refused,
        (b'C' | b'c', _) => Outcome::Cancelled,
        (b's', _) => Outcome::TimedOut,
        _ => Outcome::Failure,
    };
}

struct Haproxy {
    clock: Clock,
    /// Lines written before the end of the transfer.
    as_soon: u64,
}

struct Parts<'l> {
    stamp: i64,
    timers: [i64; 5],
    as_soon: bool,
    status: &'l [u8],
    state: &'l [u8],
}

impl LineReader for Haproxy {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let parts = match read(line, &mut self.clock) {
            Ok(parts) => parts,
            Err(reason) => {
                out.bad(number, reason);
                return;
            }
        };
        self.as_soon += u64::from(parts.as_soon);
        let [request, queue, _connect, response, total] = parts.timers;
        let nanos = |ms: i64| u64::try_from(ms).ok().and_then(|ms| ms.checked_mul(1_000_000));
        let mut record = Record::stamped(Some(parts.stamp), Basis::Start, nanos(total))
            .with_status(Status::read(parts.status));
        if response >= 0 {
            record.service = nanos(total.saturating_sub(request.max(0)).saturating_sub(queue.max(0)));
        }
        judge(&mut record, parts.state);
        out.record(record);
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        if self.as_soon > 0 {
            out.note(format!(
                "{} lines were written before the end of the transfer (option logasap): their durations are too short",
                self.as_soon
            ));
        }
    }
}

fn read<'l>(line: &'l [u8], clock: &mut Clock) -> Result<Parts<'l>, &'static str> {
    let mut rest = line;
    let stamp = loop {
        let open = memchr(b'[', rest).ok_or("no date in brackets: not the line of a request")?;
        let close = memchr(b']', &rest[open..]).ok_or("no date in brackets: not the line of a request")?;
        let text = &rest[open + 1..open + close];
        rest = &rest[open + close + 1..];
        if text.len() >= 20
            && let Some(stamp) = clock.read(text)
        {
            break stamp;
        }
        if text.is_empty() {
            return Err("the date is empty");
        }
    };
    let mut words = rest.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let (timers, as_soon) =
        words.by_ref().take(WORDS_BEFORE).find_map(timers).ok_or("no five timers after the date")?;
    let status = words.next().filter(|word| is_status(word)).ok_or("no status after the timers")?;
    let state = words.nth(3).unwrap_or_default();
    if !is_termination_state(state) {
        return Err("no termination state after the status: the line is cut");
    }
    Ok(Parts { stamp, timers, as_soon, status, state })
}

fn is_status(word: &[u8]) -> bool {
    word == b"-1" || (word.len() == 3 && word.iter().all(u8::is_ascii_digit))
}

/// `TR/Tw/Tc/Tr/Ta`, and whether the last one has a `+` before it.
fn timers(word: &[u8]) -> Option<([i64; 5], bool)> {
    let mut timers = [0; 5];
    let mut parts = word.split(|b| *b == b'/');
    let mut as_soon = false;
    for timer in &mut timers {
        let part = parts.next()?;
        let digits = part.strip_prefix(b"+").unwrap_or(part);
        as_soon = digits.len() < part.len();
        *timer = match digits {
            b"-1" => -1,
            digits if !digits.is_empty() && digits.len() < 16 => digits
                .iter()
                .try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))?,
            _ => return None,
        };
    }
    parts.next().is_none().then_some((timers, as_soon))
}
