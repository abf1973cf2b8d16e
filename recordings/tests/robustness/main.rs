//! No bytes make a reader panic, run away or invent numbers: arbitrary ones, and recordings that have been cut,
//! shuffled and overwritten.

mod invariants;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use goodput_recordings::{FieldMap, Format, Options, Recording};
use proptest::prelude::*;

/// The first kilobytes of every fixture, decompressed.
fn seeds() -> &'static [Vec<u8>] {
    static SEEDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let mut seeds = Vec::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")];
        while let Some(folder) = folders.pop() {
            let mut entries: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for path in entries {
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|name| name != "README.md" && name != "expected.json")
                {
                    let mut text = Vec::new();
                    let file = std::fs::read(&path).unwrap();
                    let plain = std::io::Read::read_to_end(
                        &mut flate2::read::MultiGzDecoder::new(&file[..]),
                        &mut text,
                    );
                    if plain.is_err() && text.is_empty() {
                        text = file;
                    }
                    text.truncate(6_000);
                    seeds.push(text);
                }
            }
        }
        assert!(seeds.len() > 40);
        seeds
    })
}

/// One change to a recording.
#[derive(Clone, Debug)]
enum Change {
    Cut(prop::sample::Index),
    Overwrite(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    RepeatLine(prop::sample::Index),
    SwapLines(prop::sample::Index, prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<prop::sample::Index>;
    let odd = prop::sample::select(vec![
        b"-1".to_vec(),
        b"99999999999999999999".to_vec(),
        b"1e308".to_vec(),
        b"\"".to_vec(),
        b"[".to_vec(),
        b"\n".to_vec(),
        b"\0".to_vec(),
        b"\xff\xfe".to_vec(),
        b"NaN".to_vec(),
        b",,,,".to_vec(),
        b"9999-12-31T23:59:59Z".to_vec(),
        b"{\"a\":{\"a\":{\"a\":[".to_vec(),
    ]);
    let change = prop_oneof![
        index().prop_map(Change::Cut),
        (index(), any::<u8>()).prop_map(|(at, byte)| Change::Overwrite(at, byte)),
        (index(), odd).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (index(), 1_usize..40).prop_map(|(at, count)| Change::Remove(at, count)),
        index().prop_map(Change::RepeatLine),
        (index(), index()).prop_map(|(a, b)| Change::SwapLines(a, b)),
    ];
    prop::collection::vec(change, 1..12)
}

fn apply(text: &mut Vec<u8>, change: &Change) {
    if text.is_empty() {
        return;
    }
    match change {
        Change::Cut(at) => text.truncate(at.index(text.len())),
        Change::Overwrite(at, byte) => {
            let at = at.index(text.len());
            text[at] = *byte;
        }
        Change::Insert(at, bytes) => {
            let at = at.index(text.len());
            text.splice(at..at, bytes.iter().copied());
        }
        Change::Remove(at, count) => {
            let at = at.index(text.len());
            let end = (at + count).min(text.len());
            text.drain(at..end);
        }
        Change::RepeatLine(at) => {
            let mut lines: Vec<Vec<u8>> = text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let line = lines[at.index(lines.len())].clone();
            lines.push(line);
            *text = lines.concat();
        }
        Change::SwapLines(a, b) => {
            let mut lines: Vec<Vec<u8>> = text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
            *text = lines.concat();
        }
    }
}

fn check(bytes: &[u8], options: &Options) {
    invariants::read(bytes, options);
    invariants::understand(bytes, options);
}

#[test]
fn every_format_is_among_those_that_are_damaged() {
    let formats: BTreeSet<Format> = seeds()
        .iter()
        .filter_map(|seed| Some(Recording::new(&seed[..], &Options::default()).ok()?.format()))
        .collect();
    let missing: Vec<&Format> = Format::ALL.iter().filter(|format| !formats.contains(*format)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_quote_and_an_element_that_never_end_do_not_fill_the_memory() {
    let table = "start_ns,latency_ns,outcome\n1000,5,success\n2000,5,success\n3000,5,\"succ";
    let xml = "<?xml version=\"1.0\"?>\n<testResults version=\"1.2\">\n<httpSample t=\"2\" ts=\"1440785666520\" s=\"true\"/>\n<httpSample lb=\"";
    for (start, records) in [(table, 2), (xml, 1)] {
        // What is read, and no more: pieces have at most 64 MiB.
        let mut rest = std::io::repeat(b'x').take(100 << 20);
        let recording = Recording::new(start.as_bytes().chain(&mut rest), &Options::default()).unwrap();
        let reading = recording.each(drop).unwrap();
        assert_eq!((reading.records, reading.unparseable_lines), (records, 1), "{reading:?}");
        assert!(rest.limit() > 30 << 20, "{} left", rest.limit());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_recordings_do_no_harm(seed in any::<prop::sample::Index>(), changes in changes()) {
        let mut text = seed.get(seeds()).clone();
        for change in &changes {
            apply(&mut text, change);
        }
        check(&text, &Options::default());
    }

    #[test]
    fn two_recordings_in_one_file_do_no_harm(a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let text = [a.get(seeds()).as_slice(), b.get(seeds()).as_slice()].concat();
        check(&text, &Options::default());
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), magic in 0_usize..6) {
        let starts: [&[u8]; 6] = [b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x00\x063.12.1", b"{\"", b"HIST"];
        let text = [starts[magic], &bytes].concat();
        check(&text, &Options::default());
    }

    #[test]
    fn whatever_the_user_says_about_a_file_does_no_harm(
        seed in any::<prop::sample::Index>(),
        time in "[a-zA-Z_0-9-]{0,12}",
        latency in "-?[0-9]{1,2}",
        mark in prop::sample::select(vec![b'.', b',']),
        delimiter in prop::option::of(any::<u8>()),
        format in any::<prop::sample::Index>(),
        named in any::<bool>(),
    ) {
        let fields = FieldMap {
            time: named.then_some(time),
            latency: Some(latency),
            decimal_mark: Some(mark),
            delimiter,
            ..FieldMap::default()
        };
        let format = named.then(|| *format.get(goodput_recordings::Format::ALL));
        check(seed.get(seeds()).as_slice(), &Options { format, fields, arrivals_only: named });
    }
}
