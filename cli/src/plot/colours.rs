//! One colour for each algorithm, everywhere.

/// A colour on light and on dark ground.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Colour {
    pub(super) on_light: &'static str,
    pub(super) on_dark: &'static str,
}

/// Hues of Okabe and Ito's palette, which people with any common colour vision tell apart, in shades that stand out
/// from white and from near black, and between them further shades for the other algorithms.
/// Source: M. Okabe, K. Ito, "Color Universal Design", 2008.
const COLOURS: &[(&str, Colour)] = &[
    ("aimd", of("#c25100", "#f58a42")),
    ("bbr", of("#5a4bb8", "#a99df7")),
    ("brpc", of("#4d5f00", "#b4cb55")),
    ("cinnamon", of("#a03a1e", "#e8876b")),
    ("conjure", of("#2f5d8c", "#86b4e0")),
    ("crest", of("#007a5a", "#2ec4a0")),
    ("dubbo", of("#8c3f66", "#dd8db5")),
    ("envoy", of("#0a7390", "#6fcbe8")),
    ("failsafe", of("#8a2d3a", "#ee8f9b")),
    ("fixed", of("#57606a", "#a3adb8")),
    ("go_zero", of("#38498f", "#93a5ee")),
    ("gradient", of("#8f6000", "#e5b32d")),
    ("gradient2", of("#a8437f", "#e79ac6")),
    ("hill_climbing", of("#7d4a22", "#cf9d72")),
    ("incremental_steps", of("#3f6b53", "#93c9ab")),
    ("kratos", of("#7139a8", "#c191f5")),
    ("none", of("#4a4f55", "#b6bdc5")),
    ("parabola", of("#2d6a77", "#82bfcc")),
    ("pid", of("#b01f5a", "#f57fa8")),
    ("sentinel", of("#5c5a2a", "#c4c184")),
    ("slow_start", of("#6b4b6e", "#c6a3c9")),
    ("vector", of("#6d6a00", "#d0cb45")),
    ("vegas", of("#0b63a8", "#5aaef0")),
    ("windowed", of("#7a4fa0", "#c79be8")),
    ("written", of("#007a5a", "#2ec4a0")),
];

/// What has no colour of its own.
const OTHER: Colour = of("#5b5b5b", "#aaaaaa");

/// The colour of an algorithm, whatever its settings: `vegas:initial=5` and `vegas_win` are as `vegas`.
pub(super) fn colour_of(name: &str) -> Colour {
    let base = name.split(':').next().unwrap_or(name);
    let known = |name: &str| COLOURS.iter().find(|(known, _)| *known == name).map(|&(_, colour)| colour);
    known(base).or_else(|| known(base.split('_').next().unwrap_or(base))).unwrap_or(OTHER)
}

const fn of(on_light: &'static str, on_dark: &'static str) -> Colour {
    Colour { on_light, on_dark }
}

#[cfg(test)]
mod tests {
    use goodput::algorithms::Algorithm;

    use super::*;

    #[test]
    fn every_algorithm_has_a_colour_that_no_other_has() {
        let own: Vec<_> = Algorithm::NAMES.iter().filter(|name| **name != "fixed").collect();
        for (index, name) in own.iter().enumerate() {
            assert_ne!(colour_of(name), OTHER, "{name}");
            assert!(own[..index].iter().all(|other| colour_of(other) != colour_of(name)), "{name}");
        }
    }

    #[test]
    fn colours_stand_out_from_the_paper_by_the_contrast_that_text_needs() {
        // WCAG 2.1: relative luminance, and a contrast of 4.5 for text.
        let luminance = |colour: &str| -> f64 {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let contrast = |a: f64, b: f64| (a.max(b) + 0.05) / (a.min(b) + 0.05);
        for (name, colour) in COLOURS {
            assert!(contrast(luminance(colour.on_light), luminance("#ffffff")) >= 4.5, "{name} on light");
            assert!(contrast(luminance(colour.on_dark), luminance("#0d1117")) >= 4.5, "{name} on dark");
        }
    }
}
