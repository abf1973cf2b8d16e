//! What the numbers were measured on.

use std::{fs, num::NonZero, process::Command, thread};

/// Threads that run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Processor, cores, operating system and compiler, as far as they can be told.
pub(crate) fn describe() -> String {
    let unknown = || String::from("unknown");
    let processor = field("/proc/cpuinfo", "model name", ':').unwrap_or_else(unknown);
    let system = field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_else(|| std::env::consts::OS.into());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| unknown(), trimmed);
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler =
        compiler.map_or_else(|_| unknown(), |out| trimmed(String::from_utf8_lossy(&out.stdout).into()));
    format!("{processor}, {} cores, {system}, Linux {kernel}, {compiler}", cores())
}

/// The value of the first line of that name.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(separator)).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().trim_matches('"').into())
}

fn trimmed(text: String) -> String {
    text.trim().into()
}
