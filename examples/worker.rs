//! A queue consumer that finds out how many messages at once the service behind it takes.
//!
//! A consumer can wait, so nothing is refused: a message is taken from the queue, waits for a place, and the rest
//! stays in the queue, where its broker sees it.
//!
//! `cargo run --example worker`

use std::time::Duration;

use goodput::{
    Gate, Outcome, Request,
    algorithms::{Aimd, AimdSettings},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

/// What the service behind can do: this many at once, each this long. The consumer does not know it.
static SERVICE: Semaphore = Semaphore::const_new(8);
const SERVICE_TIME: Duration = Duration::from_millis(5);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let patience = Duration::from_millis(25);
    let settings =
        AimdSettings { initial: 1, min: 1, max: 100, timeout: patience, ..AimdSettings::default() };
    let limiter = Box::new(Aimd::new(settings).expect("valid settings"));
    // One message at most waits for its place: the loop below takes no other before that has gone in.
    let gate = Gate::builder(limiter).name("orders").max_waiting(1).build();

    let (queue, mut messages) = mpsc::channel(16);
    tokio::spawn(async move {
        for message in 0..2_000_u32 {
            // The bounded queue pushes back on its producer.
            if queue.send(message).await.is_err() {
                break;
            }
        }
    });

    let mut at_work = JoinSet::new();
    while let Some(message) = messages.recv().await {
        let token = gate.acquire(Request::DEFAULT).await.expect("the only one that waits is not refused");
        at_work.spawn(async move {
            match timeout(patience, call_service(message)).await {
                Ok(()) => token.release(Outcome::Success),
                Err(_) => token.release(Outcome::Overload),
            }
        });
        if message % 250 == 0 {
            println!("message {message:>4}: limit {:>2}, in flight {:>2}", gate.limit(), gate.in_flight());
        }
    }
    while at_work.join_next().await.is_some() {}
    println!("all done: limit {}, in flight {}", gate.limit(), gate.in_flight());
}

async fn call_service(_message: u32) {
    let _slot = SERVICE.acquire().await.expect("never closed");
    sleep(SERVICE_TIME).await;
}
