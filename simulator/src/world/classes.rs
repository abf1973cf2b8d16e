//! The classes of requests.

use goodput::Criticality;

use crate::{ClassName, random::Stream, scenario::Class};

/// All classes of a scenario, by number.
#[derive(Debug, Default)]
pub(super) struct Classes {
    names: Vec<ClassName>,
}

impl Classes {
    pub(super) fn names(&self) -> &[ClassName] {
        &self.names
    }

    /// The criticality of a class.
    #[inline]
    pub(super) fn criticality(&self, class: u16) -> Criticality {
        self.names.get(class as usize).map_or(Criticality::Critical, |class| class.criticality)
    }

    /// Takes up a client's classes.
    pub(super) fn picker(&mut self, classes: &[Class], chance: Stream) -> Picker {
        let numbers: Vec<u16> = classes.iter().map(|class| self.number(class)).collect();
        let by = if classes.iter().any(|class| class.turns.is_some()) {
            By::Turns {
                turns: classes.iter().map(|class| class.turns.unwrap_or(0)).collect(),
                at: 0,
                taken: 0,
            }
        } else {
            let mut sum = 0.0;
            let shares = classes.iter().map(|class| {
                sum += class.share.unwrap_or(0.0);
                sum
            });
            By::Chance { sums: shares.collect(), chance: Box::new(chance) }
        };
        Picker { names: classes.iter().map(|class| class.name.clone()).collect(), numbers, by }
    }

    fn number(&mut self, class: &Class) -> u16 {
        let known = self.names.iter().position(|known| known.name == class.name);
        let number = known.unwrap_or_else(|| {
            self.names.push(ClassName { name: class.name.clone(), criticality: class.criticality });
            self.names.len() - 1
        });
        number as u16
    }
}

/// Says of which class the next request of a client is.
#[derive(Debug)]
pub(super) struct Picker {
    names: Vec<String>,
    numbers: Vec<u16>,
    by: By,
}

#[derive(Debug)]
enum By {
    /// Running sums of the shares.
    Chance {
        sums: Vec<f64>,
        chance: Box<Stream>,
    },
    Turns {
        turns: Vec<u32>,
        at: usize,
        taken: u32,
    },
}

impl Picker {
    /// The class of the next request; 0 where there are none.
    #[inline]
    pub(super) fn pick(&mut self) -> u16 {
        if self.numbers.len() < 2 {
            return self.numbers.first().copied().unwrap_or(0);
        }
        match &mut self.by {
            By::Chance { sums, chance } => {
                let all = sums[sums.len() - 1];
                let drawn = chance.uniform() * all;
                self.numbers[sums.partition_point(|&sum| sum <= drawn).min(sums.len() - 1)]
            }
            By::Turns { turns, at, taken } => {
                // Checked: somebody has a turn.
                while *taken >= turns[*at] {
                    *at = (*at + 1) % turns.len();
                    *taken = 0;
                }
                *taken += 1;
                self.numbers[*at]
            }
        }
    }

    /// The class of that name.
    pub(super) fn named(&self, name: &str) -> u16 {
        self.names.iter().position(|known| known == name).map_or(0, |index| self.numbers[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn class(name: &str, share: Option<f64>, turns: Option<u32>) -> Class {
        Class { name: name.into(), criticality: Criticality::Critical, share, turns }
    }

    fn picker(classes: &[Class]) -> Picker {
        Classes::default().picker(classes, Stream::new(1, Purpose::Classes, 0))
    }

    #[test]
    fn turns_are_taken_in_rows() {
        let mut picker =
            picker(&[class("a", None, Some(1)), class("b", None, Some(0)), class("c", None, Some(3))]);
        let picked: Vec<_> = (0..9).map(|_| picker.pick()).collect();
        assert_eq!(picked, [0, 2, 2, 2, 0, 2, 2, 2, 0]);
    }

    #[test]
    fn shares_are_kept_within_chance() {
        let mut picker =
            picker(&[class("a", Some(3.0), None), class("b", Some(0.0), None), class("c", Some(1.0), None)]);
        let mut counts = [0_u32; 3];
        (0..100_000).for_each(|_| counts[picker.pick() as usize] += 1);
        assert_eq!(counts[1], 0);
        // Five standard deviations of a share of 1/4 among 100,000.
        assert!((f64::from(counts[2]) - 25_000.0).abs() < 685.0, "{counts:?}");
    }

    #[test]
    fn classes_of_the_same_name_are_one() {
        let mut classes = Classes::default();
        let stream = || Stream::new(1, Purpose::Classes, 0);
        let mut first = classes.picker(&[class("a", Some(1.0), None)], stream());
        let mut second = classes.picker(&[class("b", Some(1.0), None)], stream());
        let third = classes.picker(&[class("c", None, None), class("a", None, None)], stream());
        assert_eq!((first.pick(), second.pick(), third.named("a"), third.named("c")), (0, 1, 0, 2));
    }
}
