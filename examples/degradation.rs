//! A service that leaves optional work undone as load rises, in the order in which it is least missed.
//!
//! Every page takes a place and 20 ms; recommendations take 20 ms more, and images 10. There are 8 places. The service
//! is sent 100 pages a second, then 300, then 100 again. With everything on, 300 would not fit; with the optional work
//! gone, they do. It comes back, last gone first, when there has been room for a while.
//!
//! `cargo run --release --example degradation`

use std::{
    error::Error,
    sync::{Arc, RwLock},
    time::Duration,
};

use axum::{Router, extract::State, routing::get};
use goodput::{
    Clock, Gate,
    algorithms::{Fixed, FixedSettings},
    load::{Degradation, DegradationSettings, Load, LoadSettings},
    middleware::GateLayer,
    observe::Interval,
};
use goodput_examples::Phase;
use tokio::{net::TcpListener, sync::mpsc, time::sleep};

const PHASES: [Phase; 3] = [
    Phase { per_second: 100, lasting: Duration::from_secs(2) },
    Phase { per_second: 300, lasting: Duration::from_secs(4) },
    Phase { per_second: 100, lasting: Duration::from_secs(8) },
];
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Asked by every handler, and set now and then.
type Optional = Arc<RwLock<Degradation>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Box::new(Fixed::new(FixedSettings { limit: 8 })?);
    let gate = Gate::builder(limiter).name("pages").build();
    let optional: Optional = Arc::new(RwLock::new(Degradation::new(DegradationSettings {
        features: vec![String::from("recommendations"), String::from("images")],
        ..DegradationSettings::default()
    })?));
    // As an example must not take minutes, it is believed sooner than by default that the worst is over.
    let load = Load::new(LoadSettings { fall: Duration::from_secs(5), ..LoadSettings::default() })?;

    let app =
        Router::new().route("/", get(page)).layer(GateLayer::http(gate.clone())).with_state(optional.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    tokio::spawn(follow_load(gate, load, optional));

    let (sender, mut reports) = mpsc::unbounded_channel();
    goodput_examples::run(url, &PHASES, sender).await;
    while reports.recv().await.is_some() {}
    Ok(())
}

async fn page(State(optional): State<Optional>) -> String {
    let mut page = String::from("the page");
    sleep(Duration::from_millis(20)).await;
    for (feature, takes) in [("images", 10), ("recommendations", 20)] {
        if optional.read().is_ok_and(|optional| optional.allows(feature)) {
            sleep(Duration::from_millis(takes)).await;
            page = format!("{page}, {feature}");
        }
    }
    page
}

/// Tells the signal what the gate was like, and the optional work what the signal says.
async fn follow_load(gate: Gate, mut load: Load, optional: Optional) {
    println!("demand/s  limit use  refused  load  off");
    let mut earlier = gate.snapshot();
    loop {
        sleep(LOOK_EVERY).await;
        let later = gate.snapshot();
        let interval = Interval::between(&earlier, &later);
        earlier = later;
        let load = load.follow((&interval).into(), gate.clock().now());
        let Ok(mut optional) = optional.write() else { return };
        optional.follow(load);
        println!(
            "{:>8.0}  {:>8.0}%  {:>6.0}%  {load:>4.2}  {}",
            interval.demand() as f64 / interval.duration.as_secs_f64(),
            100.0 * interval.limit_use(),
            100.0 * interval.refused_part(),
            optional.off().join(", "),
        );
    }
}
