use goodput_recordings::{Basis, Outcome};

use super::{format_of, inspect, latencies, records};

fn twice(line: &str) -> String {
    format!("{line}\n{line}\n")
}

#[test]
fn nginx_json_is_read_whatever_its_fields_are_called() {
    for line in [
        r#"{"time_local":"29/Nov/2026:23:01:48 +0000","remote_addr":"::1","status":"200","request_time":"0.097","upstream_response_time":"0.001, 0.095"}"#,
        r#"{"@timestamp":"2026-11-29T23:01:48+00:00","clientip":"::1","status":200,"responsetime":0.097,"upstreamtime":"0.096","http_host":"x"}"#,
        r#"{"msec":"1795993308.828","time":"2026-11-29T23:01:48+00:00","status":200,"nginx":{"request_time":0.097,"upstream_response_time":""}}"#,
        r#"{"ts":1795993308.828,"request_uri":"/","code":200,"duration":0.097}"#,
    ] {
        assert_eq!(latencies(&twice(line)), [Some(97.0); 2], "{line}");
        assert_eq!(format_of(&twice(line)), ("nginx", Basis::End), "{line}");
    }
}

#[test]
fn caddy_durations_are_read_in_every_format_of_theirs() {
    for duration in ["0.0971", "\"97.1ms\"", "97100000"] {
        let access = format!(
            r#"{{"level":"info","ts":1795993599.9421115,"logger":"http.log.access","msg":"handled request","request":{{"method":"GET","uri":"/"}},"duration":{duration},"size":2,"status":200}}"#
        );
        let other =
            r#"{"level":"info","ts":1795993599.5,"logger":"tls.obtain","msg":"acquiring lock","duration":5}"#;
        let text = format!("{other}\n{access}\n{access}\n");
        assert_eq!(latencies(&text), [Some(97.1); 2], "{duration}");
        let seen = inspect(&text);
        assert_eq!((seen.format.name(), seen.skipped_non_record_lines), ("caddy", 1));
    }
    let iso = r#"{"level":"error","ts":"2026-11-29T23:06:39.942Z","logger":"http.log.access.log0","msg":"handled request","duration":0.024,"status":0}"#;
    let record = &records(&twice(iso))[0];
    assert_eq!((record.outcome, record.error), (Outcome::Cancelled, true));
}

#[test]
fn envoy_json_is_read_with_strings_prefixes_and_other_names() {
    for line in [
        r#"{"start_time":"2026-11-29T23:05:32.509Z","duration":601,"response_code":200,"response_flags":"-","upstream_service_time":"600"}"#,
        r#"2026-11-29T23:05:33.1Z stdout F {"duration":"601","response_flags":null,"response_code":"200","start_time":"2026-11-29T23:05:32.509Z","upstream_service_time":null}"#,
        r#"{"jsonPayload":{"start_time":"2026-11-29T23:05:32.509Z","duration":601.0,"response_code":200,"response_flags":"-"}}"#,
    ] {
        assert_eq!(latencies(&twice(line)), [Some(601.0); 2], "{line}");
        assert_eq!(format_of(&twice(line)), ("envoy", Basis::Start), "{line}");
    }
    let overflow = r#"{"start_time":"2026-11-29T23:05:32.509Z","duration":0,"response_code":503,"response_flags":"UO","upstream_service_time":null}"#;
    assert_eq!(records(&twice(overflow))[0].outcome, Outcome::Refused);
}

#[test]
fn traefik_json_is_read_between_lines_of_its_own_log() {
    let access = r#"{"ClientHost":"10.0.0.1","DownstreamStatus":502,"Duration":215563,"OriginDuration":204708,"OriginStatus":502,"StartUTC":"2026-11-29T23:05:32.463764557Z","time":"2026-11-29T23:05:32Z"}"#;
    let other = r#"{"level":"error","msg":"plugin: started","time":"2026-11-29T23:05:30Z"}"#;
    let text = format!("{other}\n{access}\n{access}\n");
    assert_eq!(latencies(&text), [Some(0.215_563); 2]);
    let seen = inspect(&text);
    assert_eq!((seen.format.name(), seen.reading.basis, seen.errors), ("traefik", Basis::Start, 2));
    assert_eq!(seen.skipped_non_record_lines, 1);
}

#[test]
fn hand_made_haproxy_json_is_repaired() {
    let line = |rest: &str| {
        format!(
            r#"Nov 29 23:04:08 lb1 haproxy[30085]: {{"ts":"29/Nov/2026:23:04:07.703","be":"be","TR":0,"Tw":5,"Tc":0,"Tr":62,"Ta":67,{rest}}}"#
        )
    };
    let text = [
        line(r#""st":200,"rc":+2,"tsc":"----""#),
        line(r#""st":503,"rc":0,"tsc":"sQ--""#),
        line(r#""st":-1,"rc":-,"tsc":"CR--""#),
    ]
    .join("\n");
    assert_eq!(format_of(&text), ("haproxy", Basis::Start));
    assert_eq!(latencies(&text), [Some(67.0); 3]);
    let outcomes: Vec<_> = records(&text).iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Refused, Outcome::Cancelled]);
}

#[test]
fn pino_lines_of_the_application_are_skipped() {
    let text = r#"{"level":30,"time":1795994154731,"pid":1,"hostname":"vm","msg":"listening"}
{"level":30,"time":1795994154831,"pid":1,"hostname":"vm","reqId":"req-1","req":{"method":"GET","url":"/"},"msg":"incoming request"}
{"level":30,"time":1795994154931,"pid":1,"hostname":"vm","reqId":"req-1","res":{"statusCode":200},"responseTime":97.5,"msg":"request completed"}
"#;
    assert_eq!(latencies(text), [Some(97.5)]);
    let seen = inspect(text);
    assert_eq!((seen.format.name(), seen.skipped_non_record_lines), ("pino", 2));
}

#[test]
fn json_lines_of_nobody_in_particular_need_their_unit() {
    let text = twice(r#"{"when":"2026-11-29T23:05:32.509Z","latency_ms":12.5,"status":200}"#);
    assert_eq!(latencies(&text), [Some(12.5); 2]);
    assert_eq!(inspect(&text).format.name(), "generic_jsonl");
    let unclear = twice(r#"{"when":"2026-11-29T23:05:32.509Z","latency":12,"status":200}"#);
    let error =
        goodput_recordings::Inspection::read(unclear.as_bytes(), &goodput_recordings::Options::default())
            .unwrap_err();
    assert!(error.to_string().contains("--latency-unit"), "{error}");
}

#[test]
fn vegeta_json_is_read() {
    let text = r#"{"attack":"","seq":0,"code":200,"timestamp":"2023-10-12T01:13:45.768758542-04:00","latency":16515610500,"bytes_out":0,"bytes_in":197,"error":"","body":"aGVsbG8=","method":"GET","url":"http://x/","headers":{"Server":["nginx"]}}
{"attack":"","seq":1,"code":0,"timestamp":"2023-10-12T01:13:45.868758542-04:00","latency":30001000000,"bytes_out":0,"bytes_in":0,"error":"context deadline exceeded","body":null,"method":"GET","url":"http://x/","headers":null}
"#;
    let records = records(text);
    assert_eq!(
        records.iter().map(|r| (r.outcome, r.error)).collect::<Vec<_>>(),
        [(Outcome::Success, false), (Outcome::TimedOut, true)]
    );
    assert_eq!(inspect(text).format.name(), "vegeta");
}

#[test]
fn k6_points_are_read_in_any_order_of_their_keys() {
    let text = r#"{"metric":"http_req_duration","type":"Metric","data":{"name":"http_req_duration","type":"trend"}}
{"metric":"http_req_duration","type":"Point","data":{"tags":{"status":"200","expected_response":"true"},"value":140.5,"time":"2022-08-24T08:12:58.475558008-07:00"}}
{"data":{"time":"2022-08-24T08:12:59Z","value":10000,"tags":{"status":"0","error_code":"1050","expected_response":"false"}},"metric":"http_req_duration","type":"Point"}
{"metric":"vus","type":"Point","data":{"time":"2022-08-24T08:12:59Z","value":1,"tags":null}}
"#;
    assert_eq!(latencies(text), [Some(140.5), Some(10_000.0)]);
    assert_eq!(records(text)[1].outcome, Outcome::TimedOut);
    let seen = inspect(text);
    assert_eq!((seen.format.name(), seen.skipped_non_record_lines, seen.errors), ("k6", 2, 1));
}

#[test]
fn otlp_documents_of_old_and_new_versions_are_read() {
    let span = |kind: &str, code: &str| {
        format!(
            r#"{{"traceId":"a","spanId":"b","name":"GET","kind":{kind},"startTimeUnixNano":"1795994149571000000","endTimeUnixNano":1795994149671000000,"attributes":[{{"key":"http.status_code","value":{{"intValue":"{code}"}}}}],"status":{{}}}}"#
        )
    };
    for list in ["scopeSpans", "instrumentationLibrarySpans"] {
        let text = format!(
            "{{\n\"resourceSpans\":[{{\n\"resource\":{{}},\n\"{list}\":[{{\n\"spans\":[\n{},\n{},\n{}\n]}}]}}]}}\n",
            span("2", "200"),
            span("\"SPAN_KIND_SERVER\"", "503"),
            span("3", "200")
        );
        assert_eq!(latencies(&text), [Some(100.0); 2], "{list}");
        let seen = inspect(&text);
        assert_eq!(
            (seen.format.name(), seen.errors, seen.skipped_non_record_lines),
            ("otlp", 1, 1),
            "{list}"
        );
    }
}

#[test]
fn jaeger_spans_without_kinds_are_taken_by_their_parents() {
    let text = r#"{"data":[{"traceID":"a","processes":{},"spans":[
        {"traceID":"a","spanID":"1","operationName":"GET","startTime":1640830002640550,"duration":5000,"references":[],"tags":[{"key":"error","type":"bool","value":true}]},
        {"traceID":"a","spanID":"2","operationName":"sql","startTime":1640830002640600,"duration":1000,"references":[{"refType":"CHILD_OF","traceID":"a","spanID":"1"}],"tags":[]}
    ]}]}"#;
    assert_eq!(latencies(text), [Some(5.0)]);
    let seen = inspect(text);
    assert_eq!((seen.format.name(), seen.errors, seen.skipped_non_record_lines), ("jaeger", 1, 1));
}
