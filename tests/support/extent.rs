//! How much the tests do: what a change needs while it is made, or everything.
//!
//! `cargo test` runs every kind of test on the newest Claude Code, with a sample of the cases and of the random kills. With
//! `AGENT_CLI_TESTS=all` it also runs on older versions, and tries every case; `AGENT_CLI_TESTS=rest` leaves out what plain `cargo test`
//! has run on the newest version, and older versions for what it does not run at all or what mainly tests agent-cli's own logic, and
//! makes the largest chains smaller. Nothing else reads that variable.

use std::env;

const VARIABLE: &str = "AGENT_CLI_TESTS";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Sample,
    /// What the sample leaves out.
    Rest,
    All,
}

/// How much this run tests.
///
/// # Panics
///
/// When the variable has a value that it does not know.
pub(crate) fn extent() -> Extent {
    match env::var(VARIABLE).as_deref() {
        Err(env::VarError::NotPresent) => Extent::Sample,
        Ok("rest") => Extent::Rest,
        Ok("all") => Extent::All,
        other => panic!("{VARIABLE} is all, rest or not set at all, but not {other:?}"),
    }
}

/// Whether every case is to be tried.
pub(crate) fn is_whole() -> bool {
    extent() != Extent::Sample
}

/// The first of some cases, or all in a whole run.
pub(crate) fn some_of<T>(cases: impl IntoIterator<Item = T>, sample: usize) -> impl Iterator<Item = T> {
    cases.into_iter().take(sample_or_all(sample, usize::MAX))
}

/// A number of cases: a sample, or what there is in a whole run.
pub(crate) fn sample_or_all(sample: usize, all: usize) -> usize {
    if is_whole() { all } else { sample }
}

/// A size that takes long: of a sample, of the rest after it, and of a whole run.
pub(crate) fn size([sample, rest, all]: [usize; 3]) -> usize {
    match extent() {
        Extent::Sample => sample,
        Extent::Rest => rest,
        Extent::All => all,
    }
}
