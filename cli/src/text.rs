//! Sentences in lines that a terminal holds.

/// A text whose numbers are not parted from their units, or from what they count, when it is broken into lines.
pub(crate) fn together(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, word) in text.split(' ').enumerate() {
        let unit = ["%", "s", "ms", "µs", "requests", "lines"]
            .contains(&word.trim_end_matches([')', '.', ',', ';', ':']));
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

/// A text in lines of at most eighty letters, those after the first indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    const WIDTH: usize = 80;
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
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  limit")), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(together("within 300 ms (4 %), 2 limits"), "within 300\u{a0}ms (4\u{a0}%), 2 limits");
        assert_eq!(wrapped(&format!("{} 45 %", "x".repeat(76)), 0), format!("{}\n45 %", "x".repeat(76)));
    }
}
