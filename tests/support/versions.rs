//! The versions of Claude Code that the tests run.

use super::extent;

/// The newest version that the tests know.
pub const NEWEST: &str = "2.1.330";
/// An older version that is still supported.
pub const OLDER: &str = "2.1.197";

/// The versions of this run.
pub fn versions() -> &'static [&'static str] {
    if extent::is_whole() { &[NEWEST, OLDER] } else { &[NEWEST] }
}

/// Tries a function of the version with each version of this run.
pub fn with_each_version(test: impl Fn(&'static str)) {
    for version in versions() {
        // A test that fails shows what it has printed.
        println!("Claude Code {version}");
        test(version);
    }
}

/// Tries a function of the version with each version, in a whole run.
pub fn in_a_whole_run(test: impl Fn(&'static str)) {
    if extent::is_whole() {
        with_each_version(test);
    }
}

/// Makes a test of each function of the version.
macro_rules! on_every_version {
    ($($test:ident),+ $(,)?) => {
        mod on_every_version {
            $(#[test] fn $test() { crate::support::with_each_version(super::$test); })+
        }
    };
}
pub(crate) use on_every_version;

/// The same of functions that tell little more than others do, or take long: they are left to whole runs.
macro_rules! on_every_version_of_a_whole_run {
    ($($test:ident),+ $(,)?) => {
        mod on_every_version_of_a_whole_run {
            $(#[test] fn $test() { crate::support::in_a_whole_run(super::$test); })+
        }
    };
}
pub(crate) use on_every_version_of_a_whole_run;
