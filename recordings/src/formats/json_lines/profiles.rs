//! What the well-known writers of JSON access logs call their fields.

use super::{Field, Path};
use crate::formats::Format;
use crate::formats::names::{Role, meanings, plain};
use crate::options::{FieldMap, Options};
use crate::quantity::{Decimal, Unit};
use crate::record::{Basis, Outcome, Record, Status};

/// The formats of this family.
pub(crate) const FORMATS: &[Format] = &[
    Format::Caddy,
    Format::Traefik,
    Format::Envoy,
    Format::Haproxy,
    Format::Pino,
    Format::Nginx,
    Format::GenericJsonLines,
];

/// A known writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Caddy,
    Traefik,
    Envoy,
    Haproxy,
    Pino,
    Nginx,
    Generic,
}

/// A known writer, with what it calls its fields and how it measures.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) kind: Kind,
    pub(crate) format: Format,
    /// `None` when the order of the lines has to tell.
    pub(crate) basis: Option<Basis>,
    /// The unit of latencies that do not say theirs.
    pub(crate) unit: Option<Unit>,
    stamp: &'static [&'static str],
    latency: &'static [&'static str],
    service: &'static [&'static str],
    status: &'static [&'static str],
}

/// Keys by which nginx's own variables give a log of its away, whatever the author renamed.
const NGINX_NAMES: &[&str] = &[
    "requesttime",
    "reqtime",
    "upstreamresponsetime",
    "upstreamaddr",
    "upstreamstatus",
    "bodybytessent",
    "bodybytes",
    "bytessent",
    "remoteaddr",
    "remoteuser",
    "httpuseragent",
    "httpreferer",
    "httphost",
    "requestmethod",
    "requesturi",
    "requestlength",
    "timeiso8601",
    "timelocal",
    "msec",
    "httpxforwardedfor",
    "ua",
    "uri",
];

const CADDY: Profile = Profile {
    kind: Kind::Caddy,
    format: Format::Caddy,
    basis: Some(Basis::End),
    unit: Some(Unit::Seconds),
    stamp: &["ts", "time", "timestamp", "@timestamp"],
    latency: &["duration", "latency"],
    service: &[],
    status: &["status"],
};
const TRAEFIK: Profile = Profile {
    kind: Kind::Traefik,
    format: Format::Traefik,
    basis: None,
    unit: Some(Unit::Nanoseconds),
    stamp: &["StartUTC", "StartLocal", "time"],
    latency: &["Duration"],
    service: &["OriginDuration"],
    status: &["DownstreamStatus", "OriginStatus"],
};
const ENVOY: Profile = Profile {
    kind: Kind::Envoy,
    format: Format::Envoy,
    basis: Some(Basis::Start),
    unit: Some(Unit::Milliseconds),
    stamp: &["start_time", "startTime", "timestamp", "@timestamp", "time"],
    latency: &["duration", "duration_ms", "total_duration", "latency"],
    service: &["upstream_service_time", "upstreamServiceTime", "x_envoy_upstream_service_time"],
    status: &["response_code", "responseCode", "status", "code"],
};
const HAPROXY: Profile = Profile {
    kind: Kind::Haproxy,
    format: Format::Haproxy,
    basis: Some(Basis::Start),
    unit: Some(Unit::Milliseconds),
    stamp: &[],
    latency: &[
        "Ta",
        "ta",
        "time_active",
        "active_time",
        "Tt",
        "tt",
        "time_total",
        "total_time",
        "time_duration",
    ],
    service: &["Tr", "time_response", "response_time", "time_server", "server_time", "time_backend_response"],
    status: &[],
};
const PINO: Profile = Profile {
    kind: Kind::Pino,
    format: Format::Pino,
    basis: Some(Basis::End),
    unit: Some(Unit::Milliseconds),
    stamp: &["time", "timestamp", "ts"],
    latency: &["responseTime", "responseTimeMs", "duration"],
    service: &[],
    status: &["res.statusCode", "statusCode", "status", "res.status"],
};
const NGINX: Profile = Profile {
    kind: Kind::Nginx,
    format: Format::Nginx,
    basis: None,
    unit: None,
    stamp: &[],
    latency: &[],
    service: &[],
    status: &[],
};
const GENERIC: Profile = Profile { kind: Kind::Generic, format: Format::GenericJsonLines, ..NGINX };

/// The writer of these objects; `None` if they are no access log.
pub(crate) fn of(
    objects: &[Vec<(Path, String)>],
    tagged_haproxy: bool,
    options: &Options,
) -> Option<Profile> {
    let has = |name: &str| {
        objects.iter().any(|o| o.iter().any(|(path, _)| path.last().is_some_and(|key| key == name)))
    };
    let any = |names: &[&str]| names.iter().any(|name| has(name));
    let caddy =
        objects.iter().any(|object| Kind::Caddy.is_access(object) && text_of(object, "logger").is_some())
            || (has("msg")
                && has("duration")
                && objects.iter().any(|o| text_of(o, "msg") == Some("handled request")));
    let timers = ["Ta", "TR", "Tw", "Tc", "Tr", "Tq", "Tt"].iter().filter(|name| has(name)).count();
    let profile = if caddy {
        CADDY
    } else if any(&["StartUTC", "OriginDuration", "DownstreamStatus"]) && has("Duration") {
        TRAEFIK
    } else if any(&["response_flags", "responseFlags", "upstream_service_time", "response_code_details"]) {
        ENVOY
    } else if timers >= 2 || tagged_haproxy {
        HAPROXY
    } else if has("responseTime") && any(&["pid", "hostname", "reqId"]) {
        PINO
    } else if objects
        .iter()
        .any(|o| o.iter().any(|(p, _)| p.last().is_some_and(|k| NGINX_NAMES.contains(&plain(k).as_str()))))
    {
        NGINX
    } else {
        let told = !options.fields.is_empty() || options.format == Some(Format::GenericJsonLines);
        let found = objects.iter().any(|object| object.iter().any(|(path, _)| names_a_latency(path)));
        return (told || found).then_some(GENERIC);
    };
    Some(profile)
}

fn names_a_latency(path: &Path) -> bool {
    path.last().is_some_and(|key| key != "time" && meanings(key).iter().any(|m| m.role == Role::Latency))
}

fn text_of<'o>(object: &'o [(Path, String)], key: &str) -> Option<&'o str> {
    object.iter().find(|(path, _)| path.len() == 1 && path[0] == key).map(|(_, value)| value.as_str())
}

impl Profile {
    /// The user's field map, completed by what is known of this writer.
    pub(crate) fn field_map(&self, fields: &[Field], options: &Options) -> FieldMap {
        let mut map = options.fields.clone();
        let complete = |slot: &mut Option<String>, names: &[&str]| {
            if slot.is_none() {
                let by_path = names.iter().find(|name| fields.iter().any(|f| f.name == **name));
                let by_key = || {
                    names
                        .iter()
                        .find_map(|name| fields.iter().find(|f| f.name.rsplit('.').next() == Some(*name)))
                };
                *slot = by_path.map(|n| (*n).to_owned()).or_else(|| by_key().map(|f| f.name.clone()));
            }
        };
        let time_given = map.time.is_some();
        complete(&mut map.time, self.stamp);
        complete(&mut map.latency, self.latency);
        complete(&mut map.service, self.service);
        complete(&mut map.status, self.status);
        if !time_given && let Some(name) = &map.time {
            // A profile's name with values that are no date is somebody else's field.
            let dated = fields.iter().any(|f| {
                f.name == *name && f.values.iter().any(|v| crate::quantity::instant::Style::of(v).is_some())
            });
            if !dated {
                map.time = None;
            }
        }
        map
    }

    /// What to log so that there is a duration.
    pub(crate) fn remedy(&self) -> &'static str {
        match self.kind {
            Kind::Nginx => {
                "Add $request_time and $upstream_response_time (and $msec) to the log_format, or name the field with --latency-field"
            }
            Kind::Envoy => {
                "Add %DURATION% and %RESPONSE_CODE_DETAILS% to the access log format, or name the field with --latency-field"
            }
            Kind::Haproxy => "Add %Ta and %Tr to the log-format, or name the field with --latency-field",
            Kind::Traefik => {
                "Keep the Duration and StartUTC fields in accessLog.fields, or name the field with --latency-field"
            }
            Kind::Caddy | Kind::Pino | Kind::Generic => {
                "Log the duration of each request, or name the field with --latency-field"
            }
        }
    }
}

/// Caddy's `duration_format`: seconds as a fraction by default; `ms` and `ns` are whole numbers.
pub(crate) fn caddy_unit(field: &Field) -> Unit {
    let numbers: Vec<Decimal> = field.values.iter().filter_map(|v| Decimal::parse(v, b'.')).collect();
    if numbers.iter().all(|n| n.is_integer()) && numbers.iter().any(|n| n.to_f64() > 0.0) {
        let largest = numbers.iter().map(|n| n.to_f64()).fold(0.0, f64::max);
        return if largest >= 100_000.0 { Unit::Nanoseconds } else { Unit::Milliseconds };
    }
    Unit::Seconds
}

impl Kind {
    /// Whether an object is a line of the access log, and not of another logger in the same file.
    pub(crate) fn is_access(self, object: &[(Path, String)]) -> bool {
        match self {
            Self::Caddy => match text_of(object, "logger") {
                Some(logger) => logger.starts_with("http.log.access"),
                None => text_of(object, "msg") == Some("handled request"),
            },
            _ => true,
        }
    }

    /// The same, cheaply, for a raw line.
    pub(crate) fn is_access_line(self, line: &[u8]) -> bool {
        let contains = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
        match self {
            Self::Caddy => contains(b"http.log.access") || contains(b"handled request"),
            _ => true,
        }
    }

    /// The field that says how a request ended, beside its status.
    pub(crate) fn mark(self, fields: &[Field]) -> Option<usize> {
        let named = |names: &[&str]| {
            fields.iter().position(|f| names.iter().any(|n| f.name.rsplit('.').next() == Some(*n)))
        };
        match self {
            Self::Envoy => named(&["response_flags", "responseFlags", "flags"]),
            Self::Haproxy => fields.iter().position(|field| {
                let mut values = field.values.iter().filter(|v| !v.is_empty()).peekable();
                values.peek().is_some() && values.all(|v| crate::formats::haproxy::is_termination_state(v))
            }),
            Self::Traefik => named(&["OriginStatus"]),
            _ => None,
        }
    }

    /// A second field of that kind.
    pub(crate) fn second(self, fields: &[Field]) -> Option<usize> {
        match self {
            Self::Envoy => {
                fields.iter().position(|f| f.name.rsplit('.').next() == Some("response_code_details"))
            }
            _ => None,
        }
    }

    /// How the request ended, where the status alone does not tell.
    pub(crate) fn judge(self, record: &mut Record, mark: &[u8], second: &[u8]) {
        match self {
            Self::Envoy => crate::formats::envoy::judge(record, mark, second),
            Self::Haproxy => crate::formats::haproxy::judge(record, mark),
            Self::Pino if record.status == Status::Absent => record.outcome = Outcome::Cancelled,
            _ => {}
        }
    }
}
