//! How limits move in the worlds, as pictures.

use goodput_simulator::Limits;
use rayon::prelude::*;

use super::{
    entrants::Kind,
    ranking::{Ranking, Standing},
    tournament::Tournament,
};
use crate::{failure::Failure, plot};

/// Columns of a picture.
const COLUMNS: usize = 5;

/// A picture and its file.
pub(crate) struct Picture {
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) svg: String,
}

/// A picture of each world: no limit, the best fixed one, what is recommended, and the best of the others.
pub(crate) fn draw(
    tournament: &Tournament<'_>,
    ranking: &Ranking,
    pick: usize,
) -> Result<Vec<Picture>, Failure> {
    let shown = shown(ranking, pick);
    let limits: Vec<(&str, Limits)> = shown
        .iter()
        .map(|standing| (standing.name.as_str(), tournament.played[standing.index].entrant.limits()))
        .collect();
    let limits: Vec<(&str, &Limits)> = limits.iter().map(|(name, limits)| (*name, limits)).collect();
    tournament
        .worlds
        .par_iter()
        .zip(&tournament.oracles)
        .map(|(world, oracles)| {
            let title = title(&world.name);
            let svg = plot::draw_over_time(world, &limits, &oracles[0], 1, &title)?;
            let file = format!("{}.svg", world.name.replace(", ", "_").replace(' ', "_"));
            Ok(Picture { file, title, about: world.about.clone(), svg })
        })
        .collect()
}

fn shown(ranking: &Ranking, pick: usize) -> Vec<&Standing> {
    let mut shown: Vec<&Standing> = Vec::new();
    let mut show = |standing: &'_ Standing| {
        let place = ranking.standings.iter().find(|known| known.index == standing.index);
        if let Some(place) = place.filter(|place| shown.iter().all(|known| known.index != place.index)) {
            shown.push(place);
        }
    };
    let of = |kind: Kind| ranking.best_of(move |other| other == kind);
    of(Kind::Unlimited).into_iter().for_each(&mut show);
    of(Kind::Fixed).into_iter().for_each(&mut show);
    ranking.standings.iter().filter(|standing| standing.index == pick).for_each(&mut show);
    ranking.standings.iter().filter(|standing| standing.kind >= Kind::Defaults).for_each(&mut show);
    shown.truncate(COLUMNS);
    shown
}

fn title(name: &str) -> String {
    match name {
        "recorded" => "The recorded traffic".to_owned(),
        "overload" => "Twice what the service can do".to_owned(),
        "slowdown" => "The service at half its speed".to_owned(),
        "overload, roomier" => "Twice what the service can do, were it four times as large".to_owned(),
        "slowdown, roomier" => "The service at half its speed, were it four times as large".to_owned(),
        other => other.to_owned(),
    }
}
