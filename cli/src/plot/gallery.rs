//! The gallery: which pictures there are, and the page that shows them.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use goodput_simulator::{Comparison, Scenario};
use serde::Deserialize;

use super::{
    Format, columns,
    load::{self, LoadCurves},
    numbers,
    play::{Entrant, Played, play, play_variations},
    table::{self, Table},
};
use crate::failure::Failure;

/// The file that lists the pictures of a folder.
const LIST: &str = "gallery.toml";

/// The pictures of a folder, in order.
#[derive(Debug)]
pub(super) struct Gallery {
    introduction: String,
    pub(super) pictures: Vec<Picture>,
}

/// A picture to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    /// What is played.
    pub(super) file: PathBuf,
    /// Where the picture goes, but for its extension.
    pub(super) picture: PathBuf,
    subject: Subject,
    pub(super) title: String,
    /// What to see in it.
    see: String,
    algorithms: String,
    /// Draws goodput against these loads, instead of one run over time.
    loads: Vec<f64>,
}

/// What a file holds.
#[derive(Clone, Debug)]
enum Subject {
    /// A scenario, to be played under each algorithm.
    Scenario(Box<Scenario>),
    /// Variations of a scenario, each with its own doors.
    Variations(Vec<(String, Scenario)>),
}

/// What a picture shows.
#[derive(Debug)]
pub(super) enum Shown {
    OverTime(Box<Played>),
    AgainstLoad(Box<LoadCurves>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    introduction: String,
    algorithms: String,
    pictures: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    scenario: PathBuf,
    /// A name for a second picture of the same scenario.
    picture: Option<PathBuf>,
    title: String,
    see: String,
    algorithms: Option<String>,
    #[serde(default)]
    loads: Vec<f64>,
}

impl Gallery {
    /// Reads a folder's list and the scenarios that it names.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(LIST);
        let text = fs::read_to_string(&path).map_err(|error| {
            Failure::Arguments(format!(
                "{}: {error}; name scenario files, or the folder of a gallery by --gallery",
                path.display()
            ))
        })?;
        let list: List = toml::from_str(&text).map_err(|error| {
            Failure::Arguments(format!("{}: {}", path.display(), error.to_string().trim_end()))
        })?;
        let pictures = list.pictures.into_iter().map(|entry| {
            let file = folder.join(&entry.scenario);
            let algorithms = entry.algorithms.unwrap_or_else(|| list.algorithms.clone());
            if let Some(wrong) = entry.loads.iter().find(|load| !(load.is_finite() && **load > 0.0)) {
                let problem = format!("{}: `loads` must be numbers above 0, not {wrong}", path.display());
                return Err(Failure::Arguments(problem));
            }
            Ok(Picture {
                subject: Subject::read(&file)?,
                picture: entry.picture.map_or_else(|| file.clone(), |name| folder.join(name)),
                file,
                title: entry.title,
                see: entry.see,
                algorithms,
                loads: entry.loads,
            })
        });
        Ok(Self { introduction: list.introduction, pictures: pictures.collect::<Result<_, _>>()? })
    }

    /// Compares these instead of those of the list.
    pub(super) fn compare(&mut self, algorithms: &str) {
        self.pictures.iter_mut().for_each(|picture| algorithms.clone_into(&mut picture.algorithms));
    }

    /// Scores of all algorithms in all pictures over time, but second ones of a scenario.
    pub(super) fn at_a_glance(&self, shown: &[Shown]) -> Table {
        let shown = self.pictures.iter().zip(shown).filter(|(picture, _)| picture.file == picture.picture);
        table::at_a_glance(shown.filter_map(|(picture, shown)| match shown {
            Shown::OverTime(played) if played.best.is_some() => Some((picture.short_name(), &**played)),
            _ => None,
        }))
    }

    /// The page that shows the pictures.
    pub(super) fn page(&self, shown: &[Shown]) -> String {
        let mut page = format!("{}\n", self.introduction.trim());
        let _ = write!(page, "\n## At a glance\n\n{}\n", table::GLANCE);
        let _ = write!(page, "\n{}", self.at_a_glance(shown).for_page());
        for (picture, shown) in self.pictures.iter().zip(shown) {
            let name = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let (scenario, name) = (name(&picture.file), name(&picture.picture));
            let title = &picture.title;
            let _ = write!(page, "\n## {title}\n\n{}\n", picture.see.trim());
            let _ = write!(page, "\n![{title}]({name}.svg)\n\n{}", shown.table().for_page());
            let _ = writeln!(page, "\nScenario: [`{scenario}.toml`]({scenario}.toml)");
        }
        let _ = write!(page, "\n## What the figures mean\n\n{}\n", table::FIGURES);
        page
    }
}

impl Picture {
    /// Of one scenario file that no gallery lists.
    pub(super) fn of_file(file: &Path, algorithms: &str) -> Result<Self, Failure> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let subject = Subject::read(file)?;
        let title = if let Subject::Scenario(scenario) = &subject { scenario.name.clone() } else { name };
        Ok(Self {
            file: file.to_path_buf(),
            picture: file.to_path_buf(),
            title,
            subject,
            see: String::new(),
            algorithms: algorithms.to_owned(),
            loads: Vec::new(),
        })
    }

    /// What tables call it.
    fn short_name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().replace('_', " ")
    }

    pub(super) fn play(&self, seed: u64) -> Result<Shown, Failure> {
        let width = |columns| columns::column_width(columns::columns_of(columns)) as usize;
        let scenario = match &self.subject {
            Subject::Scenario(scenario) => scenario,
            Subject::Variations(variations) => {
                let played = play_variations(variations, seed, width(variations.len()))?;
                return Ok(Shown::OverTime(Box::new(played)));
            }
        };
        let entrants = if scenario.open_doors() > 0 {
            Entrant::parse_list(&self.algorithms)?
        } else {
            Entrant::written()
        };
        if self.loads.is_empty() {
            let played = play(scenario, &entrants, seed, width(entrants.len()))?;
            return Ok(Shown::OverTime(Box::new(played)));
        }
        let curves = LoadCurves::play(scenario, &entrants, seed, &self.loads)?;
        Ok(Shown::AgainstLoad(Box::new(curves)))
    }
}

impl Subject {
    /// Reads a file: a scenario, or one that compares variations of it, of which the rows of the first table are drawn.
    fn read(file: &Path) -> Result<Self, Failure> {
        if !fs::read_to_string(file).is_ok_and(|text| Comparison::is_one(&text)) {
            return Ok(Self::Scenario(Box::new(Scenario::read(file)?)));
        }
        let comparison = Comparison::read(file)?;
        let rows = comparison.tables.iter().take(1).flat_map(|table| &table.rows);
        let variations = rows.map(|row| {
            let scenario = Scenario { about: comparison.about.clone(), ..comparison.scenario(row)? };
            Ok((row.label.clone(), scenario))
        });
        Ok(Self::Variations(variations.collect::<Result<_, Failure>>()?))
    }
}

impl Shown {
    /// As a picture or as numbers.
    pub(super) fn in_format(&self, format: Format, title: &str) -> Result<String, Failure> {
        match (self, format) {
            (Self::OverTime(played), Format::Svg) => Ok(columns::draw(played, title)),
            (Self::OverTime(played), Format::Csv) => numbers::over_time(played),
            (Self::AgainstLoad(curves), Format::Svg) => Ok(load::draw(curves, title)),
            (Self::AgainstLoad(curves), Format::Csv) => numbers::against_load(curves),
        }
    }

    /// The figures of the runs.
    pub(super) fn table(&self) -> Table {
        match self {
            Self::OverTime(played) if played.classes().len() > 1 => table::of_classes(played),
            Self::OverTime(played) => table::of_runs(played),
            Self::AgainstLoad(curves) => table::of_loads(curves),
        }
    }
}
