//! Which format a file is: each is asked in turn, those with the plainest marks first.

use super::{
    Format, ProbeFn, Recognised, aggregates, alb, combined, envoy, gatling, ghz, haproxy, iis, jmeter,
    json_lines, k6, ltsv, openstack, plain_tools, spans, tables, vegeta,
};
use crate::error::ReadError;
use crate::input::Sample;
use crate::options::Options;

/// The formats that each probe may find, in the order in which the probes are asked.
const PROBES: &[(&[Format], ProbeFn)] = &[
    // Binary.
    (&[Format::Gatling], gatling::probe_binary),
    (&[Format::Vegeta], vegeta::probe_gob),
    // XML, and documents and lines of JSON.
    (&[Format::Jmeter], jmeter::probe_xml),
    (&[Format::Otlp], spans::probe_otlp),
    (&[Format::K6], k6::probe_json),
    (&[Format::Vegeta], vegeta::probe_json),
    (&[Format::Autocannon, Format::Fortio, Format::Oha, Format::Vegeta, Format::K6], aggregates::probe_json),
    (&[Format::Ghz], ghz::probe),
    (&[Format::Tsung], aggregates::probe_tsung),
    (&[Format::Locust], aggregates::probe_locust_workers),
    (&[Format::Jaeger], spans::probe_jaeger),
    (json_lines::FORMATS, json_lines::probe),
    // Lines with marks of their own.
    (&[Format::Iis], iis::probe),
    (&[Format::HdrHistogram], aggregates::probe_hdr_log),
    (&[Format::Wrk], aggregates::probe_wrk),
    (&[Format::Hey, Format::Oha], aggregates::probe_hey),
    (&[Format::Httperf], aggregates::probe_httperf),
    (&[Format::Siege], plain_tools::probe_siege),
    (&[Format::H2load], plain_tools::probe_h2load),
    (&[Format::Gatling], gatling::probe_text),
    (&[Format::Envoy], envoy::probe),
    (&[Format::Haproxy], haproxy::probe),
    (&[Format::AwsAlb], alb::probe),
    (&[Format::Openstack], openstack::probe),
    (&[Format::Nginx], ltsv::probe),
    (combined::FORMATS, combined::probe),
    // Tables.
    (&[Format::Jmeter], jmeter::probe_table),
    (&[Format::K6], k6::probe_csv),
    (&[Format::Vegeta], vegeta::probe_csv),
    (&[Format::Locust], aggregates::probe_locust_table),
    (tables::KNOWN, tables::probe_known),
    (&[Format::Prometheus], aggregates::probe_prometheus),
    (&[Format::GenericCsv], tables::probe_generic),
];

/// The format of a file, with a reader for it.
pub(crate) fn recognise(sample: &Sample, options: &Options) -> Result<Recognised, ReadError> {
    if sample.bytes().trim_ascii().is_empty() {
        return Err(ReadError::Empty);
    }
    if let Some(remedy) = utf16(sample.bytes()) {
        return Err(ReadError::Utf16 { remedy });
    }
    let mut refusal = None;
    for (formats, probe) in PROBES {
        if options.format.is_some_and(|wanted| !formats.contains(&wanted)) {
            continue;
        }
        match probe(sample, options) {
            Ok(None) => {}
            Ok(Some(recognised)) => match options.format {
                Some(wanted) if recognised.format != wanted => {
                    refusal = Some(ReadError::NotThisFormat {
                        format: wanted,
                        reason: format!("it looks like {}", recognised.format),
                    });
                }
                _ => return Ok(recognised),
            },
            // A later probe may know better; if none does, the first refusal says what is wrong.
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| match options.format {
        Some(format) => ReadError::NotThisFormat { format, reason: seen(sample) },
        None => unknown(sample),
    }))
}

/// A file in UTF-16: what to do about it.
fn utf16(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(b"\xFF\xFE") && !bytes.starts_with(b"\xFE\xFF") {
        return None;
    }
    let narrow: Vec<u8> = bytes.iter().copied().filter(|b| *b != 0).take(2048).collect();
    let has = |needle: &[u8]| memchr::memmem::find(&narrow, needle).is_some();
    Some(if has(b"Result") && has(b"Timestamp") {
        "vegeta's binary results cannot be recovered from it; record them with `vegeta attack -output FILE`, which \
         avoids the redirection"
    } else {
        "convert it to UTF-8, or let the tool write its file itself instead of redirecting its output"
    })
}

fn unknown(sample: &Sample) -> ReadError {
    let request = |line: &[u8]| {
        let has = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
        has(b" HTTP/1.") || has(b" HTTP/2")
    };
    if sample.share(request) > 0.5 {
        return ReadError::NotARecording {
            what: "lines of requests without a time stamp and a duration that can be found",
            remedy: "log both (uvicorn's default log has neither), or convert the log to a table and name its columns",
        };
    }
    ReadError::Unrecognised { seen: seen(sample) }
}

/// What the first bytes look like, for somebody who wonders why they were not recognised.
fn seen(sample: &Sample) -> String {
    let bytes = sample.bytes();
    let magic: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", "a ZIP archive: unpack it first"),
        (b"\xFD7zXZ", "an xz archive: unpack it first"),
        (b"BZh", "a bzip2 archive: unpack it first"),
        (b"7z\xBC\xAF", "a 7z archive: unpack it first"),
        (b"PAR1", "a Parquet file: export it as CSV first"),
        (b"\x89PNG", "a PNG picture"),
        (b"%PDF", "a PDF document"),
        (b"SQLite format 3", "an SQLite database: export a table as CSV first"),
        (b"\x7FELF", "a program"),
        (b"<!DOCTYPE html", "an HTML page"),
        (b"<html", "an HTML page"),
    ];
    if let Some((_, what)) = magic.iter().find(|(start, _)| bytes.starts_with(start)) {
        return (*what).to_owned();
    }
    let odd = bytes.iter().filter(|b| **b == 0 || (**b < 32 && !b"\t\n\r\x1b".contains(b))).count();
    if odd * 20 > bytes.len() {
        let start: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
        return format!("binary data that begins with {}", start.join(" "));
    }
    let line = String::from_utf8_lossy(sample.first_line());
    let short: String = line.chars().take(80).collect();
    format!("it begins with `{short}{}`", if line.chars().count() > 80 { "…" } else { "" })
}
