//! `agent-cli gc`: removes chains that finished long ago.

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::app::housekeeping::gc::{self, Input};
use crate::app::view::outcome::GcView;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, bytes, cut, one_line, table};
use crate::cli::output::live::ProgressLine;
use crate::cli::output::{print, print_json, tell};
use crate::core::agent::child_worktree::Held;
use crate::core::text::time::duration;
use crate::runtime::housekeeping::gc::{Collected, Happening};
use crate::runtime::housekeeping::removal::Condemned;

/// Remove chains that finished long ago, and unused files
///
/// Removes whole chains: agents, questions, replies and history, files in the state directory, and the transcripts in
/// Claude Code's folders. Keeps every chain in which something still waits or runs, and the transcripts of sessions
/// that agent-cli did not start. Removes the agents' git worktrees and branches if they are clean and their commits are
/// on a branch that is not an agent's; keeps a chain with a worktree that contains other work. To keep a chain, export it
/// first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli gc --dry-run
  agent-cli gc --older-than 7d --failed")]
pub(crate) struct Gc {
    /// Only remove chains in which nothing has changed for this long
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = duration)]
    older_than: SignedDuration,

    /// Also remove chains that failed or were stopped, although they could be resumed
    #[arg(long)]
    failed: bool,

    /// Also remove worktrees with ignored files other than build output and caches
    #[arg(long)]
    ignored: bool,

    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Gc {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.start_log();
        let input = Input {
            older_than: self.older_than,
            with_failed: self.failed,
            with_ignored: self.ignored,
            dry_run: self.dry_run,
        };
        let (store, mut progress) = (context.store()?, ProgressLine::default());
        let app = context.app(&store);
        let collected = gc::gc(&app, &input, &mut |happening| match happening {
            Happening::Progress(what, done, of) => progress.show(what, done, of),
            Happening::Takes(condemned) => {
                progress.clear();
                tell(&ignored(condemned));
            }
        })?;
        progress.clear();
        if self.json {
            print_json(&GcView::new(&collected, self.dry_run))?;
            return Ok(ExitStatus::Ok);
        }
        print(&listed(&collected, app.now))?;
        tell(&summed(&collected, self.dry_run));
        Ok(ExitStatus::Ok)
    }
}

/// Lists the ignored files that are removed with a worktree, while the worktree still exists.
fn ignored(condemned: &Condemned) -> String {
    let names: Vec<_> = condemned.ignored.iter().map(|path| path.display().to_string()).collect();
    one_line(&format!(
        "ignored files removed with worktree {}: {}",
        condemned.worktree.path.display(),
        names.join(", ")
    ))
}

fn listed(collected: &Collected, now: Timestamp) -> String {
    let head = ["CHAIN", "STATE", "FOR", "AGENTS", "SIZE", "TASK"].map(str::to_owned).to_vec();
    let trees = collected.trees.iter().map(|tree| {
        let (state, agents) = (tree.status.name().to_owned(), tree.agents.to_string());
        vec![tree.id.short(), state, age(tree.since, now), agents, bytes(tree.bytes), cut(&tree.task, 60)]
    });
    let rows: Vec<_> = trees.collect();
    let trees = if rows.is_empty() { String::new() } else { table(&[vec![head], rows].concat()) };
    let orphans = collected.orphans.iter().map(|path| format!("{}\n", one_line(&path.display().to_string())));
    let worktrees = collected.worktrees.iter().map(|path| format!("{}\n", one_line(&path.display().to_string())));
    trees + &orphans.chain(worktrees).collect::<String>()
}

fn summed(collected: &Collected, pretend: bool) -> String {
    let busy = match collected.busy.len() {
        0 => String::new(),
        n => format!("kept {n} that are running or in use\n"),
    };
    let held = collected.held.iter().map(|Held { frame, path, branch, why, .. }| {
        format!("kept {} because of its worktree {} (branch {branch}): {why}\n", frame.short(), path.display())
    });
    let busy = busy + &held.collect::<String>();
    let nothing = collected.trees.is_empty() && collected.orphans.is_empty() && collected.worktrees.is_empty();
    if nothing && collected.routine == 0 {
        return busy + "nothing to remove";
    }
    let agents: usize = collected.trees.iter().map(|tree| tree.agents).sum();
    let done = if pretend { "would remove" } else { "removed" };
    let what = format!("{} with {}", many(collected.trees.len(), "chain"), many(agents, "agent"));
    let orphans = match collected.orphans.len() + collected.routine {
        0 => String::new(),
        n => format!(" and {}", many(n, "orphaned file")),
    };
    let worktrees = match collected.worktrees.len() {
        0 => String::new(),
        n => format!(" and {}", many(n, "worktree")),
    };
    let database = match collected.database_bytes {
        0 => String::new(),
        shrunk => format!("; the database shrank by {}", bytes(shrunk)),
    };
    format!("{busy}{done} {what}{worktrees}{orphans}: {}{database}", bytes(collected.bytes))
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
