//! Prometheus histograms of request durations: the text of `/metrics`, scraped several times into one file.
//!
//! Each scrape needs its time: from a comment (`# scrape_time 1795993603.199`, or any comment with an instant as its
//! last word), or from time stamps of the samples. Two scrapes make an interval: counters are differenced, and series
//! that shrank (the process was restarted) are left out of it. A gauge of requests in flight gives the concurrency.

use std::collections::BTreeMap;

use crate::formats::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::instant::{Style, of_seconds};
use crate::reading::Output;
use crate::record::{Step, StepLatency};

/// Series that are kept of one scrape.
const MAX_SERIES: usize = 20_000;

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let exposition = |line: &[u8]| line.starts_with(b"#") || metric(line).is_some();
    if sample.share(exposition) < 0.9 || !sample.lines().any(|line| metric(line).is_some()) {
        return Ok(None);
    }
    let mut families: BTreeMap<&str, f64> = BTreeMap::new();
    for metric in sample.lines().filter_map(metric) {
        if let Some(family) = metric.name.strip_suffix("_count") {
            *families.entry(family).or_default() += metric.value.max(0.0);
        }
    }
    let bucketed = |family: &str| {
        sample
            .lines()
            .filter_map(metric)
            .any(|m| m.name.strip_suffix("_bucket") == Some(family) && m.label("le").is_some())
    };
    let score = |family: &str| {
        let has = |words: &[&str]| words.iter().any(|word| family.contains(word));
        i32::from(has(&["request", "rq", "http", "grpc"]))
            + i32::from(has(&["duration", "latency", "_time", "seconds"]))
    };
    let best = families
        .iter()
        .filter(|(family, _)| bucketed(family))
        .max_by(|a, b| score(a.0).cmp(&score(b.0)).then(a.1.total_cmp(b.1)));
    let Some((family, _)) = best else {
        let kinds = sample.lines().any(|line| line.starts_with(b"# TYPE"));
        return if kinds {
            Err(crate::error::ReadError::NotARecording {
                what: "Prometheus metrics without a histogram",
                remedy: "export a histogram of request durations, and scrape it several times",
            })
        } else {
            Ok(None)
        };
    };
    let milliseconds =
        family.contains("milliseconds") || family.ends_with("_ms") || family.starts_with("envoy_");
    let scale = if milliseconds { 1.0 } else { 1e3 };
    let reader = Scrapes { family: (*family).to_owned(), scale, now: Scrape::default(), last: None };
    let unit = if milliseconds { "ms" } else { "s" };
    let mut recognised =
        Recognised::aggregate(Format::Prometheus, "histogram scrapes", unit, Lines::new(reader, sample));
    recognised.variant = format!("scrapes of the histogram {family}");
    Ok(Some(recognised))
}

/// A sample of a metric.
struct Metric<'l> {
    name: &'l str,
    labels: &'l str,
    value: f64,
    /// Seconds since the epoch.
    time: Option<f64>,
}

impl<'l> Metric<'l> {
    fn label(&self, wanted: &str) -> Option<&'l str> {
        let mut rest = self.labels;
        while let Some((name, after)) = rest.split_once("=\"") {
            let end = after.find('"')?;
            if name.trim_start_matches([',', ' ']) == wanted {
                return Some(&after[..end]);
            }
            rest = &after[end + 1..];
        }
        None
    }

    /// The labels without `le`, which tell the series apart.
    fn series(&self) -> String {
        let Some(le) = self.label("le") else { return self.labels.trim_matches(',').to_owned() };
        let bound = format!("le=\"{le}\"");
        self.labels.replace(&bound, "").replace(",,", ",").trim_matches(',').to_owned()
    }
}

fn metric(line: &[u8]) -> Option<Metric<'_>> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let name_end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (name, rest) = line.split_at(name_end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => {
            let end = inside.rfind('}')?;
            (&inside[..end], &inside[end + 1..])
        }
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    let time =
        words.next().and_then(|time| time.parse::<f64>().ok()).map(|t| if t > 1e11 { t / 1e3 } else { t });
    Some(Metric { name, labels, value, time })
}

/// One series of the histogram.
#[derive(Clone, Default)]
struct Series {
    count: f64,
    sum: f64,
    /// Upper bounds as written, and the cumulative counts.
    buckets: Vec<(f64, f64)>,
    code: Option<i32>,
    handler: Option<String>,
}

#[derive(Default)]
struct Scrape {
    time: Option<f64>,
    series: BTreeMap<String, Series>,
    in_flight: Option<f64>,
    /// Line of its beginning.
    line: u64,
}

struct Scrapes {
    family: String,
    /// Milliseconds in the histogram's unit.
    scale: f64,
    now: Scrape,
    last: Option<Scrape>,
}

impl LineReader for Scrapes {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        if let Some(comment) = line.strip_prefix(b"#") {
            let last = comment.rsplit(|b| *b == b' ').next().unwrap_or_default();
            let time = Style::of(last).and_then(|style| style.parse(last)).map(|ns| ns as f64 / 1e9);
            if time.is_some() || comment.trim_ascii() == b"EOF" {
                self.flush(out);
                self.now.time = time;
                self.now.line = number;
            }
            out.skip(number, "a comment");
            return;
        }
        let Some(metric) = metric(line) else {
            out.bad(number, "not a sample of a metric");
            return;
        };
        let name = metric.name.to_owned();
        if let Some(part) = name.strip_prefix(self.family.as_str()) {
            self.histogram(part, &metric, out);
            return;
        }
        if ["in_flight", "inflight", "rq_active", "active_requests"]
            .iter()
            .any(|gauge| metric.name.contains(gauge))
        {
            self.now.in_flight = Some(self.now.in_flight.unwrap_or(0.0) + metric.value);
        }
        out.skip(number, "another metric");
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.flush(out);
        // A single scrape tells a distribution, and nothing about load.
        if out.reading.steps == 0
            && let Some(only) = self.last.take()
        {
            let step = self.step(&Scrape::default(), &only, 0.0);
            if step.completed > 0.0 {
                out.note("a single scrape, or scrapes without their times: how long they cover is unknown");
                out.step(step);
            }
        }
    }
}

impl Scrapes {
    fn histogram(&mut self, part: &str, metric: &Metric<'_>, out: &mut Output<'_>) {
        let key = metric.series();
        if part == "_count" && self.now.series.get(&key).is_some_and(|series| series.count > 0.0) {
            // The same series again: the next scrape has begun.
            self.flush(out);
        }
        if let Some(time) = metric.time {
            self.now.time = self.now.time.or(Some(time));
        }
        if self.now.series.len() >= MAX_SERIES && !self.now.series.contains_key(&key) {
            return;
        }
        let series = self.now.series.entry(key).or_default();
        series.code =
            metric.label("code").or_else(|| metric.label("status")).and_then(|code| code.parse().ok());
        series.handler = metric.label("handler").map(str::to_owned);
        match part {
            "_count" => series.count = metric.value,
            "_sum" => series.sum = metric.value,
            "_bucket" => {
                if let Some(bound) = metric.label("le").and_then(|le| le.parse().ok()) {
                    series.buckets.push((bound, metric.value));
                }
            }
            _ => {}
        }
    }

    fn flush(&mut self, out: &mut Output<'_>) {
        if self.now.series.is_empty() {
            return;
        }
        let now = std::mem::take(&mut self.now);
        if let Some(last) = &self.last {
            match (last.time, now.time) {
                (Some(before), Some(after)) if after > before => {
                    let step = self.step(last, &now, after - before);
                    out.step(Step { start: of_seconds(before), ..step });
                }
                (Some(_), Some(_)) => out.bad(now.line, "a scrape no later than the one before"),
                _ => {}
            }
        }
        self.last = Some(now);
    }

    /// What happened between two scrapes.
    fn step(&self, before: &Scrape, after: &Scrape, seconds: f64) -> Step {
        let (mut count, mut sum, mut errors, mut refused) = (0.0, 0.0, 0.0, 0.0);
        let mut buckets: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let outer = self.outer_handler(after);
        for (key, series) in &after.series {
            if outer.is_some() && series.handler != outer {
                continue;
            }
            let zero = Series::default();
            let old = before.series.get(key).unwrap_or(&zero);
            let new = series.count - old.count;
            if new <= 0.0 {
                continue;
            }
            count += new;
            sum += series.sum - old.sum;
            errors += if series.code.is_some_and(|code| code >= 500) { new } else { 0.0 };
            refused += if matches!(series.code, Some(429 | 503)) { new } else { 0.0 };
            for (bound, cumulative) in &series.buckets {
                let was = old.buckets.iter().find(|(b, _)| b == bound).map_or(0.0, |(_, c)| *c);
                let entry = buckets.entry(bound.to_bits()).or_insert((*bound, 0.0));
                entry.1 += cumulative - was;
            }
        }
        let mut buckets: Vec<(f64, f64)> = buckets.into_values().collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quantile = |q: f64| quantile(&buckets, q * count).map(|value| value * self.scale);
        Step {
            seconds,
            clients: after.in_flight.zip(before.in_flight).map(|(a, b)| f64::midpoint(a, b)),
            completed: count,
            errors,
            refused: Some(refused),
            latency_ms: StepLatency {
                mean: (count > 0.0).then(|| sum / count * self.scale),
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                ..StepLatency::default()
            },
            ..Step::default()
        }
    }

    /// Caddy counts a request once for each handler that it passes: only the busiest handler is counted.
    fn outer_handler(&self, scrape: &Scrape) -> Option<String> {
        if !self.family.starts_with("caddy_") {
            return None;
        }
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for series in scrape.series.values() {
            *counts.entry(series.handler.as_deref()?).or_default() += series.count;
        }
        counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(handler, _)| handler.to_owned())
    }
}

/// The value below which `rank` of the counted requests lie, linear within its bucket, as Prometheus does it.
fn quantile(buckets: &[(f64, f64)], rank: f64) -> Option<f64> {
    let at = buckets.iter().position(|(_, cumulative)| *cumulative >= rank && rank > 0.0)?;
    let (upper, cumulative) = buckets[at];
    let (lower, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
    if !upper.is_finite() {
        return Some(lower);
    }
    let within = cumulative - below;
    Some(if within > 0.0 { lower + (upper - lower) * (rank - below) / within } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_linear_within_a_bucket() {
        let buckets = [(0.1, 50.0), (0.2, 90.0), (f64::INFINITY, 100.0)];
        assert_eq!(quantile(&buckets, 25.0), Some(0.05));
        assert!((quantile(&buckets, 70.0).unwrap() - 0.15).abs() < 1e-12);
        assert_eq!(quantile(&buckets, 99.0), Some(0.2));
        assert_eq!(quantile(&[], 1.0), None);
    }

    #[test]
    fn labels_are_read_in_any_order() {
        let metric = metric(br#"x_bucket{code="200",le="0.5",a="b,c"} 7 1795993603199"#).unwrap();
        assert_eq!(metric.label("le"), Some("0.5"));
        assert_eq!(metric.label("a"), Some("b,c"));
        assert_eq!(metric.series(), r#"code="200",a="b,c""#);
        assert_eq!(metric.time, Some(1_795_993_603.199));
    }
}
