//! Links optimised builds for Linux at a fixed address. Otherwise, the loader corrects tens of thousands of addresses at each start,
//! and so copies the pages that contain them: a fifth of the time of a poll.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let is_linux = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // A statically linked program has no loader.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static");
    if is_linux && !is_static && variable("PROFILE") == "release" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
