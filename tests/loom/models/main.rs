//! Models of the gate.
//!
//! loom runs a model again and again, with the threads in another order each time, and with every value that the
//! memory model lets a load see. The gate is the very one that ships; only its atomics, its locks and its thread
//! numbers are loom's. Counters of std in a model are not part of what is explored: they tell what is true at a moment.
//!
//! `cargo test -p goodput-loom` interrupts no thread more than twice where it would not have to be, which takes half a
//! minute. `LOOM_MAX_PREEMPTIONS=3 cargo test -p goodput-loom` looks further, and takes some minutes.

mod admission;
mod keeping;
mod support;
mod waiting;
mod windows;
