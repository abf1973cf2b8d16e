//! Replays the recorded outputs of Netflix concurrency-limits: every limit equal, every estimate equal bit for bit.
//!
//! Two of the 69 traces show faults of the original that are mended here. Their rows are listed in [`mended`], with
//! the limit of the original and ours.

use std::{fs, path::PathBuf, time::Duration};

use flate2::read::GzDecoder;
use goodput_algorithms::{
    Aimd, AimdSettings, Allowance, Gradient, Gradient2, Gradient2Settings, GradientSettings, Instant,
    Latencies, Limiter, Summary, Vegas, VegasSettings, Window, Windowed, Windowing,
};

/// The trace's column, and our name for the number in a limiter's state.
const ESTIMATES: [(&str, &str); 5] = [
    ("est_after", "estimate"),
    ("rtt_noload_ns_after", "baseline_ns"),
    ("long_rtt_ns_after", "long_latency_ns"),
    ("next_update_ns_after", "window_ends_at_ns"),
    ("probe_count_after", "probe_count"),
];

/// Random draws of the original, which replace ours: the trace's column, and our name.
const DRAWS: [(&str, &str); 2] =
    [("probe_jitter_in_force", "probe_jitter"), ("probe_countdown_before", "probe_countdown")];

#[test]
fn every_row_of_every_trace_is_equal_or_is_listed_as_mended() {
    let (mut traces, mut rows, mut estimates, mut mended_rows) = (0, 0, 0, 0);
    for name in trace_names() {
        let trace = Trace::read(&name);
        let mut limiter = limiter_of(&name);
        for row in 0..trace.len() {
            inject_draws(limiter.as_mut(), &trace, row);
            let decision = limiter.update(&trace.window(row));
            let original = trace.number(row, "limit_after").unwrap() as usize;
            assert_eq!(decision.limit, limiter.limit());
            match mended(&name, row) {
                Some(ours) => {
                    assert_eq!(ours.original, original, "{name} row {row}: the original");
                    assert_eq!(ours.limit, decision.limit, "{name} row {row}: ours");
                    mended_rows += 1;
                }
                None => {
                    assert_eq!(decision.limit, original, "{name} row {row}: {decision}");
                    estimates += assert_equal_estimates(limiter.as_ref(), &trace, row, &name);
                }
            }
            rows += 1;
        }
        traces += 1;
    }
    assert_eq!((traces, rows), (69, 35_620));
    // 500 rows of `gradient_max2_steady`, and those of `windowed_default_gradient2_lowrate_steady` from 18 on.
    assert_eq!(mended_rows, 500 + 482);
    // Rows times columns of estimates, counted in the files, without the rows that are mended.
    assert_eq!(estimates, 67_714);
}

struct Mended {
    original: usize,
    limit: usize,
}

/// The rows at which we differ from the original, and what each says.
fn mended(name: &str, row: usize) -> Option<Mended> {
    match name {
        // The queue size, 4, overrules the maximum, 2.
        "gradient_max2_steady" => Some(Mended { original: 4, limit: 2 }),
        // Eight samples a second, ten needed for a window of a second: every window is thrown away, so the limit never
        // moves. Ours go on for another second. The first sample opens the first window, which ends 1 s later; row 9 is
        // the first after that, with 9 samples; row 18 is the first after another second, with 18. And so on.
        "windowed_default_gradient2_lowrate_steady" if row >= 18 => {
            let mut estimate: f64 = 20.0;
            for _ in 0..row / 18 {
                // Latency is constant, so the gradient is 1; with 20 in flight, a limit above 40 is not tested.
                if 20.0 >= estimate / 2.0 {
                    estimate = estimate * (1.0 - 0.2) + (estimate + 4.0) * 0.2;
                }
            }
            Some(Mended { original: 20, limit: estimate as usize })
        }
        _ => None,
    }
}

fn assert_equal_estimates(limiter: &dyn Limiter, trace: &Trace, row: usize, name: &str) -> usize {
    let state = limiter.state();
    let mut compared = 0;
    for (column, ours) in ESTIMATES {
        if let Some(original) = trace.number(row, column) {
            let ours = state.number(ours).unwrap_or_else(|| panic!("{name}: no `{ours}` in {state:?}"));
            assert_eq!(
                ours.to_bits(),
                original.to_bits(),
                "{name} row {row}: {column} {original}, ours {ours}"
            );
            compared += 1;
        }
    }
    compared
}

/// Where the original drew a random number, takes it over; which must be at the start and after a probe only.
fn inject_draws(limiter: &mut dyn Limiter, trace: &Trace, row: usize) {
    for (column, ours) in DRAWS {
        let Some(draw) = trace.number(row, column) else { continue };
        let state = limiter.state();
        if state.number(ours) != Some(draw) {
            let after_probe = row == 0
                || trace.number(row - 1, "probe_count_after") == Some(0.0)
                || trace.number(row - 1, "probe_countdown_before") == Some(0.0);
            assert!(after_probe, "row {row}: {ours} is {:?}, not {draw}", state.number(ours));
            limiter.resume(&state.with(ours, draw)).unwrap();
        }
    }
}

fn limiter_of(name: &str) -> Box<dyn Limiter> {
    let (algorithm, variant) = name.split_once('_').unwrap();
    match algorithm {
        "aimd" => Box::new(Aimd::new(aimd(variant)).unwrap()),
        "vegas" => Box::new(Vegas::new(vegas(variant)).unwrap()),
        "gradient" => Box::new(Gradient::new(gradient(variant)).unwrap()),
        "gradient2" => Box::new(Gradient2::new(gradient2(variant)).unwrap()),
        "windowed" => windowed(variant),
        _ => panic!("no settings are known for {name}"),
    }
}

fn aimd(variant: &str) -> AimdSettings {
    match variant {
        "min1_ratio05_drops" => {
            AimdSettings { initial: 1, min: 1, max: 50, backoff_ratio: 0.5, ..AimdSettings::default() }
        }
        _ => AimdSettings::default(),
    }
}

fn vegas(variant: &str) -> VegasSettings {
    let defaults = VegasSettings::default();
    let without_probes = VegasSettings { probe_multiplier: 1_000_000_000, ..defaults.clone() };
    match variant {
        "alpha3_beta6_smooth05_knee" => VegasSettings {
            initial: 10,
            max: 50,
            smoothing: 0.5,
            alpha: Allowance::Constant(3),
            beta: Allowance::Constant(6),
            ..without_probes
        },
        "big" => VegasSettings { initial: 900, max: 5_000, ..without_probes },
        "probe1_step_up60" | "probe1_knee" => VegasSettings { probe_multiplier: 1, ..defaults },
        "probe30_default_knee_x3" => defaults,
        _ => without_probes,
    }
}

fn gradient(variant: &str) -> GradientSettings {
    let without_probes = GradientSettings { probe_interval: 0, ..GradientSettings::default() };
    match variant {
        "probe80_step_up" => GradientSettings { probe_interval: 80, ..without_probes },
        "max2_steady" => GradientSettings { initial: 2, min: 1, max: 2, ..without_probes },
        "tol1_smooth1_backoff05_recovery" => {
            GradientSettings { tolerance: 1.0, smoothing: 1.0, backoff_ratio: 0.5, ..without_probes }
        }
        _ => without_probes,
    }
}

fn gradient2(variant: &str) -> Gradient2Settings {
    match variant {
        "sqrtq_tol1_long100_smooth05_knee" => Gradient2Settings {
            initial: 10,
            min: 1,
            max: 1_000,
            tolerance: 1.0,
            long_window: 100,
            smoothing: 0.5,
            queue_size: Allowance::SqrtAtLeast(1),
        },
        "min1_recovery" => Gradient2Settings { min: 1, ..Gradient2Settings::default() },
        _ => Gradient2Settings::default(),
    }
}

fn windowed(variant: &str) -> Box<dyn Limiter> {
    let tenth = Duration::from_millis(100);
    let short = Windowing { min_window: tenth, max_window: tenth, ..Windowing::default() };
    let scaled = Windowing { max_window: Duration::from_secs(1), ..short.clone() };
    let percentile = |fraction, capacity| Windowing {
        summary: Summary::Percentile { fraction, capacity },
        ..scaled.clone()
    };
    if variant.starts_with("avg_aimd_") {
        return Box::new(Windowed::around(Aimd::new(AimdSettings::default()).unwrap(), short).unwrap());
    }
    let windowing = match variant.split_once('_').unwrap().0 {
        "avg" => scaled,
        "p90cap11" => percentile(0.9, 11),
        "p50cap100" => percentile(0.5, 100),
        "default" => Windowing::default(),
        other => panic!("no windowing is known for {other}"),
    };
    let inner = match variant {
        "default_gradient2_default_step_up" | "default_gradient2_lowrate_steady" => {
            Gradient2Settings::default()
        }
        _ => Gradient2Settings {
            initial: 100,
            min: 10,
            max: 400,
            long_window: 60,
            ..Gradient2Settings::default()
        },
    };
    Box::new(Windowed::around(Gradient2::new(inner).unwrap(), windowing).unwrap())
}

/// One file: its header, and its rows with the empty cells filled from above.
struct Trace {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Trace {
    fn read(name: &str) -> Self {
        let file = fs::File::open(directory().join(format!("{name}.csv.gz"))).unwrap();
        let mut reader = csv::Reader::from_reader(GzDecoder::new(file));
        let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for record in reader.records() {
            let record = record.unwrap();
            let row = record.iter().enumerate().map(|(column, cell)| match cell {
                "" => rows.last().unwrap()[column].clone(),
                cell => cell.to_owned(),
            });
            let row = row.collect();
            rows.push(row);
        }
        Self { columns, rows }
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        let column = self.columns.iter().position(|c| c == column)?;
        Some(self.rows[row][column].parse().unwrap())
    }

    fn whole(&self, row: usize, column: &str) -> u64 {
        let column = self.columns.iter().position(|c| c == column).unwrap();
        self.rows[row][column].parse().unwrap()
    }

    /// The row's sample as a window of one.
    fn window(&self, row: usize) -> Window {
        let latency_ns = self.whole(row, "rtt_ns");
        let opened = Instant::from_nanos(self.whole(row, "start_ns"));
        let sample = Latencies::one(latency_ns);
        let (successes, overloads) = if self.whole(row, "did_drop") == 1 {
            (Latencies::NONE, sample)
        } else {
            (sample, Latencies::NONE)
        };
        Window {
            opened,
            closed: opened.plus_nanos(latency_ns),
            successes,
            overloads,
            max_in_flight: self.whole(row, "inflight"),
            ..Window::EMPTY
        }
    }
}

fn trace_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".csv.gz").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/netflix")
}
