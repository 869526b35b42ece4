//! `agent-cli fsck`: checks whether all stored data is consistent.

use clap::Args;

use crate::app::housekeeping::fsck;
use crate::app::view::outcome::{FindingView, FsckView};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::one_line;
use crate::cli::output::live::ProgressLine;
use crate::cli::output::{hint, print, print_json, tell};

/// Check the state directory for inconsistencies
///
/// Reports each inconsistency, and exits with 1 if one remains. Chains can keep running.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli fsck
  agent-cli fsck --repair")]
pub(crate) struct Fsck {
    /// Repair what can be repaired without loss: permissions, copies of transcripts, orphaned files
    #[arg(long)]
    repair: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Fsck {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let (store, mut progress) = (context.store()?, ProgressLine::default());
        let report =
            fsck::fsck(&context.app(&store), self.repair, &mut |what, done, of| progress.show(what, done, of))?;
        progress.clear();
        if self.json {
            print_json(&report)?;
        } else {
            words(&report)?;
        }
        Ok(if report.is_clean() { ExitStatus::Ok } else { ExitStatus::Failed })
    }
}

fn words(report: &FsckView) -> Result<(), CliError> {
    let line = |kind: &str, text: &str| format!("{kind}: {}\n", one_line(text));
    let repaired = report.repaired.iter().map(|text| line("repaired", text));
    let kind = |listed: &FindingView| if listed.note { "note" } else { "problem" };
    let found = report.findings.iter().map(|listed| line(kind(listed), &listed.text));
    print(&repaired.chain(found).collect::<String>())?;
    let mut hints: Vec<_> = report.findings.iter().filter_map(|listed| listed.hint.as_deref()).collect();
    hints.sort_unstable();
    hints.dedup();
    hints.into_iter().for_each(hint);
    if report.findings.is_empty() {
        tell("no problems found");
    }
    Ok(())
}
