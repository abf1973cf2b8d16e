//! A thread per request, and no async runtime: a TCP server that answers lines, guarded by a gate.
//!
//! `cargo run --example threads`

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use goodput::{
    Gate, Outcome,
    algorithms::{Fixed, FixedSettings},
};

const CLIENTS: usize = 12;

fn main() -> io::Result<()> {
    let gate = Gate::new(Fixed::new(FixedSettings { limit: 4 }).expect("a valid limit"));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;

    let answers: Vec<String> = thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &gate));
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| ask(address))).collect();
        clients.into_iter().map(|client| client.join().expect("a client").expect("an answer")).collect()
    });

    let served = answers.iter().filter(|answer| answer.starts_with("done")).count();
    println!("{served} served, {} refused, {} in flight", CLIENTS - served, gate.in_flight());
    Ok(())
}

/// Takes as many connections as there are clients; each that is admitted gets a thread.
fn serve(listener: &TcpListener, gate: &Gate) {
    thread::scope(|scope| {
        for connection in listener.incoming().take(CLIENTS).flatten() {
            match gate.try_acquire() {
                // The token goes to the thread that does the work, and ends there. A panic would drop it.
                Ok(token) => {
                    scope.spawn(move || {
                        let outcome =
                            if work(connection).is_ok() { Outcome::Success } else { Outcome::Failure };
                        token.release(outcome);
                    });
                }
                Err(refusal) => {
                    let _ = writeln!(&connection, "busy: {refusal}");
                }
            }
        }
    });
}

fn work(mut connection: TcpStream) -> io::Result<()> {
    thread::sleep(Duration::from_millis(50));
    writeln!(connection, "done")
}

fn ask(address: SocketAddr) -> io::Result<String> {
    let mut answer = String::new();
    BufReader::new(TcpStream::connect(address)?).read_line(&mut answer)?;
    Ok(answer)
}
