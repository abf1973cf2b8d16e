use crate::{Latencies, Window};

/// A count in floating point, as `as` has it. That it takes half as long is due to a processor's instruction for numbers with
/// a sign, which are all that occur.
#[inline]
pub(crate) const fn float(count: u64) -> f64 {
    if count <= i64::MAX as u64 { count as i64 as f64 } else { float_of_many(count) }
}

/// Apart, or both would be made one.
#[cold]
#[inline(never)]
const fn float_of_many(count: u64) -> f64 {
    count as f64
}

/// Requests in flight at the end of a window, as well as a window tells: the mean over it. What it was at the last
/// admission if the window has no duration.
pub(crate) fn in_flight(window: &Window) -> f64 {
    let duration_ns = window.duration_ns();
    if duration_ns == 0 { float(window.max_in_flight) } else { area_ns(window) / float(duration_ns) }
}

/// The area as far as 64 bits go, which convert ten times faster than 128 do.
pub(crate) fn area_ns(window: &Window) -> f64 {
    float(u64::try_from(window.in_flight_area_ns).unwrap_or(u64::MAX))
}

/// Mean latency in whole nanoseconds; zero without any.
pub(crate) fn mean_latency_ns(ended: &Latencies) -> u64 {
    ended.sum_ns.checked_div(ended.count).unwrap_or(0)
}
