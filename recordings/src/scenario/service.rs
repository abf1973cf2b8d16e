//! The service that a recording shows, as the simulator plays it.

use std::time::Duration;

use goodput_simulator::{Pool, Service, Sharing, Starts, Usl, Work};

use crate::workload::{ServiceModel, ServiceTimes, Workload};

/// Times that stand for the distribution of the work.
const TIMES: u32 = 128;

/// A service to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// How it is set up.
    pub service: Service,
    /// How many requests at once make it full.
    pub full_at: u32,
    /// Requests per second at its best.
    pub capacity_per_s: f64,
}

impl Played {
    /// The service of a workload; `None` if nothing says how long it works on a request.
    ///
    /// The work is drawn from the distribution without a queue, scaled such that the capacity is the one that was
    /// estimated. Where the recording does not show what makes the service full, workers are assumed: as many as it
    /// kept busy, times `room`. With 1 it was full at the busiest moment of the recording.
    #[must_use]
    pub fn of(workload: &Workload, room: f64) -> Option<Self> {
        let times = workload.service_time_ms.as_ref().filter(|times| times.mean > 0.0)?;
        let known = workload.service.zip(workload.capacity_per_s).filter(|_| workload.knee.is_some());
        let Some((model, capacity)) = known else {
            let busiest = workload.curve.iter().map(|point| point.in_service).fold(1.0, f64::max);
            let workers = whole((busiest * room).ceil());
            let capacity_per_s = f64::from(workers) / (times.mean / 1e3);
            return Some(Self {
                service: plain(work(times, 1.0), pool(workers)),
                full_at: workers,
                capacity_per_s,
            });
        };
        let capacity_per_s = capacity.value;
        // Requests' worth of work that is done at once at its best.
        let (at_once, full_at, service) = match model {
            ServiceModel::Queue { workers: at_once } | ServiceModel::Saturating { parallelism: at_once } => {
                let at_once = whole(at_once.round());
                (f64::from(at_once), at_once, pool(at_once))
            }
            ServiceModel::Shared { parallelism } => {
                let cores = whole(parallelism.round());
                (f64::from(cores), cores, Kind::Sharing(Sharing { cores }))
            }
            ServiceModel::Slowed { workers, slows_with_queue } => {
                let workers = whole(workers.round());
                let slows_with_queue = Some(whole(slows_with_queue.round()));
                let pool = Pool { workers, starts: Starts::default(), slows_with_queue };
                (f64::from(workers), workers, Kind::Pool(pool))
            }
            ServiceModel::Retrograde { sigma, kappa } => {
                let best = ((1.0 - sigma) / kappa).sqrt().max(1.0);
                let at_once = best / (1.0 + sigma * (best - 1.0) + kappa * best * (best - 1.0));
                let usl = Usl { contention: sigma.clamp(0.0, 1.0), crosstalk: kappa.max(0.0) };
                (at_once, whole(best.round()), Kind::Usl(usl))
            }
        };
        let mean_ms = at_once / capacity_per_s * 1e3;
        let service = plain(work(times, mean_ms / times.mean), service);
        Some(Self { service, full_at, capacity_per_s })
    }
}

/// An answer is usually good within twice the 99th percentile of the latency without a queue, rounded up: what users
/// are used to, and some patience. `None` if that latency is not known.
#[must_use]
pub fn usual_deadline(workload: &Workload) -> Option<Duration> {
    let times = workload.service_time_ms.as_ref().filter(|times| times.mean > 0.0)?;
    let p99_ms = quantile(times, 0.99).max(times.mean);
    // Round figures of each power of ten.
    let power = 10_f64.powf((2.0 * p99_ms).log10().floor());
    let digits = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let round = digits.into_iter().map(|digit| digit * power).find(|&round| round >= 2.0 * p99_ms * 0.999);
    Some(nanos(round.unwrap_or(2.0 * p99_ms)))
}

enum Kind {
    Pool(Pool),
    Sharing(Sharing),
    Usl(Usl),
}

fn pool(workers: u32) -> Kind {
    Kind::Pool(Pool { workers, starts: Starts::default(), slows_with_queue: None })
}

/// Within what a service can be.
fn whole(number: f64) -> u32 {
    number.clamp(1.0, 1e6) as u32
}

fn plain(work: Work, kind: Kind) -> Service {
    let (pool, sharing, usl) = match kind {
        Kind::Pool(pool) => (Some(pool), None, None),
        Kind::Sharing(sharing) => (None, Some(sharing), None),
        Kind::Usl(usl) => (None, None, Some(usl)),
    };
    Service {
        work,
        pool,
        sharing,
        usl,
        crowd: None,
        speed: 1.0,
        stretch: 1.0,
        delay: Duration::ZERO,
        changes: Vec::new(),
        pauses: None,
        errors: Vec::new(),
        outages: Vec::new(),
    }
}

/// The middles of equal parts of the distribution, times a factor, in proportion such that their mean is that of the
/// distribution.
fn work(times: &ServiceTimes, factor: f64) -> Work {
    let middles =
        (0..TIMES).map(|part| quantile(times, (f64::from(part) + 0.5) / f64::from(TIMES)).max(1e-6));
    let middles: Vec<f64> = middles.collect();
    let mean = middles.iter().sum::<f64>() / f64::from(TIMES);
    Work::Empirical(middles.into_iter().map(|ms| nanos(ms * factor * times.mean / mean).into()).collect())
}

/// Between the quantiles that are known, on a straight line.
fn quantile(times: &ServiceTimes, at: f64) -> f64 {
    let next = times.quantiles.partition_point(|(q, _)| *q < at);
    match (next.checked_sub(1).and_then(|last| times.quantiles.get(last)), times.quantiles.get(next)) {
        (Some(&(low, from)), Some(&(high, to))) if high > low => {
            from + (to - from) * (at - low) / (high - low)
        }
        (_, Some(&(_, only))) | (Some(&(_, only)), None) => only,
        (None, None) => times.mean,
    }
}

fn nanos(ms: f64) -> Duration {
    Duration::from_nanos((ms * 1e6).clamp(1.0, 1e18) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Estimate;
    use crate::{Digest, Format, Item, Record, input::Compression, reading::Reading, record::Basis};

    fn workload() -> Workload {
        let mut digest = Digest::new();
        for n in 0..100 {
            digest.add(Item::Request(Record::stamped(Some(n * 100_000_000), Basis::Start, Some(50_000_000))));
        }
        Workload::of(&digest, &Reading::new(Format::Goodput, Compression::None))
    }

    fn known(model: ServiceModel) -> Workload {
        let estimate = |value| Some(Estimate { value, low: value, high: value });
        Workload { capacity_per_s: estimate(80.0), knee: estimate(4.0), service: Some(model), ..workload() }
    }

    #[test]
    fn the_played_service_has_the_capacity_that_was_estimated_whatever_its_kind() {
        for model in [
            ServiceModel::Queue { workers: 4.0 },
            ServiceModel::Saturating { parallelism: 3.6 },
            ServiceModel::Shared { parallelism: 4.2 },
            ServiceModel::Retrograde { sigma: 0.02, kappa: 0.001 },
            ServiceModel::Slowed { workers: 4.0, slows_with_queue: 20.0 },
        ] {
            let played = Played::of(&known(model), 1.0).unwrap();
            let setup = super::super::Setup {
                deadline: Duration::from_millis(200),
                place: super::super::Place::Server,
                most_requests: 10_000,
            };
            let scenario = super::super::slowdown(&played, &setup).unwrap();
            let capacity = scenario.capacity_per_second(Duration::ZERO);
            assert!((capacity / 80.0 - 1.0).abs() < 0.01, "{model:?}: {capacity}");
        }
    }

    #[test]
    fn without_a_knee_the_service_is_as_large_as_it_was_busy_times_the_room() {
        let workload = workload();
        assert_eq!(workload.knee, None);
        assert_eq!(Played::of(&workload, 1.0).unwrap().full_at, 1);
        assert_eq!(Played::of(&workload, 4.0).unwrap().full_at, 4);
    }

    #[test]
    fn the_usual_deadline_is_a_round_figure_of_twice_the_99th_percentile() {
        assert_eq!(usual_deadline(&workload()), Some(Duration::from_millis(100)));
    }
}
