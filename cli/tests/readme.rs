//! The commands that the README shows do what it says.

use std::{fs, path::Path, process::Command};

/// These take long; `gallery.rs` and `score_and_simulate.rs` run them.
const RUN_ELSEWHERE: [&str; 2] = ["plot", "score --quick"];

#[test]
fn every_command_of_the_readme_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("cargo goodput "))
        .map(|command| command.split('#').next().unwrap_or_default().trim())
        .collect();
    assert!(commands.len() > RUN_ELSEWHERE.len(), "{commands:?}");
    for command in commands.into_iter().filter(|command| !RUN_ELSEWHERE.contains(command)) {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
        let mut goodput = Command::new(env!("CARGO_BIN_EXE_goodput"));
        goodput.current_dir(root).args(command.split_whitespace());
        if command.starts_with("choose") {
            goodput.arg("--out").arg(&out);
        }
        let output = goodput.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{command} printed nothing");
    }
}
