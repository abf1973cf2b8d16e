use std::{fmt, path::PathBuf};

use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// A scenario that cannot be played, where it says so, and what would be right.
#[derive(Clone, Debug, Error, PartialEq)]
pub struct ScenarioError {
    /// The file, if it came from one.
    pub file: Option<PathBuf>,
    /// The line, counted from 1, if it came from a text.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl ScenarioError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { file: None, line: None, problem: problem.into() }
    }

    pub(crate) fn in_file(mut self, file: PathBuf) -> Self {
        self.file = Some(file);
        self
    }

    pub(crate) fn of_toml(error: &toml::de::Error, text: &str) -> Self {
        let mut problem = error.message().trim_end().replace('\n', "; ");
        if problem.contains("a duration") {
            problem.push_str("; a time is a text with its unit, as \"20ms\" or \"1m 30s\"");
        }
        Self { file: None, line: error.span().map(|span| line_of(text, span.start)), problem }
    }

    pub(super) fn of_contradiction(contradiction: Contradiction, text: &str) -> Self {
        Self {
            file: None,
            line: line_of_field(text, &contradiction.field),
            problem: contradiction.to_string(),
        }
    }
}

impl From<Contradiction> for ScenarioError {
    fn from(contradiction: Contradiction) -> Self {
        Self::new(contradiction.to_string())
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.problem)
    }
}

/// A field that contradicts another, or that cannot hold.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{field}` {problem}")]
pub struct Contradiction {
    /// Where, as `service.pool.workers` or `clients[1].open`.
    pub field: String,
    /// What is wrong with it and what would be right, in words that continue its name.
    pub problem: String,
}

impl Contradiction {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// The line of the field, or of the innermost table around it that is written down.
fn line_of_field(text: &str, field: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut offset = None;
    let mut names = field.split('.');
    let (name, index) = split_index(names.next()?);
    let mut current = enter(document.get_ref(), name, index, &mut offset);
    for name in names {
        let (name, index) = split_index(name);
        current = match current {
            Some(DeValue::Table(table)) => enter(table, name, index, &mut offset),
            _ => break,
        };
    }
    offset.map(|offset| line_of(text, offset))
}

fn enter<'a, 'i>(
    table: &'a DeTable<'i>,
    name: &str,
    index: Option<usize>,
    offset: &mut Option<usize>,
) -> Option<&'a DeValue<'i>> {
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    *offset = Some(key.span().start);
    match (value.get_ref(), index) {
        (DeValue::Array(items), Some(index)) => {
            let item = items.get(index)?;
            *offset = Some(item.span().start);
            Some(item.get_ref())
        }
        (value, _) => Some(value),
    }
}

/// `clients[1]` is `clients` and 1.
fn split_index(name: &str) -> (&str, Option<usize>) {
    name.strip_suffix(']')
        .and_then(|name| name.split_once('['))
        .and_then(|(name, index)| Some((name, Some(index.parse().ok()?))))
        .unwrap_or((name, None))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
