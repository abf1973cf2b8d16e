use std::io::{Cursor, Write};

use flate2::Compression as Level;
use flate2::write::GzEncoder;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lines_of(bytes: Vec<u8>) -> (Vec<String>, Option<String>) {
    let mut input = Input::open(Cursor::new(bytes)).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = input.next_line().unwrap() {
        match line {
            Line::Text(_, text) => lines.push(String::from_utf8_lossy(text).into_owned()),
            Line::TooLong(number) => lines.push(format!("line {number} too long")),
        }
    }
    (lines, input.damage())
}

#[test]
fn several_gzip_members_and_zstd_frames_are_read_to_the_end() {
    for compress in [gzip, zstd] {
        let mut bytes = compress(b"one\ntwo\n");
        bytes.extend(compress(b"three\n"));
        let (lines, damage) = lines_of(bytes);
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(damage, None);
    }
}

#[test]
fn a_cut_stream_gives_its_whole_lines_and_says_so() {
    let text: String = (0..20_000).map(|n| format!("line {n} {}\n", n * 7919 % 1013)).collect();
    for compress in [gzip, zstd] {
        let mut bytes = compress(text.as_bytes());
        bytes.truncate(bytes.len() * 6 / 10);
        let (lines, damage) = lines_of(bytes.clone());
        assert!(lines.len() < 20_000);
        assert!(lines.iter().zip(text.lines()).all(|(read, wrote)| read == wrote));
        assert!(damage.unwrap().contains("whole lines before it were read"));

        let mut input = Input::open(Cursor::new(bytes)).unwrap();
        let mut all = String::new();
        input.read_to_string(&mut all).unwrap();
        assert_eq!(all.lines().count(), lines.len());
        assert!(all.is_empty() || all.ends_with('\n'));
    }
}

#[test]
fn damage_in_the_middle_of_a_stream_is_reported_and_not_fatal() {
    let text: String = (0..50_000).map(|n| format!("line {n} {}\n", n * 7919 % 1013)).collect();
    let mut bytes = gzip(text.as_bytes());
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    let (lines, damage) = lines_of(bytes);
    assert!(lines.len() < 50_000);
    assert!(damage.unwrap().contains("damaged"));
}

#[test]
fn an_error_of_the_disk_is_not_taken_for_a_damaged_file() {
    struct Failing(Vec<u8>, usize);
    impl Read for Failing {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            if self.1 >= self.0.len() {
                return Err(io::Error::other("disk on fire"));
            }
            target[0] = self.0[self.1];
            self.1 += 1;
            Ok(1)
        }
    }
    let mut bytes = gzip("hello\n".repeat(100_000).as_bytes());
    bytes.truncate(bytes.len() / 2);
    let mut input = match Input::open(Failing(bytes, 0)) {
        Ok(input) => input,
        Err(error) => {
            assert!(error.to_string().contains("disk on fire"));
            return;
        }
    };
    let error = loop {
        match input.next_line() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the error was swallowed"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "disk on fire");
}

#[test]
fn a_line_without_an_end_and_returns_and_a_byte_order_mark_are_handled() {
    let (lines, _) = lines_of(b"\xEF\xBB\xBFone\r\n\r\ntwo".to_vec());
    assert_eq!(lines, ["one", "", "two"]);
}

#[test]
fn a_line_that_never_ends_does_not_fill_the_memory() {
    let endless = io::repeat(b'x').take(MAX_LINE as u64 * 3);
    let mut input = Input::open(endless.chain(Cursor::new(b"\nnext\n".to_vec()))).unwrap();
    assert_eq!(input.next_line().unwrap(), Some(Line::TooLong(1)));
    assert_eq!(input.next_line().unwrap(), Some(Line::Text(2, b"next")));
    assert!(input.buffer.len() <= MAX_LINE * 4);
}
