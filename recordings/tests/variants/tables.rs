use goodput_recordings::{Basis, Evidence, FieldMap, Options, Outcome, TimeForm, Unit};

use super::{format_of, inspect, inspect_with, latencies, overload, records};

#[test]
fn jmeter_tables_are_read_without_a_header_and_with_other_separators() {
    let row = "1551783627191,351,Home,200,OK,Thread Group 1-1,text,true,,18,8,1,1,null,0,0,0";
    let header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect";
    for text in [
        format!("{row}\n{row}\n"),
        format!("{header}\n{row}\n{row}\n"),
        format!("{header}\n{row}\n{row}\n").replace(',', ";"),
        "elapsed\tlabel\tsuccess\ttimeStamp\n351\tHome\ttrue\t1551783627191\n351\tHome\ttrue\t1551783627191\n".to_owned(),
        format!("{header}\n{row}\n{row}\n").replace("1551783627191", "2019/03/05 11:00:27.191"),
    ] {
        assert_eq!(latencies(&text), [Some(351.0); 2], "{text}");
        assert_eq!(format_of(&text), ("jmeter", Basis::Start), "{text}");
        assert_eq!(inspect(&text).first_ts, Some(1_551_783_627.191), "{text}");
    }
}

#[test]
fn jmeter_rows_of_a_thread_tell_a_stamp_of_the_end() {
    let mut text = "timeStamp,elapsed,label,responseCode,threadName,success\n".to_owned();
    let mut end = 1_551_783_627_000_u64;
    for n in 0..100_u64 {
        let elapsed = 50 + (n * 7919) % 300;
        end += elapsed + 1;
        text += &format!("{end},{elapsed},Home,200,T 1-1,true\n");
    }
    let seen = inspect(&text);
    assert_eq!((seen.reading.basis, seen.reading.basis_known_from), (Basis::End, Evidence::Data));
    assert_eq!(seen.concurrency.unwrap().max_in_flight, 1);
}

#[test]
fn jmeter_samples_within_samples_are_no_load_of_their_own() {
    let text = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success\n\
                1551783627000,300,Home-0,301,Moved,T 1-1,true\n\
                1551783627100,200,Home-1,200,OK,T 1-1,true\n\
                1551783627000,300,Home,200,OK,T 1-1,true\n\
                1551783627000,301,Buy,200,\"Number of samples in transaction : 1, number of failing samples : 0\",T 1-1,true\n\
                1551783627400,9,Item-7,200,OK,T 1-1,true\n";
    let nested: Vec<_> = records(text).iter().map(|r| r.nested).collect();
    assert_eq!(nested, [true, true, false, true, false]);
}

#[test]
fn jmeter_failures_without_an_answer_are_told_apart() {
    let text = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success\n\
                1551783627000,30000,A,Non HTTP response code: java.net.SocketTimeoutException,Read timed out,T 1-1,false\n\
                1551783627000,1,A,Non HTTP response code: org.apache.http.conn.HttpHostConnectException,Connection refused,T 1-1,false\n\
                1551783627000,2,A,503,Service Unavailable,T 1-1,false\n\
                1551783627000,2,A,404,Not Found,T 1-1,false\n";
    let outcomes: Vec<_> = records(text).iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::TimedOut, Outcome::Failure, Outcome::Refused, Outcome::Failure]);
}

#[test]
fn k6_tables_tell_their_time_format() {
    for (stamp, resolution) in [
        ("1633706790", 1e9),
        ("1633706790123", 1e6),
        ("1633706790123456", 1e3),
        ("2021-10-08T15:26:30.123Z", 1e6),
    ] {
        let text = format!(
            "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status\n\
             http_reqs,{stamp},1.0,,,,true,,GET,x,,default,,200\n\
             http_req_duration,{stamp},245.5,,,,true,,GET,x,,default,,200\n\
             http_req_duration,{stamp},10000,,timeout,1050,false,,GET,x,,default,,0\n"
        );
        assert_eq!(latencies(&text), [Some(245.5), Some(10_000.0)], "{stamp}");
        let seen = inspect(&text);
        assert_eq!((seen.format.name(), seen.errors), ("k6", 1));
        assert_eq!(seen.reading.resolution_ns, Some(resolution as u64), "{stamp}");
    }
}

#[test]
fn old_hey_tables_have_no_stamps() {
    let text = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read\n0.0725,0.0083,0.0000,0.0004,0.0572,0.0067\n";
    assert_eq!(latencies(text), [Some(72.5)]);
    assert_eq!(format_of(text), ("hey", Basis::None));
}

#[test]
fn old_vegeta_tables_are_shorter() {
    let text = "1697087625869178417,503,3464917,0,197,503 Service Unavailable\n1697087625968909625,200,4786834,0,197,\n";
    assert_eq!(latencies(text), [Some(3.464_917), Some(4.786_834)]);
    assert_eq!(format_of(text), ("vegeta", Basis::Start));
}

#[test]
fn a_table_whose_names_say_everything_needs_no_telling() {
    let text = "finished_at,took\n2026-11-29 23:05:32.509,0.125\n2026-11-29 23:05:33.509,0.250\n";
    let error = goodput_recordings::Inspection::read(text.as_bytes(), &Options::default());
    assert!(error.is_ok(), "{error:?}");
    let text = "start_ms|status|latency_us\n1795993725960|200|94715\n1795993725970|503|300\n";
    assert_eq!(latencies(text), [Some(94.715), Some(0.3)]);
    assert_eq!(format_of(text), ("generic_csv", Basis::Start));
}

#[test]
fn what_the_user_says_about_a_table_is_taken_literally() {
    let text = "a;b;c\n05.03.2019 11:00:27;1,5;ok\n05.03.2019 11:00:28;2,5;ok\n";
    let options = Options {
        fields: FieldMap {
            time: Some("1".to_owned()),
            time_form: Some(TimeForm::Pattern("%d.%m.%Y %H:%M:%S".to_owned())),
            basis: Some(Basis::End),
            latency: Some("b".to_owned()),
            latency_unit: Some(Unit::Milliseconds),
            decimal_mark: Some(b','),
            ..FieldMap::default()
        },
        ..Options::default()
    };
    let seen = inspect_with(text, &options);
    assert_eq!(seen.latency_ms.unwrap().max, 2.5);
    assert_eq!((seen.reading.basis, seen.first_ts), (Basis::End, Some(1_551_783_627.0)));

    let wrong = Options {
        fields: FieldMap { latency: Some("d".to_owned()), ..options.fields.clone() },
        ..Options::default()
    };
    let error = goodput_recordings::Inspection::read(text.as_bytes(), &wrong).unwrap_err();
    assert!(error.to_string().contains("field `d`") && error.to_string().contains("a, b, c"), "{error}");
}

#[test]
fn the_order_of_the_rows_tells_the_basis_of_a_table() {
    let requests = overload();
    let starts: String = requests.iter().map(|(start, latency)| format!("{start},{latency}\n")).collect();
    let seen = inspect(&format!("timestamp,latency_us\n{starts}"));
    assert_eq!((seen.reading.basis, seen.reading.basis_known_from), (Basis::Start, Evidence::Data));
    let ends: String =
        requests.iter().map(|(start, latency)| format!("{},{latency}\n", start + latency)).collect();
    let seen = inspect(&format!("timestamp,latency_us\n{ends}"));
    assert_eq!((seen.reading.basis, seen.reading.basis_known_from), (Basis::End, Evidence::Data));
}

#[test]
fn interval_logs_with_tags_are_read() {
    let line = "0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=";
    let text = format!(
        "#[StartTime: 1441812279.474 (seconds since epoch)]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\nTag=A,{line}\n{line}\n"
    );
    let seen = inspect(&text);
    assert_eq!((seen.format.name(), seen.steps.len()), ("hdrhistogram", 2));
    assert_eq!(seen.steps[0].start, Some(1_441_812_279_601_000_000));

    let impossible = text.replace("Tag=A,0.127", "99999999999999999999");
    assert_eq!(inspect(&impossible).steps[0].start, None);
}
