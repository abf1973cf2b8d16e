//! The page.

use std::fmt::Write;

use crate::{
    contender::{Clock, Kind},
    ours,
    rounds::{Measurements, Times, Updated, Visit},
};

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->";

/// Puts the table in the place of the last one.
pub(crate) fn put_into(page: &str, table: &str) -> Result<String, String> {
    let missing = || format!("benches/README.md has no `{}` and `{END}`", BEGIN.trim());
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

/// Everything that was measured, as Markdown.
pub(crate) fn table(machine: &str, measured: &Measurements) -> String {
    let Measurements { rounds, .. } = measured;
    [
        format!("On {machine}; {rounds} rounds."),
        targets(measured),
        visits(measured),
        threads(measured),
        refusals(measured),
        updates(measured),
    ]
    .join("\n\n")
}

fn targets(measured: &Measurements) -> String {
    let rows = [
        one_thread(measured, ours::GATE_ALONE, "the gate alone", Clock::System),
        one_thread(measured, ours::GATE_ALONE, "the gate alone", Clock::Tsc),
        one_thread(measured, ours::DEFAULT, "with Crest", Clock::System),
        one_thread(measured, ours::DEFAULT, "with Crest", Clock::Tsc),
        contended(measured, ours::GATE_ALONE, "the gate alone", Clock::System),
        contended(measured, ours::GATE_ALONE, "the gate alone", Clock::Tsc),
        contended(measured, ours::DEFAULT, "with Crest", Clock::System),
        contended(measured, ours::DEFAULT, "with Crest", Clock::Tsc),
        against_peers(measured, 1, 2.0),
        against_peers(measured, 2, 4.0),
        refused(measured),
        updated(measured, "`update` with a window of a hundred", 50.0, |updated| Some(&updated.of_hundred)),
        updated(measured, "`update` with a window of one, of those that ask for such", 20.0, |updated| {
            updated.steps_with_each.then_some(&updated.of_one)
        }),
        allocated(measured),
    ];
    let mut text = String::from("| what | wanted | measured | |\n|---|--:|--:|---|\n");
    for Target { what, wanted, measured, is_met, excuse } in rows.into_iter().flatten() {
        let verdict = if is_met { "met" } else { "**missed**" };
        let excuse = excuse.filter(|_| !is_met).unwrap_or_default();
        let _ = writeln!(text, "| {what} | {wanted} | {measured} | {verdict}{excuse} |");
    }
    text.trim_end().into()
}

struct Target {
    what: String,
    wanted: String,
    measured: String,
    is_met: bool,
    /// What to know of it if it is missed.
    excuse: Option<String>,
}

fn one_thread(measured: &Measurements, name: &str, which: &str, clock: Clock) -> Option<Target> {
    let ratio = times_the_floor(measured, gate(measured, name, clock)?, 1)?;
    Some(Target {
        what: format!("acquire and release, observed, one thread: {which}, {}", clock.name()),
        wanted: "≤ 1.30 × floor".into(),
        measured: format!("{ratio:.2} ×"),
        is_met: ratio <= 1.3,
        excuse: None,
    })
}

fn contended(measured: &Measurements, name: &str, which: &str, clock: Clock) -> Option<Target> {
    let gate = gate(measured, name, clock)?;
    let ratios =
        (2..=measured.cores).filter_map(|threads| Some((threads, times_the_floor(measured, gate, threads)?)));
    let (threads, ratio) = ratios.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(Target {
        what: format!(
            "the same, 2 threads and more on one gate: {which}, {}; at worst, {threads}",
            clock.name()
        ),
        wanted: "≤ 1.00 × floor".into(),
        measured: format!("{ratio:.2} ×"),
        is_met: ratio <= 1.0,
        excuse: None,
    })
}

fn against_peers(measured: &Measurements, threads: usize, wanted: f64) -> Option<Target> {
    let gate = default_gate(measured, Clock::Tsc)?.with(threads)?;
    let adaptive = measured.visits.iter().filter(|visit| visit.kind == Kind::Adaptive);
    let (peer, times) = adaptive
        .filter_map(|peer| Some((&peer.name, peer.with(threads)?)))
        .min_by(|(_, one), (_, other)| one.median().total_cmp(&other.median()))?;
    let ratio = times.ratio_to(gate);
    let same_clock = times.ratio_to(default_gate(measured, Clock::System)?.with(threads)?);
    let [floor, same_floor] = [Clock::Tsc, Clock::System].map(|clock| {
        measured.floor(Kind::Floor(clock), threads).map_or(f64::NAN, |floor| times.ratio_to(floor))
    });
    // Where threads do not meet the gate is below the floor, and that says nothing.
    let is_floor_too_slow = ratio < floor && floor < wanted;
    Some(Target {
        what: format!("{threads} {}, next to the fastest adaptive peer ({peer})", plural(threads, "thread")),
        wanted: format!("≥ {wanted:.0} times as fast"),
        measured: format!("{ratio:.1}; on its clock {same_clock:.1}"),
        is_met: ratio >= wanted,
        excuse: is_floor_too_slow
            .then(|| format!(": the floor itself is {floor:.1}; on its clock {same_floor:.1}")),
    })
}

fn refused(measured: &Measurements) -> Option<Target> {
    let ours = measured.refusals.iter().find(|refused| matches!(refused.kind, Kind::Ours(_)))?;
    let median = ours.times.median();
    Some(Target {
        what: "a refusal at the limit".into(),
        wanted: "≤ 2 ns".into(),
        measured: format!("{median:.2} ns"),
        is_met: median <= 2.0,
        excuse: None,
    })
}

fn updated(
    measured: &Measurements,
    what: &str,
    wanted: f64,
    times: fn(&Updated) -> Option<&Times>,
) -> Option<Target> {
    let medians = measured.updates.iter().filter_map(|update| Some((update.name, times(update)?.median())));
    let mut all: Vec<(&str, f64)> = medians.collect();
    all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let above: Vec<String> = all
        .iter()
        .filter(|(_, median)| *median > wanted)
        .map(|(name, median)| format!("{name} {median:.0} ns"))
        .collect();
    let (slowest, most) = all.first()?;
    let count = all.len();
    Some(Target {
        what: what.into(),
        wanted: format!("≤ {wanted:.0} ns"),
        measured: if above.is_empty() {
            format!("all {count}; {slowest} {most:.1} ns")
        } else {
            format!("{} of {count}; not {}", count - above.len(), above.join(", "))
        },
        is_met: above.is_empty(),
        excuse: None,
    })
}

fn allocated(measured: &Measurements) -> Option<Target> {
    let gates = measured.visits.iter().filter(|visit| is_gate(visit));
    let most = gates.map(|visit| visit.allocations).max_by(f64::total_cmp)?;
    Some(Target {
        what: "allocations for an acquire and its release".into(),
        wanted: "0".into(),
        measured: format!("{most:.0}"),
        is_met: most == 0.0,
        excuse: None,
    })
}

/// Alone, in twos and with all cores busy.
fn visits(measured: &Measurements) -> String {
    let mut counts: Vec<usize> =
        [1, 2, measured.cores].into_iter().filter(|&n| n <= measured.cores).collect();
    counts.dedup();
    let mut text = String::from("| admitted and released |");
    for &threads in &counts {
        let _ = write!(text, " {threads} {}, ns | best | × floor |", plural(threads, "thread"));
    }
    text.push_str(" allocations |\n|---|");
    text.push_str(&"--:|--:|--:|".repeat(counts.len()));
    text.push_str("--:|\n");
    for visit in &measured.visits {
        let _ = write!(text, "| {}{} |", visit.name, visit.kind.label());
        for &threads in &counts {
            let Some(times) = visit.with(threads) else { continue };
            let ratio = times_the_floor(measured, visit, threads).unwrap_or(f64::NAN);
            let _ = write!(text, " {:.1} | {:.1} | {ratio:.2} |", times.median(), times.least());
        }
        let _ = writeln!(text, " {:.0} |", visit.allocations);
    }
    text.trim_end().into()
}

/// The gate as it comes, at every number of threads.
fn threads(measured: &Measurements) -> String {
    let mut text = String::from(
        "| threads on one gate | floor, ns | gate, ns | × floor | floor, TSC, ns | gate, TSC, ns | × floor |\n\
         |--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for threads in 1..=measured.cores {
        let _ = write!(text, "| {threads} |");
        for clock in [Clock::System, Clock::Tsc] {
            let gate = default_gate(measured, clock);
            let floor = measured.floor(Kind::Floor(clock), threads);
            let (Some(gate), Some(floor)) = (gate, floor) else { continue };
            let times = gate.with(threads).map_or(f64::NAN, Times::median);
            let ratio = times_the_floor(measured, gate, threads).unwrap_or(f64::NAN);
            let _ = write!(text, " {:.1} | {times:.1} | {ratio:.2} |", floor.median());
        }
        text.push('\n');
    }
    text.trim_end().into()
}

fn refusals(measured: &Measurements) -> String {
    let mut text = String::from("| refused at the limit | ns | best |\n|---|--:|--:|\n");
    for refused in &measured.refusals {
        let (name, times) = (&refused.name, &refused.times);
        let _ = writeln!(text, "| {name} | {:.2} | {:.2} |", times.median(), times.least());
    }
    text.trim_end().into()
}

fn updates(measured: &Measurements) -> String {
    let mut text = String::from(
        "| `update` | window of one, ns | best | window of a hundred, ns | best |\n|---|--:|--:|--:|--:|\n",
    );
    for Updated { name, of_one, of_hundred, .. } in &measured.updates {
        let _ = writeln!(
            text,
            "| {name} | {:.1} | {:.1} | {:.1} | {:.1} |",
            of_one.median(),
            of_one.least(),
            of_hundred.median(),
            of_hundred.least()
        );
    }
    text.trim_end().into()
}

fn times_the_floor(measured: &Measurements, visit: &Visit, threads: usize) -> Option<f64> {
    Some(visit.with(threads)?.ratio_to(measured.floor(visit.kind, threads)?))
}

fn default_gate(measured: &Measurements, clock: Clock) -> Option<&Visit> {
    gate(measured, ours::DEFAULT, clock)
}

fn gate<'a>(measured: &'a Measurements, name: &str, clock: Clock) -> Option<&'a Visit> {
    measured.visits.iter().find(|visit| visit.kind == Kind::Ours(clock) && visit.name == name)
}

fn is_gate(visit: &Visit) -> bool {
    matches!(visit.kind, Kind::Ours(_))
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.into() } else { format!("{word}s") }
}

impl Kind {
    /// Peers measure by the system's clock.
    pub(crate) const fn clock(self) -> Clock {
        match self {
            Self::Floor(clock) | Self::Ours(clock) => clock,
            Self::Adaptive | Self::Fixed => Clock::System,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Floor(_) => "",
            Self::Ours(Clock::System) => ", system clock",
            Self::Ours(Clock::Tsc) => ", TSC",
            Self::Adaptive => "",
            Self::Fixed => " (a limit that stays, nothing measured)",
        }
    }
}

impl Clock {
    const fn name(self) -> &'static str {
        match self {
            Self::System => "system clock",
            Self::Tsc => "TSC",
        }
    }
}
