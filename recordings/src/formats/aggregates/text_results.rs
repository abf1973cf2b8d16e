//! What load generators print when they are done: wrk and wrk2 (several runs in one file are several steps), hey,
//! httperf.

use crate::formats::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::duration::with_suffix;
use crate::quantity::instant::iso;
use crate::reading::Output;
use crate::record::{Step, StepLatency};

pub(crate) fn probe_wrk(sample: &Sample, _options: &Options) -> Probe {
    let lines = || sample.lines().map(text);
    let running = lines().any(|line| line.starts_with("Running ") && line.contains(" test @ "));
    if !running || !lines().any(|line| line.contains("threads and") && line.contains("connections")) {
        return Ok(None);
    }
    let corrected = lines().any(|line| line.contains("HdrHistogram"));
    let variant = if corrected { "wrk2 output" } else { "wrk output" };
    let mut recognised =
        Recognised::aggregate(Format::Wrk, variant, "with each value", Lines::new(Wrk::default(), sample));
    recognised.notes.push(if corrected {
        "wrk2 counts latency from when a request was due: in overload it is the client's queue, not the service".to_owned()
    } else {
        "wrk is a closed loop: its connections wait for the service, and so does its load".to_owned()
    });
    Ok(Some(recognised))
}

fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// Milliseconds of a duration with its unit.
fn milliseconds(word: &str) -> Option<f64> {
    with_suffix(word.as_bytes()).map(|ns| ns as f64 / 1e6)
}

fn number(word: &str) -> Option<f64> {
    word.trim_end_matches([',', ';', '%', ')']).parse().ok().filter(|n: &f64| n.is_finite())
}

/// The number after a word: `timeout 100`.
fn after(line: &str, key: &str) -> Option<f64> {
    let (_, rest) = line.split_once(key)?;
    number(rest.split_whitespace().next()?)
}

#[derive(Default)]
struct Wrk {
    step: Option<Step>,
    connections: Option<f64>,
    /// A rate, given to wrk2 on a command line that somebody logged.
    rate: Option<f64>,
    start: Option<i64>,
    corrected: bool,
}

impl LineReader for Wrk {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let line = text(line);
        let line = line.trim();
        if line.starts_with("Running ") && line.contains(" test @ ") {
            self.flush(out);
            self.step = Some(Step { start: self.start.take(), ..Step::default() });
        } else if !self.inside(line) {
            if line.contains("wrk") || line.starts_with('#') {
                self.header(line, out);
            }
            out.skip(number, "not a result");
        }
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.flush(out);
    }
}

impl Wrk {
    /// A line that is no part of wrk's own output: maybe its command line.
    fn header(&mut self, line: &str, out: &mut Output<'_>) {
        if line.starts_with("#[") {
            return;
        }
        if line.contains("-c") || line.contains("start=") {
            self.flush(out);
            self.rate = line.split_whitespace().find_map(|word| word.strip_prefix("-R").and_then(number));
            self.start = line
                .split_whitespace()
                .find_map(|w| w.strip_prefix("start="))
                .and_then(|d| iso(d.as_bytes()));
        }
    }

    /// Takes in a line of a run; `false` if it says nothing that matters.
    fn inside(&mut self, line: &str) -> bool {
        let Some(step) = &mut self.step else { return false };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "threads", "and", connections, "connections"] => self.connections = number(connections),
            ["Latency", "Distribution", ..] => self.corrected = line.contains("HdrHistogram"),
            ["Latency", mean, _, max, ..] => {
                step.latency_ms.mean = milliseconds(mean);
                step.latency_ms.max = milliseconds(max);
            }
            [percent, value] if percent.ends_with('%') => {
                let value = milliseconds(value);
                match number(percent) {
                    Some(50.0) => step.latency_ms.p50 = value,
                    Some(90.0) => step.latency_ms.p90 = value,
                    Some(99.0) => step.latency_ms.p99 = value,
                    _ => {}
                }
            }
            [requests, "requests", "in", seconds, ..] => {
                step.completed = number(requests).unwrap_or(0.0);
                step.seconds = milliseconds(seconds.trim_end_matches(',')).unwrap_or(0.0) / 1e3;
            }
            ["Socket", "errors:", ..] => step.timeouts = after(line, "timeout ").unwrap_or(0.0),
            ["Non-2xx", ..] => step.errors = after(line, "responses:").unwrap_or(0.0),
            ["Requests/sec:", rate] => {
                // Long runs print their length in minutes, rounded; the rate tells it exactly.
                if let Some(rate) = number(rate).filter(|rate| *rate > 0.0) {
                    step.seconds = step.completed / rate;
                }
            }
            _ => return false,
        }
        true
    }

    fn flush(&mut self, out: &mut Output<'_>) {
        let Some(mut step) = self.step.take() else { return };
        let (connections, rate) = (self.connections.take(), self.rate.take());
        if self.corrected {
            step.offered_per_s = rate;
        } else {
            step.clients = connections;
        }
        self.corrected = false;
        if step.completed > 0.0 || step.seconds > 0.0 {
            out.step(step);
        } else {
            out.bad(0, "a run that has no results: wrk was stopped");
        }
    }
}

pub(crate) fn probe_hey(sample: &Sample, _options: &Options) -> Probe {
    let lines = || sample.lines().map(text);
    let has = |needle: &str| lines().any(|line| line.trim_start().starts_with(needle));
    if !(has("Summary:") && has("Slowest:") && has("Fastest:") && has("Requests/sec:")) {
        return Ok(None);
    }
    // oha prints the same summary, with a success rate.
    let format = if has("Success rate:") { Format::Oha } else { Format::Hey };
    let reader = Lines::new(Hey::default(), sample);
    Ok(Some(Recognised::aggregate(format, "text summary", "s", reader)))
}

#[derive(Default)]
struct Hey {
    step: Step,
}

impl LineReader for Hey {
    fn line(&mut self, number_of_line: u64, line: &[u8], out: &mut Output<'_>) {
        let line = text(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        let Step { seconds, completed, errors, refused, timeouts, latency_ms: latency, .. } = &mut self.step;
        let ms = |value: &str, unit: Option<&&str>| match unit {
            Some(&("secs" | "sec" | "s")) => number(value).map(|s| s * 1e3),
            Some(&"ms") => number(value),
            _ => milliseconds(value),
        };
        match words.as_slice() {
            ["Total:", total, unit @ ..] if *seconds == 0.0 => {
                *seconds = ms(total, unit.first()).unwrap_or(0.0) / 1e3;
            }
            ["Slowest:", value, unit @ ..] => latency.max = ms(value, unit.first()),
            ["Fastest:", value, unit @ ..] => latency.min = ms(value, unit.first()),
            ["Average:", value, unit @ ..] => latency.mean = latency.mean.or(ms(value, unit.first())),
            [percent, "in", value, unit @ ..] => {
                let value = ms(value, unit.first());
                match number(percent) {
                    Some(50.0) => latency.p50 = value,
                    Some(90.0) => latency.p90 = value,
                    Some(99.0) => latency.p99 = value,
                    _ => {}
                }
            }
            [code, count, "responses"] if code.starts_with('[') => {
                let count = number(count).unwrap_or(0.0);
                let code: i32 = code.trim_matches(['[', ']']).parse().unwrap_or(0);
                *completed += count;
                *errors += if code >= 500 { count } else { 0.0 };
                let turned_away = if matches!(code, 429 | 503) { count } else { 0.0 };
                *refused = Some(refused.unwrap_or(0.0) + turned_away);
            }
            [count, "Get" | "Post" | "aborted" | "operation" | "connection", ..]
                if count.starts_with('[') =>
            {
                *timeouts += number(count.trim_matches(['[', ']'])).unwrap_or(0.0);
            }
            _ => out.skip(number_of_line, "not a result"),
        }
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        if self.step.seconds > 0.0 && self.step.completed > 0.0 {
            out.step(self.step.clone());
        }
    }
}

pub(crate) fn probe_httperf(sample: &Sample, _options: &Options) -> Probe {
    let has = |needle: &str| sample.lines().any(|line| text(line).starts_with(needle));
    if !(has("Total: connections ") && has("Reply rate [replies/s]:")) {
        return Ok(None);
    }
    Ok(Some(Recognised::aggregate(Format::Httperf, "summary", "ms", Lines::new(Httperf::default(), sample))))
}

#[derive(Default)]
struct Httperf {
    step: Step,
    replies: f64,
}

impl LineReader for Httperf {
    fn line(&mut self, number_of_line: u64, line: &[u8], out: &mut Output<'_>) {
        let line = text(line);
        let step = &mut self.step;
        if line.starts_with("Total: connections") {
            self.replies = after(&line, "replies ").unwrap_or(0.0);
            step.seconds = after(&line, "test-duration ").unwrap_or(0.0);
        } else if line.starts_with("Request rate:") {
            step.offered_per_s = after(&line, "rate: ");
        } else if line.starts_with("Connection time [ms]: min") {
            step.latency_ms = StepLatency {
                min: after(&line, "min "),
                max: after(&line, "max "),
                p50: after(&line, "median "),
                ..step.latency_ms
            };
        } else if line.starts_with("Reply time [ms]:") {
            let (response, transfer) = (after(&line, "response "), after(&line, "transfer "));
            step.latency_ms.mean = response.map(|response| response + transfer.unwrap_or(0.0));
        } else if line.starts_with("Reply status:") {
            step.errors = after(&line, "5xx=").unwrap_or(0.0);
        } else if line.starts_with("Errors: total") {
            step.timeouts = after(&line, "client-timo ").unwrap_or(0.0);
        } else {
            out.skip(number_of_line, "not a result");
        }
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.step.completed = self.replies;
        if self.step.seconds > 0.0 {
            out.step(self.step.clone());
        }
    }
}
