//! Cargo, run by a program that cargo runs.

use std::env;
use std::process::Command;

/// Cargo without the variables that it sets for the programs that it runs. Some build scripts, such as ring's, would run again because of
/// them, and everything that needs what they build would be compiled again.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    let own = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"].iter().any(|start| name.starts_with(start));
    for (name, _) in env::vars_os().filter(|(name, _)| own(&name.to_string_lossy())) {
        cargo.env_remove(name);
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo
}
