//! `agent-cli doctor`: what is wrong with the surroundings of chains.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::{CLAUDE, Context, named_claude, named_state_dir};
use super::error::CliError;
use super::exit::Exit;
use super::output::{print, print_json};
use super::text::one_line;
use crate::core::finding::{Finding, Status, worst};
use crate::runtime::doctor::{Case, Report, examine};

/// Check claude, login, settings, PATH and the state directory, and say what to do
///
/// Makes no request and starts no agent. A warning tells what could be better, a problem what keeps chains from running.
/// Exits with 0 when there is no problem, with 4 when claude is missing or unusable, and with 1 otherwise.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Where agents would work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The claude program [default: $AGENT_CLI_CLAUDE, or claude in PATH]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Print a JSON object: claude, checks
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let named = self.cwd.as_deref().unwrap_or(Path::new("."));
        let cwd = fs::canonicalize(named)
            .map_err(|error| CliError::usage(format!("cannot work in {}: {error}", named.display())))?;
        let (claude, found_by) = match (self.claude, named_claude()) {
            (Some(named), _) => (Some(named), "--claude"),
            (None, Some(named)) => (Some(named), CLAUDE),
            (None, None) => (None, "PATH"),
        };
        let (state_dir, mode) = (context.state_dir()?, context.launch().permission_mode);
        let case = Case {
            claude: claude.as_deref(),
            found_by,
            cwd: &cwd,
            state_dir: &state_dir,
            state_dir_is_named: named_state_dir().is_some(),
            permission_mode: mode.as_deref(),
            own_program: &context.settings(None)?.own_program,
            caller: context.caller,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CliError::failed(format!("failed to start the runner: {error}")))?;
        let report = runtime.block_on(examine(&case));
        if self.json {
            print_json(&report)?;
        } else {
            print(&report.checks.iter().map(lines).collect::<String>())?;
        }
        Ok(exit(&report))
    }
}

/// A finding as people see it: how bad, which check, what; what to do about it stands below.
fn lines(finding: &Finding) -> String {
    let mut lines = format!("{:<8} {}: {}\n", finding.status.name(), finding.name, one_line(&finding.message));
    if let Some(hint) = &finding.hint {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "         hint: {}", one_line(hint));
    }
    lines
}

fn exit(report: &Report) -> Exit {
    match worst(&report.checks) {
        Status::Problem if !report.claude.usable => Exit::Claude,
        Status::Problem => Exit::Failed,
        Status::Warning | Status::Ok => Exit::Ok,
    }
}
