//! What was worked out before, so that a comparison that was interrupted goes on where it stopped.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use goodput::algorithms::Algorithm;
use goodput_simulator::{Oracle, Scenario, score::Score};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Which folder.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// Where to remember oracles, and what was worked out before an interruption [default: target/goodput beside a
    /// Cargo.toml, else .goodput]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Place {
    pub(crate) fn folder(&self) -> PathBuf {
        let beside_cargo = || if Path::new("Cargo.toml").exists() { "target/goodput" } else { ".goodput" };
        self.cache.clone().unwrap_or_else(|| beside_cargo().into())
    }
}

/// Oracles and scores, each in a file of JSON lines that grows as they are worked out.
///
/// An oracle is found again by the content of its scenario and its seed, and [checked](KnownOracle) by playing it. A
/// score is found again by scenario, seed and algorithm, and only by the very program that worked it out.
#[derive(Debug)]
pub(crate) struct Memory {
    program: String,
    oracles: Lines<KnownOracle>,
    scores: Lines<Score>,
}

/// The limits that were found, and what they came to: if they do not come to the same when they are played again,
/// the world has changed and they are searched for anew.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct KnownOracle {
    limits_ns: Vec<(u64, usize)>,
    good: u64,
    p50_ns: u128,
    p99_ns: u128,
}

impl KnownOracle {
    pub(crate) fn of(oracle: &Oracle) -> Self {
        let total = oracle.summary.total();
        Self {
            // No run is longer than a century.
            limits_ns: oracle.limits.iter().map(|&(at, limit)| (at.as_nanos() as u64, limit)).collect(),
            good: total.counts.good,
            p50_ns: total.latency_quantile(0.5).as_nanos(),
            p99_ns: total.latency_quantile(0.99).as_nanos(),
        }
    }

    pub(crate) fn limits(&self) -> Vec<(Duration, usize)> {
        self.limits_ns.iter().map(|&(at, limit)| (Duration::from_nanos(at), limit)).collect()
    }
}

impl Memory {
    /// Opens or founds the memory in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
        let program = this_program()?;
        Ok(Self {
            oracles: Lines::open(folder.join("oracles.jsonl"), "1")?,
            scores: Lines::open(folder.join("scores.jsonl"), &program)?,
            program,
        })
    }

    /// The key of an oracle.
    pub(crate) fn oracle_key(scenario: &Scenario, seed: u64) -> String {
        key(&(content(scenario), seed))
    }

    /// The key of a score. It names this program, in case another one writes into the same folder meanwhile.
    pub(crate) fn score_key(&self, scenario: &Scenario, seed: u64, algorithm: &Algorithm) -> String {
        key(&(&self.program, content(scenario), seed, algorithm))
    }

    pub(crate) fn oracle(&self, key: &str) -> Option<KnownOracle> {
        self.oracles.find(key)
    }

    pub(crate) fn learn_oracle(&self, key: &str, oracle: &Oracle) -> Result<(), Failure> {
        self.oracles.add(key, KnownOracle::of(oracle))
    }

    pub(crate) fn score(&self, key: &str) -> Option<Score> {
        self.scores.find(key)
    }

    pub(crate) fn learn_score(&self, key: &str, score: Score) -> Result<(), Failure> {
        self.scores.add(key, score)
    }
}

/// All of a scenario that matters to a run.
fn content(scenario: &Scenario) -> Scenario {
    Scenario { name: String::new(), about: String::new(), ..scenario.clone() }
}

/// A key for everything that these values say.
fn key(of: &impl Serialize) -> String {
    // Scenarios and settings hold nothing that JSON could not say.
    hex(&Sha256::digest(serde_json::to_vec(of).unwrap_or_default()))
}

/// Lines of `[key, value]` after a first line that says for which version they hold.
#[derive(Debug)]
struct Lines<T> {
    path: PathBuf,
    known: Mutex<(HashMap<String, T>, File)>,
}

impl<T: Clone + DeserializeOwned + Serialize> Lines<T> {
    fn open(path: PathBuf, version: &str) -> Result<Self, Failure> {
        let header = format!("\"{version}\"");
        let mut known = HashMap::new();
        let mut current = false;
        if let Ok(file) = File::open(&path) {
            let mut lines = BufReader::new(file).lines().map_while(Result::ok);
            current = lines.next().is_some_and(|line| line == header);
            if current {
                // A line that was cut off when the program was killed is as good as none.
                known.extend(lines.filter_map(|line| serde_json::from_str::<(String, T)>(&line).ok()));
            }
        }
        if !current {
            fs::write(&path, format!("{header}\n")).map_err(Failure::file(&path))?;
        }
        let mut file = OpenOptions::new().append(true).open(&path).map_err(Failure::file(&path))?;
        // Ends a line that was cut off.
        file.write_all(b"\n").map_err(Failure::file(&path))?;
        Ok(Self { path, known: Mutex::new((known, file)) })
    }

    fn find(&self, key: &str) -> Option<T> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).0.get(key).cloned()
    }

    fn add(&self, key: &str, value: T) -> Result<(), Failure> {
        let line = format!("{}\n", serde_json::to_string(&(key, &value)).map_err(std::io::Error::from)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.write_all(line.as_bytes()).map_err(Failure::file(&self.path))?;
        known.0.insert(key.to_owned(), value);
        Ok(())
    }
}

/// A name for the very program that runs.
fn this_program() -> Result<String, Failure> {
    let path = std::env::current_exe()?;
    let mut bytes = Vec::new();
    File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(Failure::file(&path))?;
    Ok(hex(&Sha256::digest(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
