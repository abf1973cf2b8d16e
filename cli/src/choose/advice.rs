//! What to do.

use goodput::{GateConfig, algorithms::Algorithm, waiting::WaitingSettings};
use goodput_recordings::scenario::Place;
use serde::Serialize;
use toml::{Table, Value};

use super::{
    entrants::{Kind, spoken},
    question::Question,
    ranking::{Ranking, Standing},
    tournament::Tournament,
};
use crate::{
    failure::Failure,
    plot::words::{number, percent, seconds},
};

/// Answers in time without a limit from which on the recorded load needs none.
const ALL_IS_WELL: f64 = 0.99;

/// Of those that are as good as the best, these come first. A fixed limit comes after algorithms with their defaults: it
/// is the best of several, picked in hindsight, and they were not picked for this service.
const ORDER: [Kind; 4] = [Kind::Unlimited, Kind::Defaults, Kind::Fixed, Kind::Tuned];

/// Which kind of answer it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// No limiter does better than none.
    NoneNeeded,
    /// A limit that never moves, which no algorithm with its defaults equals.
    FixedLimit,
    /// An algorithm.
    Algorithm,
    /// The recording tells too little: watch first.
    ObserveFirst,
}

/// The recommendation.
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    pub(crate) verdict: Verdict,
    /// In one sentence.
    pub(crate) headline: String,
    /// What else to know, a sentence each.
    pub(crate) remarks: Vec<String>,
    /// Place of the limiter of the config among [`Tournament::played`].
    pub(crate) pick: usize,
    /// What the library loads.
    pub(crate) config: String,
}

impl Advice {
    pub(crate) fn new(
        question: &Question,
        tournament: &Tournament<'_>,
        ranking: &Ranking,
    ) -> Result<Self, Failure> {
        let nobody = || Failure::Arguments("nobody took part".into());
        let follows = |kind: Kind| kind >= Kind::Defaults;
        let best = ranking.standings.first().ok_or_else(nobody)?;
        let as_good =
            |kind: &Kind| ranking.standings.iter().find(|other| other.as_good && other.kind == *kind);
        let follower = [Kind::Defaults, Kind::Tuned].iter().find_map(as_good);
        let follower = follower.or_else(|| ranking.best_of(follows)).ok_or_else(nobody)?;
        // Where requests are refused already, to be without a limit is not what was recorded.
        let refused = question.workload.shares.are_refused();
        let mut order = ORDER.iter().filter(|kind| !refused || **kind != Kind::Unlimited);
        let simplest = order.find_map(as_good).unwrap_or(if refused { follower } else { best });
        let (verdict, pick) = match simplest.kind {
            _ if !question.knows_the_knee() => (Verdict::ObserveFirst, follower),
            Kind::Unlimited => (Verdict::NoneNeeded, follower),
            Kind::Fixed => (Verdict::FixedLimit, simplest),
            Kind::Defaults | Kind::Tuned => (Verdict::Algorithm, simplest),
        };
        let headline = headline(verdict, question, pick);
        Ok(Self {
            verdict,
            config: config(verdict, &headline, tournament, pick)?,
            headline,
            remarks: remarks(verdict, question, tournament, ranking, pick, follower),
            pick: pick.index,
        })
    }
}

fn headline(verdict: Verdict, question: &Question, pick: &Standing) -> String {
    let share = percent(pick.total.value);
    let overloaded = question.workload.capacity_per_s.is_some();
    let at = match question.place {
        Place::Server => "",
        Place::Clients(_) => " at each client",
    };
    match verdict {
        Verdict::NoneNeeded => {
            "You need no limiter: without one, this service does as well as with any that was tried."
                .to_owned()
        }
        Verdict::FixedLimit => format!(
            "Use a fixed limit of {}{at}: no algorithm with its defaults is as good here ({share} of what the best limits in hindsight \
             can do).",
            pick.name.trim_start_matches("fixed:")
        ),
        Verdict::Algorithm => {
            format!("Use {}{at}: {share} of what the best limits in hindsight can do.", spoken(&pick.name))
        }
        Verdict::ObserveFirst => format!(
            "This log {}, so nobody can say where the service gets full: run {}{at} in observe-only mode, and choose again \
             with the log of a {}.",
            if overloaded {
                "holds no request that met a free service"
            } else {
                "holds no overload that tells"
            },
            spoken(&pick.name),
            if overloaded { "time with quiet hours too" } else { "busier hour or of a load test" }
        ),
    }
}

fn remarks(
    verdict: Verdict,
    question: &Question,
    tournament: &Tournament<'_>,
    ranking: &Ranking,
    pick: &Standing,
    follower: &Standing,
) -> Vec<String> {
    let mut remarks: Vec<String> =
        question.taken_for_granted.iter().map(|assumed| format!("Assumed: {assumed}.")).collect();
    let refused = question.workload.shares.refused.value;
    let are_refused = question.workload.shares.are_refused();
    if are_refused {
        remarks.push(format!(
            "{} of the recorded requests were refused (429 or 503): an overload, or a limiter that is there already. What \
             is said of the recorded load is said as if that limiter were gone.",
            percent(refused)
        ));
        if ranking.standings.iter().any(|other| other.as_good && other.kind == Kind::Unlimited) {
            remarks.push(
                "Without any limit the service does as well in these scenarios: find out first who refuses, and why."
                    .to_owned(),
            );
        }
    }
    let deadline = seconds(question.deadline.as_secs_f64());
    let none =
        ranking.best_of(|kind| kind == Kind::Unlimited).map(|standing| &tournament.played[standing.index]);
    if let Some(none) = none {
        if question.has_recorded {
            let share = none.in_time(0);
            remarks.push(if share >= ALL_IS_WELL && !are_refused {
                format!(
                    "At the recorded load you need none: without a limit {} of all requests are answered within {deadline}. \
                     The limiter is for what the recording does not show.",
                    percent(share)
                )
            } else {
                format!(
                    "Under the recorded load, without a limit, {} of all requests are answered within {deadline}; with \
                     this limiter {}.",
                    percent(share),
                    percent(tournament.played[pick.index].in_time(0))
                )
            });
        }
        let overload = usize::from(question.has_recorded);
        remarks.push(format!(
            "In an overload of twice its capacity: {} without a limit, {} with this one.",
            percent(none.in_time(overload)),
            percent(tournament.played[pick.index].in_time(overload))
        ));
    }
    if let Some(fixed) =
        ranking.best_of(|kind| kind == Kind::Fixed).filter(|_| verdict != Verdict::FixedLimit)
    {
        let known = if question.knows_the_knee() { "" } else { ", if the service were as was assumed" };
        let verb = if fixed.as_good { "is as good" } else { "comes to" };
        remarks.push(format!(
            "A fixed limit of {} {verb}{}{known}; it stays right only as long as the service stays as it is.",
            fixed.name.trim_start_matches("fixed:"),
            if fixed.as_good { String::new() } else { format!(" {}", percent(fixed.total.value)) }
        ));
    }
    if verdict == Verdict::FixedLimit {
        remarks.push(format!(
            "The best that follows the service when it changes: {} ({}). Prefer it if deploys or neighbours change how \
             fast the service is.",
            spoken(&follower.name),
            percent(follower.total.value)
        ));
    }
    let as_good = ranking.standings.iter().filter(|other| {
        other.as_good
            && other.index != pick.index
            && other.kind >= Kind::Defaults
            && other.index != follower.index
    });
    let names: Vec<_> = as_good.map(|other| spoken(&other.name)).collect();
    if !names.is_empty() && !matches!(verdict, Verdict::NoneNeeded) {
        remarks.push(format!(
            "As good, as far as {} repetitions can tell: {}.",
            number(tournament.seeds as f64),
            names.join(", ")
        ));
    }
    if question.deadline.as_nanos() as f64 <= question.played.service.work.mean_ns() {
        remarks.push(format!(
            "The deadline of {deadline} is shorter than the service needs on average without a queue: most answers are \
             late whatever the limit."
        ));
    }
    remarks
}

/// A config file that the library loads as it is, with the reasons as comments.
fn config(
    verdict: Verdict,
    headline: &str,
    tournament: &Tournament<'_>,
    pick: &Standing,
) -> Result<String, Failure> {
    let algorithm: Option<Algorithm> = tournament.played[pick.index].entrant.algorithm.clone();
    let config = GateConfig {
        limiter: algorithm,
        observe_only: matches!(verdict, Verdict::NoneNeeded | Verdict::ObserveFirst),
        // As in the runs.
        waiting: WaitingSettings::none(),
        ..GateConfig::default()
    };
    let unwritable = |problem: String| Failure::Arguments(format!("limiter.toml: {problem}"));
    let mut table = Table::try_from(&config).map_err(|error| unwritable(error.to_string()))?;
    // What is not said has its default; only what matters here is said.
    table.remove("name");
    if !config.observe_only {
        table.remove("observe_only");
    }
    if let Some(Value::Table(waiting)) = table.get_mut("waiting") {
        waiting.retain(|field, _| field == "max_waiting");
    }
    let text = toml::to_string(&table).map_err(|error| unwritable(error.to_string()))?;
    let text =
        format!("# {headline}\n# Written by `goodput choose`; read by `GateConfig::from_toml`.\n\n{text}");
    let read = GateConfig::from_toml(&text).map_err(|error| unwritable(error.to_string()))?;
    debug_assert_eq!(read, config);
    Ok(text)
}
