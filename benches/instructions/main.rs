//! One operation after the other, for callgrind to count the instructions of. `benches/instructions.sh` runs this and
//! compares what comes out with `benches/instructions.txt`: instructions, unlike time, are the same on a busy machine.
//!
//! Callgrind writes a file after each `counted`, so its files are in the order of the names that are printed.

mod operations;

use operations::operations;

/// How often each operation is done.
const TIMES: u64 = 1_000;

fn main() {
    for mut operation in operations() {
        println!("{}", operation.name);
        // First visits do more.
        counted(&mut *operation.once);
        counted(&mut *operation.once);
    }
}

#[inline(never)]
fn counted(once: &mut dyn FnMut()) {
    for _ in 0..TIMES {
        once();
    }
}
