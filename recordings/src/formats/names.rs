//! What people call the fields of an access log: which names mean the latency, the time stamp, the status.

use crate::quantity::Unit;

/// What a field means, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A time stamp.
    Stamp,
    /// A time stamp known to be that of the arrival.
    Start,
    /// A time stamp known to be that of the completion.
    End,
    /// The whole time a request took.
    Latency,
    /// The part of it spent in the service behind.
    Service,
    /// The status.
    Status,
}

/// A name's meaning. Smaller ranks are preferred among fields of the same role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) role: Role,
    pub(crate) rank: usize,
    /// The unit, where the name says it.
    pub(crate) unit: Option<Unit>,
}

const STAMP: &[&str] = &[
    "msec",
    "timestamp",
    "ts",
    "timeiso8601",
    "time",
    "timelocal",
    "datetime",
    "date",
    "eventtime",
    "logtime",
    "unixtime",
    "unix",
    "epoch",
    "t",
    "tr",
];
const START: &[&str] = &[
    "startutc",
    "starttime",
    "starttimeunixnano",
    "start",
    "startlocal",
    "starttimestamp",
    "arrival",
    "arrivaltime",
    "requeststart",
    "requesttimestamp",
    "startunix",
];
const END: &[&str] =
    &["end", "endtime", "endtimeunixnano", "endtimestamp", "finish", "finished", "completed", "endunix"];
const LATENCY: &[&str] = &[
    "requesttime",
    "reqtime",
    "rt",
    "responsetime",
    "resptime",
    "duration",
    "requestduration",
    "durationtime",
    "latency",
    "elapsed",
    "elapsedtime",
    "timetaken",
    "took",
    "totaltime",
    "total",
    "ta",
    "tt",
    "ttotal",
    "processingtime",
    "exectime",
    "executiontime",
    "runtime",
    "timeelapsed",
    "durationhuman",
    "time",
    "d",
    "l",
];
const SERVICE: &[&str] = &[
    "upstreamresponsetime",
    "urt",
    "upstreamtime",
    "upstreamrt",
    "upstreamservicetime",
    "ust",
    "uresptime",
    "apptime",
    "backendtime",
    "servicetime",
    "originduration",
    "upstreamduration",
    "backendduration",
    "ut",
];
const STATUS: &[&str] = &[
    "status",
    "statuscode",
    "downstreamstatus",
    "responsecode",
    "httpstatus",
    "httpstatuscode",
    "responsestatus",
    "rescode",
    "st",
    "code",
    "scstatus",
    "rc",
];
/// Longest first, so that `durationms` is not read as `durationm` in seconds.
const UNITS: &[(&str, Unit)] = &[
    ("nanoseconds", Unit::Nanoseconds),
    ("microseconds", Unit::Microseconds),
    ("milliseconds", Unit::Milliseconds),
    ("millis", Unit::Milliseconds),
    ("micros", Unit::Microseconds),
    ("nanos", Unit::Nanoseconds),
    ("seconds", Unit::Seconds),
    ("secs", Unit::Seconds),
    ("msec", Unit::Milliseconds),
    ("usec", Unit::Microseconds),
    ("sec", Unit::Seconds),
    ("ns", Unit::Nanoseconds),
    ("us", Unit::Microseconds),
    ("ms", Unit::Milliseconds),
    ("s", Unit::Seconds),
];

/// A name in lower case, without anything but letters and digits.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

/// All that a name may mean: `time` may be a stamp or a latency, which its values decide.
pub(crate) fn meanings(name: &str) -> Vec<Meaning> {
    let name = plain(name);
    let mut found = Vec::new();
    look_up(&name, None, &mut found);
    if found.is_empty()
        && let Some((suffix, unit)) =
            UNITS.iter().find(|(suffix, _)| name.len() > suffix.len() && name.ends_with(suffix))
    {
        look_up(&name[..name.len() - suffix.len()], Some(*unit), &mut found);
    }
    found
}

fn look_up(name: &str, unit: Option<Unit>, found: &mut Vec<Meaning>) {
    let lists = [
        (Role::Start, START),
        (Role::End, END),
        (Role::Stamp, STAMP),
        (Role::Latency, LATENCY),
        (Role::Service, SERVICE),
        (Role::Status, STATUS),
    ];
    for (role, list) in lists {
        if let Some(rank) = list.iter().position(|known| *known == name) {
            found.push(Meaning { role, rank, unit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_people_mean_by_them() {
        let of = |name: &str| meanings(name).first().map(|m| (m.role, m.unit));
        assert_eq!(of("request_time"), Some((Role::Latency, None)));
        assert_eq!(of("durationMs"), Some((Role::Latency, Some(Unit::Milliseconds))));
        assert_eq!(of("latency_us"), Some((Role::Latency, Some(Unit::Microseconds))));
        assert_eq!(of("$upstream_response_time"), Some((Role::Service, None)));
        assert_eq!(of("res.statusCode"), None);
        assert_eq!(of("statusCode"), Some((Role::Status, None)));
        assert_eq!(of("start_unix"), Some((Role::Start, None)));
        assert_eq!(of("arrival_us"), Some((Role::Start, Some(Unit::Microseconds))));
        assert_eq!(of("body_bytes_sent"), None);
        assert_eq!(meanings("time").iter().map(|m| m.role).collect::<Vec<_>>(), [Role::Stamp, Role::Latency]);
    }
}
