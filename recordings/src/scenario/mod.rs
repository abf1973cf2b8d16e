//! From a recording to worlds in which limiters can be tried: the recorded arrivals, an overload and a slowdown built
//! from them, each met by the service that the recording shows.

mod replay;
mod service;

use std::time::Duration;

use goodput_simulator::{
    Clients, Contradiction, Door, Doors, Listed, Open, Process, RateChange, Scenario, Service, ServiceChange,
    Ties,
};

pub use replay::Replay;
pub use service::{Played, usual_deadline};

/// The load before and after an overload, of capacity: that of the recording within these bounds.
const CALM: (f64, f64) = (0.4, 0.8);
/// The load of an overload, of capacity.
const OVERLOAD: f64 = 2.0;
/// The load under which a service slows down, of its capacity before; and how fast it still is.
const STEADY: f64 = 0.75;
const SLOW: f64 = 0.5;
/// A stage of an overload or slowdown lasts so many seconds, or so many requests, whichever takes longer.
const STAGE_S: f64 = 20.0;
const STAGE_REQUESTS: f64 = 1_500.0;

/// Where the limiters stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// One before the service.
    Server,
    /// One at each of so many clients, who share the traffic evenly.
    Clients(u32),
}

/// How the worlds are set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// An answer is good if it comes within this time.
    pub deadline: Duration,
    /// Where the limiters stand.
    pub place: Place,
    /// Requests of a run, at most.
    pub most_requests: usize,
}

/// The recorded arrivals meet the service.
///
/// `None` if the recording does not say when requests came.
///
/// # Errors
///
/// [`Contradiction`] if the recording holds times that no world can (longer than a century).
pub fn recorded(service: &Played, replay: &Replay, setup: &Setup) -> Result<Option<Scenario>, Contradiction> {
    let clients = match replay {
        Replay::Unknown => return Ok(None),
        Replay::Each { at, .. } => share(at, setup.place),
        Replay::Steps(steps) => {
            let mut changes = Vec::new();
            let mut from = Duration::ZERO;
            for (length, rate) in steps {
                changes.push((from, *rate));
                from += *length;
            }
            let first = changes.first().map_or(1.0, |(_, rate)| *rate);
            open(first, &changes[1..], setup.place)
        }
    };
    // The last request gets its time to be answered.
    let length = replay.length() + setup.deadline;
    scenario("recorded", "The arrivals of the recording.", length, service.service.clone(), clients, setup)
        .map(Some)
}

/// Calm, then twice what the service can do, then calm again.
///
/// # Errors
///
/// Those of [`recorded`].
pub fn overload(service: &Played, replay: &Replay, setup: &Setup) -> Result<Scenario, Contradiction> {
    let capacity = service.capacity_per_s;
    let calm = replay.mean_per_s().map_or(CALM.1, |mean| mean / capacity).clamp(CALM.0, CALM.1) * capacity;
    let stage = stage(capacity, setup);
    let changes = [(stage, OVERLOAD * capacity), (stage * 2, calm)];
    let about = "The recorded rate, then twice what the service can do, then the recorded rate again.";
    scenario("overload", about, stage * 3, service.service.clone(), open(calm, &changes, setup.place), setup)
}

/// The service works at half its speed for a while.
///
/// # Errors
///
/// Those of [`recorded`].
pub fn slowdown(service: &Played, setup: &Setup) -> Result<Scenario, Contradiction> {
    let capacity = service.capacity_per_s;
    let stage = stage(capacity, setup);
    let change =
        |at: Duration, speed: f64| ServiceChange { at, speed: Some(speed), ..ServiceChange::default() };
    let slowed =
        Service { changes: vec![change(stage, SLOW), change(stage * 2, 1.0)], ..service.service.clone() };
    let about = "A steady load of three quarters, while the service falls to half its speed and recovers.";
    scenario("slowdown", about, stage * 3, slowed, open(STEADY * capacity, &[], setup.place), setup)
}

fn stage(capacity: f64, setup: &Setup) -> Duration {
    let most = setup.most_requests as f64 / (3.0 * capacity);
    let seconds = STAGE_S.max(STAGE_REQUESTS / capacity).min(most);
    // No service is so slow that a stage of its requests takes longer than a year.
    Duration::from_secs_f64(seconds.clamp(1e-6, 3e7))
}

/// Open clients whose rates change at these instants.
fn open(rate: f64, changes: &[(Duration, f64)], place: Place) -> Vec<Clients> {
    let (count, part) = match place {
        Place::Server => (1, 1.0),
        Place::Clients(count) => (count.max(1), 1.0 / f64::from(count.max(1))),
    };
    let changes = changes
        .iter()
        .map(|&(at, rate)| RateChange { at, per_second: rate * part, over: Duration::ZERO })
        .collect();
    let open = Open { process: Process::Poisson, per_second: rate * part, changes, sine: None, bursts: None };
    vec![Clients { count, open: Some(open), ..nobody() }]
}

/// Each client sends every so many-th request.
fn share(at: &[Duration], place: Place) -> Vec<Clients> {
    let count = match place {
        Place::Server => 1,
        Place::Clients(count) => (count as usize).clamp(1, at.len().max(1)),
    };
    (0..count)
        .map(|first| {
            let own = at.iter().skip(first).step_by(count);
            Clients { requests: own.map(|&at| Listed { at, work: None, class: None }).collect(), ..nobody() }
        })
        .collect()
}

fn nobody() -> Clients {
    Clients {
        name: String::new(),
        count: 1,
        joins: Duration::ZERO,
        leaves: None,
        open: None,
        closed: None,
        paced: None,
        requests: Vec::new(),
        timeout: None,
        tells_deadline: false,
        partition: None,
        tells_user: false,
        classes: Vec::new(),
        retries: None,
        throttle: None,
    }
}

fn scenario(
    name: &str,
    about: &str,
    length: Duration,
    service: Service,
    clients: Vec<Clients>,
    setup: &Setup,
) -> Result<Scenario, Contradiction> {
    let door = Some(Door::default());
    let door = match setup.place {
        Place::Server => Doors { service: door, clients: None },
        Place::Clients(_) => Doors { service: None, clients: door },
    };
    let scenario = Scenario {
        name: name.to_owned(),
        about: about.to_owned(),
        length,
        deadline: Some(setup.deadline),
        ties: Ties::default(),
        timer: None,
        service,
        clients,
        door,
    };
    scenario.check()?;
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_simulator::{Pool, Starts, Work};

    fn played(workers: u32, work: Duration) -> Played {
        let service = Service {
            work: Work::Constant(work),
            pool: Some(Pool { workers, starts: Starts::default(), slows_with_queue: None }),
            sharing: None,
            usl: None,
            crowd: None,
            speed: 1.0,
            stretch: 1.0,
            delay: Duration::ZERO,
            changes: Vec::new(),
            pauses: None,
            errors: Vec::new(),
            outages: Vec::new(),
        };
        Played { service, full_at: workers, capacity_per_s: f64::from(workers) / work.as_secs_f64() }
    }

    fn service() -> Played {
        played(4, Duration::from_millis(50))
    }

    fn setup(place: Place) -> Setup {
        Setup { deadline: Duration::from_millis(200), place, most_requests: 100_000 }
    }

    #[test]
    fn an_overload_is_twice_what_the_service_can_do_between_two_calm_stages() {
        let scenario = overload(&service(), &Replay::Unknown, &setup(Place::Server)).unwrap();
        let loads: Vec<f64> =
            scenario.segments().iter().filter_map(goodput_simulator::Segment::load).collect();
        assert_eq!(loads.len(), 3);
        assert!((loads[0] - 0.8).abs() < 1e-9 && (loads[1] - 2.0).abs() < 1e-9, "{loads:?}");
    }

    #[test]
    fn a_slowdown_halves_the_capacity_in_its_middle() {
        let scenario = slowdown(&service(), &setup(Place::Server)).unwrap();
        let capacities: Vec<f64> =
            scenario.segments().iter().map(|segment| segment.capacity_per_second).collect();
        assert_eq!(capacities, [80.0, 40.0, 80.0]);
    }

    #[test]
    fn clients_share_the_recorded_arrivals_among_them() {
        let at = (0..10).map(Duration::from_secs).collect();
        let replay = Replay::Each { at, cut: false };
        let scenario = recorded(&service(), &replay, &setup(Place::Clients(3))).unwrap().unwrap();
        let counts: Vec<_> = scenario.clients.iter().map(|clients| clients.requests.len()).collect();
        assert_eq!(counts, [4, 3, 3]);
        assert_eq!(scenario.open_doors(), 3);
    }

    #[test]
    fn no_run_has_more_requests_than_asked_for() {
        let fast = played(1000, Duration::from_millis(1));
        let scenario = overload(&fast, &Replay::Unknown, &setup(Place::Server)).unwrap();
        let requests: f64 = scenario
            .segments()
            .iter()
            .map(|s| s.offered_per_second.unwrap() * (s.until - s.from).as_secs_f64())
            .sum();
        assert!(requests < 125_000.0, "{requests}");
    }
}
