//! Shared by the benchmarks, which report the cost of a command as a ratio to the start and end of an empty program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Prints the medians of `runs` pairs: a command, created for each run, and the empty program.
pub(crate) fn compare(name: &str, empty: &Path, runs: usize, mut command: impl FnMut(usize) -> Command) {
    // Alternately, so that a change of the machine's speed affects both.
    let pairs: Vec<_> = (0..runs).map(|run| (time(&mut command(run)), time(&mut Command::new(empty)))).collect();
    let median = |of: &dyn Fn(&(Duration, Duration)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[runs / 2]
    };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{name:<32} {:.2} ms", median(&|pair| milliseconds(pair.0)));
    println!("{:<32} {:.2} ms", "empty program", median(&|pair| milliseconds(pair.1)));
    println!(
        "{:<32} {:.2} (medians of {runs} pairs)",
        "ratio",
        median(&|pair| pair.0.as_secs_f64() / pair.1.as_secs_f64())
    );
}

/// `fn main() {}`, compiled as this program is.
pub(crate) fn empty_program(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}\n").expect("the folder can be written to");
    let mut rustc = Command::new("rustc");
    let status = rustc.args(["-O", "-C", "strip=symbols", "-o"]).arg(&program).arg(&source).status();
    assert!(status.expect("rustc can be started").success());
    program
}

/// Standard input comes from the command; its output is dropped.
fn time(command: &mut Command) -> Duration {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().expect("the program can be started");
    let took = began.elapsed();
    assert!(status.success());
    took
}
