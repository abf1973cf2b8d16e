use goodput_algorithms::InvalidSettings;
use serde::{Deserialize, Serialize};

use crate::{
    Criticality, Request,
    share::{Allowance, Share},
};

/// How much of a bound (a limit, a queue) each criticality may use.
///
/// A request is admitted while what is in use, by all criticalities together, stays within the allowance of its own.
/// So the least critical are refused first as load rises, and what is left above their allowance is there for the
/// rest. A criticality with less than everything cannot fill the bound alone.
///
/// A [continuation](Request::continuation) has the allowance of critical-plus.
///
/// Defaults: 1, 1, 0.9 and 0.8, from the most critical to the least.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CriticalityShares {
    /// For critical-plus requests, and for work already begun.
    pub critical_plus: Allowance,
    /// For critical requests.
    pub critical: Allowance,
    /// For sheddable-plus requests.
    pub sheddable_plus: Allowance,
    /// For sheddable requests.
    pub sheddable: Allowance,
}

impl CriticalityShares {
    /// Everything for everybody: criticality does not matter.
    pub const EQUAL: Self = Self {
        critical_plus: Allowance::ALL,
        critical: Allowance::ALL,
        sheddable_plus: Allowance::ALL,
        sheddable: Allowance::ALL,
    };

    /// Shares of a fixed `capacity` of which critical-plus may use all, critical all but `reserve`, and the sheddable
    /// ones no more than `low`.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] if `low` or `reserve` is above `capacity`.
    pub fn with_reserve(capacity: usize, low: usize, reserve: usize) -> Result<Self, InvalidSettings> {
        Allowance::AtMost(low).check_against("low", capacity)?;
        Allowance::AllBut(reserve).check_against("reserve", capacity)?;
        Ok(Self {
            critical_plus: Allowance::ALL,
            critical: Allowance::AllBut(reserve),
            sheddable_plus: Allowance::AtMost(low),
            sheddable: Allowance::AtMost(low),
        })
    }

    /// Requires that no count exceeds a capacity that never moves.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the criticality.
    pub fn check_against(&self, capacity: usize) -> Result<(), InvalidSettings> {
        self.critical_plus.check_against("critical_plus", capacity)?;
        self.critical.check_against("critical", capacity)?;
        self.sheddable_plus.check_against("sheddable_plus", capacity)?;
        self.sheddable.check_against("sheddable", capacity)
    }

    /// The allowance of a criticality.
    #[must_use]
    pub const fn allowance(&self, criticality: Criticality) -> Allowance {
        match criticality {
            Criticality::CriticalPlus => self.critical_plus,
            Criticality::Critical => self.critical,
            Criticality::SheddablePlus => self.sheddable_plus,
            Criticality::Sheddable => self.sheddable,
        }
    }

    /// The places of `bound` that a request of this kind may see taken, itself included.
    #[must_use]
    pub fn of(&self, request: &Request, bound: usize) -> usize {
        let criticality = if request.continuation { Criticality::CriticalPlus } else { request.criticality };
        self.allowance(criticality).of(bound)
    }

    /// Whether `request` fits while `used` of `bound` is taken. One that weighs more than its allowance may run alone,
    /// if the allowance is not zero.
    #[must_use]
    pub fn admit(&self, request: &Request, used: usize, bound: usize) -> bool {
        let allowed = self.of(request, bound);
        (request.weight as usize) <= allowed.saturating_sub(used) || (used == 0 && allowed > 0)
    }
}

impl Default for CriticalityShares {
    fn default() -> Self {
        Self {
            sheddable_plus: Allowance::Share(Share::of_hundred(90)),
            sheddable: Allowance::Share(Share::of_hundred(80)),
            ..Self::EQUAL
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::refusal::retry_after;

    const CRITICAL: Request = Request::DEFAULT.of(Criticality::CriticalPlus);
    const NORMAL: Request = Request::DEFAULT.of(Criticality::Critical);
    const LOW: Request = Request::DEFAULT.of(Criticality::Sheddable);

    /// The published admission functions: 1, 4/5 and 1/2.
    fn published() -> CriticalityShares {
        CriticalityShares {
            critical: Allowance::Share(Share::new(4.0 / 5.0).unwrap()),
            sheddable: Allowance::Share(Share::new(1.0 / 2.0).unwrap()),
            ..CriticalityShares::EQUAL
        }
    }

    #[test]
    fn the_published_admission_assertions_hold() {
        for (request, waiting, limit, admitted) in [
            (CRITICAL, 0, 100, true),
            (CRITICAL, 99, 100, true),
            (CRITICAL, 100, 100, false),
            (NORMAL, 79, 100, true),
            (NORMAL, 159, 200, true),
            (NORMAL, 80, 100, false),
            (NORMAL, 160, 200, false),
            (LOW, 49, 100, true),
            (LOW, 0, 2, true),
            (LOW, 50, 100, false),
            (LOW, 1, 2, false),
            // Shares that are not whole: 2.4 and 1.5 of 3.
            (NORMAL, 2, 3, true),
            (LOW, 1, 3, true),
            (LOW, 2, 3, false),
        ] {
            assert_eq!(
                published().admit(&request, waiting, limit),
                admitted,
                "{waiting}/{limit} {request:?}"
            );
        }
    }

    #[test]
    fn the_published_decisions_hold() {
        for (request, waiting, limit, drain, refused) in
            [(CRITICAL, 99, 100, 50.0, None), (LOW, 60, 100, 50.0, Some(2)), (NORMAL, 90, 100, 20.0, Some(5))]
        {
            let decision = (!published().admit(&request, waiting, limit))
                .then(|| retry_after(waiting as u64, drain).unwrap());
            assert_eq!(decision, refused.map(Duration::from_secs));
        }
    }

    #[test]
    fn shares_agree_with_exact_fractions_for_every_limit_up_to_3000() {
        let shares = published();
        for limit in 0..3_000_usize {
            for waiting in 0..=limit {
                assert_eq!(shares.admit(&NORMAL, waiting, limit), waiting * 5 < limit * 4);
                assert_eq!(shares.admit(&LOW, waiting, limit), waiting * 2 < limit);
            }
        }
    }

    /// Requests of one kind admitted from empty, and what the next one sees: in flight and its limit.
    fn fill(shares: &CriticalityShares, request: &Request, capacity: usize) -> (usize, usize) {
        let mut in_flight = 0;
        while shares.admit(request, in_flight, capacity) {
            in_flight += 1;
        }
        (in_flight, shares.of(request, capacity))
    }

    #[test]
    fn the_in_flight_limiter_fills_to_its_published_bounds() {
        for (capacity, low, reserve, expected) in [
            (5, 3, 1, [3, 4, 5]),
            (0, 0, 0, [0, 0, 0]),
            (5, 0, 0, [0, 5, 5]),
            (5, 0, 5, [0, 0, 5]),
            (5, 5, 5, [5, 0, 5]),
            (5, 3, 0, [3, 5, 5]),
            (1, 1, 0, [1, 1, 1]),
            (1, 0, 1, [0, 0, 1]),
            (3, 3, 1, [3, 2, 3]),
        ] {
            let shares = CriticalityShares::with_reserve(capacity, low, reserve).unwrap();
            for (request, admitted) in [LOW, NORMAL, CRITICAL].iter().zip(expected) {
                assert_eq!(
                    fill(&shares, request, capacity),
                    (admitted, admitted),
                    "C {capacity}, L {low}, R {reserve}"
                );
            }
        }
    }

    #[test]
    fn a_low_limit_or_reserve_above_the_capacity_is_refused() {
        assert_eq!(CriticalityShares::with_reserve(5, 3, 6).unwrap_err().field, "reserve");
        assert_eq!(CriticalityShares::with_reserve(5, 7, 1).unwrap_err().field, "low");
        let shares = CriticalityShares { critical: Allowance::AtMost(6), ..CriticalityShares::EQUAL };
        assert_eq!(shares.check_against(5).unwrap_err().field, "critical");
        assert_eq!(shares.check_against(6), Ok(()));
    }

    #[test]
    fn the_published_mixed_sequence_replays() {
        let shares = CriticalityShares::with_reserve(5, 3, 1).unwrap();
        let (mut in_flight, mut log) = (0_usize, Vec::new());
        for step in "N N L L N N C C L r r r L L N N C".split(' ') {
            let request = match step {
                "N" => NORMAL,
                "L" => LOW,
                "C" => CRITICAL,
                _ => {
                    in_flight -= 1;
                    log.push(format!("r→{in_flight}"));
                    continue;
                }
            };
            if shares.admit(&request, in_flight, 5) {
                in_flight += 1;
                log.push(format!("{step}→{in_flight}"));
            } else {
                log.push(format!("{step} shed {in_flight}/{}", shares.of(&request, 5)));
            }
        }
        assert_eq!(
            log.join(", "),
            "N→1, N→2, L→3, L shed 3/3, N→4, N shed 4/4, C→5, C shed 5/5, L shed 5/3, r→4, r→3, r→2, L→3, \
             L shed 3/3, N→4, N shed 4/4, C→5"
        );
    }

    #[test]
    fn a_continuation_is_admitted_as_the_most_critical() {
        let shares = CriticalityShares::with_reserve(5, 3, 1).unwrap();
        assert!(!shares.admit(&LOW, 4, 5));
        assert!(shares.admit(&LOW.continuing(), 4, 5));
    }

    #[test]
    fn a_config_file_may_mix_shares_reserves_and_counts() {
        let shares: CriticalityShares =
            toml::from_str("critical = { all_but = 1 }\nsheddable = { at_most = 3 }\nsheddable_plus = 0.5")
                .unwrap();
        assert_eq!(shares.of(&NORMAL, 5), 4);
        assert_eq!(shares.of(&LOW, 5), 3);
        assert_eq!(shares.of(&Request::DEFAULT.of(Criticality::SheddablePlus), 5), 3);
        assert_eq!(toml::from_str::<CriticalityShares>(&toml::to_string(&shares).unwrap()).unwrap(), shares);
        assert!(toml::from_str::<CriticalityShares>("sheddible = 0.5").is_err());
    }

    proptest! {
        #[test]
        fn what_is_in_use_never_exceeds_the_bound(
            bound in 0_usize..50,
            millionths in proptest::array::uniform4(0.0_f64..=1.0),
            steps in prop::collection::vec((0_usize..4, 1_u32..5, any::<bool>()), 0..200),
        ) {
            let [critical_plus, critical, sheddable_plus, sheddable] =
                millionths.map(|part| Allowance::Share(Share::new(part).unwrap()));
            let shares = CriticalityShares { critical_plus, critical, sheddable_plus, sheddable };
            let mut admitted = Vec::<usize>::new();
            for (level, weight, leave) in steps {
                let used: usize = admitted.iter().sum();
                if leave {
                    admitted.pop();
                } else if shares.admit(&Request::DEFAULT.of(Criticality::ALL[level]).weighing(weight), used, bound) {
                    admitted.push(weight as usize);
                    prop_assert!(used + weight as usize <= bound || admitted.len() == 1);
                }
            }
        }
    }
}
