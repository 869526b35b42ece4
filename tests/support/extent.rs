//! How much the tests do: what a change needs while it is made, or everything.
//!
//! `cargo test` runs every kind of test on the newest Claude Code, and samples what is tried out at random or case by case. With
//! `AGENT_CLI_TESTS=all` it runs on the older versions as well, and tries every case. Nothing else reads that variable.

use std::env;

const VARIABLE: &str = "AGENT_CLI_TESTS";

/// Whether everything is to be tried.
///
/// # Panics
///
/// When the variable has a value that it does not know.
pub(crate) fn is_whole() -> bool {
    match env::var(VARIABLE).as_deref() {
        Err(env::VarError::NotPresent) => false,
        Ok("all") => true,
        other => panic!("{VARIABLE} is all or not set at all, but not {other:?}"),
    }
}

/// The first of some cases, or all in a whole run.
pub(crate) fn some_of<T>(cases: impl IntoIterator<Item = T>, sample: usize) -> impl Iterator<Item = T> {
    cases.into_iter().take(sample_or_all(sample, usize::MAX))
}

/// A number of cases: a sample, or what there is in a whole run.
pub(crate) fn sample_or_all(sample: usize, all: usize) -> usize {
    if is_whole() { all } else { sample }
}
