//! Config files: what they may hold, what is said of bad ones, and that all of it is described.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use goodput::{
    GateConfig,
    algorithms::Algorithm,
    priority::{CohortSettings, CriticalityShares, PartitionsSettings, Quota, RateQuota, TenantSettings},
    share::{Allowance, Share},
    waiting::{CoDelSettings, WaitingSettings},
};

/// With this set, the description is written anew instead of being compared.
const WRITE: &str = "GOODPUT_WRITE_DOCS";

/// A config in which nothing is left out.
fn everything() -> GateConfig {
    let quota = Quota {
        in_flight: Some(Allowance::AllBut(3)),
        rate: Some(RateQuota { requests: 600, per: std::time::Duration::from_secs(60), burst: Some(20) }),
    };
    GateConfig {
        name: String::from("search"),
        observe_only: true,
        limiter: Some(Algorithm::from_name("vegas").unwrap()),
        waiting: WaitingSettings { codel: Some(CoDelSettings::default()), ..WaitingSettings::default() },
        shares: Some(CriticalityShares { sheddable: Allowance::AtMost(40), ..CriticalityShares::default() }),
        cohorts: Some(CohortSettings::default()),
        partitions: Some(PartitionsSettings::default().with("NAME", Share::new(0.25).unwrap())),
        tenants: Some(TenantSettings {
            quotas: BTreeMap::from([(String::from("NAME"), quota.clone())]),
            quota,
            ..TenantSettings::default()
        }),
    }
}

#[test]
fn a_config_of_every_algorithm_and_of_everything_comes_back_as_it_was_written() {
    let of_limiter = |algorithm| GateConfig { limiter: Some(algorithm), ..GateConfig::default() };
    for config in Algorithm::all_defaults().into_iter().map(of_limiter).chain([everything()]) {
        let text = config.to_toml().unwrap();
        assert_eq!(GateConfig::from_toml(&text).as_ref(), Ok(&config), "{text}");
    }
}

#[test]
fn the_shortest_file_makes_a_gate_with_a_short_queue() {
    let config = GateConfig::from_toml("[limiter]\nalgorithm = \"fixed\"\nlimit = 7\n").unwrap();
    assert_eq!(config.waiting, WaitingSettings::default());
    let gate = config.builder().unwrap().build();
    assert_eq!((gate.limit(), gate.snapshot().name.as_str()), (7, "default"));
    assert_eq!(gate.config(), config);
}

#[test]
fn a_bad_file_is_told_its_line_its_field_and_the_remedy() {
    let cases: &[(&str, Option<usize>, Option<&str>, &str)] = &[
        ("", Some(1), Some("limiter"), "name an algorithm"),
        ("[limiter]\nalgorithm = \"amid\"", Some(2), Some("limiter.algorithm"), "`aimd`"),
        (
            "[limiter]\nalgorithm = \"aimd\"\nmax = 5",
            Some(3),
            Some("limiter.max"),
            "at least `min` (20), not 5",
        ),
        ("[limiter]\nalgorithm = \"aimd\"\n\nmaximum = 5", Some(4), Some("limiter.maximum"), "`max`"),
        ("[limiter]\nalgorithm = \"aimd\"\ntimeout = 5", Some(3), Some("limiter.timeout"), "\"20ms\""),
        ("nam = \"x\"", Some(1), Some("nam"), "`name`"),
        ("[waiting]\nmax_wait = 5", Some(2), Some("waiting.max_wait"), "\"20ms\""),
        ("[waiting]\n\nmax_waits = \"1s\"", Some(3), Some("waiting.max_waits"), "`max_wait`"),
        ("[waiting]\norder = \"any\"", Some(2), Some("waiting.order"), "`first-in`"),
        ("[shares]\n# half\nsheddable = 50", Some(3), Some("shares.sheddable"), "at_most"),
        ("[waiting.codel]\ntarget = \"1s\"", Some(2), Some("waiting.codel.target"), "below `interval`"),
        (
            "[partitions.shares]\na = { share = 0.7 }\nb = { share = 0.7 }",
            Some(1),
            Some("partitions.shares"),
            "1.4",
        ),
        (
            "[tenants.quotas.x]\nrate = { requests = 0, per = \"1s\" }",
            Some(2),
            Some("tenants.quotas.x.rate.requests"),
            "at least 1",
        ),
        ("[cohorts]\nperiod = \"0s\"", Some(2), Some("cohorts.period"), "above 0"),
        ("name = ", Some(1), None, ""),
        ("[waiting]\nmax_wait = \"1s\"\nmax_wait = \"2s\"", Some(3), None, "duplicate"),
    ];
    for &(text, line, field, remedy) in cases {
        let text = if text.contains("limiter") || text.is_empty() {
            text.to_owned()
        } else {
            // At the end, so that the lines stay what they are.
            format!("{text}\n[limiter]\nalgorithm = \"aimd\"")
        };
        let error = GateConfig::from_toml(&text).unwrap_err();
        let told = error.to_string();
        assert_eq!(error.line, line, "{told}\n{text}");
        if field.is_some() {
            assert_eq!(error.field.as_deref(), field, "{told}\n{text}");
        }
        assert!(told.contains(remedy), "{told}\n{text}");
    }
}

/// Every field of a table with its path, those of tables within included.
fn leaves(table: &toml::Table, outer: &str, leaves: &mut Vec<String>) {
    for (name, value) in table {
        let path = if outer.is_empty() { name.clone() } else { format!("{outer}.{name}") };
        match value {
            toml::Value::Table(inner) => self::leaves(inner, &path, leaves),
            _ => leaves.push(path),
        }
    }
}

#[test]
fn a_wrong_type_anywhere_in_a_file_is_told_by_its_own_line_and_field() {
    let limiters = Algorithm::all_defaults().into_iter();
    let of_limiter = |algorithm| GateConfig { limiter: Some(algorithm), ..GateConfig::default() };
    let mut wrong = 0;
    for config in limiters.map(of_limiter).chain([everything()]) {
        let good: toml::Table = toml::from_str(&config.to_toml().unwrap()).unwrap();
        let mut paths = Vec::new();
        leaves(&good, "", &mut paths);
        for path in paths {
            let mut bad = good.clone();
            let (tables, field) = path.rsplit_once('.').unwrap_or(("", &path));
            let table = tables
                .split('.')
                .filter(|name| !name.is_empty())
                .fold(&mut bad, |table, name| table[name].as_table_mut().unwrap());
            // A date is of no field's type.
            let date: toml::Value = toml::Value::Datetime("1979-05-27".parse().unwrap());
            table.insert(field.to_owned(), date);
            let text = toml::to_string(&bad).unwrap();
            let error = GateConfig::from_toml(&text).unwrap_err();
            let line = 1 + text.lines().position(|line| line.ends_with("= 1979-05-27")).unwrap();
            assert_eq!((error.line, error.field.as_deref()), (Some(line), Some(&*path)), "{error}\n{text}");
            wrong += 1;
        }
    }
    assert!(wrong > 100, "{wrong}");
}

#[test]
fn the_files_shown_in_the_description_are_good() {
    let text = fs::read_to_string(description()).unwrap();
    let files: Vec<_> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(files.len(), 2);
    for file in files {
        GateConfig::from_toml(file).unwrap_or_else(|error| panic!("{error}\n{file}"));
    }
}

#[test]
fn every_field_is_described() {
    let structs = structs();
    let path = description();
    let before = fs::read_to_string(&path).unwrap();
    let mut after = String::new();
    let mut lines = before.lines();
    while let Some(line) = lines.next() {
        after += &format!("{line}\n");
        let marker = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(marker) = marker.filter(|marker| *marker != "end") else { continue };
        after += "\n";
        match marker.strip_prefix("fields of ") {
            Some("GateConfig") => after += &table(&structs["GateConfig"]),
            Some(name) => after += &table(&flattened(&structs, name, "")),
            None => after += &algorithms(&structs),
        }
        after += "\n<!-- end -->\n";
        lines.find(|line| *line == "<!-- end -->").expect("every block has an end");
    }
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &after).unwrap();
    }
    assert!(
        after == before || std::env::var_os(WRITE).is_some(),
        "docs/configuration.md is not up to date: run `{WRITE}=1 cargo test -p goodput --test configuration`"
    );
}

#[test]
fn the_description_knows_every_field_that_a_file_can_have() {
    let structs = structs();
    let mut written = BTreeSet::new();
    let config: toml::Table = toml::from_str(&everything().to_toml().unwrap()).unwrap();
    for (name, value) in config.into_iter().filter(|(name, _)| name != "limiter") {
        collect("", &name, &value, &mut written);
    }
    let described: BTreeSet<_> =
        flattened(&structs, "GateConfig", "").into_iter().map(|field| field.name).collect();
    let is_described =
        |path: &String| described.iter().any(|field| path == field || path.starts_with(&format!("{field}.")));
    assert_eq!(written.iter().filter(|path| !is_described(path)).collect::<Vec<_>>(), Vec::<&String>::new());

    for algorithm in Algorithm::all_defaults() {
        let toml::Value::Table(fields) = toml::Value::try_from(&algorithm).unwrap() else { panic!() };
        let described: BTreeSet<_> =
            flattened(&structs, &settings_of(&algorithm), "").into_iter().map(|field| field.name).collect();
        for name in fields.keys().filter(|name| *name != "algorithm") {
            let known = described.iter().any(|field| field == name || field.starts_with(&format!("{name}.")));
            assert!(known, "{}: {name} is not described", algorithm.name());
        }
    }
}

fn description() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")
}

fn collect(outer: &str, name: &str, value: &toml::Value, paths: &mut BTreeSet<String>) {
    let path = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(name, value)| collect(&path, name, value, paths));
        }
        _ => _ = paths.insert(path),
    }
}

/// A field as the source describes it.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: String,
    meaning: String,
    is_of_algorithm: bool,
}

/// The fields of every struct of settings, from the sources of the crate and of the algorithms.
fn structs() -> BTreeMap<String, Vec<Field>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut structs = BTreeMap::new();
    let mut folders = vec![root.join("src"), root.join("algorithms/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let is_of_algorithm = path.starts_with(root.join("algorithms"));
                read_structs(&fs::read_to_string(path).unwrap(), is_of_algorithm, &mut structs);
            }
        }
    }
    structs
}

fn read_structs(source: &str, is_of_algorithm: bool, structs: &mut BTreeMap<String, Vec<Field>>) {
    let mut is_setting = false;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[derive(") {
            is_setting = line.contains("Deserialize");
        }
        let name = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {"));
        let Some(name) = name.filter(|_| is_setting) else { continue };
        is_setting = false;
        let mut fields = Vec::new();
        let mut meaning = String::new();
        for line in lines.by_ref().take_while(|line| *line != "}") {
            let line = line.trim();
            if let Some(text) = line.strip_prefix("///") {
                meaning = format!("{meaning}{text}");
            } else if let Some((name, kind)) =
                line.strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
            {
                fields.push(Field {
                    name: name.to_owned(),
                    kind: kind.trim_end_matches(',').to_owned(),
                    meaning: plain(meaning.trim()),
                    is_of_algorithm,
                });
                meaning.clear();
            }
        }
        structs.insert(name.to_owned(), fields);
    }
}

/// Without links into the documentation of the code.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let Some(end) = rest[start..].find(']').map(|end| start + end) else { break };
        let (label, after) = (&rest[start + 1..end], &rest[end + 1..]);
        let target = after.strip_prefix('(').and_then(|target| target.find(')'));
        let is_link = target.is_some() || (label.starts_with('`') && label.ends_with('`'));
        plain += &rest[..start];
        plain += if is_link { label } else { &rest[start..=end] };
        rest = target.map_or(after, |target| &after[target + 2..]);
    }
    plain + rest
}

/// The fields of a struct, those of structs within by their path.
fn flattened(structs: &BTreeMap<String, Vec<Field>>, name: &str, outer: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in &structs[name] {
        let path = format!("{outer}{}", field.name);
        let (kind, path_within) = match field.kind.strip_prefix("BTreeMap<String, ") {
            Some(kind) => (kind.trim_end_matches('>'), format!("{path}.NAME.")),
            None => (inner_kind(&field.kind), format!("{path}.")),
        };
        fields.push(Field { name: path, ..field.clone() });
        if structs.contains_key(kind) {
            fields.extend(flattened(structs, kind, &path_within));
        }
    }
    fields
}

fn inner_kind(kind: &str) -> &str {
    let inner = kind.strip_prefix("Option<").or_else(|| kind.strip_prefix("Box<"));
    inner.and_then(|inner| inner.strip_suffix('>')).map_or(kind, inner_kind)
}

fn table(fields: &[Field]) -> String {
    let mut table = String::from("| field | value | meaning |\n| --- | --- | --- |\n");
    for Field { name, kind, meaning, is_of_algorithm } in fields {
        let kind = match inner_kind(kind) {
            "Duration" => "time",
            "usize" | "u64" | "u32" | "u16" | "u8" | "NonZeroU64" | "NonZeroUsize" => "whole number",
            "f64" => "number",
            "bool" => "`true` or `false`",
            "String" => "text",
            "Share" => "share",
            "Allowance" if *is_of_algorithm => "allowed queue",
            "Allowance" => "allowance",
            "QueueBound" => "queue bound",
            "Order" => "order",
            kind if kind.starts_with("BTreeMap") => "tables by name",
            kind if kind.ends_with("Settings")
                || matches!(kind, "Algorithm" | "CriticalityShares" | "Quota" | "RateQuota") =>
            {
                "table"
            }
            kind => kind,
        };
        let kind = if kind.starts_with(char::is_uppercase) { format!("`{kind}`") } else { kind.to_owned() };
        table += &format!("| `{name}` | {kind} | {} |\n", meaning.replace('|', "\\|"));
    }
    table
}

fn algorithms(structs: &BTreeMap<String, Vec<Field>>) -> String {
    let mut text = String::new();
    for algorithm in Algorithm::all_defaults() {
        text += &format!("### `algorithm = \"{}\"`\n\n", algorithm.name());
        text += &table(&flattened(structs, &settings_of(&algorithm), ""));
        text += "\n";
    }
    text.trim_end().to_owned() + "\n"
}

/// What the settings of an algorithm are called in the code.
fn settings_of(algorithm: &Algorithm) -> String {
    let printed = format!("{algorithm:?}");
    let settings = printed.split_once('(').map(|(_, rest)| rest.split([' ', ')']).next().unwrap());
    settings.unwrap().to_owned()
}
