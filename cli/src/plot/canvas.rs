//! Paper, pens and lettering: SVG that looks the same on every machine and well on light and dark ground.

use std::fmt::Write;

use svg::node::element::{Description, Element, Group, Path, Rectangle, Style, Title};
use svg::{Document, Node};

use super::colours::{Colour, colour_of};

/// How wide pictures are, in pixels: as wide as a page of text.
pub(super) const WIDTH: f64 = 840.0;

/// How the parts of a picture look, on light ground.
const LIGHT: &str = "\
.paper{fill:#fff;stroke:#d0d7de}
.panel{fill:#f6f8fa}
.over{fill:#ebe7df}
.away{fill:#cfd5dc}
text{font:11px system-ui,-apple-system,\"Segoe UI\",\"Noto Sans\",Helvetica,Arial,sans-serif;fill:#59636e}
.title{font-size:15px;font-weight:600;fill:#1f2328}
.row{font-size:12px;font-weight:600;fill:#1f2328}
.name{font-size:13px;font-weight:600}
.long{font-size:10.5px}
.small{font-size:10px}
.figure{fill:#1f2328}
.grid,.rule,.capacity,.offered,.flight,.deadline,.need{fill:none}
.grid{stroke:#d1d9e0;stroke-width:.6}
.rule{stroke:#8c959f;stroke-width:.8}
.band{fill:#f2b705;fill-opacity:.38}
.flight{stroke:#59636e;stroke-width:.9}
.offered{stroke:#1f2328;stroke-width:1}
.capacity,.deadline,.need{stroke:#1f2328;stroke-width:1;stroke-dasharray:3 2}
.vain{fill:#8c959f;fill-opacity:.55}
.turned{fill:#d55e00;fill-opacity:.24}
text.name,rect.swatch{stroke:none}
text.halo{fill:#f6f8fa;stroke:#f6f8fa;stroke-width:3px;stroke-linejoin:round}
text.word{stroke:none}
path.line{fill:none;stroke-width:1.7;stroke-linejoin:round}
path.thin{fill:none;stroke-width:1;stroke-linejoin:round}
path.area,rect.area{stroke:none;fill-opacity:.78}
path.spread,rect.spread{stroke:none;fill-opacity:.3}
";

/// What is different on dark ground.
const DARK: &str = "\
.paper{fill:#0d1117;stroke:#3d444d}
.panel{fill:#161b22}
.over{fill:#2d2a26}
.away{fill:#343b44}
text{fill:#9198a1}
.title,.row,.figure{fill:#f0f6fc}
.grid{stroke:#30363d}
.rule{stroke:#656c76}
.band{fill:#f2c94c;fill-opacity:.4}
.flight{stroke:#9198a1}
.offered{stroke:#f0f6fc}
.capacity,.deadline,.need{stroke:#f0f6fc}
.vain{fill:#9198a1;fill-opacity:.45}
.turned{fill:#e8843c;fill-opacity:.3}
text.halo{fill:#161b22;stroke:#161b22}
";

/// Where a text is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under way.
#[derive(Debug)]
pub(super) struct Canvas {
    parts: Group,
    names: Vec<String>,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Self { parts: Group::new(), names: Vec::new() }
    }

    /// The class under which lines and areas of an algorithm are drawn.
    pub(super) fn pen(&mut self, name: &str) -> String {
        let known = self.names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("k{index}")
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        // Not `element::Text`, which puts line breaks around the words.
        let mut element = Element::new("text");
        element.append(svg::node::Text::new(text));
        element.assign("x", tenths(x));
        element.assign("y", tenths(y));
        if !class.is_empty() {
            element.assign("class", class);
        }
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => element.assign("text-anchor", "middle"),
            Anchor::End => element.assign("text-anchor", "end"),
        }
        self.parts.append(element);
    }

    pub(super) fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        if width <= 0.0 || height <= 0.0 {
            return;
        }
        let element = Rectangle::new().set("class", class);
        let element = element.set("x", tenths(x)).set("y", tenths(y));
        self.parts.append(element.set("width", tenths(width)).set("height", tenths(height)));
    }

    /// A straight line.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.line(class, &[Some(from), Some(to)]);
    }

    /// A line through points; `None` lifts the pen.
    pub(super) fn line(&mut self, class: &str, points: &[Option<(f64, f64)>]) {
        let mut data = String::new();
        for stroke in points.split(Option::is_none) {
            trail(&mut data, &stroke.iter().copied().flatten().collect::<Vec<_>>());
        }
        self.path(class, data);
    }

    /// What lies between two lines over the same points of time; `None` in either interrupts it.
    pub(super) fn between(
        &mut self,
        class: &str,
        upper: &[Option<(f64, f64)>],
        lower: &[Option<(f64, f64)>],
    ) {
        let mut data = String::new();
        let both: Vec<_> = upper.iter().zip(lower).map(|(&upper, &lower)| upper.zip(lower)).collect();
        for stroke in both.split(Option::is_none).filter(|stroke| stroke.len() > 1) {
            let there = stroke.iter().flatten().map(|&(upper, _)| upper);
            let back = stroke.iter().rev().flatten().map(|&(_, lower)| lower);
            trail(&mut data, &there.chain(back).collect::<Vec<_>>());
            data.push('Z');
        }
        self.path(class, data);
    }

    fn path(&mut self, class: &str, data: String) {
        if !data.is_empty() {
            self.parts.append(Path::new().set("class", class).set("d", data));
        }
    }

    /// The picture as a file.
    pub(super) fn finish(self, height: f64, title: &str, description: &str) -> String {
        let (mut light, mut dark) = (LIGHT.to_owned(), DARK.to_owned());
        for (index, name) in self.names.iter().enumerate() {
            let Colour { on_light, on_dark } = colour_of(name);
            for (style, colour) in [(&mut light, on_light), (&mut dark, on_dark)] {
                // Writing to a text cannot fail.
                let _ = writeln!(style, ".k{index}{{fill:{colour};stroke:{colour}}}");
            }
        }
        let style = format!("\n{light}@media(prefers-color-scheme:dark){{\n{dark}}}\n");
        let paper = Rectangle::new().set("class", "paper").set("x", "0.5").set("y", "0.5").set("rx", 6);
        let paper = paper.set("width", tenths(WIDTH - 1.0)).set("height", tenths(height - 1.0));
        let mut document = Document::new()
            .set("viewBox", format!("0 0 {} {}", tenths(WIDTH), tenths(height)))
            .set("width", tenths(WIDTH))
            .set("height", tenths(height))
            .set("role", "img")
            .add(Title::new(title))
            .add(Description::new().add(svg::node::Text::new(description)))
            .add(Style::new(style))
            .add(paper);
        for part in Element::from(self.parts).get_children().iter() {
            document.append(part.clone());
        }
        format!("{document}\n")
    }
}

/// Pixels to the nearest tenth, in as few characters as it takes.
fn tenths(pixels: f64) -> String {
    in_tenths(round(pixels))
}

fn round(pixels: f64) -> i64 {
    libm::round(pixels * 10.0) as i64
}

fn in_tenths(tenths: i64) -> String {
    let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    match (size / 10, size % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, part) => format!("{sign}.{part}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

/// Path data through points, with steps from each to the next.
fn trail(data: &mut String, points: &[(f64, f64)]) {
    let rounded: Vec<_> = points.iter().map(|&(x, y)| (round(x), round(y))).collect();
    let Some((&first, rest)) = rounded.split_first() else { return };
    let _ = write!(data, "M{} {}", in_tenths(first.0), in_tenths(first.1));
    let mut last = first;
    for (index, &point) in rest.iter().enumerate() {
        let goes_on = |next: &(i64, i64)| {
            last.1 == point.1 && next.1 == point.1 && last.0 <= point.0 && point.0 <= next.0
        };
        if rest.get(index + 1).is_some_and(goes_on) {
            continue;
        }
        let (right, down) = (point.0 - last.0, point.1 - last.1);
        let _ = match (right, down) {
            (0, 0) => Ok(()),
            (right, 0) => write!(data, "h{}", in_tenths(right)),
            (0, down) => write!(data, "v{}", in_tenths(down)),
            (right, down) => {
                let down = in_tenths(down);
                let space = if down.starts_with('-') { "" } else { " " };
                write!(data, "l{}{space}{down}", in_tenths(right))
            }
        };
        last = point;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_takes_short_steps_and_skips_points_on_a_level() {
        let mut data = String::new();
        trail(&mut data, &[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (3.0, 1.5), (4.04, 0.5), (4.04, 0.5)]);
        assert_eq!(data, "M1 2h2v-.5l1-1");
    }

    #[test]
    fn a_level_that_goes_back_is_drawn_there_and_back() {
        let mut data = String::new();
        trail(&mut data, &[(0.0, 0.0), (5.0, 0.0), (5.0, 3.0), (0.0, 3.0)]);
        assert_eq!(data, "M0 0h5v3h-5");
    }

    #[test]
    fn names_are_written_so_that_a_reader_of_xml_accepts_them() {
        let mut canvas = Canvas::new();
        canvas.text(1.0, 2.0, "", Anchor::End, "a < b & \"c\"");
        let file = canvas.finish(10.0, "t", "d");
        assert!(file.contains(r#"<text text-anchor="end" x="1" y="2">"#), "{file}");
        assert!(file.contains("a &lt; b &amp; \"c\""), "{file}");
    }
}
