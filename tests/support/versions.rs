//! The versions of Claude Code that the tests run.

use super::extent::{Extent, extent};

/// The newest version that the tests know.
pub const NEWEST: &str = "2.1.330";
/// An older version that is still supported.
pub const OLDER: &str = "2.1.197";

/// Runs a test function with each version of this run.
pub fn with_each_version(test: impl Fn(&'static str)) {
    with_each(
        match extent() {
            Extent::Sample => &[NEWEST],
            Extent::Rest => &[OLDER],
            Extent::All => &[NEWEST, OLDER],
        },
        test,
    );
}

/// Runs a test function with the newest version, and with each version if all tests run.
pub fn with_each_version_before_a_release(test: impl Fn(&'static str)) {
    with_each(
        match extent() {
            Extent::Sample => &[NEWEST],
            Extent::Rest => &[],
            Extent::All => &[NEWEST, OLDER],
        },
        test,
    );
}

/// Runs a test function that knows one version, unless it has run in the sample.
pub fn once(test: impl Fn()) {
    if extent() != Extent::Rest {
        test();
    }
}

/// Runs a test function with each version, but only in a whole run. The rest after a sample is the newest version.
pub fn in_a_whole_run(test: impl Fn(&'static str)) {
    with_each(
        match extent() {
            Extent::Sample => &[],
            Extent::Rest => &[NEWEST],
            Extent::All => &[NEWEST, OLDER],
        },
        test,
    );
}

fn with_each(versions: &[&'static str], test: impl Fn(&'static str)) {
    for version in versions {
        // A failing test prints its output.
        println!("Claude Code {version}");
        test(version);
    }
}

/// Makes a test of each of these functions, which take a version.
macro_rules! on_every_version {
    ($($test:ident),+ $(,)?) => {
        mod on_every_version {
            $(#[test] fn $test() { crate::support::with_each_version(super::$test); })+
        }
    };
}
pub(crate) use on_every_version;

/// The same for functions that mainly test agent-cli's own logic: they run on older versions only before a release. Other tests check
/// the behaviour of Claude Code on every version.
macro_rules! on_every_version_before_a_release {
    ($($test:ident),+ $(,)?) => {
        mod on_every_version_before_a_release {
            $(#[test] fn $test() { crate::support::with_each_version_before_a_release(super::$test); })+
        }
    };
}
pub(crate) use on_every_version_before_a_release;

/// The same for functions that take no version, because they are about the newest one.
macro_rules! on_the_newest_version {
    ($($test:ident),+ $(,)?) => {
        mod on_the_newest_version {
            $(#[test] fn $test() { crate::support::once(super::$test); })+
        }
    };
}
pub(crate) use on_the_newest_version;

/// The same for functions that show little beyond what others show, or take long: only whole runs include them.
macro_rules! on_every_version_of_a_whole_run {
    ($($test:ident),+ $(,)?) => {
        mod on_every_version_of_a_whole_run {
            $(#[test] fn $test() { crate::support::in_a_whole_run(super::$test); })+
        }
    };
}
pub(crate) use on_every_version_of_a_whole_run;
