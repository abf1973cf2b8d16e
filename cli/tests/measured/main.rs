//! Pages whose numbers were measured: they are those of the files in `docs/scores/`, and everybody is on them.
//!
//! With `GOODPUT_WRITE_DOCS` set, the measured parts are written anew. The pages name the commands that measure.

mod ablations;
mod algorithms;
mod roles;

use std::{collections::BTreeMap, fs, path::PathBuf};

use goodput_simulator::score::geometric_mean;

const WRITE: &str = "GOODPUT_WRITE_DOCS";

/// What `goodput score --csv` wrote: scores by algorithm and scenario.
struct Measured {
    /// Algorithms, the best first.
    names: Vec<String>,
    scenarios: Vec<String>,
    scores: BTreeMap<(String, String), f64>,
}

impl Measured {
    fn read(name: &str) -> Self {
        let path = docs().join(format!("scores/{name}.csv"));
        let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let (mut names, mut scenarios, mut scores) = (Vec::new(), Vec::new(), BTreeMap::new());
        for row in reader.records() {
            let row = row.unwrap();
            let (algorithm, scenario) = (row[0].to_owned(), row[1].to_owned());
            if !names.contains(&algorithm) {
                names.push(algorithm.clone());
            }
            if !scenarios.contains(&scenario) {
                scenarios.push(scenario.clone());
            }
            scores.insert((algorithm, scenario), row[2].parse().unwrap());
        }
        Self { names, scenarios, scores }
    }

    fn score(&self, algorithm: &str, scenario: &str) -> f64 {
        let key = (algorithm.to_owned(), scenario.to_owned());
        *self.scores.get(&key).unwrap_or_else(|| panic!("{algorithm} did not play {scenario}"))
    }

    /// The geometric mean over all scenarios, and the worst of them.
    fn total_and_worst(&self, algorithm: &str) -> (f64, f64) {
        total_and_worst(self.scenarios.iter().map(|scenario| self.score(algorithm, scenario)))
    }
}

/// The geometric mean, and the worst.
fn total_and_worst(scores: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (geometric_mean(scores.clone()), scores.fold(f64::INFINITY, f64::min))
}

/// Compares the parts of a page, each between `<!-- NAME -->` and `<!-- end -->`, with what they should be.
fn check(page: &str, parts: &[(&str, String)]) {
    let path = docs().join(page);
    let before = fs::read_to_string(&path).unwrap();
    let mut after = before.clone();
    for (part, text) in parts {
        let start = format!("<!-- {part} -->\n");
        let from = after.find(&start).unwrap_or_else(|| panic!("{page}: no part `{part}`")) + start.len();
        let until = from + after[from..].find("<!-- end -->").expect("an end");
        after.replace_range(from..until, &format!("\n{text}\n"));
    }
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, after).unwrap();
    } else {
        let remedy = format!("{WRITE}=1 cargo test -p goodput-cli --test measured");
        assert!(after == before, "docs/{page} is not up to date: run `{remedy}`");
    }
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}
