//! What a tired person reads.

use comfy_table::{CellAlignment, Table, presets};

use super::{
    entrants::{Kind, spoken},
    question::Question,
    ranking::{Ranking, Standing},
    tournament::Tournament,
};
use crate::plot::words::{percent, seconds};

/// Algorithms in the table; the page has all.
const ROWS: usize = 8;

/// The columns, in two lines each: the limiter, its score and whether that is as good as the best; then, for each world,
/// answers in time and p99.
pub(crate) fn header(tournament: &Tournament<'_>) -> Vec<[String; 2]> {
    let first = [["", "limiter"], ["", "score"], ["", "95 %"], ["as good as", "the best"]];
    let worlds = tournament.worlds.iter().flat_map(|world| [[world.name.as_str(), "in time"], ["", "p99"]]);
    first.into_iter().chain(worlds).map(|lines| lines.map(str::to_owned)).collect()
}

/// A row of figures.
pub(crate) fn row(standing: &Standing) -> Vec<String> {
    let mut row = vec![
        spoken(&standing.name),
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
    let header = header(tournament).into_iter().map(|[above, name]| format!("{above}\n{name}"));
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    for standing in shown {
        table.add_row(row(standing));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A text whose numbers are not parted from their units when it is broken into lines.
pub(crate) fn together(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, word) in text.split(' ').enumerate() {
        let unit = ["%", "s", "ms", "µs"].contains(&word.trim_end_matches([')', '.', ',', ';', ':']));
        let joined = unit && out.ends_with(|letter: char| letter.is_ascii_digit());
        out.push_str(match (index, joined) {
            (0, _) => "",
            (_, true) => NO_BREAK,
            (_, false) => " ",
        });
        out.push_str(word);
    }
    out
}

/// A space that is no place to break.
const NO_BREAK: &str = "\u{a0}";

/// A text in lines of at most a hundred letters, those after the first indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    const WIDTH: usize = 100;
    let text = together(text);
    let words = text.trim_start();
    let mut out = text[..text.len() - words.len()].to_owned();
    let mut width = out.len();
    for (index, word) in words.split(' ').enumerate() {
        let letters = word.chars().count();
        if index > 0 && width + 1 + letters > WIDTH {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else if index > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(&word.replace(NO_BREAK, " "));
        width += letters;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_broken_between_its_words() {
        let text = wrapped(&format!(" {}", "limit ".repeat(40).trim_end()), 2);
        assert!(text.starts_with(" limit "));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  limit")), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(together("within 300 ms (4 %), 2 limits"), "within 300\u{a0}ms (4\u{a0}%), 2 limits");
        assert_eq!(wrapped(&format!("{} 45 %", "x".repeat(96)), 0), format!("{}\n45 %", "x".repeat(96)));
    }
}
