//! A small world of its own, to make recordings of services whose truth is known. It shares no code with the simulator
//! of this project, and none with the fits.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// How a service works.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    /// Workers behind a queue that is served in order.
    Queue { workers: usize },
    /// All requests share so many workers.
    Shared { workers: f64 },
    /// The universal scalability law: each of n requests goes on at 1 / (1 + σ (n − 1) + κ n (n − 1)).
    Retrograde { sigma: f64, kappa: f64 },
    /// Workers behind a queue, and a delay after them that holds no worker, in mean services.
    Delayed { workers: usize, delay: f64 },
    /// Workers behind a queue: what starts while n wait takes 1 + n / `slows` times as long.
    Slowed { workers: usize, slows: f64 },
}

/// How much work a request is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Constant,
    Exponential,
    /// By its coefficient of variation.
    Lognormal(f64),
    /// One in ten is ten times as much.
    Bimodal,
    /// Shape 1.5, at most five hundred times the least.
    Pareto,
}

/// What clients do: one thing after another.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    /// Independent arrivals at so many times the capacity, each for so many seconds.
    Open(Vec<(f64, f64)>),
    /// So many clients that send again when they are answered, each for so many seconds.
    Closed(Vec<(usize, f64)>),
}

/// What happens to a service, or to its log, from one second to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) from: f64,
    pub(crate) until: f64,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Everything goes on at this speed; 0 is a stall.
    Speed(f64),
    /// Each answer comes so many seconds later, and holds no worker meanwhile.
    Later(f64),
    /// Nothing is logged.
    Unlogged,
}

/// A service with its load.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) work: Work,
    /// Mean work of a request in seconds.
    pub(crate) mean: f64,
    pub(crate) load: Load,
    /// Requests that the service holds at most; others are refused.
    pub(crate) room: usize,
    pub(crate) events: Vec<Event>,
}

/// A request as it happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) refused: bool,
}

impl Case {
    /// Most requests per second, and how many in the service that takes.
    pub(crate) fn truth(&self) -> (f64, f64) {
        match self.service {
            Service::Queue { workers } | Service::Slowed { workers, .. } => {
                (workers as f64 / self.mean, workers as f64)
            }
            Service::Shared { workers } => (workers / self.mean, workers),
            Service::Retrograde { sigma, kappa } => {
                let peak = ((1.0 - sigma) / kappa).sqrt().round();
                (peak * slowed(peak, sigma, kappa) / self.mean, peak)
            }
            Service::Delayed { workers, delay } => {
                (workers as f64 / self.mean, workers as f64 * (1.0 + delay))
            }
        }
    }

    /// Mean stay of a request that nothing hinders, in seconds.
    pub(crate) fn unhindered(&self) -> f64 {
        match self.service {
            Service::Delayed { delay, .. } => self.mean * (1.0 + delay),
            _ => self.mean,
        }
    }

    /// What happens, in the order of the ends.
    pub(crate) fn run(&self, seed: u64) -> Vec<Request> {
        let mut world = World::new(self, seed);
        let mut requests = match &self.load {
            Load::Open(phases) => world.open(phases, self.truth().0),
            Load::Closed(phases) => world.closed(phases),
        };
        let logged = |end: f64| self.at(end).all(|what| !matches!(what, What::Unlogged));
        requests.retain(|request| logged(request.end));
        requests.sort_by(|a, b| a.end.total_cmp(&b.end));
        requests
    }

    /// What happens at an instant.
    fn at(&self, now: f64) -> impl Iterator<Item = What> {
        self.events
            .iter()
            .filter(move |event| (event.from..event.until).contains(&now))
            .map(|event| event.what)
    }
}

fn slowed(n: f64, sigma: f64, kappa: f64) -> f64 {
    1.0 / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

struct Job {
    start: f64,
    /// Work left, in seconds of an unhindered worker.
    left: f64,
}

struct World<'c> {
    case: &'c Case,
    random: Xoshiro256PlusPlus,
    now: f64,
    /// In work; under sharing everything is.
    working: Vec<Job>,
    waiting: std::collections::VecDeque<Job>,
    /// When those are answered that are done and wait out a delay.
    unanswered: Vec<f64>,
    done: Vec<Request>,
}

impl<'c> World<'c> {
    fn new(case: &'c Case, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            case,
            random,
            now: 0.0,
            working: Vec::new(),
            waiting: std::collections::VecDeque::new(),
            unanswered: Vec::new(),
            done: Vec::new(),
        }
    }

    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn work(&mut self) -> f64 {
        let u = self.uniform();
        let relative = match self.case.work {
            Work::Constant => 1.0,
            Work::Exponential => -u.ln(),
            Work::Lognormal(cv) => {
                let sigma2 = (1.0 + cv * cv).ln();
                // Box and Muller (1958).
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
                (sigma2.sqrt() * normal - sigma2 / 2.0).exp()
            }
            Work::Bimodal => {
                if u < 0.1 {
                    10.0 / 1.9
                } else {
                    1.0 / 1.9
                }
            }
            // The mean of this distribution, cut at 500, is 3 − 2 / √500.
            Work::Pareto => u.powf(-1.0 / 1.5).min(500.0) / (3.0 - 2.0 / 500.0_f64.sqrt()),
        };
        relative * self.case.mean
    }

    /// The speed of each request in work.
    fn speed(&self) -> f64 {
        let n = self.working.len() as f64;
        let undisturbed = match self.case.service {
            Service::Queue { .. } | Service::Delayed { .. } | Service::Slowed { .. } => 1.0,
            Service::Shared { workers } => (workers / n).min(1.0),
            Service::Retrograde { sigma, kappa } => slowed(n, sigma, kappa),
        };
        let speed = |what| if let What::Speed(speed) = what { speed } else { 1.0 };
        undisturbed * self.case.at(self.now).map(speed).product::<f64>()
    }

    fn places(&self) -> usize {
        match self.case.service {
            Service::Queue { workers }
            | Service::Delayed { workers, .. }
            | Service::Slowed { workers, .. } => workers,
            Service::Shared { .. } | Service::Retrograde { .. } => usize::MAX,
        }
    }

    /// Lets time pass until `until`, or until the next request is done; says whether one was.
    fn pass(&mut self, until: f64) -> bool {
        loop {
            let changes = self.case.events.iter().flat_map(|event| [event.from, event.until]);
            let change = changes.filter(|at| *at > self.now).fold(f64::INFINITY, f64::min);
            if self.pass_undisturbed(until.min(change)) {
                return true;
            }
            if change >= until {
                return false;
            }
        }
    }

    fn pass_undisturbed(&mut self, until: f64) -> bool {
        let speed = self.speed();
        let next =
            (0..self.working.len()).min_by(|a, b| self.working[*a].left.total_cmp(&self.working[*b].left));
        let done =
            next.map(|at| (at, self.now + self.working[at].left / speed)).filter(|(_, at)| *at <= until);
        let then = done.map_or(until, |(_, at)| at);
        let passed = (then - self.now) * speed;
        self.working.iter_mut().for_each(|job| job.left -= passed);
        self.now = then;
        let Some((at, _)) = done else { return false };
        let job = self.working.swap_remove(at);
        let delay = match self.case.service {
            Service::Delayed { delay, .. } => delay * self.case.mean,
            _ => 0.0,
        };
        let later = |what| if let What::Later(seconds) = what { seconds } else { 0.0 };
        let delay = delay + self.case.at(self.now).map(later).sum::<f64>();
        let end = self.now + delay;
        self.unanswered.push(end);
        self.done.push(Request { start: job.start, end, refused: false });
        if let Some(mut next) = self.waiting.pop_front() {
            if let Service::Slowed { slows, .. } = self.case.service {
                next.left *= 1.0 + self.waiting.len() as f64 / slows;
            }
            self.working.push(next);
        }
        true
    }

    fn arrive(&mut self) {
        let job = Job { start: self.now, left: self.work() };
        if self.working.len() + self.waiting.len() >= self.case.room {
            self.done.push(Request { start: self.now, end: self.now + 0.001, refused: true });
        } else if self.working.len() < self.places() {
            self.working.push(job);
        } else {
            self.waiting.push_back(job);
        }
    }

    fn open(&mut self, phases: &[(f64, f64)], capacity: f64) -> Vec<Request> {
        let mut end = 0.0;
        for (load, seconds) in phases {
            end += seconds;
            loop {
                let next = self.now - self.uniform().ln() / (load * capacity);
                while self.pass(next.min(end)) {}
                if next >= end {
                    break;
                }
                self.arrive();
            }
        }
        while !self.working.is_empty() {
            self.pass(f64::INFINITY);
        }
        std::mem::take(&mut self.done)
    }

    fn closed(&mut self, phases: &[(usize, f64)]) -> Vec<Request> {
        let mut end = 0.0;
        for (clients, seconds) in phases {
            end += seconds;
            loop {
                self.unanswered.retain(|at| *at > self.now);
                while self.working.len() + self.waiting.len() + self.unanswered.len() < *clients {
                    self.arrive();
                }
                let next = self.unanswered.iter().copied().fold(end, f64::min);
                if !self.pass(next) && next >= end {
                    break;
                }
            }
        }
        while !self.working.is_empty() {
            self.pass(f64::INFINITY);
        }
        std::mem::take(&mut self.done)
    }
}
