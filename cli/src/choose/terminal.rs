//! What a tired person reads.

use comfy_table::{CellAlignment, Table, presets};

use super::{
    entrants::{Kind, spoken},
    question::Question,
    ranking::{Ranking, Standing},
    tournament::{Figures, Tournament},
};
use crate::plot::words::{percent, seconds};

/// Algorithms in the table; the page has all.
const ROWS: usize = 8;
/// Worlds that fit beside each other.
const WORLDS: usize = 3;
/// Letters of a limiter's name that do; the settings of longer ones take lines of their own.
const NAME: usize = 22;

/// The best algorithms, and among them always what no limit, the knee as a limit and the best fixed limit do. What does
/// not fit beside each other follows below.
pub(crate) fn tables(
    question: &Question,
    tournament: &Tournament<'_>,
    ranking: &Ranking,
    pick: usize,
) -> Vec<String> {
    let knee = format!("fixed:{}", question.knee_for_each());
    let best_fixed = ranking.best_of(|kind| kind == Kind::Fixed).map(|standing| standing.index);
    let mut algorithms = 0;
    let shown = ranking.standings.iter().filter(|standing| {
        algorithms += usize::from(standing.kind >= Kind::Defaults);
        let always = standing.kind == Kind::Unlimited
            || standing.name == knee
            || Some(standing.index) == best_fixed
            || standing.index == pick;
        always || (standing.kind >= Kind::Defaults && algorithms <= ROWS)
    });
    let shown: Vec<&Standing> = shown.collect();
    let worlds: Vec<&str> = tournament.worlds.iter().map(|world| world.name.as_str()).collect();
    let parts = worlds.chunks(WORLDS).enumerate();
    parts.map(|(part, names)| table(&shown, names, part * WORLDS)).collect()
}

/// The limiters in the worlds of these names, the first of which is the `first` of all; the first table has the scores.
fn table(shown: &[&Standing], names: &[&str], first: usize) -> String {
    let with_score = first == 0;
    let column = with_score.then(|| "score\n\u{b1} 95 %\u{2007}".to_owned());
    let worlds = names.iter().map(|name| format!("{}\nin time, p99", name.replace(", ", ",\n")));
    let mut table = Table::new();
    let header = std::iter::once("limiter".to_owned()).chain(column).chain(worlds);
    table.load_style(presets::NOTHING).set_header(header);
    for standing in shown {
        let own = with_score.then(|| score(standing));
        let worlds = standing.worlds.iter().skip(first).take(names.len()).map(|world| {
            let [in_time, p99] = figures(world);
            format!("{in_time} {p99:>7}")
        });
        table.add_row(std::iter::once(name(standing)).chain(own).chain(worlds));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    // Each cell has a space on either side; that at the edge is of no use.
    table.lines().map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end())).collect()
}

fn name(standing: &Standing) -> String {
    let name = spoken(&standing.name);
    if name.chars().count() > NAME { name.replacen(" (", "\n (", 1).replace(", ", ",\n  ") } else { name }
}

/// The score, half of its interval, and a star if it is as good as the best.
pub(crate) fn score(standing: &Standing) -> String {
    let total = standing.total;
    // A space as wide as a digit, since those of a page end no line.
    let star = if standing.as_good { '*' } else { '\u{2007}' };
    format!("{:.2} \u{b1}{:.2}{star}", total.value, (total.high - total.low) / 2.0)
}

/// Answers in time and p99.
pub(crate) fn figures(figures: &Figures) -> [String; 2] {
    let p99 = if figures.p99_s > 0.0 { seconds(figures.p99_s) } else { "\u{2013}".to_owned() };
    [percent(figures.in_time), p99]
}
