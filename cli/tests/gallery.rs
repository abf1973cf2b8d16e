//! The pictures in the repository are what the command draws.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

#[test]
fn every_picture_and_the_page_are_what_the_command_draws_to_the_byte() {
    let drawn = empty_folder("gallery");
    let output = plot(&["--out", &drawn.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let committed = repository().join("plots");
    let names = |folder: &Path| -> BTreeSet<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter_map(|name| name.into_string().ok()).filter(|name| !name.ends_with(".toml")).collect()
    };
    assert_eq!(names(&committed), names(&drawn));
    for name in names(&drawn) {
        assert!(
            fs::read(committed.join(&name)).unwrap() == fs::read(drawn.join(&name)).unwrap(),
            "plots/{name} is not what `cargo goodput plot` draws; draw it again, and look at it before committing it"
        );
    }
}

#[test]
fn a_picture_lies_beside_its_scenario_and_says_what_it_shows() {
    let folder = empty_folder("beside");
    let file = folder.join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let output = plot(&[&file.to_string_lossy(), "--algorithm", "vegas,none,fixed:20"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = fs::read_to_string(folder.join("small.svg")).unwrap();
    for word in [">vegas<", ">no limit<", ">fixed 20<", ">small<", "prefers-color-scheme:dark"] {
        assert!(picture.contains(word), "{word}");
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("fixed 20") && table.contains("best limits"), "{table}");
}

#[test]
fn the_numbers_behind_a_picture_come_as_csv() {
    let folder = empty_folder("csv");
    let file = folder.join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let output = plot(&[&file.to_string_lossy(), "--algorithm", "fixed:20", "--format", "csv"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut reader = csv::Reader::from_path(folder.join("small.csv")).unwrap();
    let column = reader.headers().unwrap().iter().position(|name| name == "limit").unwrap();
    let limits: Vec<_> = reader.records().map(|row| row.unwrap()[column].to_owned()).collect();
    assert!(limits.len() > 100);
    assert!(limits.iter().all(|limit| limit == "20.0"), "{limits:?}");
}

#[test]
fn variations_of_a_scenario_are_columns_with_a_row_for_each_class() {
    let folder = empty_folder("variations");
    let file = folder.join("classes.toml");
    fs::write(&file, VARIATIONS).unwrap();
    let file = file.to_string_lossy();
    let output = plot(&[&file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = fs::read_to_string(folder.join("classes.svg")).unwrap();
    for word in [">open<", ">closed by half<", ">urgent, requests per second<", ">other<"] {
        assert!(picture.contains(word), "{word}");
    }
    assert!(plot(&[&file, "--format", "csv"]).status.success());
    let mut reader = csv::Reader::from_path(folder.join("classes.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let sum = |of: &str, name: &str| -> u64 {
        let rows = rows.iter().filter(|row| &row[0] == of);
        rows.map(|row| row[column(name)].parse::<u64>().unwrap()).sum()
    };
    for of in ["open", "closed by half"] {
        assert_eq!(sum(of, "offered"), sum(of, "offered urgent") + sum(of, "offered other"), "{of}");
        assert_eq!(sum(of, "refused"), sum(of, "refused urgent") + sum(of, "refused other"), "{of}");
    }
    assert_eq!((sum("open", "refused"), sum("closed by half", "refused urgent")), (0, 0));
    assert!(sum("closed by half", "refused other") > 0);
}

#[test]
fn what_cannot_be_drawn_is_said_with_its_name_and_what_would_be_right() {
    let folder = empty_folder("wrong");
    let file = folder.join("wrong.toml");
    fs::write(&file, SMALL.replace("workers = 4", "workers = 0")).unwrap();
    let file = file.to_string_lossy();
    let cases = [
        (vec![&*file], "wrong.toml:4: `service.pool.workers`"),
        (vec![&*file, "--algorithm", "amid"], "aimd"),
        (vec!["--gallery", "nowhere"], "nowhere/gallery.toml"),
    ];
    for (arguments, expected) in cases {
        let output = plot(&arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

const SMALL: &str = r#"length = "2s"
[service]
work = { exponential = "10ms" }
pool = { workers = 4 }
[[clients]]
open = { per_second = 800 }
[door.service]
"#;

/// Two workers, and a request of 10 ms for each of them every 10 ms; half of them may use one worker only.
const VARIATIONS: &str = r#"
[scenario]
length = "1s"
[scenario.service]
work = { constant = "10ms" }
pool = { workers = 2 }
[[scenario.clients]]
open = { process = "constant", per_second = 200 }
classes = [
    { name = "urgent", criticality = "critical", turns = 1 },
    { name = "other", criticality = "sheddable", turns = 1 },
]
[variations.half.door.service]
limiter = { algorithm = "fixed", limit = 2 }
shares = { sheddable = 0.5 }
[[tables]]
title = "t"
columns = "counts"
rows = [{ label = "open" }, { label = "closed by half", with = ["half"] }]
"#;

fn plot(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.current_dir(repository()).arg("plot").args(arguments).output().unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}
