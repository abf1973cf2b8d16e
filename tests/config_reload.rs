//! A gate that follows a config file.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use goodput::{
    Gate,
    reload::{ConfigFile, Reload, ReloadError, read},
};

/// A config file of one test.
struct Temp(PathBuf);

impl Temp {
    fn holding(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("config-reload-{}-{count}.toml", std::process::id());
        let temp = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        temp.write(text);
        temp
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }

    fn followed(&self) -> (Gate, ConfigFile) {
        let gate = read(&self.0).unwrap().builder().unwrap().build();
        let file = ConfigFile::new(&self.0, gate.clone());
        (gate, file)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn fixed(limit: usize) -> String {
    format!("name = \"search\"\n[limiter]\nalgorithm = \"fixed\"\nlimit = {limit}\n")
}

#[test]
fn a_changed_file_is_put_in_force_once() {
    let temp = Temp::holding(&fixed(10));
    let (gate, mut file) = temp.followed();
    assert_eq!(file.check_now().unwrap(), Reload::Applied);
    assert_eq!(file.check_now().unwrap(), Reload::Unchanged);
    temp.write(&fixed(20));
    assert_eq!(file.check_now().unwrap(), Reload::Applied);
    assert_eq!(gate.limit(), 20);
    assert_eq!(file.check_now().unwrap(), Reload::Unchanged);
}

#[test]
fn a_bad_file_is_refused_once_with_its_place_and_the_old_settings_stay() {
    let temp = Temp::holding(&fixed(10));
    let (gate, mut file) = temp.followed();
    file.check_now().unwrap();

    temp.write("name = \"search\"\n[limiter]\nalgorithm = \"fixed\"\nlimit = 0\n");
    let error = file.check_now().unwrap_err();
    let ReloadError::Bad { path, error: fault } = &error else { panic!("{error}") };
    assert_eq!((path, fault.line), (&temp.0, Some(4)));
    assert_eq!(fault.field.as_deref(), Some("limiter.limit"));
    assert_eq!(file.check_now().unwrap(), Reload::Unchanged);
    assert_eq!(gate.limit(), 10);

    temp.write(&fixed(30));
    assert_eq!(file.check_now().unwrap(), Reload::Applied);
    assert_eq!(gate.limit(), 30);
}

#[test]
fn a_gate_keeps_its_name_whatever_the_file_says() {
    let temp = Temp::holding(&fixed(10));
    let (gate, mut file) = temp.followed();
    temp.write(&fixed(20).replace("search", "other"));
    let error = file.check_now().unwrap_err();
    assert!(error.to_string().contains("line 1: `name` must stay `search`"), "{error}");
    assert_eq!((gate.limit(), gate.config().name.as_str()), (10, "search"));
}

#[test]
fn a_file_that_is_gone_is_told_once_and_followed_again_when_it_is_back() {
    let temp = Temp::holding(&fixed(10));
    let (gate, mut file) = temp.followed();
    file.check_now().unwrap();
    fs::remove_file(&temp.0).unwrap();
    assert!(matches!(file.check_now().unwrap_err(), ReloadError::Unreadable { .. }));
    assert_eq!(file.check_now().unwrap(), Reload::Unchanged);
    assert_eq!(gate.limit(), 10);
    temp.write(&fixed(20));
    assert_eq!(file.check_now().unwrap(), Reload::Applied);
    assert_eq!(gate.limit(), 20);
}

#[test]
fn what_is_too_long_or_no_text_is_no_config_file() {
    let temp = Temp::holding(&fixed(10));
    let (gate, mut file) = temp.followed();
    temp.write(&format!("{}#{}", fixed(20), "x".repeat(1 << 20)));
    let error = file.check_now().unwrap_err();
    assert!(error.to_string().contains("longer than 1048576 bytes"), "{error}");
    fs::write(&temp.0, [0xff, 0xfe]).unwrap();
    assert!(matches!(file.check_now().unwrap_err(), ReloadError::Unreadable { .. }));
    assert_eq!(gate.limit(), 10);
}

#[test]
fn observe_only_mode_is_switched_by_the_file_while_requests_are_in_flight() {
    let temp = Temp::holding(&fixed(1));
    let (gate, mut file) = temp.followed();
    let held = gate.try_acquire().unwrap();
    assert!(gate.try_acquire().is_err());

    temp.write(&format!("observe_only = true\n{}", fixed(1)));
    file.check_now().unwrap();
    let admitted = gate.try_acquire().unwrap();
    assert_eq!((gate.in_flight(), gate.snapshot().would_have_refused.total()), (1, 1));

    temp.write(&fixed(1));
    file.check_now().unwrap();
    assert!(gate.try_acquire().is_err());
    drop((held, admitted));
    assert!(gate.try_acquire().is_ok());
}

#[tokio::test]
async fn a_watched_file_tells_of_every_change_and_of_nothing_else() {
    let temp = Temp::holding(&fixed(10));
    let (gate, file) = temp.followed();
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let every = std::time::Duration::from_millis(1);
    let watch = file.watch(every, move |result| told.send(result.is_ok()).unwrap()).unwrap();
    let watch = tokio::spawn(watch);
    assert_eq!(hears.recv().await, Some(true));
    temp.write("limiter = 3");
    assert_eq!(hears.recv().await, Some(false));
    assert_eq!(gate.limit(), 10);
    watch.abort();
}
