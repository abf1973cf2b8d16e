use std::fmt;

use serde::{Deserialize, Serialize};

/// How much it matters that a request is served, as in the SRE book ("Handling Overload").
///
/// Greater is more critical.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criticality {
    /// May be refused often: it will be tried again, or nobody minds.
    Sheddable,
    /// Partial unavailability is expected, as of batch work.
    SheddablePlus,
    /// User-visible if refused. What a request without a mark is.
    #[default]
    Critical,
    /// The last to be refused.
    CriticalPlus,
}

impl Criticality {
    /// All four, from the first to be refused to the last.
    pub const ALL: [Self; 4] = [Self::Sheddable, Self::SheddablePlus, Self::Critical, Self::CriticalPlus];

    /// As headers, config files and metric labels write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::SheddablePlus => "sheddable-plus",
            Self::Critical => "critical",
            Self::CriticalPlus => "critical-plus",
        }
    }
}

impl fmt::Display for Criticality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
