//! Sets the flag by which the engine takes its atomics and locks from loom.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(goodput_loom)");
    println!("cargo::rustc-cfg=goodput_loom");
}
