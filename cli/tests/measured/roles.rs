//! `docs/crest.md`: what it is worth to tell Crest whether it has the service to itself.

use std::fmt::Write;

use goodput_simulator::{Scenario, random_scenario, suite};

use super::{Measured, check, total_and_worst};

/// Contestants, and what they are told.
const TOLD: [(&str, &str); 3] =
    [("crest", "nothing"), ("crest:role=alone", "`alone`"), ("crest:role=shared", "`shared`")];

#[test]
fn the_table_of_roles_shows_what_was_measured() {
    let suite = Roles::of("roles-suite", &suite().unwrap());
    let random: Vec<_> = (0..40).map(|number| random_scenario(2019, number).unwrap()).collect();
    let random = Roles::of("roles-random-2019", &random);
    let mut table = String::from(
        "| Crest is told | suite: alone | worst | shared | worst | random: alone | worst | shared | worst |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for (name, told) in TOLD {
        let _ = write!(table, "| {told} |");
        for roles in [&suite, &random] {
            for scenarios in [&roles.alone, &roles.shared] {
                let (total, worst) = total_and_worst(roles.scores(name, scenarios));
                let _ = write!(table, " {total:.3} | {worst:.3} |");
            }
        }
        table.push('\n');
    }
    let told_right = [&suite, &random].map(|roles| {
        let alone = roles.scores("crest:role=alone", &roles.alone);
        let (total, worst) = total_and_worst(alone.chain(roles.scores("crest:role=shared", &roles.shared)));
        format!("{total:.3} ({worst:.3})")
    });
    let _ = writeln!(
        table,
        "\nEverywhere told what is so, it has {} in the whole suite and {} in all random ones, in brackets the worst.",
        told_right[0], told_right[1]
    );
    check("crest.md", &[("roles", table)]);
}

/// Scores, and in which scenarios the gate has the service to itself.
struct Roles {
    measured: Measured,
    alone: Vec<String>,
    shared: Vec<String>,
}

impl Roles {
    fn of(file: &str, scenarios: &[Scenario]) -> Self {
        let measured = Measured::read(file);
        assert_eq!(measured.scenarios.len(), scenarios.len(), "{file}.csv has other scenarios");
        let (shared, alone) =
            scenarios.iter().partition::<Vec<_>, _>(|scenario| scenario.door.clients.is_some());
        let names =
            |scenarios: Vec<&Scenario>| scenarios.iter().map(|scenario| scenario.name.clone()).collect();
        Self { measured, alone: names(alone), shared: names(shared) }
    }

    fn scores(&self, name: &str, scenarios: &[String]) -> impl Iterator<Item = f64> + Clone {
        scenarios.iter().map(|scenario| self.measured.score(name, scenario))
    }
}
