//! Small multiples: a column for each algorithm, four panels in each over one axis of time.

use std::time::Duration;

use super::{
    canvas::{Anchor, Canvas, WIDTH},
    panels::Frame,
    play::{Column, Played},
    rows::Row,
    scale::Scale,
    words,
};

/// Where panels begin, so that the figures of the axes have room.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const GAP: f64 = 12.0;

/// More columns than this stand in banks below each other.
const COLUMNS: usize = 6;

/// How wide a letter of a column's name is. A name that is wider than its column is written smaller.
const LETTER: f64 = 7.3;

/// The least width of a column, so that its head has room.
const HEAD: f64 = 52.0;

/// Above each row of panels: what it shows.
const ROW_HEAD: f64 = 22.0;

/// Below the last row: the figures of the axis of time.
const FOOT: f64 = 26.0;

/// More stretches of time than this are shaded, but get no number.
const NUMBERED: usize = 6;

/// How many columns stand beside each other.
pub(super) fn columns_of(entrants: usize) -> usize {
    let banks = entrants.div_ceil(COLUMNS).max(1);
    entrants.div_ceil(banks).max(1)
}

/// How wide a column is, in pixels. More steps of time than that cannot be seen.
pub(super) fn column_width(columns: usize) -> f64 {
    (WIDTH - LEFT - RIGHT - GAP * (columns as f64 - 1.0)) / columns as f64
}

/// Draws what was played.
pub(super) fn draw(played: &Played, title: &str) -> String {
    let mut canvas = Canvas::new();
    let columns = columns_of(played.columns.len());
    let width = column_width(columns);
    canvas.text(14.0, 25.0, "title", Anchor::Start, title);
    canvas.text(14.0, 42.0, "", Anchor::Start, &words::subtitle(played));
    let rows = Row::all(played);
    let mut y = 50.0;
    for bank in played.columns.chunks(columns) {
        y = Bank { played, rows: &rows, columns: bank, width, top: y }.draw(&mut canvas);
    }
    let names: Vec<_> = played.columns.iter().map(|column| column.label.as_str()).collect();
    let shown: Vec<_> = rows.iter().map(|row| row.title.as_str()).collect();
    let description =
        format!("{}, over time; columns: {}. {}", shown.join("; "), names.join(", "), played.scenario.about);
    canvas.finish(y + 4.0, title, description.trim_end())
}

/// Columns beside each other.
struct Bank<'a> {
    played: &'a Played,
    rows: &'a [Row],
    columns: &'a [Column],
    width: f64,
    top: f64,
}

impl Bank<'_> {
    /// Draws it, and tells where it ends.
    fn draw(&self, canvas: &mut Canvas) -> f64 {
        let pens: Vec<_> = self.columns.iter().map(|column| canvas.pen(&column.ink)).collect();
        for (index, column) in self.columns.iter().enumerate() {
            self.head(canvas, self.left(index), column, &pens[index]);
        }
        let mut y = self.top + HEAD;
        let numbered = self.played.segments.len() <= NUMBERED
            && self.played.segments.iter().all(|segment| segment.load().is_some());
        if numbered {
            y += 10.0;
            canvas.text(LEFT - 6.0, y, "small", Anchor::End, "load");
            (0..self.columns.len()).for_each(|index| self.loads(canvas, self.left(index), y));
            y += 2.0;
        }
        for row in self.rows {
            row.head(canvas, LEFT, y + 15.0, &pens);
            y += ROW_HEAD;
            for tick in row.scale.ticks(row.apart) {
                let at = y + row.height - row.scale.at(tick);
                canvas.text(LEFT - 6.0, at + 3.5, "", Anchor::End, &(row.number)(tick));
            }
            for (index, column) in self.columns.iter().enumerate() {
                self.panel(canvas, (self.left(index), y), row, column, &pens[index]);
            }
            y += row.height;
        }
        self.foot(canvas, y);
        y + FOOT
    }

    fn left(&self, index: usize) -> f64 {
        LEFT + index as f64 * (self.width + GAP)
    }

    fn time(&self) -> Scale {
        Scale::linear(self.played.scenario.length.as_secs_f64(), self.width)
    }

    fn head(&self, canvas: &mut Canvas, x: f64, column: &Column, pen: &str) {
        let y = self.top + 20.0;
        let long = column.label.len() as f64 * LETTER > self.width;
        let class = if long { format!("name long {pen}") } else { format!("name {pen}") };
        canvas.text(x, y, &class, Anchor::Start, &column.label);
        for (index, figure) in words::head(column).iter().enumerate() {
            canvas.text(x, y + 14.0 + 13.0 * index as f64, "figure", Anchor::Start, figure);
        }
    }

    /// How much is asked in each stretch of time.
    fn loads(&self, canvas: &mut Canvas, x: f64, y: f64) {
        let time = self.time();
        for segment in &self.played.segments {
            let (from, until) = (time.at(segment.from.as_secs_f64()), time.at(segment.until.as_secs_f64()));
            if let Some(load) = segment.load().filter(|_| until - from >= 18.0) {
                let text = format!("{}×", words::short(load));
                canvas.text(x + f64::midpoint(from, until), y, "small", Anchor::Middle, &text);
            }
        }
    }

    fn panel(&self, canvas: &mut Canvas, (x, y): (f64, f64), row: &Row, column: &Column, pen: &str) {
        let time = self.time();
        canvas.rectangle("panel", x, y, self.width, row.height);
        let at = |instant: Duration| x + time.at(instant.as_secs_f64());
        for segment in self.played.segments.iter().filter(|segment| segment.load() > Some(1.0)) {
            let (from, until) = (at(segment.from), at(segment.until));
            canvas.rectangle("over", from, y, until - from, row.height);
        }
        for outage in &self.played.scenario.service.outages {
            let (from, until) = (at(outage.from), at(outage.until));
            canvas.rectangle("away", from, y, until - from, row.height);
        }
        for tick in row.scale.ticks(row.apart) {
            let level = y + row.height - row.scale.at(tick);
            canvas.rule("grid", (x, level), (x + self.width, level));
        }
        if self.played.segments.len() <= NUMBERED {
            for segment in self.played.segments.iter().skip(1) {
                canvas.rule("rule", (at(segment.from), y), (at(segment.from), y + row.height));
            }
        }
        let frame = Frame { played: self.played, time, scale: row.scale, x, y, height: row.height };
        row.panel.draw(canvas, &frame, column, pen);
    }

    fn foot(&self, canvas: &mut Canvas, y: f64) {
        let time = self.time();
        canvas.text(LEFT - 6.0, y + 13.0, "", Anchor::End, "time, s");
        for index in 0..self.columns.len() {
            for tick in time.ticks(26.0) {
                let x = self.left(index) + time.at(tick);
                let anchor = if tick == 0.0 {
                    Anchor::Start
                } else if time.at(tick) > self.width - 8.0 {
                    Anchor::End
                } else {
                    Anchor::Middle
                };
                canvas.text(x, y + 13.0, "", anchor, &words::number(tick));
            }
        }
    }
}
