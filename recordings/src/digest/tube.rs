//! The straightest line through a tube: the taut string of statistics (Davies and Kovac, "Local Extremes, Runs, Strings
//! and Multiresolution", 2001). Of all courses between a lower and an upper bound it is the shortest, and so has the
//! steadiest slope that the bounds allow.

use std::collections::VecDeque;

/// A corner of the string: index and height.
type Corner = (usize, f64);

fn slope(from: Corner, to: Corner) -> f64 {
    (to.1 - from.1) / (to.0 as f64 - from.0 as f64)
}

/// Values between `low` and `high` at each index, as straight as the bounds allow. Both bounds have the same length, and
/// no lower one lies above its upper one.
pub(crate) fn straightest(low: &[i64], high: &[i64]) -> Vec<i64> {
    let Some(base) = low.first().copied() else { return Vec::new() };
    let at = |bounds: &[i64], index: usize| bounds[index].saturating_sub(base) as f64;
    let middle = |index: usize| f64::midpoint(at(low, index), at(high, index));
    let last = low.len() - 1;
    let mut corners = vec![(0, middle(0))];
    // The shortest ways from the last corner along each bound, first the corner itself.
    let (mut below, mut above) = (VecDeque::from([corners[0]]), VecDeque::from([corners[0]]));
    for index in 1..=last {
        let ends = index == last;
        let under = (index, if ends { middle(last) } else { at(low, index) });
        let over = (index, if ends { middle(last) } else { at(high, index) });
        while below.len() > 1
            && slope(below[below.len() - 2], below[below.len() - 1]) <= slope(below[below.len() - 1], under)
        {
            below.pop_back();
        }
        below.push_back(under);
        while above.len() > 1
            && slope(above[above.len() - 2], above[above.len() - 1]) >= slope(above[above.len() - 1], over)
        {
            above.pop_back();
        }
        above.push_back(over);
        while below.len() == 2 && above.len() > 2 && slope(below[0], below[1]) > slope(above[0], above[1]) {
            above.pop_front();
            below = VecDeque::from([above[0], under]);
            corners.push(above[0]);
        }
        while above.len() == 2 && below.len() > 2 && slope(above[0], above[1]) < slope(below[0], below[1]) {
            below.pop_front();
            above = VecDeque::from([below[0], over]);
            corners.push(below[0]);
        }
    }
    let rest = if above.len() > below.len() { &above } else { &below };
    corners.extend(rest.iter().skip(1));
    let mut line = Vec::with_capacity(low.len());
    for pair in corners.windows(2) {
        let step = slope(pair[0], pair[1]);
        line.extend((pair[0].0..pair[1].0).map(|index| pair[0].1 + step * (index - pair[0].0) as f64));
    }
    line.extend(corners.last().map(|corner| corner.1));
    line.iter()
        .enumerate()
        .map(|(index, value)| (base.saturating_add(*value as i64)).clamp(low[index], high[index]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_tube_holds_a_straight_line() {
        let low: Vec<i64> = (0..100).map(|n| n / 10 * 10).collect();
        let high: Vec<i64> = low.iter().map(|l| l + 10).collect();
        let line = straightest(&low, &high);
        assert!(line.windows(2).all(|w| (0..=2).contains(&(w[1] - w[0]))), "{line:?}");
        assert!(line.iter().zip(low.iter().zip(&high)).all(|(y, (l, h))| l <= y && y <= h));
    }

    #[test]
    fn a_bent_tube_bends_the_line_at_its_corners() {
        let line = straightest(&[0, 0, 10, 0, 0], &[1, 20, 20, 20, 1]);
        assert_eq!(line[2], 10);
        let line = straightest(&[5, 0, 0, 0, 5], &[5, 9, 2, 9, 5]);
        assert_eq!(line[2], 2);
        assert_eq!(straightest(&[], &[]), Vec::<i64>::new());
        assert_eq!(straightest(&[3], &[5]), [4]);
    }
}
