//! Requests in flight, by a sweep over their starts and ends.

use crate::record::Basis;

/// The most requests in flight at any instant. A request is in flight from its start up to, and not at, its end.
pub(crate) fn most_in_flight(spans: impl Iterator<Item = (f64, f64)>) -> u64 {
    let (mut starts, mut ends): (Vec<f64>, Vec<f64>) = spans.filter(|(start, end)| start < end).unzip();
    starts.sort_unstable_by(f64::total_cmp);
    ends.sort_unstable_by(f64::total_cmp);
    let mut ended = 0;
    let mut most = 0;
    for (started, start) in (1..).zip(&starts) {
        while ends.get(ended).is_some_and(|end| end <= start) {
            ended += 1;
        }
        most = most.max(started - ended);
    }
    most as u64
}

/// A span in seconds. The end that was not written is the sum or difference of doubles, as whoever computes it from
/// the file by hand gets it: where the end of one request and the start of another fall on the same written instant,
/// the file does not say which came first, and rounding decides.
pub(crate) fn seconds((start, end): (i64, i64), basis: Basis) -> (f64, f64) {
    let length = end.abs_diff(start) as f64 / 1e9;
    match basis {
        Basis::End => (end as f64 / 1e9 - length, end as f64 / 1e9),
        Basis::Start => (start as f64 / 1e9, start as f64 / 1e9 + length),
        Basis::Both | Basis::None => (start as f64 / 1e9, end as f64 / 1e9),
    }
}

/// How many others each request meets when it comes. Of those that come at the same instant nobody knows who was first:
/// each meets half of the others. The spans have to be sorted by their starts.
pub(crate) fn met(spans: &[(i64, i64)]) -> Vec<u32> {
    let mut ends: Vec<i64> = spans.iter().map(|(_, end)| *end).collect();
    ends.sort_unstable();
    let (mut ended, mut before, mut come) = (0, 0, 0);
    spans
        .iter()
        .map(|(start, _)| {
            while ends.get(ended).is_some_and(|end| end <= start) {
                ended += 1;
            }
            if spans.get(come).is_some_and(|(other, _)| other <= start) {
                before = come;
                while spans.get(come).is_some_and(|(other, _)| other <= start) {
                    come += 1;
                }
            }
            u32::try_from(usize::midpoint(before, come - 1).saturating_sub(ended)).unwrap_or(u32::MAX)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_meets_those_that_have_not_ended_when_it_comes() {
        assert_eq!(met(&[(0, 10), (5, 15), (12, 20), (30, 31)]), [0, 1, 1, 0]);
        // Three at once: one of them before and one after each.
        assert_eq!(met(&[(0, 10), (5, 15), (10, 11), (10, 20), (10, 30)]), [0, 1, 2, 2, 2]);
    }

    #[test]
    fn an_end_comes_before_a_start_at_the_same_instant() {
        assert_eq!(most_in_flight([(0.0, 10.0), (10.0, 20.0), (5.0, 15.0)].into_iter()), 2);
        assert_eq!(most_in_flight([(3.0, 3.0)].into_iter()), 0);
        assert_eq!(most_in_flight(std::iter::empty()), 0);
    }
}
