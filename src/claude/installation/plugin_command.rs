//! Runs `claude plugin …`, which registers plugins.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `claude` with these arguments. The error says why that failed, in one line.
pub(crate) fn run(claude: &Path, words: &[String]) -> Result<(), String> {
    let output = Command::new(claude).args(words).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    let last = said.lines().next_back().map(str::trim).filter(|line| !line.is_empty());
    Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
}
