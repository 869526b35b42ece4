//! Where the programs under test are.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cargo::cargo;

#[path = "../support/cargo.rs"]
mod cargo;

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
    // `cargo test` builds examples, but `cargo test --test cli` does not.
    if !is_newer_than_its_source(&program) {
        let profile = match folder().file_name().and_then(OsStr::to_str) {
            Some("debug") | None => "dev".to_owned(),
            Some(profile) => profile.to_owned(),
        };
        let mut build = cargo();
        build.args(["build", "--quiet", "--example", "stand-in", "--profile", &profile]);
        assert!(build.status().is_ok_and(|status| status.success()), "the stand-in cannot be built");
    }
    program
});

fn is_newer_than_its_source(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in");
    let Some(built) = changed(program) else { return false };
    fs::read_dir(source).into_iter().flatten().flatten().all(|file| changed(&file.path()) < Some(built))
}
