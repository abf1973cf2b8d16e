//! Scenarios that nobody tuned for.

use std::fmt::Write;

use crate::{
    Scenario, ScenarioError, Usl,
    random::{Purpose, Stream},
};

/// A scenario of which chance decides everything. The same arguments give the same one on every machine.
///
/// It has about 30,000 requests, and lasts 600 mean services at least. What is drawn, all independently and uniformly
/// where nothing else is said:
///
/// - the service: a pool (65 %), sharing (20 %) or the universal scalability law (15 %: contention 0.01 to 0.05,
///   crosstalk 0.0001 to 0.002, log-uniform); at once 1 to 300, log-uniform, or what the law does at its peak;
/// - its work: mean 0.5 ms to 2 s, log-uniform; constant, exponential, lognormal with cv 0.5, 1 or 2, bimodal (10 % are
///   ten times as long) or Pareto (shape 1.5, spread 500), equally likely;
/// - a pure delay of 0.2 to 4 mean services (40 %), else none;
/// - the load: 0.5 to 2.5 of capacity;
/// - in the middle third of the run, or as regularly as said, one of eight, equally likely: nothing; capacity steps
///   down to 0.25 to 0.7; speed does; latency rises by up to 4 mean services times such a factor; load 0.6, then 0.8 more
///   than drawn, then 0.6; a pause in every tenth of the run, of a two-hundredth of the run or 20 services if that is
///   less; twelve bursts, 60 % of the time at 0.5 and 40 % at 0.8 more than drawn; 10 to 30 % of requests fail after 5 %
///   of the mean service;
/// - clients: one gate before the service (75 %), or 2, 4, 8 or 16 clients with gates of their own, who wait 30
///   latencies (a latency being mean service and delay);
/// - the deadline: 8 to 25 latencies.
///
/// Times and rates are rounded to three digits.
///
/// # Errors
///
/// None: whatever is drawn is a scenario. Tests draw thousands.
pub fn random_scenario(seed: u64, number: u32) -> Result<Scenario, ScenarioError> {
    let mut scenario = Scenario::parse(&random_scenario_text(seed, number))?;
    scenario.name = format!("random_{seed}_{number:03}");
    Ok(scenario)
}

/// The file of [`random_scenario`].
#[must_use]
pub fn random_scenario_text(seed: u64, number: u32) -> String {
    let mut text = format!("about = \"Drawn at random: seed {seed}, number {number}.\"\n");
    Draw { stream: Stream::new(seed, Purpose::Scenarios, number as usize) }.write(&mut text);
    text
}

const REQUESTS: f64 = 30_000.0;
const LEAST_SERVICES: f64 = 600.0;

struct Draw {
    stream: Stream,
}

/// What befalls.
#[derive(Clone, Copy)]
enum Event {
    Nothing,
    Capacity,
    Speed,
    Latency,
    Load,
    Pauses,
    Bursts,
    Errors,
}

impl Draw {
    /// In nanoseconds, requests per nanosecond and shares until they are written down.
    fn write(&mut self, text: &mut String) {
        let (server, at_once) = self.server();
        let mean = self.log_between(0.5e6, 2e9);
        let work = self.work(mean);
        let delay = if self.chance(0.4) { mean * self.between(0.2, 4.0) } else { 0.0 };
        let load = self.between(0.5, 2.5);
        let event = self.one_of(&[
            Event::Nothing,
            Event::Capacity,
            Event::Speed,
            Event::Latency,
            Event::Load,
            Event::Pauses,
            Event::Bursts,
            Event::Errors,
        ]);
        let factor = self.between(0.25, 0.7);
        let failing = self.between(0.1, 0.3);
        let gates = if self.chance(0.25) { self.one_of(&[2.0, 4.0, 8.0, 16.0]) } else { 1.0 };
        let latency = mean + delay;
        let deadline = latency * self.between(8.0, 25.0);

        let capacity = at_once / mean;
        let length = (REQUESTS / (load * capacity)).max(LEAST_SERVICES * mean);
        let (third, two_thirds) = (time(length / 3.0), time(length * 2.0 / 3.0));
        let rate = |load: f64| digits(load * capacity / gates * 1e9);
        let step = |field: &str, there: &str, back: &str| {
            format!(
                "changes = [{{ at = \"{third}\", {field} = {there} }}, {{ at = \"{two_thirds}\", {field} = {back} }}]\n"
            )
        };

        let mut service = format!("work = {work}\n{}\n", server.text(at_once));
        if delay > 0.0 {
            say(&mut service, format_args!("delay = \"{}\"", time(delay)));
        }
        let mut open = format!("per_second = {}\n", rate(load));
        match event {
            Event::Nothing => {}
            Event::Capacity => {
                service += &match server {
                    Server::Pool | Server::Sharing if at_once > 1.0 => {
                        let field = if matches!(server, Server::Pool) { "workers" } else { "cores" };
                        let fewer = libm::round(at_once * factor).max(1.0);
                        step(field, &fewer.to_string(), &at_once.to_string())
                    }
                    // Nothing that could be counted: it does less.
                    _ => step("speed", &digits(factor), "1.0"),
                }
            }
            Event::Speed => service += &step("speed", &digits(factor), "1.0"),
            Event::Latency => {
                let more = format!("\"{}\"", time(delay + 4.0 * factor * mean));
                service += &step("delay", &more, &format!("\"{}\"", time(delay)));
            }
            Event::Load => {
                open = format!("per_second = {}\n", rate(0.6));
                open += &step("per_second", &rate(load + 0.8), &rate(0.6));
            }
            Event::Pauses => {
                let lasting = (length / 200.0).min(20.0 * mean);
                let (every, lasting) = (time(length / 10.0), time(lasting));
                say(
                    &mut service,
                    format_args!("pauses = {{ every = \"{every}\", lasting = \"{lasting}\" }}"),
                );
            }
            Event::Bursts => {
                let every = length / 12.0;
                let (per_second, every, lasting) = (rate(load + 0.8), time(every), time(every * 0.4));
                open = format!("per_second = {}\n", rate(0.5));
                say(
                    &mut open,
                    format_args!(
                        "bursts = {{ per_second = {per_second}, every = \"{every}\", lasting = \"{lasting}\" }}"
                    ),
                );
            }
            Event::Errors => {
                let (share, after) = (digits(failing), time(0.05 * mean));
                say(
                    &mut service,
                    format_args!(
                        "errors = [{{ from = \"{third}\", until = \"{two_thirds}\", share = {share}, after = \"{after}\" }}]"
                    ),
                );
            }
        }

        say(text, format_args!("length = \"{}\"\ndeadline = \"{}\"", time(length), time(deadline)));
        say(text, format_args!("\n[service]\n{service}\n[[clients]]"));
        if gates > 1.0 {
            say(text, format_args!("count = {gates}\ntimeout = \"{}\"", time(30.0 * latency)));
        }
        let door = if gates > 1.0 { "clients" } else { "service" };
        say(text, format_args!("[clients.open]\n{open}\n[door.{door}]"));
    }

    /// What kind, and how many requests it does at once at its best.
    fn server(&mut self) -> (Server, f64) {
        let kind = self.stream.uniform();
        let at_once = libm::round(self.log_between(1.0, 300.0));
        let contention = self.between(0.01, 0.05);
        let crosstalk = self.log_between(0.0001, 0.002);
        match kind {
            kind if kind < 0.65 => (Server::Pool, at_once),
            kind if kind < 0.85 => (Server::Sharing, at_once),
            _ => {
                let usl = Usl { contention, crosstalk };
                let peak = usl.peak();
                (Server::Usl(usl), peak)
            }
        }
    }

    fn work(&mut self, mean: f64) -> String {
        let lognormal = |cv: &str| format!("{{ lognormal = {{ mean = \"{}\", cv = {cv} }} }}", time(mean));
        match (self.stream.uniform() * 7.0) as u32 {
            0 => format!("{{ constant = \"{}\" }}", time(mean)),
            1 => format!("{{ exponential = \"{}\" }}", time(mean)),
            2 => lognormal("0.5"),
            3 => lognormal("1.0"),
            4 => lognormal("2.0"),
            5 => {
                let fast = mean / (0.9 + 0.1 * 10.0);
                let (fast, slow) = (time(fast), time(10.0 * fast));
                format!("{{ bimodal = {{ fast = \"{fast}\", slow = \"{slow}\", slow_share = 0.1 }} }}")
            }
            _ => format!("{{ pareto = {{ mean = \"{}\", shape = 1.5, spread = 500.0 }} }}", time(mean)),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.stream.uniform() < share
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.stream.uniform()
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        let exponent = self.between(libm::log(low), libm::log(high));
        libm::exp(exponent)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = (self.stream.uniform() * choices.len() as f64) as usize;
        choices[index.min(choices.len() - 1)]
    }
}

enum Server {
    Pool,
    Sharing,
    Usl(Usl),
}

impl Server {
    fn text(&self, at_once: f64) -> String {
        match self {
            Self::Pool => format!("pool = {{ workers = {at_once} }}"),
            Self::Sharing => format!("sharing = {{ cores = {at_once} }}"),
            Self::Usl(Usl { contention, crosstalk }) => {
                format!(
                    "usl = {{ contention = {}, crosstalk = {} }}",
                    digits(*contention),
                    digits(*crosstalk)
                )
            }
        }
    }
}

fn say(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A string takes whatever is written.
    let _ = writeln!(text, "{line}");
}

/// Three significant digits.
fn round(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let unit = libm::pow(10.0, libm::floor(libm::log10(number)) - 2.0);
    libm::round(number / unit) * unit
}

/// A number above zero, to three digits.
fn digits(number: f64) -> String {
    let decimals = (2.0 - libm::floor(libm::log10(number))).max(1.0) as usize;
    format!("{:.decimals$}", round(number))
}

/// Nanoseconds as a time, to three digits, in the largest unit in which it is whole.
fn time(ns: f64) -> String {
    let ns = libm::round(round(ns)) as u64;
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if ns.is_multiple_of(unit) {
            return format!("{}{name}", ns / unit);
        }
    }
    format!("{ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: u32 = 3_000;

    #[test]
    fn times_and_numbers_have_three_digits() {
        assert_eq!(time(12_345_678.0), "12300us");
        assert_eq!(time(5e9), "5s");
        assert_eq!(time(0.0), "0s");
        assert_eq!(time(524.7), "525ns");
        assert_eq!(digits(1_234.5), "1230.0");
        assert_eq!(digits(0.000_123_45), "0.000123");
        assert_eq!(digits(1.0), "1.00");
    }

    #[test]
    fn whatever_is_drawn_is_a_scenario_within_the_stated_ranges() {
        for number in 0..DRAWN {
            let text = random_scenario_text(11, number);
            let scenario = random_scenario(11, number).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(scenario.open_doors() as u32, scenario.clients[0].count, "{text}");
            let mean = scenario.service.work.mean_ns();
            assert!((0.49e6..2.02e9).contains(&mean), "{text}");
            let latency = mean + scenario.service.delay.as_nanos() as f64;
            let deadline = scenario.deadline.unwrap().as_nanos() as f64;
            assert!((7.9..25.3).contains(&(deadline / latency)), "{text}");
            let segments = scenario.segments();
            let length = scenario.length.as_nanos() as f64;
            assert!(length > 590.0 * mean, "{text}");
            for segment in &segments {
                let load = segment.load().unwrap();
                assert!((0.49..3.35 / 0.24).contains(&load), "{load} {text}");
            }
        }
    }

    #[test]
    fn kinds_come_as_often_as_stated() {
        let all: Vec<_> = (0..DRAWN).map(|number| random_scenario(5, number).unwrap()).collect();
        let share = |is: &dyn Fn(&Scenario) -> bool| {
            all.iter().filter(|scenario| is(scenario)).count() as f64 / f64::from(DRAWN)
        };
        let close = |share: f64, stated: f64| {
            // Five standard deviations of a share of so many.
            let allowed = 5.0 * (stated * (1.0 - stated) / f64::from(DRAWN)).sqrt();
            assert!((share - stated).abs() < allowed, "{share} instead of {stated}");
        };
        close(share(&|scenario| scenario.service.pool.is_some()), 0.65);
        close(share(&|scenario| scenario.service.usl.is_some()), 0.15);
        close(share(&|scenario| scenario.clients[0].count > 1), 0.25);
        close(share(&|scenario| scenario.clients[0].count == 16), 0.0625);
        close(share(&|scenario| !scenario.service.delay.is_zero()), 0.4);
        close(share(&|scenario| scenario.service.pauses.is_some()), 0.125);
        close(share(&|scenario| !scenario.service.errors.is_empty()), 0.125);
        close(share(&|scenario| scenario.clients[0].open.as_ref().unwrap().bursts.is_some()), 0.125);
        close(share(&|scenario| matches!(scenario.service.work, crate::Work::Pareto { .. })), 1.0 / 7.0);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_another() {
        assert_eq!(random_scenario_text(1, 2), random_scenario_text(1, 2));
        assert_ne!(random_scenario_text(1, 2), random_scenario_text(2, 2));
        assert_ne!(random_scenario_text(1, 2), random_scenario_text(1, 3));
    }
}
