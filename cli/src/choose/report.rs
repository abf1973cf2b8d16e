//! The result, in every form: files, terminal, JSON.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use goodput_recordings::Inspection;
use serde_json::{Value, json};

use super::{
    advice::Advice,
    page,
    pictures::{self, Picture},
    question::Question,
    ranking::{Ranking, Standing},
    terminal,
    tournament::Tournament,
};
use crate::{
    failure::Failure,
    inspect::{read_lines, service_lines},
    text::wrapped,
};

/// All that was found out.
pub(crate) struct Report<'a> {
    pub(crate) source: &'a str,
    pub(crate) inspection: &'a Inspection,
    pub(crate) question: &'a Question,
    pub(crate) tournament: &'a Tournament<'a>,
    pub(crate) ranking: &'a Ranking,
    pub(crate) advice: &'a Advice,
}

/// What was written.
pub(crate) struct Files {
    page: PathBuf,
    config: PathBuf,
    pictures: Vec<PathBuf>,
}

impl Report<'_> {
    /// Writes the page, its pictures and the config into a folder that is there.
    pub(crate) fn write(&self, folder: &Path) -> Result<Files, Failure> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Failure::unwritable(&path))?;
            Ok::<_, Failure>(path)
        };
        let pictures: Vec<Picture> = pictures::draw(self.tournament, self.ranking, self.advice.pick)?;
        Ok(Files {
            page: write("index.html", &page::page(self, &pictures))?,
            config: write("limiter.toml", &self.advice.config)?,
            pictures: pictures
                .iter()
                .map(|picture| write(&picture.file, &picture.svg))
                .collect::<Result<_, _>>()?,
        })
    }

    /// What was read and understood, a fact each.
    pub(crate) fn facts(&self) -> Vec<String> {
        read_lines(self.inspection).into_iter().chain(service_lines(&self.question.workload)).collect()
    }

    /// Prints the recommendation first, then why.
    pub(crate) fn print(&self, files: &Files) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}\n", wrapped(&self.advice.headline, 0))?;
        for remark in &self.advice.remarks {
            writeln!(out, "{}", wrapped(&format!("- {remark}"), 2))?;
        }
        writeln!(out, "\n{}", self.source)?;
        for fact in self.facts() {
            writeln!(out, "{}", wrapped(&format!("  {fact}"), 4))?;
        }
        for table in terminal::tables(self.question, self.tournament, self.ranking, self.advice.pick) {
            writeln!(out, "\n{}", table.trim_end())?;
        }
        writeln!(out, "\n{}\n", wrapped(page::SCORE, 0))?;
        writeln!(out, "Report: {}\nConfig: {}", files.page.display(), files.config.display())?;
        Ok(())
    }

    /// Prints everything for machines.
    pub(crate) fn print_json(&self, files: &Files) -> Result<(), Failure> {
        let pick = &self.tournament.played[self.advice.pick].entrant;
        let path = |path: &PathBuf| Value::from(path.to_string_lossy());
        let all = json!({
            "recommendation": {
                "verdict": self.advice.verdict,
                "headline": self.advice.headline,
                "remarks": self.advice.remarks,
                "limiter": pick.algorithm,
            },
            "recording": self.inspection,
            "deadline_ms": self.question.deadline.as_secs_f64() * 1e3,
            "objective": self.tournament.objective.name(),
            "seeds": self.tournament.seeds,
            "assumptions": self.question.assumptions,
            "ranking": self.ranking.standings.iter().map(|standing| self.standing(standing)).collect::<Vec<_>>(),
            "files": {
                "page": path(&files.page),
                "config": path(&files.config),
                "pictures": files.pictures.iter().map(path).collect::<Vec<_>>(),
            },
        });
        let text = serde_json::to_string_pretty(&all).map_err(io::Error::from)?;
        Ok(writeln!(io::stdout().lock(), "{text}")?)
    }

    fn standing(&self, standing: &Standing) -> Value {
        let worlds = self.tournament.worlds.iter().zip(&standing.worlds).map(|(world, figures)| {
            json!({
                "scenario": world.name,
                "score": figures.score.score,
                "in_time": figures.in_time,
                "refused": figures.refused,
                "p50_ms": figures.p50_s * 1e3,
                "p99_ms": figures.p99_s * 1e3,
                "mean_limit": figures.score.mean_limit,
            })
        });
        json!({
            "limiter": standing.name,
            "score": standing.total,
            "loss": standing.loss,
            "as_good": standing.as_good,
            "scenarios": worlds.collect::<Vec<_>>(),
        })
    }
}
