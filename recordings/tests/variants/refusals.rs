use goodput_recordings::{Inspection, Options, ReadError};

fn refusal(bytes: &[u8]) -> ReadError {
    Inspection::read(bytes, &Options::default())
        .map(|seen| seen.format)
        .expect_err("should have been refused")
}

#[test]
fn an_empty_file_is_refused_as_empty() {
    assert!(matches!(refusal(b""), ReadError::Empty));
    assert!(matches!(refusal(b"\n \r\n\n"), ReadError::Empty));
}

#[test]
fn what_is_no_recording_is_refused_with_what_it_looks_like() {
    for (bytes, says) in [
        (&b"PK\x03\x04rest of the archive"[..], "ZIP"),
        (b"\x89PNG\r\n\x1a\n0000", "PNG"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\x01\x02\x03\x04\x00\x00\x00\x00\x00", "binary data that begins with 01 02"),
        (b"Dear diary, today I met nobody.\nTomorrow neither.\n", "Dear diary"),
        (b"{\"a\":1}\n", "{\"a\":1}"),
        (b"\xFF\xFEh\0e\0l\0l\0o\0", "UTF-16"),
        (b"INFO:     127.0.0.1:5432 - \"GET / HTTP/1.1\" 200 OK\nINFO:     127.0.0.1:5432 - \"GET / HTTP/1.1\" 200 OK\n", "uvicorn"),
    ] {
        let error = refusal(bytes).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn logs_without_a_duration_are_refused_with_what_to_log() {
    let dated = r#"10.0.0.1 - - [29/Nov/2026:23:01:48 +0000] "GET / HTTP/1.1" 200 72"#;
    for (text, says) in [
        (format!("{dated}\n{dated}\n"), "$request_time"),
        (format!("{dated} \"-\" \"Mozilla\"\n{dated} \"-\" \"Mozilla\"\n"), "$request_time"),
        ("#Fields: date time cs-uri-stem sc-status\n2016-02-15 09:30:24 / 200\n".to_owned(), "time-taken"),
        (
            "{\"time_local\":\"29/Nov/2026:23:01:48 +0000\",\"remote_addr\":\"::1\",\"status\":\"200\"}\n"
                .to_owned(),
            "$request_time",
        ),
        ("time:29/Nov/2026:23:01:48 +0000\tstatus:200\turi:/\n".to_owned(), "reqtime"),
    ] {
        let error = refusal(text.as_bytes());
        assert!(matches!(error, ReadError::NoDuration { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        let options = Options { arrivals_only: true, ..Options::default() };
        if !text.starts_with("time:") {
            let seen = Inspection::read(text.as_bytes(), &options).unwrap();
            assert_eq!(seen.records, seen.records_without_latency);
        }
    }
}

#[test]
fn a_format_that_the_user_insists_on_is_not_invented() {
    let options = Options { format: Some("haproxy".parse().unwrap()), ..Options::default() };
    let error = Inspection::read(&b"1795993725960379\t200\t94715\n"[..], &options).unwrap_err();
    assert!(error.to_string().contains("does not look like haproxy"), "{error}");
    assert!("htproxy".parse::<goodput_recordings::Format>().unwrap_err().to_string().contains("haproxy"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Inspection::open("/nowhere/access.log", &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/access.log: cannot be read"), "{error}");
}
