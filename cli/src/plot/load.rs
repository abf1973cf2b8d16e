//! Goodput against offered load: the plateau that a good limiter holds, and the collapse without one.

use goodput_simulator::{Measure, Scenario, run};
use rayon::prelude::*;

use super::{
    canvas::{Anchor, Canvas, WIDTH},
    play::Entrant,
    scale::Scale,
    words,
};
use crate::failure::Failure;

const LEFT: f64 = 56.0;
const TOP: f64 = 66.0;
const HEIGHT: f64 = 300.0;

/// Right of the panel, for the names of the lines.
const NAMES: f64 = 128.0;

/// Pixels between the names of two lines, at least.
const APART: f64 = 15.0;

/// What each algorithm's goodput comes to at each load.
#[derive(Clone, Debug)]
pub(super) struct LoadCurves {
    scenario: Scenario,
    /// Over capacity.
    pub(super) loads: Vec<f64>,
    pub(super) curves: Vec<Curve>,
}

/// One algorithm's.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// Good answers per second over capacity, for each load.
    pub(super) goodput: Vec<f64>,
}

impl LoadCurves {
    /// Plays the scenario at each load, its rates scaled to it.
    pub(super) fn play(
        scenario: &Scenario,
        entrants: &[Entrant],
        seed: u64,
        loads: &[f64],
    ) -> Result<Self, Failure> {
        let base = match scenario.segments()[..] {
            [segment] => segment.load().filter(|&load| load > 0.0),
            _ => None,
        };
        let Some(base) = base else {
            return Err(Failure::Arguments(format!(
                "{}: goodput against load needs a scenario of open clients at a rate that does not change",
                scenario.name
            )));
        };
        let capacity = base.recip() * offered(scenario);
        let runs: Vec<_> =
            entrants.iter().flat_map(|entrant| loads.iter().map(move |&load| (entrant, load))).collect();
        let goodput: Vec<f64> = runs
            .par_iter()
            .map(|&(entrant, load)| {
                let at_load = scaled(scenario, load / base);
                let summary = run(&at_load, &entrant.limits, seed, &Measure::default())?.summary;
                Ok(summary.goodput_per_second() / capacity)
            })
            .collect::<Result<_, Failure>>()?;
        let curves = entrants
            .iter()
            .zip(goodput.chunks(loads.len()))
            .map(|(entrant, goodput)| Curve { name: entrant.name.clone(), goodput: goodput.to_vec() })
            .collect();
        Ok(Self { scenario: scenario.clone(), loads: loads.to_vec(), curves })
    }
}

/// Draws the curves, each named at its end.
pub(super) fn draw(curves: &LoadCurves, title: &str) -> String {
    let mut canvas = Canvas::new();
    canvas.text(14.0, 25.0, "title", Anchor::Start, title);
    let deadline = curves.scenario.deadline.map_or_else(String::new, |deadline| {
        format!(" · an answer is good within {}", words::seconds(deadline.as_secs_f64()))
    });
    let subtitle = format!("Good answers per second, of capacity{deadline} · shaded: overload");
    canvas.text(14.0, 42.0, "", Anchor::Start, &subtitle);
    let width = WIDTH - LEFT - NAMES;
    let most = curves.loads.iter().copied().fold(1.0, f64::max);
    let (across, up) = (Scale::linear(most, width), Scale::linear(1.08, HEIGHT));
    let at = |load: f64, goodput: f64| (LEFT + across.at(load), TOP + HEIGHT - up.at(goodput));
    canvas.rectangle("panel", LEFT, TOP, width, HEIGHT);
    canvas.rectangle("over", at(1.0, 0.0).0, TOP, LEFT + width - at(1.0, 0.0).0, HEIGHT);
    for tick in up.ticks(30.0) {
        canvas.rule("grid", at(0.0, tick), at(most, tick));
        canvas.text(LEFT - 6.0, at(0.0, tick).1 + 3.5, "", Anchor::End, &words::percent_of_axis(tick));
    }
    for tick in across.ticks(60.0) {
        canvas.text(
            at(tick, 0.0).0,
            TOP + HEIGHT + 15.0,
            "",
            Anchor::Middle,
            &format!("{}×", words::number(tick)),
        );
    }
    canvas.text(LEFT + width / 2.0, TOP + HEIGHT + 31.0, "", Anchor::Middle, "offered load, of capacity");
    canvas.line("capacity", &[Some(at(0.0, 0.0)), Some(at(1.0, 1.0)), Some(at(most, 1.0))]);
    let (end, height) = at(most, 1.0);
    canvas.text(end - 8.0, height - 6.0, "", Anchor::End, "all that could be served");
    let ends: Vec<f64> =
        curves.curves.iter().map(|curve| at(0.0, curve.goodput.last().copied().unwrap_or(0.0)).1).collect();
    let names = spread(&ends, TOP + 4.0, TOP + HEIGHT);
    for ((curve, end), name) in curves.curves.iter().zip(ends).zip(names) {
        let pen = canvas.pen(&curve.name);
        let measured = curves.loads.iter().zip(&curve.goodput).map(|(&load, &share)| at(load, share));
        let points: Vec<_> = [at(0.0, 0.0)].into_iter().chain(measured).map(Some).collect();
        canvas.line(&format!("{pen} line"), &points);
        canvas.rule(&format!("{pen} thin"), (LEFT + width + 1.0, end), (LEFT + width + 12.0, name));
        let label = Entrant::label(&curve.name);
        canvas.text(LEFT + width + 15.0, name + 4.0, &format!("name {pen}"), Anchor::Start, &label);
    }
    let names: Vec<_> = curves.curves.iter().map(|curve| Entrant::label(&curve.name)).collect();
    let description = format!("Goodput against offered load under {}.", names.join(", "));
    canvas.finish(TOP + HEIGHT + 42.0, title, &description)
}

/// Moves heights as little as it takes for none to be closer to another than [`APART`].
fn spread(heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]).then(a.cmp(&b)));
    // Groups that touch are moved together, so that each stays around its middle.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let room = |count: usize| (count as f64 - 1.0) * APART;
    let within = |middle: f64, count: usize| {
        let half = room(count) / 2.0;
        middle.min(bottom - half).max(top + half)
    };
    for &index in &order {
        let mut group = (within(heights[index], 1), 1);
        while let Some(&(middle, count)) = groups.last() {
            if group.0 - room(group.1) / 2.0 - middle - room(count) / 2.0 >= APART {
                break;
            }
            groups.pop();
            let all = count + group.1;
            let mean = (middle * count as f64 + group.0 * group.1 as f64) / all as f64;
            group = (within(mean, all), all);
        }
        groups.push(group);
    }
    let places = groups
        .iter()
        .flat_map(|&(middle, count)| (0..count).map(move |i| middle + i as f64 * APART - room(count) / 2.0));
    let mut spread = vec![0.0; heights.len()];
    for (index, place) in order.into_iter().zip(places) {
        spread[index] = place;
    }
    spread
}

/// Requests per second of all clients.
fn offered(scenario: &Scenario) -> f64 {
    scenario.segments().first().and_then(|segment| segment.offered_per_second).unwrap_or(0.0)
}

/// The same scenario, its clients sending so many times as much.
fn scaled(scenario: &Scenario, factor: f64) -> Scenario {
    let mut scenario = scenario.clone();
    for open in scenario.clients.iter_mut().filter_map(|clients| clients.open.as_mut()) {
        open.per_second *= factor;
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_collide_move_apart_and_keep_their_order() {
        let spread = spread(&[100.0, 102.0, 40.0, 101.0], 0.0, 300.0);
        assert_eq!(spread, [86.0, 116.0, 40.0, 101.0]);
    }

    #[test]
    fn names_stay_within_the_panel() {
        let spread = spread(&[299.0, 300.0, 300.0], 0.0, 300.0);
        assert_eq!(spread, [270.0, 285.0, 300.0]);
    }

    #[test]
    fn a_scaled_scenario_offers_so_many_times_as_much() {
        let text = "length = '1s'\n[service]\nwork = { constant = '10ms' }\npool = { workers = 2 }\n\
                    [[clients]]\nopen = { per_second = 200 }";
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scaled(&scenario, 2.5).segments()[0].load(), Some(2.5));
    }
}
