//! The config file.

use std::{borrow::Cow, fmt};

use goodput_algorithms::InvalidSettings;
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
        let place = error.span().map(|span| Place::around(text, span.start).at_field_of(&problem, text));
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
        let mut place = Self { path: String::new(), offset };
        let Ok(document) = DeTable::parse(text) else { return place };
        let mut table = document.get_ref();
        while let Some((key, value)) =
            table.iter().find(|(key, value)| key.span().contains(&offset) || value.span().contains(&offset))
        {
            place.enter(key.get_ref(), key.span().start);
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        place
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

    fn enter(&mut self, name: &str, offset: usize) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.offset = offset;
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
