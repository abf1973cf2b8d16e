//! What goodput costs next to a floor and to its peers, measured in one run and written into `benches/README.md`.
//!
//! Contenders take turns, a few milliseconds each, round after round, so whatever else the machine does falls on all
//! of them alike. Ratios are taken within a round; what is shown is the median over the rounds.

mod contender;
mod floor;
mod machine;
mod ours;
mod peers;
mod report;
mod rounds;
mod updates;
#[path = "../../../algorithms/benches/windows/mod.rs"]
mod windows;

use std::{error::Error, fs, path::Path};

use crate::{contender::Contender, rounds::Measurements};

fn main() -> Result<(), Box<dyn Error>> {
    let cores = machine::cores();
    let visits: Vec<Contender> =
        [floor::visits(), ours::visits(), peers::visits()].into_iter().flatten().collect();
    let refusals: Vec<Contender> = [ours::refusals(), peers::refusals()].into_iter().flatten().collect();
    let updates = updates::all();

    let measured = Measurements::take(&visits, &refusals, &updates, cores);
    let table = report::table(&machine::describe(), &measured);
    println!("{table}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    fs::write(&page, report::put_into(&fs::read_to_string(&page)?, &table)?)?;
    Ok(())
}
