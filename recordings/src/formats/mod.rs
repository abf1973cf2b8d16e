//! The formats. Each file recognises one format or family from content, and reads it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::ReadError;
use crate::input::{Input, Line, MAX_LINE, Prefix, Sample};
use crate::options::Options;
use crate::reading::{Evidence, Output};
use crate::record::Basis;

mod aggregates;
mod alb;
mod combined;
mod detect;
mod envoy;
mod gatling;
mod ghz;
mod haproxy;
mod iis;
mod jmeter;
mod json_lines;
mod k6;
mod learn;
mod ltsv;
mod names;
mod openstack;
mod order;
mod plain_tools;
mod spans;
mod tables;
mod vegeta;

pub(crate) use detect::recognise;

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A format of recordings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Format { $($(#[$doc])* $variant,)* }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The format's name, as the user gives it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

formats! {
    /// ApacheBench: `-g` per-request table.
    Ab => "ab",
    /// Apache httpd access logs with `%D` or `%T`.
    Apache => "apache",
    /// autocannon's JSON result: an aggregate.
    Autocannon => "autocannon",
    /// AWS application and classic load balancer logs.
    AwsAlb => "aws_alb",
    /// Caddy's JSON access log.
    Caddy => "caddy",
    /// Alibaba's GenAI serving trace.
    Alibaba => "dataset_alibaba",
    /// Azure Functions 2021 trace.
    AzureFunctions => "dataset_azure_functions",
    /// Azure LLM inference trace: arrivals only.
    AzureLlm => "dataset_azure_llm",
    /// Requests of the 1998 World Cup by minute: arrivals only.
    WorldCup98 => "dataset_worldcup98",
    /// Envoy and Istio access logs, text and JSON.
    Envoy => "envoy",
    /// fortio and Nighthawk JSON results: aggregates.
    Fortio => "fortio",
    /// Gatling's simulation.log, text and binary.
    Gatling => "gatling",
    /// A table whose columns the user names, or whose header names them with their units.
    GenericCsv => "generic_csv",
    /// JSON lines whose keys the user names.
    GenericJsonLines => "generic_jsonl",
    /// ghz's JSON report.
    Ghz => "ghz",
    /// This project's own request list.
    Goodput => "goodput",
    /// gunicorn access logs with `%(D)s` or `%(L)s`.
    Gunicorn => "gunicorn",
    /// h2load's `--log-file`.
    H2load => "h2load",
    /// HAProxy's HTTP log, text and JSON.
    Haproxy => "haproxy",
    /// HdrHistogram interval logs: aggregates.
    HdrHistogram => "hdrhistogram",
    /// hey's CSV, and its summary.
    Hey => "hey",
    /// httperf's summary: an aggregate.
    Httperf => "httperf",
    /// IIS and other W3C extended logs.
    Iis => "iis",
    /// Jaeger's JSON export of traces.
    Jaeger => "jaeger",
    /// JMeter's JTL, CSV and XML.
    Jmeter => "jmeter",
    /// k6's CSV and JSON.
    K6 => "k6",
    /// locust's statistics: aggregates.
    Locust => "locust",
    /// nginx access logs with `$request_time`: text, JSON, LTSV.
    Nginx => "nginx",
    /// oha's CSV, and its JSON summary.
    Oha => "oha",
    /// OpenStack API logs, as eventlet writes them.
    Openstack => "openstack",
    /// OTLP spans as JSON.
    Otlp => "otlp",
    /// pino-http logs.
    Pino => "pino",
    /// Prometheus histograms: aggregates.
    Prometheus => "prometheus",
    /// siege's verbose output.
    Siege => "siege",
    /// Spans as CSV.
    TraceCsv => "trace_csv",
    /// Traefik access logs, JSON and common log format.
    Traefik => "traefik",
    /// A service's own list of arrival, start and end.
    Truth => "truth",
    /// tsung's statistics: aggregates.
    Tsung => "tsung",
    /// vegeta results: gob, CSV and JSON; and its report.
    Vegeta => "vegeta",
    /// wrk and wrk2 output: aggregates.
    Wrk => "wrk",
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A format name that is not known.
#[derive(Debug, thiserror::Error)]
#[error("format `{0}` is unknown; known are {known}", known = Format::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let wanted = match text {
            "csv" => "generic_csv",
            "jsonl" | "json" => "generic_jsonl",
            "alb" => "aws_alb",
            "istio" => "envoy",
            "w3c" => "iis",
            other => other,
        };
        Self::ALL.iter().copied().find(|f| f.name() == wanted).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Reads one file of a recognised format from its first byte to its last.
pub(crate) trait Reader {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError>;
}

/// A format that has been recognised, with what is assumed about it.
pub(crate) struct Recognised {
    pub(crate) format: Format,
    pub(crate) variant: String,
    pub(crate) basis: Basis,
    pub(crate) evidence: Evidence,
    pub(crate) unit: String,
    pub(crate) assumed: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) reader: Box<dyn Reader>,
}

impl Recognised {
    pub(crate) fn new(
        format: Format,
        variant: impl Into<String>,
        basis: Basis,
        unit: impl Into<String>,
        reader: impl Reader + 'static,
    ) -> Self {
        Self {
            format,
            variant: variant.into(),
            basis,
            evidence: Evidence::Format,
            unit: unit.into(),
            assumed: Vec::new(),
            notes: Vec::new(),
            reader: Box::new(reader),
        }
    }

    /// An aggregate: no requests, no stamps of requests.
    pub(crate) fn aggregate(
        format: Format,
        variant: &'static str,
        unit: &'static str,
        reader: impl Reader + 'static,
    ) -> Self {
        Self::new(format, variant, Basis::None, unit, reader)
    }
}

/// What a format makes of the first bytes of a file: nothing, itself, or the reason why it has to be refused.
pub(crate) type Probe = Result<Option<Recognised>, ReadError>;

/// Recognises one format.
pub(crate) type ProbeFn = fn(&Sample, &Options) -> Probe;

/// Reads a format whose records are lines.
pub(crate) trait LineReader {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>);

    /// Called after the last line.
    fn finish(&mut self, _out: &mut Output<'_>) {}
}

/// Feeds lines to a [`LineReader`].
pub(crate) struct Lines<L> {
    reader: L,
    prefix: Prefix,
}

impl<L: LineReader> Lines<L> {
    pub(crate) fn new(reader: L, sample: &Sample) -> Self {
        Self { reader, prefix: sample.prefix() }
    }
}

impl<L: LineReader> Reader for Lines<L> {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        if let Some(prefix) = self.prefix.name() {
            out.note(format!("each line begins with a {prefix}, which was taken off"));
        }
        let mut lines = 0;
        while let Some(line) = input.next_line()? {
            match line {
                Line::Text(number, text) => {
                    lines = number;
                    let text = self.prefix.strip(text);
                    if text.trim_ascii().is_empty() {
                        out.blank();
                    } else {
                        self.reader.line(number, text, out);
                    }
                }
                Line::TooLong(number) => {
                    lines = number;
                    out.bad(number, format!("longer than {} MiB", MAX_LINE / 1024 / 1024));
                }
            }
        }
        out.reading.lines = lines;
        self.reader.finish(out);
        Ok(())
    }
}
