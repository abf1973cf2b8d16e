//! Numbers and sentences as pictures and tables show them.

use std::time::Duration;

use super::play::{Column, Played};

/// With a comma between thousands, and as many decimals as it takes to tell small numbers apart.
pub(crate) fn number(value: f64) -> String {
    if value >= 100.0 || (value - libm::round(value)).abs() < 1e-9 {
        return thousands(libm::round(value) as u64);
    }
    short(value)
}

/// With at most two decimals and no zeros at the end.
pub(super) fn short(value: f64) -> String {
    let decimals = if value >= 10.0 { 1 } else { 2 };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time in seconds, in the unit that suits it, to about three digits.
pub(crate) fn seconds(value: f64) -> String {
    if value <= 0.0 {
        return "0 s".to_owned();
    }
    let (value, unit) = match value {
        value if value >= 0.9995 => (value, "s"),
        value if value >= 0.000_999_5 => (value * 1e3, "ms"),
        value => (value * 1e6, "µs"),
    };
    let text = if value >= 99.95 {
        thousands(libm::round(value) as u64)
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A time in seconds, as a round figure of an axis.
pub(super) fn seconds_of_axis(value: f64) -> String {
    seconds(value)
}

/// A share of one, as a round figure of an axis.
pub(super) fn percent_of_axis(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// About how wide a text is, in pixels, in letters of that size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | '\'' | '|' | ':' => 0.29,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '-' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' => 0.86,
        letter if letter.is_uppercase() => 0.68,
        _ => 0.57,
    };
    text.chars().map(letter).sum::<f64>() * size
}

/// A share of one.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// What stands under the title.
pub(super) fn subtitle(played: &Played) -> String {
    let scenario = &played.scenario;
    let mut parts = Vec::new();
    if let Some(first) = played.segments.first() {
        parts.push(format!("capacity {}/s", number(first.capacity_per_second)));
    }
    parts.push(format!("mean service time {}", seconds(scenario.service.work.mean_ns() / 1e9)));
    if let Some(deadline) = scenario.deadline {
        parts.push(format!("an answer is good within {}", seconds(deadline.as_secs_f64())));
    }
    if played.segments.iter().any(|segment| segment.load() > Some(1.0)) {
        parts.push("shaded: overload".into());
    }
    if !scenario.service.outages.is_empty() {
        parts.push("grey: the service is away".into());
    }
    let mut text = parts.join(" · ");
    text[..1].make_ascii_uppercase();
    text
}

/// The two figures at the head of a column.
pub(super) fn head(column: &Column) -> [String; 2] {
    let total = column.summary.total();
    let goodput = match &column.verdict {
        Some(verdict) => format!("goodput {}", percent(verdict.score.goodput_ratio)),
        None => format!("good {}/s", number(column.summary.goodput_per_second())),
    };
    [goodput, format!("p99 {}", quantile(&total.latency_quantile(0.99)))]
}

fn quantile(latency: &Duration) -> String {
    if latency.is_zero() { "–".into() } else { seconds(latency.as_secs_f64()) }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be_without_saying_less() {
        assert_eq!(
            [0.0, 0.5, 2.25, 1234.4, 1_000_000.0].map(number),
            ["0", "0.5", "2.25", "1,234", "1,000,000"]
        );
    }

    #[test]
    fn times_come_in_the_unit_that_suits_them() {
        let times = [0.0, 0.000_05, 0.0102, 0.1, 0.2, 1.5, 75.0, 1234.0];
        assert_eq!(
            times.map(seconds),
            ["0 s", "50 µs", "10.2 ms", "100 ms", "200 ms", "1.5 s", "75 s", "1,234 s"]
        );
    }

    #[test]
    fn small_shares_keep_a_decimal() {
        assert_eq!(
            [0.0, 0.001, 0.0994, 0.0996, 1.0].map(percent),
            ["0 %", "0.1 %", "9.9 %", "10 %", "100 %"]
        );
    }
}
