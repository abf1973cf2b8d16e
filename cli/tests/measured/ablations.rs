//! `docs/crest.md`: what each part of Crest is worth.

use std::fmt::Write;

use goodput::algorithms::Part;

use super::{Measured, check};

/// All parts, and what they do.
const PARTS: [(Part, &str); 14] = [
    (Part::Dips, "dips that measure the baseline"),
    (Part::SecondDip, "believing a higher dip only when a second one agrees"),
    (Part::Checks, "checking a sudden rise by an experiment"),
    (Part::Cuts, "waiting for a dip when cuts do not help"),
    (Part::Together, "growing only right after a dip where few are worked on"),
    (Part::Climbs, "climbing anew after growing three times"),
    (Part::LongSteps, "longer steps where much more is wanted"),
    (Part::EarlyStop, "stopping an obvious overshoot early"),
    (Part::Overloads, "halving when most answers are late"),
    (Part::FirstStep, "a first step as long as what is wanted asks for"),
    (Part::Lately, "dipping along where the limit was felt lately"),
    (Part::Slower, "dipping more often while slower than usual"),
    (Part::Faster, "a deep dip after answers came faster"),
    (Part::Pauses, "recognising pauses"),
];

#[test]
fn the_table_of_ablations_shows_what_was_measured() {
    let measured = ["ablations-suite", "ablations-random-1"].map(Measured::read);
    let mut table =
        String::from("| Crest | suite | worst | random | worst |\n| --- | --: | --: | --: | --: |\n");
    let mut row = |name: &str, label: &str| {
        let figures = measured.each_ref().map(|measured| measured.total_and_worst(name));
        let [(suite, worst), (random, worst_random)] = figures;
        let _ = writeln!(table, "| {label} | {suite:.3} | {worst:.3} | {random:.3} | {worst_random:.3} |");
    };
    row("crest", "**whole**");
    for (part, what) in PARTS {
        let name = serde_json::to_value(part).unwrap();
        row(&format!("crest:without={}", name.as_str().unwrap()), &format!("without {what}"));
    }
    check("crest.md", &[("ablations", table)]);
}
