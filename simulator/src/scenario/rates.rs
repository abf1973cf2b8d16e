//! The rate of open arrivals, as steps.

use std::f64::consts::TAU;

use super::{Open, nanos};

/// How many steps make a ramp.
const RAMP_STEPS: u32 = 50;

impl Open {
    /// From which nanosecond on which rate holds, in requests per second: in order of time, the first from zero.
    pub(crate) fn steps(&self, length_ns: u64) -> Vec<(u64, f64)> {
        let mut steps = vec![(0, self.per_second)];
        let mut rate = self.per_second;
        for change in &self.changes {
            let (at, over) = (nanos(change.at), nanos(change.over));
            let count = if over == 0 { 1 } else { RAMP_STEPS };
            for step in 0..count {
                // Half a step in the middle of each, so that a ramp brings as many requests as its line would.
                let done = if over == 0 { 1.0 } else { (f64::from(step) + 0.5) / f64::from(count) };
                let from = at + over / u64::from(count) * u64::from(step);
                steps.push((from, rate + (change.per_second - rate) * done));
            }
            if over > 0 {
                steps.push((at + over, change.per_second));
            }
            rate = change.per_second;
        }
        if let Some(sine) = &self.sine {
            let (period, step) = (nanos(sine.period) as f64, nanos(sine.step));
            steps.clear();
            let mut from = 0;
            while from < length_ns {
                let middle = (from + step / 2) as f64 / period;
                steps.push((from, self.per_second - sine.swing_per_second * libm::cos(TAU * middle)));
                from += step;
            }
        }
        if let Some(bursts) = &self.bursts {
            let (every, lasting) = (nanos(bursts.every), nanos(bursts.lasting));
            let mut from = bursts.first.map_or(every - lasting, nanos);
            while from < length_ns {
                steps.push((from, bursts.per_second));
                steps.push((from + lasting, self.per_second));
                from += every;
            }
        }
        steps
    }
}
