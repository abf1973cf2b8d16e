//! Who takes part.

use goodput::algorithms::{Algorithm, FixedSettings};
use goodput_simulator::Limits;

use super::question::Question;
use crate::{
    contestants::{Contestant, UNGATED},
    plot::label,
};

/// What a limiter is, the simplest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// No limit.
    Unlimited,
    /// One that never moves.
    Fixed,
    /// An algorithm with its defaults, but for wide bounds.
    Defaults,
    /// An algorithm with settings for this service.
    Tuned,
}

/// One who takes part.
#[derive(Clone, Debug)]
pub(crate) struct Entrant {
    /// As `goodput score` would call it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `None` for no limit.
    pub(crate) algorithm: Option<Algorithm>,
}

/// Fixed limits that are tried, over the knee.
const FIXED: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0];

/// Other settings that pay for some services, by algorithm. Each is tried alone.
const SWEEP: &[(&str, &[&str])] = &[
    ("aimd", &["backoff_ratio=0.7"]),
    ("envoy", &["buffer=0.5", "probe_interval=10s"]),
    ("gradient", &["tolerance=1.3"]),
    ("gradient2", &["tolerance=2.0", "long_window=100"]),
    ("pid", &["target=0.3"]),
    ("windowed", &["inner.tolerance=2.0"]),
];

impl Entrant {
    /// No limit, fixed limits around the knee, and every algorithm.
    pub(crate) fn field(question: &Question) -> Vec<Self> {
        let knee = question.knee_for_each();
        let mut field = vec![Self { name: "none".into(), kind: Kind::Unlimited, algorithm: None }];
        let mut limits = FIXED.map(|factor| libm::round(knee as f64 * factor) as usize).to_vec();
        limits.dedup();
        field.extend(limits.into_iter().map(Self::fixed));
        let names = Algorithm::NAMES.iter().filter(|name| **name != "fixed");
        // A config file feeds nobody the processors' use, so those that ask for it are judged as they are without.
        let asks = |name: &str| UNGATED.iter().any(|ungated| base(ungated) == name);
        field.extend(names.filter(|name| !asks(name)).filter_map(|name| Self::parse(name, Kind::Defaults)));
        field.extend(UNGATED.iter().filter_map(|name| Self::parse(name, Kind::Tuned)));
        // By default it waits for five seconds before it calls anything slow.
        field.extend(Self::parse(&format!("aimd:timeout={}", deadline(question)), Kind::Tuned));
        field
    }

    /// Others of these algorithms' settings: from the knee on, where it is known, and some that pay for some services.
    pub(crate) fn tuned(names: &[String], knee: Option<usize>) -> Vec<Self> {
        let mut tuned = Vec::new();
        for name in names {
            // With settings already, more are added.
            let with = if name.contains(':') { format!("{name},") } else { format!("{name}:") };
            let as_it_is = Self::parse(name, Kind::Defaults).and_then(|entrant| entrant.algorithm);
            let sweep =
                SWEEP.iter().filter(|(swept, _)| *swept == base(name)).flat_map(|(_, settings)| *settings);
            let settings = sweep.map(|&text| text.to_owned());
            // Not all have it: those say so, and are left out.
            let initial = knee.map(|knee| format!("initial={knee}"));
            tuned.extend(
                settings
                    .chain(initial)
                    .filter_map(|settings| Self::parse(&format!("{with}{settings}"), Kind::Tuned))
                    .filter(|entrant| entrant.algorithm != as_it_is),
            );
        }
        tuned
    }

    pub(crate) fn limits(&self) -> Limits {
        self.algorithm.clone().map_or(Limits::None, Limits::Algorithm)
    }

    fn fixed(limit: usize) -> Self {
        let limit = limit.max(1);
        let algorithm = Some(Algorithm::Fixed(FixedSettings { limit }));
        Self { name: format!("fixed:{limit}"), kind: Kind::Fixed, algorithm }
    }

    fn parse(text: &str, kind: Kind) -> Option<Self> {
        let contestant = Contestant::parse(text).ok()?;
        Some(Self { name: contestant.name, kind, algorithm: Some(contestant.algorithm) })
    }
}

/// What a person calls it: `crest`, `fixed 8`, `aimd (timeout 300ms)`.
pub(crate) fn spoken(name: &str) -> String {
    let Some((base, settings)) = name.split_once(':') else { return label(name) };
    if !settings.contains('=') {
        return label(name);
    }
    let settings: Vec<_> = settings.split(',').map(|setting| setting.replace(['=', '_'], " ")).collect();
    format!("{} ({})", label(base), settings.join(", "))
}

/// The algorithm alone, without settings.
fn base(name: &str) -> &str {
    name.split_once(':').map_or(name, |(base, _)| base)
}

fn deadline(question: &Question) -> String {
    humantime::format_duration(question.deadline).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_which_setting_a_value_belongs_to() {
        assert_eq!(spoken("hill_climbing"), "hill climbing");
        assert_eq!(spoken("fixed:8"), "fixed 8");
        assert_eq!(spoken("pid:target=0.3,initial=4"), "pid (target 0.3, initial 4)");
    }

    #[test]
    fn settings_that_are_the_defaults_do_not_take_part_twice() {
        let tuned = |initial| {
            let tuned = Entrant::tuned(&["crest".to_owned()], initial);
            tuned.into_iter().map(|entrant| entrant.name).collect::<Vec<_>>()
        };
        let default = goodput::algorithms::CrestSettings::default().initial;
        assert_eq!(tuned(Some(default)), Vec::<String>::new());
        assert_eq!(tuned(Some(default + 5)), [format!("crest:initial={}", default + 5)]);
        assert_eq!(tuned(None), Vec::<String>::new());
    }

    #[test]
    fn every_setting_that_is_swept_is_one() {
        for (name, settings) in SWEEP {
            for setting in *settings {
                let text = format!("{name}:{setting}");
                let swept = Contestant::parse(&text).unwrap_or_else(|error| panic!("{error}"));
                let plain = Contestant::parse(name).unwrap();
                assert_ne!(swept.algorithm, plain.algorithm, "{text} is the default");
            }
        }
    }
}
