//! What a recording says about the service behind it: how requests arrive, how long one takes without a queue, how
//! many per second the service can do, and how many at once are worth while; each with its uncertainty, and nothing
//! where the recording cannot tell.
//!
//! Requests are put into [`cells`], stretches of time over which Little's law relates their number in the service, their
//! stays and their completions. Curves of throughput over that number are [`fit`]ted, and the [`evidence`] decides whether
//! the bend of the best one is an overload. At constant load a queue that is served in order gives itself away by the
//! order of the ends ([`fifo`]).

mod arrivals;
mod cells;
mod evidence;
mod fifo;
mod fit;
mod interval;
mod times;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Request};
use crate::formats::Format;
use crate::reading::Reading;
use crate::record::Outcome;

pub use arrivals::{Arrivals, Waiting};
pub use interval::Estimate;
pub use times::ServiceTimes;

use cells::{COARSE_S, Cell, Course};
use evidence::{Doubt, Saturation};
use fit::Curve;
use times::{Free, Medians, Stays, no_load};

/// Points of the curve that are kept.
const CURVE_POINTS: usize = 40;

/// What a recording says about the service behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Requests that the service can finish per second.
    pub capacity_per_s: Option<Estimate>,
    /// Requests that it did finish per second for a while, whatever its capacity.
    pub capacity_at_least_per_s: Option<f64>,
    /// The median latency of a request that does not have to wait for others, in milliseconds. An interval that begins at
    /// 0 says that nothing shows that these did not have to wait: then this is an upper bound.
    pub no_load_latency_ms: Option<Estimate>,
    /// The number of requests in the service from which on more of them only wait: capacity times the mean latency without
    /// waiting (Kleinrock 1979), or where the throughput of a service is highest that gets slower
    /// with more.
    pub knee: Option<Estimate>,
    /// How throughput follows from the number in the service.
    pub service: Option<ServiceModel>,
    /// How long requests take that do not have to wait.
    pub service_time_ms: Option<ServiceTimes>,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Shares of the requests by how they ended.
    pub shares: Shares,
    /// Throughput and latency over the number in the service.
    pub curve: Vec<CurvePoint>,
    /// All of this in a sentence or two.
    pub verdict: String,
}

/// How throughput follows from the number in the service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServiceModel {
    /// Workers behind a queue that is served in order.
    Queue {
        /// Workers.
        workers: f64,
    },
    /// All requests share a speed that suffices for so many at once.
    Shared {
        /// Requests that can run at full speed.
        parallelism: f64,
    },
    /// So many at once, be it by workers or by sharing, which cannot be told.
    Saturating {
        /// Requests that can be worked on at once.
        parallelism: f64,
    },
    /// The universal scalability law: throughput falls again beyond its peak.
    Retrograde {
        /// Contention.
        sigma: f64,
        /// Coherency.
        kappa: f64,
    },
    /// Workers behind a queue that slows them, as when waiting requests take memory or locks from those in work.
    Slowed {
        /// Workers.
        workers: f64,
        /// So many waiting requests double the time that work takes.
        slows_with_queue: f64,
    },
}

/// Shares of the requests by how they ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Errors that say nothing about load.
    pub failures: Estimate,
    /// Turned away without service.
    pub refused: Estimate,
    /// Somebody stopped waiting.
    pub timed_out: Estimate,
    /// The client left.
    pub cancelled: Estimate,
}

impl Shares {
    /// Whether so many requests were turned away that a limiter or an overload must have been at work: one of a hundred.
    pub fn are_refused(&self) -> bool {
        self.refused.value >= 0.01
    }
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Requests in the service, from Little's law.
    pub in_service: f64,
    /// Requests finished per second.
    pub throughput_per_s: f64,
    /// Their mean latency in milliseconds.
    pub latency_ms: f64,
    /// Seconds of the recording that this point stands for.
    pub seconds: f64,
}

impl Workload {
    /// Understands a recording that has been read.
    pub fn of(digest: &Digest, reading: &Reading) -> Self {
        if digest.records > 0 { of_requests(digest, reading) } else { of_steps(digest, reading) }
    }

    /// Where nothing was seen of an overload, refusals still say that there was one, or that somebody saw to it that there
    /// was none.
    fn with_shares(self, shares: Shares) -> Self {
        let refused = shares.refused.value;
        let mut verdict = self.verdict;
        if self.knee.is_none() && shares.are_refused() {
            verdict += &format!(
                " But {:.0} % of the requests were turned away (429, 503): something was full, or a limiter is at work \
                 already.",
                refused * 100.0
            );
        }
        Self { shares, verdict, ..self }
    }
}

fn of_requests(digest: &Digest, reading: &Reading) -> Workload {
    let mut course = Course::of(digest, reading, false);
    let mut arrivals = arrivals::of_windows(&course.windows, &course.cells);
    let mut stays = Stays::of(&course);
    let by_cell = (course.coarse || !course.complete).then(|| Stays::by_cell(&course));
    let saturation = |course: &Course, arrivals: &Arrivals, stays: &Stays| {
        let seen = evidence::saturation(&course.cells, arrivals.clients_wait, stays, course.coarse)?;
        evidence::not_by_chance(&seen, course).map(|()| seen)
    };
    let mut found = saturation(&course, &arrivals, &stays);
    let mut queue_before = None;
    if found.is_err() && digest.requests.iter().any(Request::has_service) {
        // The queue may be in front of the service, in the proxy that wrote the log.
        let all = Course::of(digest, reading, true);
        let all_arrivals = arrivals::of_windows(&all.windows, &all.cells);
        let all_stays = Stays::of(&all);
        let seen = saturation(&all, &all_arrivals, &all_stays);
        if seen.is_ok() {
            queue_before = Some(std::mem::replace(&mut stays, all_stays));
            (course, arrivals, found) = (all, all_arrivals, seen);
        }
    }
    let cells = &course.cells;
    let fine = course.complete && !crate::digest::is_coarse(reading);
    let order = if fine { fifo::workers(&course.requests) } else { None };
    let mut workload = match (&found, order) {
        (Ok(saturation), order) => {
            // Without the queue the service's own part of the latency is known.
            let free =
                no_load(by_cell.as_ref(), queue_before.as_ref().unwrap_or(&stays), saturation.peak.value);
            let free = if course.coarse && arrivals.come_in_bursts() { free.map(Free::mixed) } else { free };
            saturated(saturation, free, &stays, order.as_ref(), cells, course.coarse)
        }
        (Err(doubt), Some(order)) => match ordered(&order, cells, arrivals.clients_wait) {
            Ok(workload) => workload,
            Err(_) => unknown(*doubt, times::lowest(&stays), cells),
        },
        (Err(doubt), None) => {
            let lowest = times::lowest(by_cell.as_ref().unwrap_or(&stays));
            unknown(*doubt, lowest.or_else(|| times::at_most(&course)), cells)
        }
    };
    if queue_before.is_some() {
        workload.verdict += " The queue is in front of the service, in the proxy: what the service itself could do beyond it is not seen.";
    }
    workload.arrivals = arrivals;
    workload.with_shares(shares(digest))
}

fn of_steps(digest: &Digest, reading: &Reading) -> Workload {
    let cells = cells::of_steps(digest.steps());
    let clients = digest.steps().iter().all(|step| step.clients.is_some()) && !cells.is_empty();
    let arrivals = arrivals::of_cells(&cells, clients);
    let medians = match reading.format {
        // Quantiles of wide buckets are no medians.
        Format::Prometheus => Medians::None,
        Format::Locust => Medians::Sliding,
        _ => Medians::All,
    };
    let stays = Stays::of_steps(digest.steps(), &cells, medians);
    let waiting = if digest.steps().iter().any(|step| step.offered_per_s.is_none()) {
        Waiting::Closed
    } else {
        arrivals.clients_wait
    };
    let found = evidence::saturation(&cells, waiting, &stays, false);
    let mut workload = match &found {
        Ok(saturation) => {
            saturated(saturation, no_load(None, &stays, saturation.peak.value), &stays, None, &cells, false)
        }
        Err(doubt) => unknown(*doubt, times::lowest(&stays), &cells),
    };
    workload.arrivals = arrivals;
    let count =
        |of: fn(&crate::record::Step) -> f64| digest.steps().iter().map(of).sum::<f64>().max(0.0) as u64;
    let (completed, timeouts) = (count(|s| s.completed), count(|s| s.timeouts));
    let refused = count(|s| s.refused.unwrap_or(0.0));
    let all = completed.saturating_add(timeouts);
    workload.with_shares(Shares {
        failures: interval::share(count(|s| s.errors).saturating_sub(refused).min(all), all),
        refused: interval::share(refused.min(all), all),
        timed_out: interval::share(timeouts, all),
        cancelled: interval::share(0, all),
    })
}

/// An overload was seen.
fn saturated(
    saturation: &Saturation,
    free: Option<Free>,
    stays: &Stays,
    order: Option<&fifo::Order>,
    cells: &[Cell],
    coarse: bool,
) -> Workload {
    let (capacity, peak) = (saturation.capacity, saturation.peak);
    let free = free.or_else(|| order.and_then(|order| times::of_services(&order.services)));
    let sharp = saturation.seen_below && matches!(saturation.fit.curve, Curve::Saturating { .. });
    let knee = match &free {
        _ if saturation.falls => Some(peak),
        // Kleinrock's knee; the bend of the curve, where it was seen, is the same by another way. Whole seconds blur both.
        Some(free) => {
            let knee = capacity.product(free.mean_ms.times(1e-3));
            let (least, most) = if coarse { (peak.low, peak.high) } else { (peak.value, peak.value) };
            let low = if sharp { knee.low.min(least) } else { knee.low };
            let high = if sharp { knee.high.max(most) } else { knee.high };
            Some(Estimate::new(knee.value, low, high))
        }
        None if saturation.seen_below => Some(peak),
        None => None,
    };
    let model = match saturation.fit.curve {
        Curve::Scalability { sigma, kappa } if saturation.falls => ServiceModel::Retrograde { sigma, kappa },
        Curve::Slowed { k, s } if saturation.falls => {
            ServiceModel::Slowed { workers: k.round().max(1.0), slows_with_queue: s }
        }
        _ => {
            let parallelism = knee.map_or(peak.value, |knee| knee.value);
            match (order, stays.spread(peak.value)) {
                (Some(order), _) => ServiceModel::Queue { workers: order.workers as f64 },
                // Under sharing, stays are as different as the work; a queue makes them alike.
                (None, Some(ratio)) if ratio > 0.8 => ServiceModel::Shared { parallelism },
                (None, Some(ratio)) if ratio < 0.6 => {
                    ServiceModel::Queue { workers: parallelism.round().max(1.0) }
                }
                _ => ServiceModel::Saturating { parallelism },
            }
        }
    };
    let at = knee.map_or_else(String::new, |k| format!(" with about {} requests in it", range(k)));
    let verdict =
        format!("The service saturates at {} requests per second{at}; more only wait.", range(capacity));
    let common = common(cells);
    // Where nobody met a free service, the shortest stays are a bound, which says nothing of the knee.
    let stay = free.or_else(|| times::lowest(stays).map(Free::at_most));
    Workload {
        capacity_per_s: Some(capacity),
        // Short requests that pass long ones may have been faster for a while.
        capacity_at_least_per_s: common.capacity_at_least_per_s.map(|least| least.min(capacity.low)),
        no_load_latency_ms: stay.as_ref().map(|free| free.median_ms),
        knee,
        // A bend that nothing places says nothing of what makes it.
        service: knee.map(|_| model),
        service_time_ms: stay.map(|free| free.times),
        verdict,
        ..common
    }
}

/// No overload can be seen in the curve, but the order of the ends shows a queue that is never empty.
///
/// # Errors
///
/// If nobody keeps the queue from becoming empty, or if the service was faster at other times.
fn ordered(order: &fifo::Order, cells: &[Cell], waiting: Waiting) -> Result<Workload, Doubt> {
    let workers = order.workers as f64;
    let free = times::of_services(&order.services);
    // Completions over the time in which all workers were busy; a busy half of them counts half.
    let completed: f64 = cells.iter().map(|cell| cell.completed).sum();
    let seconds: f64 = cells.iter().map(|cell| cell.integral(|n| (n / workers).min(1.0))).sum();
    let rate = completed / seconds;
    let error = interval::z95() * completed.sqrt() / seconds;
    evidence::kept_full(cells, rate, waiting)?;
    let capacity = (completed > 0.0).then(|| Estimate::new(rate, rate - error, rate + error));
    let verdict = match capacity {
        Some(capacity) => format!(
            "The order in which requests end shows {workers} workers behind a queue that was never empty: the service was \
             saturated all the time, at {} requests per second.",
            range(capacity)
        ),
        None => "Nothing can be told about the capacity.".to_owned(),
    };
    Ok(Workload {
        capacity_per_s: capacity,
        no_load_latency_ms: free.as_ref().map(|free| free.median_ms),
        knee: Some(Estimate::new(workers, workers, workers + 1.0)),
        service: Some(ServiceModel::Queue { workers }),
        service_time_ms: free.map(|free| free.times),
        verdict,
        ..common(cells)
    })
}

/// No overload was seen, or none that can be trusted.
fn unknown(doubt: Doubt, free: Option<Free>, cells: &[Cell]) -> Workload {
    let common = common(cells);
    let least = common
        .capacity_at_least_per_s
        .map_or_else(String::new, |rate| format!("capacity is at least {rate:.0}/s, "));
    let verdict = match doubt {
        Doubt::NoOverload => format!("No overload in this recording: {least}the knee unknown."),
        Doubt::TooLittle => {
            format!("Too few requests or levels of load to see a curve: {least}the knee unknown.")
        }
        Doubt::SlowRequests => format!(
            "Requests piled up because some of them are slow, not because the others had to wait: {least}the knee unknown."
        ),
        Doubt::Stalls => format!(
            "Latency rose at times, but demand was no higher then than at others: stalls, and no overload that would tell \
             the capacity: {least}the knee unknown."
        ),
        Doubt::Changing => {
            format!("The service was faster at some times than at others: {least}the knee unknown.")
        }
        Doubt::Chance => format!(
            "Requests piled up now and then because the service happened to be slow, and no demand kept it full: {least}the \
             knee unknown."
        ),
    };
    Workload {
        no_load_latency_ms: free.as_ref().map(|free| free.median_ms),
        service_time_ms: free.map(|f| f.times),
        verdict,
        ..common
    }
}

/// What needs no overload.
fn common(cells: &[Cell]) -> Workload {
    Workload {
        capacity_per_s: None,
        capacity_at_least_per_s: at_least(cells),
        no_load_latency_ms: None,
        knee: None,
        service: None,
        service_time_ms: None,
        arrivals: Arrivals::default(),
        shares: Shares {
            failures: interval::share(0, 0),
            refused: interval::share(0, 0),
            timed_out: interval::share(0, 0),
            cancelled: interval::share(0, 0),
        },
        curve: curve(cells),
        verdict: String::new(),
    }
}

/// The highest throughput over neighbouring cells with four hundred completions (or a sixth of all), less as many standard
/// errors as the highest of some hundred stretches lies above its mean by chance. What was there before and nearly done does
/// not count: no more than came in the same time. Stamps of whole seconds need some seconds to say anything about a rate.
fn at_least(cells: &[Cell]) -> Option<f64> {
    const ERRORS: f64 = 3.5;
    let shortest = if cells.first()?.seconds >= COARSE_S { 2.0 * COARSE_S } else { 0.0 };
    let all: f64 = cells.iter().map(|cell| cell.completed).sum();
    let wanted = 400.0_f64.min(all / 6.0).max(1.0);
    let mut most: Option<f64> = None;
    for first in 0..cells.len() {
        let (mut completed, mut admitted, mut seconds) = (0.0, 0.0, 0.0);
        for cell in &cells[first..] {
            completed += cell.completed;
            admitted += cell.arrivals - cell.refused;
            seconds += cell.seconds;
            if completed >= wanted && seconds >= shortest {
                let completed = f64::min(completed, admitted).max(0.0);
                let rate = (completed - ERRORS * f64::sqrt(completed)) / seconds;
                most = Some(most.map_or(rate, |most: f64| most.max(rate)));
                break;
            }
        }
    }
    most.filter(|rate| *rate > 0.0)
}

/// Cells joined by their number in the service.
fn curve(cells: &[Cell]) -> Vec<CurvePoint> {
    let mut busy: Vec<&Cell> =
        cells.iter().filter(|cell| cell.completed > 0.0 && cell.stay.is_some()).collect();
    busy.sort_by(|a, b| a.in_service.total_cmp(&b.in_service));
    let per_point = busy.len().div_ceil(CURVE_POINTS).max(1);
    busy.chunks(per_point)
        .map(|group| {
            let seconds: f64 = group.iter().map(|cell| cell.seconds).sum();
            let completed: f64 = group.iter().map(|cell| cell.completed).sum();
            let stay: f64 = group.iter().map(|cell| cell.stay.unwrap_or(0.0) * cell.completed).sum();
            CurvePoint {
                in_service: group.iter().map(|cell| cell.in_service * cell.seconds).sum::<f64>() / seconds,
                throughput_per_s: completed / seconds,
                latency_ms: stay / completed * 1e3,
                seconds,
            }
        })
        .collect()
}

fn shares(digest: &Digest) -> Shares {
    let outcomes = digest.outcomes();
    let of = |outcome: Outcome| interval::share(outcomes.get(&outcome).copied().unwrap_or(0), digest.records);
    Shares {
        failures: of(Outcome::Failure),
        refused: of(Outcome::Refused),
        timed_out: of(Outcome::TimedOut),
        cancelled: of(Outcome::Cancelled),
    }
}

/// An estimate in words.
fn range(estimate: Estimate) -> String {
    let digits = |x: f64| if x >= 20.0 { format!("{x:.0}") } else { format!("{x:.1}") };
    format!("{} ({} to {})", digits(estimate.value), digits(estimate.low), digits(estimate.high))
}
