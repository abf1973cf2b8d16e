//! `goodput plot`: draws how limits converge.

mod canvas;
mod colours;
mod columns;
mod gallery;
mod load;
mod numbers;
mod panels;
mod play;
mod rows;
mod scale;
mod table;
pub(crate) mod words;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use goodput_simulator::{Limits, Oracle, Scenario};
use rayon::prelude::*;

use self::{
    gallery::{Gallery, Picture},
    play::Entrant,
};
use crate::failure::Failure;

/// Who is compared where nobody is named.
const DEFAULT: &str = "none,aimd,vegas,gradient,gradient2,windowed";

/// Draws scenarios, and prints how the algorithms compare in them.
///
/// Each picture shows, for each algorithm, its limit against the limits that are as good as the best, requests per
/// second, latency, and refusals, over time; or for each class of requests what became of them. Of a file that compares
/// variations, each row of the first table is a column. Pictures stand beside their files. Without files, the whole
/// gallery is drawn again, with its page, README.md.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Scenario files; none means those of the gallery
    files: Vec<PathBuf>,
    /// Algorithms, with commas between; `none` is no gate at all, and `fixed:50` a limit that never moves
    #[arg(long, value_name = "NAMES")]
    algorithm: Option<String>,
    /// Pictures, or the numbers behind them. Pictures are SVG alone; any browser makes a PNG of them
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
    /// Where to write [default: beside each scenario file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The seed of every run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the gallery
    #[arg(long, value_name = "FOLDER", default_value = "plots")]
    gallery: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    Svg,
    Csv,
}

impl Format {
    const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Csv => "csv",
        }
    }
}

pub(crate) fn plot(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.files.is_empty() { draw_gallery(arguments) } else { draw_files(arguments) }
}

/// A picture of how these limits, each under its name, fare in a scenario whose oracle is known.
pub(crate) fn draw_over_time(
    scenario: &Scenario,
    limits: &[(&str, &Limits)],
    oracle: &Oracle,
    seed: u64,
    title: &str,
) -> Result<String, Failure> {
    let entrants: Vec<_> = limits
        .iter()
        .map(|&(name, limits)| Entrant { name: name.to_owned(), limits: limits.clone() })
        .collect();
    let width = columns::column_width(columns::columns_of(entrants.len()));
    let played = play::play_knowing(scenario, &entrants, oracle, seed, width as usize)?;
    Ok(columns::draw(&played, title))
}

/// What a picture or a table calls a limiter: settings without their names, as `aimd 200ms`.
pub(crate) fn label(name: &str) -> String {
    Entrant::label(name)
}

fn draw_gallery(arguments: &Arguments) -> Result<(), Failure> {
    let mut gallery = Gallery::read(&arguments.gallery)?;
    if let Some(names) = &arguments.algorithm {
        gallery.compare(names);
    }
    let played: Vec<_> =
        gallery.pictures.par_iter().map(|picture| picture.play(arguments.seed)).collect::<Result<_, _>>()?;
    for (picture, played) in gallery.pictures.iter().zip(&played) {
        write(arguments, &picture.picture, &played.in_format(arguments.format, &picture.title)?)?;
    }
    if arguments.format == Format::Svg {
        write_to(&folder(arguments, &arguments.gallery).join("README.md"), &gallery.page(&played))?;
    }
    print!("{}", gallery.at_a_glance(&played).for_terminal());
    Ok(())
}

fn draw_files(arguments: &Arguments) -> Result<(), Failure> {
    let names = arguments.algorithm.as_deref().unwrap_or(DEFAULT);
    // Names that nobody has are an error even if no file would need them.
    Entrant::parse_list(names)?;
    let draw = |file: &PathBuf| {
        let picture = Picture::of_file(file, names)?;
        let played = picture.play(arguments.seed)?;
        write(arguments, file, &played.in_format(arguments.format, &picture.title)?)?;
        Ok(played.table().for_terminal())
    };
    let tables: Vec<String> = arguments.files.par_iter().map(draw).collect::<Result<_, Failure>>()?;
    for (file, table) in arguments.files.iter().zip(tables) {
        println!("{}\n{table}", file.display());
    }
    Ok(())
}

/// Under the name of that file, beside it or in the folder that was asked for.
fn write(arguments: &Arguments, file: &Path, text: &str) -> Result<(), Failure> {
    let name = file.with_extension(arguments.format.extension());
    let beside = file.parent().unwrap_or(Path::new(""));
    write_to(&folder(arguments, beside).join(name.file_name().unwrap_or_default()), text)
}

fn folder(arguments: &Arguments, otherwise: &Path) -> PathBuf {
    arguments.out.clone().unwrap_or_else(|| otherwise.to_path_buf())
}

fn write_to(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    fs::write(path, text).map_err(Failure::file(path))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
