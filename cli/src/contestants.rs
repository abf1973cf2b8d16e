//! Who is compared.

use goodput::algorithms::Algorithm;
use serde::Serialize;
use thiserror::Error;
use toml::{Table, Value};

/// To be fair, no algorithm's bounds decide: its least limit is at most this in a comparison,
const LEAST: i64 = 1;
/// and its greatest at least this.
const GREATEST: i64 = 20_000;

/// An algorithm under the name by which it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contestant {
    /// As in tables.
    pub(crate) name: String,
    /// The algorithm with its settings.
    pub(crate) algorithm: Algorithm,
}

/// Those that ask how busy the processors are, without that gate: every machine counts as busy.
pub(crate) const UNGATED: [&str; 2] = ["go_zero:cpu_threshold=0,least_factor=1", "kratos:cpu_threshold=0"];

/// Everyone: each algorithm with its defaults but for wide bounds, those that wait for busy processors also without that
/// gate, the classic ones in windows of a second, and four constant limits as controls; and if wanted each with its own
/// bounds (`_stock`) where they are narrower.
pub(crate) fn contestants(with_stock: bool) -> Result<Vec<Contestant>, InvalidContestant> {
    let mut everyone = Vec::new();
    for name in Algorithm::NAMES.iter().filter(|&&name| name != "fixed") {
        let (wide, stock) = (Contestant::parse(name)?, Contestant::parse(&format!("{name}_stock"))?);
        let differs = with_stock && wide.algorithm != stock.algorithm;
        everyone.push(wide);
        everyone.extend(differs.then_some(stock));
    }
    let others = ["vegas_win", "gradient_win", "fixed:10", "fixed:50", "fixed:200", "fixed:1000"];
    for name in UNGATED.into_iter().chain(others) {
        everyone.push(Contestant::parse(name)?);
    }
    Ok(everyone)
}

impl Contestant {
    /// Reads what a command line says: a name as in a config file; `fixed:50`; or a name with settings, as
    /// `vegas:initial=50,smoothing=0.5` (values as in a config file, quotation marks around texts may be left out).
    ///
    /// Bounds are widened to 1 and 20,000 where the settings have narrower ones, unless the name ends in `_stock` or
    /// they are given. `vegas_win` and `gradient_win` are those two in [windows](goodput::algorithms::Windowed) of a
    /// second, as `windowed` is for gradient2.
    ///
    /// # Errors
    ///
    /// [`InvalidContestant`] names the algorithm or the setting at fault, and says what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidContestant> {
        Self::parse_with(text, true)
    }

    /// The same without widened bounds.
    ///
    /// # Errors
    ///
    /// Those of [`Contestant::parse`].
    pub(crate) fn parse_stock(text: &str) -> Result<Self, InvalidContestant> {
        Self::parse_with(text, false)
    }

    fn parse_with(text: &str, wide: bool) -> Result<Self, InvalidContestant> {
        let wrong = |problem: String| InvalidContestant { text: text.to_owned(), problem };
        let (name, given) = text.split_once(':').unwrap_or((text, ""));
        let (name, stock) = name.strip_suffix("_stock").map_or((name, false), |name| (name, true));
        let mut settings = match name.strip_suffix("_win") {
            Some(inner) => {
                let mut table = Table::from_iter([("algorithm".into(), "windowed".into())]);
                table.insert("inner".into(), Table::from_iter([("algorithm".into(), inner.into())]).into());
                table
            }
            None => Table::from_iter([("algorithm".into(), name.into())]),
        };
        let plain: Algorithm = Value::Table(settings.clone())
            .try_into()
            .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        if wide && !stock {
            settings = to_table(&plain).map_err(wrong)?;
            widen(&mut settings);
        }
        for assignment in split_outside_brackets(given) {
            assign(&mut settings, name, assignment).map_err(wrong)?;
        }
        let algorithm: Algorithm = Value::Table(settings)
            .try_into()
            .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        algorithm.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name: text.to_owned(), algorithm })
    }

    /// Reads several, with commas between. A piece like `key=value` belongs to the one before it.
    ///
    /// # Errors
    ///
    /// Those of [`Contestant::parse`].
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, InvalidContestant> {
        let mut texts: Vec<String> = Vec::new();
        for piece in split_outside_brackets(text) {
            let continues = piece.split_once('=').is_some_and(|(key, _)| !key.contains(':'));
            match texts.last_mut() {
                Some(last) if continues => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => texts.push(piece.trim().to_owned()),
            }
        }
        texts.iter().map(|text| Self::parse(text)).collect()
    }
}

/// An algorithm that cannot be read.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("algorithm `{text}`: {problem}")]
pub(crate) struct InvalidContestant {
    /// What was read.
    pub(crate) text: String,
    /// What is wrong with it, and what would be right.
    pub(crate) problem: String,
}

fn to_table(settings: &impl Serialize) -> Result<Table, String> {
    Table::try_from(settings).map_err(|error| error.to_string())
}

/// Widens bounds, also of an algorithm within.
fn widen(settings: &mut Table) {
    for (key, value) in settings {
        match (key.as_str(), value) {
            ("min", Value::Integer(min)) => *min = (*min).min(LEAST),
            ("max", Value::Integer(max)) => *max = (*max).max(GREATEST),
            ("inner", Value::Table(inner)) => widen(inner),
            _ => {}
        }
    }
}

/// `key=value`, or for `fixed` the bare limit. A key may be a path, as `windowing.max_window`.
fn assign(settings: &mut Table, name: &str, assignment: &str) -> Result<(), String> {
    let (key, value) = match assignment.split_once('=') {
        Some((key, value)) => (key.trim(), value.trim()),
        None if name == "fixed" => ("limit", assignment.trim()),
        None => return Err(format!("`{assignment}` is not a setting; write name=value")),
    };
    let quoted = || toml::from_str::<Table>(&format!("{key} = {value:?}"));
    let parsed = toml::from_str::<Table>(&format!("{key} = {value}"))
        .or_else(|_| quoted())
        .map_err(|error| error.message().to_owned())?;
    merge(settings, parsed);
    Ok(())
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(new)) if !new.contains_key("algorithm") => {
                merge(inner, new);
            }
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// The pieces between commas that stand outside brackets and quotation marks.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_i32, false, 0);
    let mut pieces = Vec::new();
    for (index, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth <= 0 => {
                pieces.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(contestant: &Contestant) -> Table {
        to_table(&contestant.algorithm).unwrap()
    }

    fn problem(text: &str) -> String {
        Contestant::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn everyone_can_be_read_and_no_two_have_the_same_name() {
        let everyone = contestants(true).unwrap();
        let mut names: Vec<_> = everyone.iter().map(|contestant| contestant.name.as_str()).collect();
        for algorithm in Algorithm::NAMES.iter().filter(|&&name| name != "fixed") {
            assert!(names.contains(algorithm), "{algorithm}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), everyone.len());
        let wide = contestants(false).unwrap();
        assert!(wide.iter().all(|contestant| !contestant.name.ends_with("_stock")));
        assert!(everyone.iter().any(|contestant| contestant.name == "aimd_stock"));
        assert!(wide.iter().all(|contestant| everyone.contains(contestant)));
    }

    #[test]
    fn bounds_are_widened_unless_they_are_given_or_stock() {
        let bounds = |text: &str| {
            let table = table(&Contestant::parse(text).unwrap());
            (table["min"].as_integer().unwrap(), table["max"].as_integer().unwrap())
        };
        assert_eq!(bounds("aimd"), (1, 20_000));
        assert_eq!(bounds("aimd_stock"), (20, 200));
        assert_eq!(bounds("aimd:max=500"), (1, 500));
        let config: Algorithm = toml::from_str("algorithm = \"aimd\"").unwrap();
        assert_eq!(Contestant::parse_stock("aimd").unwrap().algorithm, config);
        let inner = table(&Contestant::parse("vegas_win").unwrap())["inner"].clone();
        assert_eq!(inner["algorithm"].as_str(), Some("vegas"));
        assert_eq!(inner["max"].as_integer(), Some(20_000));
    }

    #[test]
    fn settings_are_read_as_in_a_config_file_and_texts_need_no_quotation_marks() {
        let given = Contestant::parse("aimd:backoff_ratio=0.5,timeout=30ms").unwrap();
        let quoted = Contestant::parse("aimd:backoff_ratio=0.5,timeout=\"30ms\"").unwrap();
        assert_eq!(given.algorithm, quoted.algorithm);
        let table = table(&given);
        assert_eq!(table["backoff_ratio"].as_float(), Some(0.5));
        assert_eq!(table["timeout"].as_str(), Some("30ms"));
        let nested = Contestant::parse("windowed:windowing.min_window=100ms,inner.algorithm=vegas").unwrap();
        let nested = to_table(&nested.algorithm).unwrap();
        assert_eq!(nested["windowing"]["min_window"].as_str(), Some("100ms"));
        assert_eq!(nested["inner"]["algorithm"].as_str(), Some("vegas"));
    }

    #[test]
    fn a_list_is_cut_where_a_new_name_begins() {
        let names = |text: &str| -> Vec<String> {
            Contestant::parse_list(text).unwrap().into_iter().map(|contestant| contestant.name).collect()
        };
        assert_eq!(names("aimd,fixed:50"), ["aimd", "fixed:50"]);
        assert_eq!(names("aimd:max=9,initial=3,vegas"), ["aimd:max=9,initial=3", "vegas"]);
        assert_eq!(
            names("vegas:alpha={ whole_log10_times = 2 },max=90,fixed:1"),
            ["vegas:alpha={ whole_log10_times = 2 },max=90", "fixed:1"]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(problem("amid").contains("unknown variant `amid`, expected one of `aimd`"));
        assert!(problem("aimd:maximum=5").contains("unknown field `maximum`"));
        assert!(problem("aimd:max=0").contains("`max` must be at least `min`"));
        assert!(problem("aimd:max=many").contains("expected usize"), "{}", problem("aimd:max=many"));
        assert!(problem("aimd:5").contains("`5` is not a setting; write name=value"));
        assert!(problem("fixed:0").contains("`limit` must be at least 1"));
        assert!(problem("").contains("unknown variant"));
    }
}
