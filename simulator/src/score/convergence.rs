//! How a limit finds to where it should be, and how it stays there.

use std::time::Duration;

use goodput::algorithms::Reason;

use crate::{Band, Moment, Scenario, Trace};

/// A limit this far outside the band still counts as in it: below it by this factor, above it by this one.
const BELOW: f64 = 0.9;
const ABOVE: f64 = 1.1;

/// The share of what follows in which a limit that has converged is in the band.
const KEPT: f64 = 0.8;

/// What follows lasts at least this long, in seconds and in mean services.
const FOLLOWS_S: f64 = 1.0;
const FOLLOWS_SERVICES: f64 = 50.0;

/// Figures of a limit's way, over a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// Seconds from the beginning of a segment until the limit has come to its [band](Band): until it lies within 0.9
    /// times the low edge and 1.1 times the high one for 80 % of the second (or the 50 mean services, or the half of
    /// the segment if that is shorter) that follows. The mean over segments in which the oracle's limit refuses
    /// somebody; one in which the limit does not come there counts with its length. `None` without such segments.
    pub time_s: Option<f64>,
    /// By how much more than the band's high edge was in flight, as a share of the edge, over time, in mean services:
    /// twice the edge during ten mean services is 10.
    pub overshoot: f64,
    /// By how much the limit was below the band's low edge while requests were refused, in the same measure.
    pub undershoot: f64,
    /// Standard deviation of the limit's logarithm in the second half of segments in which the oracle's limit refuses
    /// somebody, probes left out: 0.1 is about a tenth up and down. `None` without such segments.
    pub oscillation: Option<f64>,
    /// How often the limit turned from rising to falling or back there, in 100 mean services. Probes left out.
    pub reversals: Option<f64>,
    /// The share of offered requests that were refused while a gate's limiter measured with a lowered limit.
    pub probe_refusals: f64,
}

impl Convergence {
    /// Measures a trace of the scenario whose bands these are, to the precision of the trace's steps.
    #[must_use]
    pub fn new(scenario: &Scenario, bands: &[Band], trace: &Trace) -> Self {
        let way = Way { scenario, trace, probes: probes(trace) };
        let binding = || bands.iter().filter(|band| band.binds);
        let mean = |numbers: Vec<f64>| {
            (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
        };
        Self {
            time_s: mean(binding().map(|band| way.time_s(band)).collect()),
            overshoot: bands.iter().map(|band| way.overshoot(band)).sum(),
            undershoot: bands.iter().map(|band| way.undershoot(band)).sum(),
            oscillation: mean(binding().filter_map(|band| way.oscillation(band)).collect()),
            reversals: mean(binding().map(|band| way.reversals(band)).collect()),
            probe_refusals: way.probe_refusals(),
        }
    }
}

struct Way<'a> {
    scenario: &'a Scenario,
    trace: &'a Trace,
    /// When any gate's limit was lowered to measure: in order, without overlaps.
    probes: Vec<(Duration, Duration)>,
}

impl Way<'_> {
    fn service_s(&self) -> f64 {
        self.scenario.service.work.mean_ns() / 1e9
    }

    fn moments(&self, from: Duration, until: Duration) -> impl Iterator<Item = &Moment> {
        self.trace.moments.iter().filter(move |moment| moment.at > from && moment.at <= until)
    }

    fn second_half(band: &Band) -> Duration {
        band.from + (band.until - band.from) / 2
    }

    /// Limits without a gate do not come here: then nothing binds.
    fn time_s(&self, band: &Band) -> f64 {
        let inside: Vec<bool> = self
            .moments(band.from, band.until)
            .map(|moment| {
                let limit = moment.limit.unwrap_or(f64::INFINITY);
                limit >= BELOW * band.low as f64 && band.high.is_none_or(|high| limit <= ABOVE * high as f64)
            })
            .collect();
        let length = (band.until - band.from).as_secs_f64();
        let step = self.trace.step.as_secs_f64();
        let follows = FOLLOWS_S.max(FOLLOWS_SERVICES * self.service_s()).min(length / 2.0);
        let window = ((follows / step) as usize).clamp(1, inside.len().max(1));
        let there = |inside: &[bool]| {
            inside[0] && inside.iter().filter(|&&inside| inside).count() as f64 >= KEPT * window as f64
        };
        inside.windows(window).position(there).map_or(length, |steps| steps as f64 * step)
    }

    fn overshoot(&self, band: &Band) -> f64 {
        let Some(high) = band.high else { return 0.0 };
        let edge = high as f64 * self.gates(band.from);
        self.area(band, |moment| (moment.in_flight as f64 - edge).max(0.0) / edge)
    }

    fn undershoot(&self, band: &Band) -> f64 {
        let edge = band.low as f64;
        self.area(band, |moment| match moment.limit {
            Some(limit) if moment.counts.refused.total() > 0 => (edge - limit).max(0.0) / edge,
            _ => 0.0,
        })
    }

    fn area(&self, band: &Band, height: impl Fn(&Moment) -> f64) -> f64 {
        let sum: f64 = self.moments(band.from, band.until).map(height).sum();
        sum * self.trace.step.as_secs_f64() / self.service_s()
    }

    /// Gates whose tokens a moment counts.
    fn gates(&self, at: Duration) -> f64 {
        match &self.scenario.door.clients {
            Some(door) if !door.shared && self.scenario.door.service.is_none() => {
                let there = self.scenario.clients.iter().filter(|clients| clients.joins <= at);
                there.map(|clients| f64::from(clients.count)).sum::<f64>().max(1.0)
            }
            _ => 1.0,
        }
    }

    /// `None` if somebody probes all the time.
    fn oscillation(&self, band: &Band) -> Option<f64> {
        let logarithms: Vec<f64> = self
            .moments(Self::second_half(band), band.until)
            .filter(|moment| !self.probing(moment.at))
            .filter_map(|moment| moment.limit)
            .map(|limit| libm::log(limit.max(1.0)))
            .collect();
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares = logarithms.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>();
        (!logarithms.is_empty()).then(|| libm::sqrt(squares / count))
    }

    fn reversals(&self, band: &Band) -> f64 {
        let from = Self::second_half(band);
        // Of the first gate: each gate turns by itself.
        let moves = self.trace.decisions.iter().filter(|made| {
            made.gate == 0
                && made.at > from
                && made.at <= band.until
                && !matches!(made.decision.reason, Reason::Probing | Reason::Measured)
        });
        let (mut turns, mut last) = (0, std::cmp::Ordering::Equal);
        for made in moves {
            let direction = made.decision.limit.cmp(&made.previous_limit);
            turns += u32::from(direction.is_ne() && direction == last.reverse());
            last = if direction.is_ne() { direction } else { last };
        }
        f64::from(turns) * 100.0 * self.service_s() / (band.until - from).as_secs_f64()
    }

    fn probing(&self, at: Duration) -> bool {
        let begun = self.probes.partition_point(|&(from, _)| from <= at);
        begun > 0 && self.probes[begun - 1].1 > at
    }

    fn probe_refusals(&self) -> f64 {
        let (mut refused, mut offered) = (0, 0);
        for moment in &self.trace.moments {
            offered += moment.counts.offered;
            refused += if self.probing(moment.at) { moment.counts.refused.total() } else { 0 };
        }
        refused as f64 / (offered as f64).max(1.0)
    }
}

/// From a decision to probe to the next decision of the same gate that is none; where gates overlap, together.
fn probes(trace: &Trace) -> Vec<(Duration, Duration)> {
    let gates = trace.decisions.iter().map(|made| made.gate + 1).max().unwrap_or(0);
    let mut since = vec![None; gates];
    let mut probes = Vec::new();
    for made in &trace.decisions {
        let since = &mut since[made.gate];
        match (made.decision.reason, *since) {
            (Reason::Probing, None) => *since = Some(made.at),
            (Reason::Probing | Reason::Undecided, _) | (_, None) => {}
            (_, Some(from)) => {
                probes.push((from, made.at));
                *since = None;
            }
        }
    }
    let end = trace.moments.last().map_or(Duration::ZERO, |moment| moment.at);
    probes.extend(since.into_iter().flatten().map(|from| (from, end)));
    probes.sort_unstable();
    let mut apart: Vec<(Duration, Duration)> = Vec::new();
    for (from, until) in probes {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => apart.push((from, until)),
        }
    }
    apart
}
