//! `agent-cli doctor`: checks the environment of chains.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::housekeeping::doctor::{self, Input};
use crate::cli::context::{CLAUDE, Context, named_claude, named_state_dir};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::one_line;
use crate::cli::output::{self, Tone, TonedLine, print_json, print_toned};
use crate::core::housekeeping::doctor_finding::{Finding, Status, worst};
use crate::core::text::wrap::wrapped;
use crate::runtime::housekeeping::cron::Crontab;
use crate::runtime::housekeeping::doctor::DoctorReport;

/// Check claude, login, settings and PATH, and suggest fixes
///
/// Also checks the state directory. Makes no request and starts no agent. A problem keeps chains from running; a warning does not. Exits with 0 if there
/// is no problem, with 4 if claude is missing or unusable, and with 1 otherwise.
///
/// With --cron, checks the login, settings and directories that a `resume` from cron would have: HOME, LOGNAME and USER
/// from the environment, and what is recorded in the chain. Variables set in the crontab itself are not taken into
/// account. Ends with an example line for the crontab and the names of variables that exist only in this shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli doctor
  agent-cli doctor --cron")]
pub(crate) struct Doctor {
    /// Directory in which agents would work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The claude program to check [default: $AGENT_CLI_CLAUDE, or claude in PATH]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Check whether cron could resume chains started from this shell
    #[arg(long)]
    cron: bool,

    /// Print a JSON object: claude, checks, and cron with --cron
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let named = self.cwd.as_deref().unwrap_or(Path::new("."));
        let cwd = fs::canonicalize(named)
            .map_err(|error| CliError::usage(format!("cannot work in {}: {error}", named.display())))?;
        let (state_dir, mode) = (context.state_dir()?, context.launch()?.permission_mode);
        let input = Input {
            cwd: &cwd,
            state_dir: &state_dir,
            state_dir_is_named: named_state_dir().is_some(),
            claude: self.claude,
            default_claude: (named_claude(), CLAUDE),
            permission_mode: mode.as_deref(),
            own_program: &context.settings(None)?.own_program,
            under_cron: self.cron,
            config: context.config_to_report(),
        };
        let report = doctor::doctor(&context.asker(), input)?;
        if self.json {
            print_json(&report)?;
        } else {
            let width = output::width().unwrap_or(usize::MAX);
            let example = report.cron.iter().map(example).collect::<String>();
            let others = example + &in_short(&report.checks);
            let plain = |text: &str| TonedLine { text: text.to_owned(), part: 0..0, tone: Tone::Plain };
            let checks = report.checks.iter().flat_map(|check| lines(check, width));
            print_toned(&checks.chain(others.lines().map(plain)).collect::<Vec<_>>())?;
        }
        Ok(exit(&report))
    }
}

/// Formats a finding: its severity, check and message. The remedy is on the next line.
fn lines(finding: &Finding, width: usize) -> Vec<TonedLine> {
    let message = format!("{:<8} {}: {}", finding.status.name(), finding.name, one_line(&finding.message));
    let hint = finding.hint.as_ref().map(|hint| format!("{:INDENT$}hint: {}", "", one_line(hint)));
    let lines = std::iter::once(message).chain(hint).flat_map(|line| wrapped(&line, width, INDENT));
    let tone = match finding.status {
        Status::Ok => Tone::Good,
        Status::Warning => Tone::Continues,
        Status::Problem => Tone::Bad,
    };
    let mut part = 0..finding.status.name().len();
    lines.map(|text| TonedLine { text, part: std::mem::take(&mut part), tone }).collect()
}

/// The indentation of messages.
const INDENT: usize = 9;

/// Formats the crontab entry. The user fills in the values of variables.
fn example(crontab: &Crontab) -> String {
    let mut lines = "for the crontab:\n".to_owned();
    for line in crontab.variables.iter().map(|name| format!("{name}=VALUE")).chain([crontab.line.clone()]) {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "         {}", one_line(&line));
    }
    lines
}

/// A one-line summary.
fn in_short(checks: &[Finding]) -> String {
    let counted = |status: Status, what: &str| match checks.iter().filter(|check| check.status == status).count() {
        0 => None,
        1 => Some(format!("1 {what}")),
        several => Some(format!("{several} {what}s")),
    };
    let counts = [counted(Status::Problem, "problem"), counted(Status::Warning, "warning")];
    match counts.into_iter().flatten().collect::<Vec<_>>().as_slice() {
        [] => "no problems found\n".to_owned(),
        counts => format!("{}\n", counts.join(", ")),
    }
}

fn exit(report: &DoctorReport) -> ExitStatus {
    match worst(&report.checks) {
        Status::Problem if !report.claude.usable => ExitStatus::Claude,
        Status::Problem => ExitStatus::Failed,
        Status::Warning | Status::Ok => ExitStatus::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_fits_the_terminal() {
        let finding = Finding {
            name: "login",
            status: Status::Warning,
            message: "no login was found for this user on this machine".into(),
            hint: Some("run claude once, and log in with /login".into()),
        };
        let shown: Vec<String> = lines(&finding, 40).into_iter().map(|line| line.text).collect();
        insta::assert_snapshot!(shown.join("\n"), @"
        warning  login: no login was found for
                 this user on this machine
                 hint: run claude once, and log
                 in with /login
        ");
    }
}
