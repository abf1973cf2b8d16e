//! The config file.

use std::{borrow::Cow, fmt};

use goodput_algorithms::{Algorithm, InvalidSettings};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::GateConfig;

impl GateConfig {
    /// Reads a config file.
    ///
    /// ```
    /// use goodput::GateConfig;
    ///
    /// let config = GateConfig::from_toml("name = \"search\"\n[limiter]\nalgorithm = \"aimd\"\n")?;
    /// let gate = config.builder()?.build();
    /// assert_eq!(gate.limit(), 20);
    ///
    /// let error = GateConfig::from_toml("[limiter]\nalgorithm = \"aimd\"\nmax = 5\n").unwrap_err();
    /// assert_eq!(error.to_string(), "line 3: `limiter.max` must be at least `min` (20), not 5");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] says what is wrong, in which line and field, and what would be right. A file that is read
    /// without one makes a gate.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::of_syntax(&error, text))?;
        match config.builder() {
            Ok(_) => Ok(config),
            Err(error) => Err(ConfigError::of_settings(error, text)),
        }
    }

    /// Writes a config file, with every field of every table that is in use.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a number is too large for the format, whose integers have 64 bits with a sign.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|error| ConfigError {
            line: None,
            field: None,
            problem: Cow::Owned(error.to_string()),
        })
    }
}

/// What is wrong with a config file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct ConfigError {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The field with the tables around it, as `limiter.max`, if it is known.
    pub field: Option<Cow<'static, str>>,
    /// What is wrong, and what would be right.
    pub problem: Cow<'static, str>,
}

impl ConfigError {
    fn of_syntax(error: &toml::de::Error, text: &str) -> Self {
        let mut problem = error.message().trim_end().replace('\n', "; ");
        if problem.contains("a duration") {
            problem.push_str("; a time is a text with its unit, as \"20ms\" or \"1m 30s\"");
        }
        let place = error
            .span()
            .map(|span| Place::around(text, span.start).at_field_of(&problem, text).within_limiter(text));
        let Some(Place { path, offset }) = place else {
            return Self { line: None, field: None, problem: Cow::Owned(problem) };
        };
        let line = Some(line_of(text, offset));
        if path.is_empty() {
            return Self { line, field: None, problem: Cow::Owned(problem) };
        }
        Self { line, problem: Cow::Owned(format!("`{path}`: {problem}")), field: Some(Cow::Owned(path)) }
    }

    pub(crate) fn of_settings(error: InvalidSettings, text: &str) -> Self {
        let offset = Place::of(text, &error.field).offset;
        let problem = Cow::Owned(error.to_string());
        Self { line: Some(line_of(text, offset)), field: Some(error.field), problem }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.problem)
    }
}

/// A field in a text.
struct Place {
    /// With the tables around it.
    path: String,
    offset: usize,
}

impl Place {
    /// The innermost field whose name or value is at `offset`.
    fn around(text: &str, offset: usize) -> Self {
        let path = DeTable::parse(text).ok().and_then(|document| path_at(document.get_ref(), offset));
        path.map_or(Self { path: String::new(), offset }, |path| Self::of(text, &path))
    }

    /// The field of that path, or the innermost table around it that is written down.
    fn of(text: &str, path: &str) -> Self {
        let mut place = Self { path: String::new(), offset: 0 };
        let Ok(document) = DeTable::parse(text) else { return place };
        let mut table = document.get_ref();
        for name in path.split('.') {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
            place.enter(name, key.span().start);
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        place
    }

    /// The field in this table that a message names, if it does: "unknown field `x`".
    fn at_field_of(self, message: &str, text: &str) -> Self {
        let name = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let Some(name) = name.filter(|name| !self.path.ends_with(name)) else { return self };
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let field = Self::of(text, &path);
        if field.path == path { field } else { self }
    }

    /// Which field of the limiter it is that an error is about. serde reads a table that says by a tag what it is as a
    /// whole, and forgets where its fields stood; so the one is looked for without which there is another error or none.
    fn within_limiter(self, text: &str) -> Self {
        if self.path != "limiter" {
            return self;
        }
        let Ok(mut document) = text.parse::<toml::Table>() else { return self };
        let Some(toml::Value::Table(limiter)) = document.remove("limiter") else { return self };
        let mut path = Vec::new();
        while let Some(name) = culprit(&limiter, &path) {
            path.push(name);
        }
        if path.is_empty() { self } else { Self::of(text, &format!("limiter.{}", path.join("."))) }
    }

    fn enter(&mut self, name: &str, offset: usize) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.offset = offset;
    }
}

/// The field of the table at `path` in `limiter` that its error is about. The tag is suspected last: without it nothing
/// is right.
fn culprit(limiter: &toml::Table, path: &[String]) -> Option<String> {
    let fault =
        |limiter: toml::Table| Algorithm::deserialize(limiter).err().map(|error| error.message().to_owned());
    let as_it_is = fault(limiter.clone());
    let names = table_at(&mut limiter.clone(), path)?.keys().cloned().collect::<Vec<_>>();
    let (tag, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == "algorithm");
    others.into_iter().chain(tag).find(|name| {
        let mut without = limiter.clone();
        table_at(&mut without, path).is_some_and(|table| table.remove(name).is_some())
            && fault(without) != as_it_is
    })
}

fn table_at<'table>(table: &'table mut toml::Table, path: &[String]) -> Option<&'table mut toml::Table> {
    path.iter().try_fold(table, |table, name| table.get_mut(name)?.as_table_mut())
}

/// The span of a table is that of its header alone, so a field is looked for in all of them.
fn path_at(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(inner) => path_at(inner, offset),
            _ => None,
        };
        let name = key.get_ref();
        match inner {
            Some(inner) => Some(format!("{name}.{inner}")),
            None if key.span().contains(&offset) || value.span().contains(&offset) => Some(name.to_string()),
            None => None,
        }
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
