//! What a tired person reads.

use comfy_table::{CellAlignment, Table, presets};

use super::{
    entrants::Kind,
    question::Question,
    ranking::{Ranking, Standing},
    tournament::Tournament,
};
use crate::plot::{
    label,
    words::{percent, seconds},
};

/// Algorithms in the table; the page has all.
const ROWS: usize = 8;

/// The columns: the limiter, its score and whether that is as good as the best; then, for each world, answers in time
/// and p99.
pub(crate) fn header(tournament: &Tournament<'_>) -> Vec<String> {
    let worlds =
        tournament.worlds.iter().flat_map(|world| [format!("{}: in time", world.name), "p99".to_owned()]);
    ["limiter", "score", "95 %", "as good as the best"].map(str::to_owned).into_iter().chain(worlds).collect()
}

/// A row of figures.
pub(crate) fn row(standing: &Standing) -> Vec<String> {
    let mut row = vec![
        label(&standing.name),
        format!("{:.2}", standing.total.value),
        format!("{:.2} to {:.2}", standing.total.low, standing.total.high),
        if standing.as_good { "yes" } else { "" }.to_owned(),
    ];
    for figures in &standing.worlds {
        row.push(percent(figures.in_time));
        row.push(if figures.p99_s > 0.0 { seconds(figures.p99_s) } else { "–".to_owned() });
    }
    row
}

/// The best algorithms, and among them always what no limit, the knee as a limit and the best fixed limit do.
pub(crate) fn table(
    question: &Question,
    tournament: &Tournament<'_>,
    ranking: &Ranking,
    pick: usize,
) -> String {
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
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header(tournament));
    for standing in shown {
        table.add_row(row(standing));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
