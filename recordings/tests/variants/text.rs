use goodput_recordings::{Basis, Evidence, FieldMap, Options, Outcome, Unit};

use super::{format_of, inspect, inspect_with, latencies, overload, records};

/// A log of so many lines, each made from its number.
fn log(lines: usize, line: impl Fn(usize) -> String) -> String {
    (0..lines).map(|n| line(n) + "\n").collect()
}

#[test]
fn nginx_durations_are_found_wherever_they_stand() {
    let request = r#""GET /a HTTP/1.1""#;
    let dated = r#"10.0.0.1 - alice [29/Nov/2026:23:01:48 +0000]"#;
    for line in [
        format!(r#"{dated} {request} 200 72 0.097 "-" "curl/7.88.1""#),
        format!(r#"{dated} {request} 200 72 "-" "curl/7.88.1" "0.097" "0.096""#),
        format!(r#"{dated} {request} 200 72 "-" "curl/7.88.1" "-" 0.097 0.096 ."#),
        format!(r#"{dated} {request} 200 72 "-" "curl/7.88.1" rt=0.097 ut="0.096" cs=-"#),
        format!(r#"{dated} {request} 200 72 "-" "curl/7.88.1"rt=0.097 uct="0.000" urt="0.096""#),
        format!(
            r#"{dated} {request} 200 72 "-" "curl/7.88.1" request_time=0.097 upstream_response_time=0.096"#
        ),
        format!(
            r#"{dated} {request} 200 72 "-" "curl/7.88.1" 120 0.097 [default-web-80] [] 10.0.0.7:80 72 0.096 200 5e3a"#
        ),
        format!(r#"1795993308.828 10.0.0.1 {request} 200 72 0.097 0.096"#),
        format!(r#"10.0.0.1 2026-11-29T23:01:48+00:00 {request} 200 0.097 0.096"#),
        format!(r#"Nov 29 23:01:48 web1 nginx: {dated} {request} 200 72 "-" "curl/7.88.1" 0.097 0.096"#),
        format!(r#"web-1  | {dated} {request} 200 72 "-" "curl/7.88.1" 0.097 0.096"#),
    ] {
        let text = log(3, |_| line.clone());
        assert_eq!(latencies(&text), [Some(97.0); 3], "{line}");
        assert_eq!(format_of(&text), ("nginx", Basis::End), "{line}");
    }
}

#[test]
fn an_ingress_log_with_retries_keeps_its_columns() {
    let text = r#"10.0.0.1 - - [29/Nov/2026:23:02:30 +0000] "GET /a HTTP/1.1" 200 72 "-" "curl" 120 0.745 [default-web-80] [] 10.0.0.7:80, 10.0.0.8:80 0, 72 0.001, 0.744 502, 200 5e3a
10.0.0.1 - - [29/Nov/2026:23:02:31 +0000] "GET /b HTTP/1.1" 200 72 "-" "curl" 120 0.050 [default-web-80] [] 10.0.0.7:80 72 0.049 200 5e3b
10.0.0.1 - - [29/Nov/2026:23:02:31 +0000] "GET /c HTTP/1.1" 404 146 "-" "curl" 120 0.000 [] [] - - - - 5e3c
"#;
    let records = records(text);
    let times: Vec<_> = records.iter().map(|r| (r.latency, r.service)).collect();
    assert_eq!(
        times,
        [(Some(745_000_000), Some(745_000_000)), (Some(50_000_000), Some(49_000_000)), (Some(0), None),]
    );
}

#[test]
fn nginx_internal_redirects_and_clients_that_left_are_understood() {
    let text = r#"10.0.0.1 - - [29/Nov/2026:23:02:30 +0000] "GET /a HTTP/1.1" 499 0 "-" "curl" 1.000 0.500 : 0.400
10.0.0.1 - - [29/Nov/2026:23:02:31 +0000] "GET /b HTTP/1.1" 504 160 "-" "curl" 60.000 60.000
10.0.0.1 - - [29/Nov/2026:23:02:31 +0000] "GET /b HTTP/1.1" 429 160 "-" "curl" 0.000 -
"#;
    let records = records(text);
    assert_eq!(records[0].service, Some(900_000_000));
    let outcomes: Vec<_> = records.iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::TimedOut, Outcome::Refused]);
    assert_eq!(inspect(text).errors, 1);
}

fn clf(micros: i64, fraction: &str) -> String {
    let seconds = micros.div_euclid(1_000_000) - 1_795_993_393 + 3 * 60 + 13;
    format!("29/Nov/2026:23:{:02}:{:02}{fraction} +0000", seconds / 60, seconds % 60)
}

#[test]
fn apache_units_and_stamps_are_told_by_the_order_of_the_lines() {
    let requests = overload();
    let mean = requests.iter().map(|(_, latency)| *latency as f64 / 1e3).sum::<f64>() / requests.len() as f64;
    let line = |n: usize| requests[n];
    let all = requests.len();

    // %D with whole seconds.
    let text = log(all, |n| {
        let (start, latency) = line(n);
        format!(r#"10.0.0.1 - - [{}] "GET /a HTTP/1.1" 200 61 "-" "-" {latency}"#, clf(start, ""))
    });
    let seen = inspect(&text);
    assert_eq!((seen.format.name(), seen.reading.basis), ("apache", Basis::Start));
    assert!((seen.latency_ms.unwrap().mean - mean).abs() < 1e-3);

    // %{usec_frac}t, %{us}T and the time to the first byte.
    let text = log(all, |n| {
        let (start, latency) = line(n);
        let fraction = format!(".{:06}", start % 1_000_000);
        let first_byte = if n % 7 == 0 { "-".to_owned() } else { (latency - 120).to_string() };
        format!(
            r#"10.0.0.1 - - [{}] "GET /a HTTP/1.1" 200 61 "-" "-" {latency} {first_byte}"#,
            clf(start, &fraction)
        )
    });
    let seen = inspect(&text);
    assert_eq!(
        (seen.format.name(), seen.reading.basis, seen.reading.basis_known_from),
        ("apache", Basis::Start, Evidence::Data)
    );
    assert!((seen.latency_ms.unwrap().mean - mean).abs() < 1e-3);

    // %{end:sec}t.%{end:msec_frac}t and %{ms}T.
    let text = log(all, |n| {
        let (start, latency) = line(n);
        let end = (start + latency) / 1000;
        format!(
            r#"10.0.0.1 - - {}.{:03} "GET /a HTTP/1.1" 200 61 {}"#,
            end / 1000,
            end % 1000,
            if n == 3 { 0 } else { latency / 1000 }
        )
    });
    let seen = inspect(&text);
    assert_eq!((seen.format.name(), seen.reading.basis), ("apache", Basis::End), "{:?}", seen.reading);
    assert!((seen.latency_ms.unwrap().mean - mean).abs() < 2.0, "{:?}", seen.latency_ms);

    // %T alone, and the user's word over everything.
    let text = log(all, |n| {
        format!(r#"10.0.0.1 - - [{}] "GET /a HTTP/1.1" 200 61 {}"#, clf(line(n).0, ""), line(n).1 / 1_000_000)
    });
    let longest = (requests.iter().map(|(_, latency)| latency / 1_000_000).max().unwrap() * 1_000) as f64;
    assert_eq!(inspect(&text).latency_ms.unwrap().max, longest);
    let options = Options {
        fields: FieldMap {
            latency_unit: Some(Unit::Milliseconds),
            basis: Some(Basis::End),
            ..FieldMap::default()
        },
        ..Options::default()
    };
    let seen = inspect_with(&text, &options);
    assert_eq!((seen.latency_ms.unwrap().max, seen.reading.basis), (longest / 1_000.0, Basis::End));
}

#[test]
fn a_column_of_a_text_log_can_be_named_by_its_number() {
    let text = log(30, |n| {
        format!(
            r#"10.0.0.1 - - [29/Nov/2026:23:02:30 +0000] "GET /a HTTP/1.1" 200 61 "-" "-" 17 {} x{n}"#,
            100 + n
        )
    });
    let options = Options {
        fields: FieldMap {
            latency: Some("-2".to_owned()),
            latency_unit: Some(Unit::Milliseconds),
            ..FieldMap::default()
        },
        ..Options::default()
    };
    assert_eq!(inspect_with(&text, &options).latency_ms.unwrap().max, 129.0);
}

#[test]
fn gunicorn_is_known_by_its_decimals_and_its_process() {
    let with = |tail: &str| {
        log(3, |_| {
            format!(r#"10.0.0.1 - - [29/Nov/2026:23:15:00 +0000] "GET / HTTP/1.1" 200 3 "-" "curl" {tail}"#)
        })
    };
    for tail in ["308756 0.308756", "0.308756", "308756 <14466>", "request_time=0.308756"] {
        assert_eq!(latencies(&with(tail)), [Some(308.756); 3], "{tail}");
        assert_eq!(format_of(&with(tail)), ("gunicorn", Basis::End), "{tail}");
    }
}

#[test]
fn envoy_layouts_of_all_versions_are_read() {
    for line in [
        r#"[2026-11-29T23:05:32.509Z] "GET /a HTTP/1.1" 200 - 0 61 601 600 "-" "-" "id" "h:1" "10.0.0.1:80""#,
        r#"[2026-11-29T23:05:32.509Z] "GET /a"b" 200 - 5 HTTP/1.1" 200 - 0 61 601 600 "-" "u"a" "id" "h:1" "10.0.0.1:80""#,
        r#"[2026-11-29T23:05:32.509Z] "GET /a HTTP/2" 200 - via_upstream - "-" 0 61 601 600 "-" "-" "id" "h:1" "-" app - - - - -"#,
        r#"[2026-11-29T23:05:32.509Z] "GET /a HTTP/1.1" 200 - "-" "-" 0 61 601 600 "-" "-" "id" "h:1" "-" - - 10.0.0.1:80 - -"#,
        r#"ACCESS [2026-11-29T23:05:32.509Z] "GET /a HTTP/1.1" 200 - 0 61 601 600 "-" "-" "id" "h:1" "10.0.0.1:80""#,
        r#"2026-11-29T23:05:33.111Z stdout F [2026-11-29T23:05:32.509Z] "GET /a HTTP/1.1" 200 - 0 61 601 600 "-" "-" "id" "h:1" "x""#,
    ] {
        let text = format!("{line}\n{line}\n");
        assert_eq!(latencies(&text), [Some(601.0); 2], "{line}");
        assert_eq!(format_of(&text), ("envoy", Basis::Start), "{line}");
        assert_eq!(records(&text)[0].service, Some(600_000_000), "{line}");
    }
}

#[test]
fn envoy_flags_tell_how_a_request_ended() {
    let line = |code: u32, flags: &str, rest: &str| {
        format!(
            r#"[2026-11-29T23:05:32.509Z] "GET /a HTTP/1.1" {code} {flags} {rest} "-" "-" "id" "h:1" "-""#
        )
    };
    let text = [
        line(503, "UO", "0 81 0 -"),
        line(503, "-", r#"reached_concurrency_limit - "-" 0 25 0 -"#),
        line(504, "UT", "0 24 900 -"),
        line(0, "DC", "0 0 700 -"),
        line(503, "UF,URX", "0 91 5 -"),
        r#"[2026-11-29T23:05:32.509Z] "- - -" 0 - 117 2345 30000 - "-" "-" "-" "-" "10.0.0.1:80""#.to_owned(),
    ]
    .join("\n");
    let outcomes: Vec<_> = records(&text).iter().map(|r| r.outcome).collect();
    use Outcome::{Cancelled, Failure, Refused, TimedOut};
    assert_eq!(outcomes, [Refused, Refused, TimedOut, Cancelled, Failure]);
    assert_eq!(inspect(&text).skipped_non_record_lines, 1);
}

#[test]
fn haproxy_timers_tell_the_service_from_the_queue() {
    let text = r#"Nov 29 23:04:08 lb1 haproxy[30085]: 127.0.0.1:55956 [29/Nov/2026:23:04:07.703] fe be/app1 4/750/0/58/816 200 194 - - ---- 1/1/42/5/0 0/45 "GET /a HTTP/1.1"
Nov 29 23:04:08 lb1 haproxy[30085]: 127.0.0.1:56008 [29/Nov/2026:23:04:07.727] fe be/<NOSRV> 0/802/-1/-1/802 503 217 - - sQ-- 1/1/41/0/0 0/51 "GET /a HTTP/1.1"
Nov 29 23:04:08 lb1 haproxy[30085]: 127.0.0.1:56008 [29/Nov/2026:23:04:07.727] fe be/app1 0/0/0/-1/5000 504 217 - - sH-- 1/1/41/0/0 0/51 "GET /a HTTP/1.1"
Nov 29 23:04:08 lb1 haproxy[30085]: 127.0.0.1:56008 [29/Nov/2026:23:04:07.727] fe be/app1 0/0/0/20/+30 200 +217 - - CD-- 1/1/41/0/0 0/51 {a b|} {} "GET /a HTTP/1.1"
"#;
    let records = records(text);
    let times: Vec<_> =
        records.iter().map(|r| (r.latency.unwrap() / 1_000_000, r.service.map(|s| s / 1_000_000))).collect();
    assert_eq!(times, [(816, Some(62)), (802, None), (5000, None), (30, Some(30))]);
    let outcomes: Vec<_> = records.iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Refused, Outcome::TimedOut, Outcome::Cancelled]);
}

#[test]
fn gatling_text_logs_of_all_versions_are_read() {
    for (run, request) in [
        (
            "RUN\tsim\tid\t1526391734662\t\t2.0",
            "scn\t1\tREQUEST\t\tCreate\t1526391735153\t1526391735155\t1526391735270\t1526391735276\tOK\t",
        ),
        (
            "RUN\ta.Sim\t\tsim\t1526391734662\tnull\t2.0",
            "REQUEST\tscn\t1\t\tCreate\t1526391735153\t1526391735276\tOK",
        ),
        (
            "RUN\ta.Sim\tsim\t1526391734662\t \t3.3.1",
            "REQUEST\t1\t\tCreate\t1526391735153\t1526391735276\tOK\t ",
        ),
        (
            "RUN\ta.Sim\tsim\t1526391734662\t \t3.10.5",
            "REQUEST\tgroup\tCreate\t1526391735153\t1526391735276\tOK\t ",
        ),
    ] {
        let text = format!("{run}\n{request}\n{}\n", request.replace("OK", "KO"));
        assert_eq!(latencies(&text), [Some(123.0); 2], "{request}");
        let seen = inspect(&text);
        assert_eq!(
            (seen.format.name(), seen.errors, seen.skipped_non_record_lines),
            ("gatling", 1, 1),
            "{request}"
        );
    }
}

#[test]
fn load_balancer_logs_of_all_widths_are_read() {
    let start = r#"https 2026-11-29T23:05:32.509000Z app/lb/1 10.0.0.1:5 10.0.0.2:80 0.001 0.050 0.000 200 200 34 366 "GET https://x:443/ HTTP/2.0" "curl" - - arn "Root=1" "-" "-" 0"#;
    let with_creation =
        format!(r#"{start} 2026-11-29T23:05:32.457000Z "forward" "-" "-" "10.0.0.2:80" "200" "-" "-" TID_1"#);
    let lambda = r#"http 2026-11-29T23:05:32.509000Z app/lb/1 10.0.0.1:5 - 0.001 0.050 0.000 200 - 34 366 "GET http://x:80/ HTTP/1.1" "curl" - - arn "Root=1" "-" "-" 0 2026-11-29T23:05:32.457000Z "forward" "-" "-""#;
    let classic = r#"2026-11-29T23:05:32.509000Z lb 10.0.0.1:5 10.0.0.2:80 0.001 0.050 0.000 200 200 0 612 "GET http://x/ HTTP/1.1" "curl" - -"#;
    for (line, start_ms) in [(with_creation.as_str(), 457), (lambda, 457), (classic, 509)] {
        let text = format!("{line}\n{line}\n");
        let record = &records(&text)[0];
        assert_eq!((record.latency, record.service), (Some(51_000_000), Some(50_000_000)), "{line}");
        assert_eq!(record.start.unwrap() / 1_000_000 % 1000, start_ms, "{line}");
        assert_eq!(inspect(&text).format.name(), "aws_alb");
    }
}

#[test]
fn a_w3c_log_may_change_its_fields_in_the_middle() {
    let text = "#Fields: date time cs-uri-stem sc-status sc-win32-status time-taken\n\
                2016-02-15 09:30:24 / 200 0 41\n\
                #Fields: date time time-taken cs-uri-stem sc-status sc-win32-status\n\
                2016-02-15 09:30:25 40478 / 200 995\n";
    let records = records(text);
    assert_eq!(records.iter().map(|r| r.latency.unwrap() / 1_000_000).collect::<Vec<_>>(), [41, 40478]);
    assert_eq!(records[1].outcome, Outcome::Cancelled);
    let cloud_front = "#Version: 1.0\n#Fields: date\ttime\tx-edge-location\tsc-status\ttime-taken\n\
                       2016-02-15\t09:30:24\tFRA2\t200\t0.041\n";
    assert_eq!(latencies(cloud_front), [Some(41.0)]);
}

#[test]
fn labels_may_come_in_any_order_and_name() {
    let text = "reqtime:0.123\tstatus:200\ttime:29/Nov/2026:23:01:48 +0000\tapptime:0.120\turi:/a:b\n\
                reqtime:0.124\tstatus:503\ttime:29/Nov/2026:23:01:49 +0000\tapptime:-\turi:/c\n";
    let records = records(text);
    assert_eq!(records.iter().map(|r| r.latency).collect::<Vec<_>>(), [Some(123_000_000), Some(124_000_000)]);
    assert_eq!(records[0].service, Some(120_000_000));
    assert_eq!(inspect(text).errors, 1);
}
