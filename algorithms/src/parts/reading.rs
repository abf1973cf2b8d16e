use crate::{Latencies, Window};

/// Requests in flight at the end of a window, as well as a window tells: the mean over it. What it was at the last
/// admission if the window has no duration.
pub(crate) fn in_flight(window: &Window) -> f64 {
    let duration_ns = window.duration_ns();
    if duration_ns == 0 { window.max_in_flight as f64 } else { area_ns(window) / duration_ns as f64 }
}

/// The area as far as 64 bits go, which convert ten times faster than 128 do.
pub(crate) fn area_ns(window: &Window) -> f64 {
    u64::try_from(window.in_flight_area_ns).unwrap_or(u64::MAX) as f64
}

/// Mean latency in whole nanoseconds; zero without any.
pub(crate) fn mean_latency_ns(ended: &Latencies) -> u64 {
    ended.sum_ns.checked_div(ended.count).unwrap_or(0)
}
