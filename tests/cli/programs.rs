//! Where the programs under test are.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// The program under test.
pub(crate) fn agent_cli() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_agent-cli"))
}

/// The directory that holds it.
pub(crate) fn folder() -> PathBuf {
    agent_cli().parent().expect("a program is in a directory").to_owned()
}

/// The stand-in for `claude`.
pub(crate) fn stand_in() -> PathBuf {
    STAND_IN.clone()
}

static STAND_IN: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = folder().join("examples/stand-in");
    // `cargo test` builds examples, but `cargo test --test cli` does not, and it would leave an old one in place.
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--example", "stand-in", "--manifest-path"]);
    build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    if !program.exists() {
        assert!(build.status().is_ok_and(|status| status.success()), "the stand-in cannot be built");
    }
    program
});
