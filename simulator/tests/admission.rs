//! Whom a gate refuses, in scenario files: by criticality, cohort and partition, in a queue, and in storms. Expected figures
//! come from theory, or are what the requirement says.

use std::{path::Path, time::Duration};

use goodput::algorithms::Algorithm;
use goodput_simulator::{Comparison, Counts, Limits, Measure, Part, RowPlan, Run, Scenario, run};

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn comparison(name: &str) -> Comparison {
    Comparison::read(file(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn scenario(name: &str) -> Scenario {
    Scenario::read(file(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn play(scenario: &Scenario, limits: &Limits, cuts: &[u64]) -> Run {
    let cuts = cuts.iter().map(|&cut| seconds(cut)).collect();
    let measure = Measure { cuts, step: Some(seconds(1)), ..Measure::default() };
    run(scenario, limits, 1, &measure).unwrap_or_else(|error| panic!("{error}"))
}

fn play_row(comparison: &Comparison, with: &[&str], cuts: &[u64]) -> Run {
    let row = RowPlan { label: "row".into(), with: with.iter().map(|&name| name.into()).collect() };
    play(&comparison.scenario(&row).unwrap(), &Limits::Written, cuts)
}

fn admission(with: &[&str], cuts: &[u64]) -> Run {
    play_row(&comparison("scenarios/admission.toml"), with, cuts)
}

fn crest() -> Limits {
    Limits::Algorithm(Algorithm::default())
}

fn share(of: u64, all: u64) -> f64 {
    of as f64 / all as f64
}

#[track_caller]
fn close(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{value} instead of {expected} ± {within}");
}

mod by_criticality {
    use super::*;

    /// The overload, class by class.
    fn in_overload(with: &[&str]) -> Vec<Counts> {
        play_row(&comparison("../plots/priority_shedding.toml"), with, &[10, 30]).summary.parts[1]
            .classes
            .clone()
    }

    #[test]
    fn half_again_too_much_costs_no_critical_request_and_only_the_least_critical_much() {
        let [plus, critical, sheddable_plus, sheddable] =
            in_overload(&["gate", "by_criticality"])[..].try_into().unwrap();
        for counts in [plus, critical] {
            let Counts { offered, good, .. } = counts;
            assert_eq!((counts.refused.total(), good), (0, offered));
        }
        // The critical ask for three quarters of what the service can do; the rest is for the others, the better first.
        assert!(
            share(sheddable_plus.good, sheddable_plus.offered) > share(sheddable.good, sheddable.offered)
        );
        let shed = sheddable_plus.refused.total() + sheddable.refused.total();
        let offered = [plus, critical, sheddable_plus, sheddable].map(|counts| counts.offered).iter().sum();
        close(share(shed, offered), 1.0 / 3.0, 0.03);
    }

    #[test]
    fn without_rules_all_suffer_alike_and_without_a_gate_all_suffer_all() {
        for counts in in_overload(&["gate"]) {
            close(share(counts.good, counts.offered), 2.0 / 3.0, 0.04);
        }
        // A second of the overload fills the deadline twice over.
        assert!(in_overload(&[]).iter().all(|counts| share(counts.good, counts.offered) < 0.05));
    }
}

mod against_load {
    use super::*;

    fn at(load: f64) -> Scenario {
        let mut scenario = scenario("../plots/goodput_against_load.toml");
        let now = scenario.segments()[0].load().unwrap();
        scenario.clients[0].open.as_mut().unwrap().per_second *= load / now;
        scenario
    }

    fn goodput(load: f64, limits: &Limits) -> f64 {
        play(&at(load), limits, &[]).summary.goodput_per_second()
    }

    #[test]
    fn a_gate_holds_its_best_goodput_at_three_times_the_capacity_and_no_gate_loses_it() {
        const LOADS: [f64; 6] = [0.5, 0.9, 1.0, 1.2, 1.5, 2.0];
        let best = |limits: &Limits| LOADS.iter().map(|&load| goodput(load, limits)).fold(0.0, f64::max);
        assert!(goodput(3.0, &crest()) >= 0.95 * best(&crest()));
        assert!(goodput(3.0, &Limits::None) < 0.1 * best(&Limits::None));
    }

    /// Between its third and its fifteenth second, with twenty seeds.
    #[test]
    fn a_service_with_little_to_do_is_refused_next_to_nothing_once_it_has_started() {
        let measure = Measure { cuts: vec![seconds(3)], ..Measure::default() };
        for load in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5] {
            let scenario = at(load);
            let parts = (0..20).map(|seed| run(&scenario, &crest(), seed, &measure).unwrap().summary.parts);
            let counts = parts.fold(Counts::default(), |mut all, parts| {
                all.add(&parts[1].counts);
                all
            });
            let refused = share(counts.refused.total(), counts.offered);
            assert!(refused < 0.01, "{refused} at a load of {load}");
        }
    }
}

mod storms {
    use super::*;

    /// How long after `change` goodput is again what it was in the seconds before the trouble, and stays so.
    fn recovery(run: &Run, before: std::ops::Range<usize>, change: u64) -> Option<Duration> {
        let good = &run.summary.good_per_step;
        let usual = good[before.clone()].iter().sum::<u32>() as f64 / before.len() as f64;
        run.summary.recovery(seconds(change), 0.95 * usual, seconds(2), seconds(5))
    }

    #[test]
    fn a_retry_storm_ends_within_seconds_behind_a_gate_and_goes_on_without() {
        let storm = scenario("../plots/retry_storm.toml");
        let with = recovery(&play(&storm, &crest(), &[]), 2..10, 20);
        assert!(with.is_some_and(|after| after <= seconds(3)), "{with:?}");
        assert_eq!(recovery(&play(&storm, &Limits::None, &[]), 2..10, 20), None);
    }

    #[test]
    fn polling_clients_come_back_within_seconds_behind_a_gate_and_never_without() {
        let restart = scenario("../plots/polling_clients.toml");
        let retrying_ended = |limits: &Limits| {
            let run = play(&restart, limits, &[]);
            run.summary.retrying_ended.iter().find(|&&at| at >= seconds(65)).map(|&at| at - seconds(65))
        };
        let with = retrying_ended(&crest());
        assert!(with.is_some_and(|after| after <= seconds(10)), "{with:?}");
        assert_eq!(retrying_ended(&Limits::None), None);
    }
}

mod partitions {
    use super::*;

    /// Erlang's B: the share that is lost where so many places are offered so much load.
    fn erlang_b(places: u32, load: f64) -> f64 {
        (1..=places).fold(1.0, |lost, places| load * lost / (f64::from(places) + load * lost))
    }

    #[test]
    fn partitions_that_do_not_borrow_are_loss_systems_of_their_own() {
        let run = admission(&["partitions"], &[]);
        for (client, places, load) in [(0, 4, 2.0), (1, 12, 40.0)] {
            let offered = run.summary.clients[client].offered;
            let lost = 1.0 - share(run.summary.clients[client].good, offered);
            // Five standard deviations of a share that is a mean over correlated requests: twice those of coins.
            let within = 10.0 * (lost * (1.0 - lost) / offered as f64).sqrt();
            close(lost, erlang_b(places, load), within);
        }
    }

    #[test]
    fn what_one_leaves_idle_is_lent_and_comes_back_when_it_asks() {
        let lending = admission(&["partitions", "lending"], &[]);
        let own = admission(&["partitions"], &[]);
        // Who needs less than its share is served no worse than with walls between, within chance.
        let small = |run: &Run| share(run.summary.clients[0].good, run.summary.clients[0].offered);
        assert!(small(&lending) >= small(&own) - 0.02, "{} {}", small(&lending), small(&own));
        let late = admission(&["partitions", "lending", "small_comes_late"], &[]);
        // Sixteen places for half of the time, offered forty: all sixteen are in use.
        let first_half: u32 = late.summary.good_per_step[1..30].iter().sum();
        close(f64::from(first_half) / 29.0, 1600.0 * (1.0 - erlang_b(16, 40.0)) * 40.0 / 16.0, 40.0);
        assert!(small(&late) >= small(&own) - 0.02, "{} {}", small(&late), small(&own));
    }
}

mod cohorts {
    use super::*;

    /// What each user of a kind got of what it asked for, after the threshold has settled.
    fn users(run: &Run, kind: std::ops::Range<usize>) -> Vec<f64> {
        run.summary.clients[kind].iter().map(|user| share(user.good, user.offered)).collect()
    }

    #[test]
    fn cohorts_shed_some_users_whole_and_leave_the_critical_alone() {
        let alike = admission(&["users"], &[]);
        for user in users(&alike, 0..200) {
            close(user, 2.0 / 3.0, 0.2);
        }
        let by_cohort = admission(&["users", "cohorts"], &[]);
        let critical = users(&by_cohort, 0..40);
        assert!(critical.iter().all(|&served| served > 0.9), "{critical:?}");
        let sheddable = users(&by_cohort, 40..200);
        let whole = sheddable.iter().filter(|&&served| served > 0.85).count();
        let none = sheddable.iter().filter(|&&served| served < 0.15).count();
        // Of five parts asked, a third too much, all from four: five twelfths of the sheddable go.
        assert!(whole >= 60 && none >= 40 && whole + none >= 120, "{whole} {none}");
    }
}

mod queues {
    use super::*;

    /// Goodput and p99 of the last half.
    fn settled(with: &[&str]) -> Part {
        admission(with, &[30]).summary.parts[1].clone()
    }

    fn in_time(part: &Part) -> f64 {
        share(part.counts.good, part.counts.offered)
    }

    #[test]
    fn a_long_queue_makes_everybody_late_unless_the_last_to_come_go_first() {
        assert!(in_time(&settled(&["queue"])) < 0.01);
        // All that is served is served at once: two thirds of what is asked, but for what waits a little too long.
        for with in [&["queue", "last_in"][..], &["queue", "adaptive"]] {
            assert!(in_time(&settled(with)) > 0.6, "{with:?}: {}", in_time(&settled(with)));
        }
    }

    /// Two seconds at half again too much leave 1600 in the queue, which are worked off at 80 a second.
    #[test]
    fn controlled_delay_ends_a_standing_queue_that_would_last_for_twenty_seconds() {
        let after = |with: &[&str]| admission(with, &[20, 30]).summary.parts[1].clone();
        assert!(in_time(&after(&["queue", "gust"])) < 0.05);
        // Cuts come at intervals of 100 ms / √n, so 50 more in each second than in the one before: with what is worked
        // off that is enough in 25 t² + 80 t = 1600, six and a half seconds.
        let cut = after(&["queue", "gust", "codel"]);
        assert!(in_time(&cut) > 0.95, "{}", in_time(&cut));
    }
}
