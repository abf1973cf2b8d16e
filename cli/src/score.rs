//! `goodput score`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use goodput_simulator::{Scenario, random_scenario, random_scenario_text, suite};

use crate::{
    contestants::{Contestant, contestants},
    failure::Failure,
    league,
    memory::{Memory, Place},
    report,
};

/// Scenarios of `--quick`: of each kind one, and none that takes long.
const QUICK: [&str; 10] = [
    "01_fifo_exp",
    "04_bimodal",
    "06_ps_cpu8",
    "07_usl",
    "08_dep_delay",
    "09_cap_down_up",
    "14_gc_under",
    "21_low_then_surge",
    "24_multi8",
    "30_one_worker",
];

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Algorithms to compare, with commas between: names as in a config file, with settings if wanted
    /// (vegas:initial=50,smoothing=0.5). Bounds are widened to 1 and 20,000; NAME_stock keeps them. Default: all
    #[arg(long, value_name = "A,B")]
    algorithm: Vec<String>,
    /// Compare each algorithm with its own bounds, too
    #[arg(long, conflicts_with = "algorithm")]
    stock: bool,
    /// Only scenarios whose name contains one of these
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    scenario: Vec<String>,
    /// How many seeds, from 1 up: each is a run of its own, and the median counts [default: 5, or 1 with --quick and
    /// --random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Ten scenarios, one seed: less than a minute
    #[arg(long)]
    quick: bool,
    /// Compare by the scenario files of this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    suite: Option<PathBuf>,
    /// Compare by N scenarios that are drawn at random
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "suite"],
        value_parser = clap::value_parser!(u32).range(1..))]
    random: Option<u32>,
    /// Where chance begins to draw scenarios
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random")]
    seed: u64,
    /// Write the scenarios that are drawn into this folder as files
    #[arg(long, value_name = "DIR", requires = "random")]
    save: Option<PathBuf>,
    /// Print CSV, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    csv: Option<Option<PathBuf>>,
    /// Print JSON, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    json: Option<Option<PathBuf>>,
    #[command(flatten)]
    cache: Place,
}

pub(crate) fn score(arguments: &Arguments) -> Result<(), Failure> {
    let scenarios = arguments.scenarios()?;
    let algorithms = arguments.contestants()?;
    let one_will_do = arguments.quick || arguments.random.is_some();
    let seeds = arguments.seeds.unwrap_or(if one_will_do { 1 } else { 5 });
    let memory = Memory::open(&arguments.cache.folder())?;
    let mut standings = league::play(&scenarios, &algorithms, seeds, &memory)?;
    standings.sort_by(|a, b| b.total.total_cmp(&a.total));
    report::report(&standings, arguments.json.as_ref(), arguments.csv.as_ref())
}

impl Arguments {
    fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let mut scenarios = match (&self.suite, self.random) {
            (Some(folder), _) => read_folder(folder)?,
            (None, Some(count)) => self.draw(count)?,
            (None, None) => suite()?,
        };
        if self.quick {
            scenarios.retain(|scenario| QUICK.contains(&scenario.name.as_str()));
        }
        for wanted in &self.scenario {
            if !scenarios.iter().any(|scenario| scenario.name.contains(wanted)) {
                let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
                return Err(Failure::Arguments(format!(
                    "no scenario is called `{wanted}`; there are {}",
                    names.join(", ")
                )));
            }
        }
        if !self.scenario.is_empty() {
            scenarios.retain(|scenario| self.scenario.iter().any(|wanted| scenario.name.contains(wanted)));
        }
        Ok(scenarios)
    }

    fn draw(&self, count: u32) -> Result<Vec<Scenario>, Failure> {
        let scenarios: Vec<_> =
            (0..count).map(|number| random_scenario(self.seed, number)).collect::<Result<_, _>>()?;
        if let Some(folder) = &self.save {
            fs::create_dir_all(folder).map_err(Failure::file(folder))?;
            for (number, scenario) in scenarios.iter().enumerate() {
                let path = folder.join(format!("{}.toml", scenario.name));
                let text = random_scenario_text(self.seed, number as u32);
                fs::write(&path, text).map_err(Failure::file(&path))?;
            }
        }
        Ok(scenarios)
    }

    fn contestants(&self) -> Result<Vec<Contestant>, Failure> {
        if self.algorithm.is_empty() {
            return Ok(contestants(self.stock)?);
        }
        let mut named = Vec::new();
        for list in &self.algorithm {
            named.extend(Contestant::parse_list(list)?);
        }
        Ok(named)
    }
}

fn read_folder(folder: &Path) -> Result<Vec<Scenario>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::file(folder))? {
        let path = entry.map_err(Failure::file(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Failure::Arguments(format!("{}: no scenario file (*.toml) is in it", folder.display())));
    }
    files.sort();
    Ok(files.iter().map(Scenario::read).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_scenarios_are_in_the_suite() {
        let names: Vec<_> = suite().unwrap().into_iter().map(|scenario| scenario.name).collect();
        assert!(QUICK.iter().all(|quick| names.iter().any(|name| name == quick)));
    }
}
