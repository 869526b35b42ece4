//! What an agent has around it besides its conversation: looked up when its attempt ends, and restored when it
//! continues.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use crate::claude::stream::digest::Digest;
use crate::claude::stream::rights::{SKILL, SkillRules};
use crate::claude::transcript::whereabouts::{self, Whereabouts};
use crate::core::agent::launch::Launch;
use crate::core::agent::situation::{self, Situation};
use crate::core::agent::starting_mode::{self, Beginning, Chosen};
use crate::core::chain::frame::Frame;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::runtime::programs::Program;
use crate::runtime::{RuntimeError, while_trying};

/// What the agent of `frame` has at the end of an attempt that printed `digest`. `began_with`: the permission mode that it
/// was started in; `deliveries`: the results that it was given.
pub(crate) fn at_the_end(
    frame: &Frame,
    began_with: Option<&str>,
    digest: &Digest,
    transcript: Option<&Path>,
    deliveries: &[Delivery],
) -> Result<Situation, RuntimeError> {
    let mode = starting_mode::last_mode(&frame.launch, began_with, digest.rights.modes.as_ref());
    let before = &frame.situation;
    let Whereabouts { shell, worktree } = match transcript {
        Some(transcript) => {
            let read = || whereabouts::read(BufReader::new(File::open(transcript)?));
            read().map_err(while_trying("read the transcript"))?
        }
        None => Whereabouts { shell: before.shell.clone(), worktree: before.worktree.clone() },
    };
    let shell = shell.filter(|shell| !is_same(shell, &frame.cwd));
    let mut situation = Situation { mode, shell, worktree, rules: before.rules.clone() };
    // If an earlier attempt made the call, the question about it says which tool it was.
    let is_of_skill =
        |delivery: &Delivery| matches!(&delivery.kind, RequestKind::Permission { tool, .. } if tool == SKILL);
    let was_asked =
        |call: &str| deliveries.iter().any(|given| given.call.as_deref() == Some(call) && is_of_skill(given));
    for SkillRules { call, rules, made_before } in &digest.rights.of_skills {
        if !made_before || was_asked(call) {
            situation.add_rules(rules);
        }
    }
    Ok(situation)
}

/// What the agent of `frame` has if nothing is left of the attempt that left it in `lost`.
pub(crate) fn after_loss(frame: &Frame, lost: Situation) -> Situation {
    let before = &frame.situation;
    let mode = starting_mode::after_loss(&frame.launch, before.mode.as_deref(), lost.mode);
    Situation { mode, ..before.clone() }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || fs::canonicalize(other).is_ok_and(|other| one == other)
}

/// The start of an attempt in which the agent has what it had before.
#[derive(Clone, Debug)]
pub(crate) struct Restored {
    /// The launch options.
    pub(crate) launch: Launch,
    /// The permission mode, if it differs from the frame's launch options.
    pub(crate) mode: Option<String>,
    /// What the agent has lost, one line each.
    lost: Vec<String>,
    /// The line that says where its shell is. A command can return it to its former directory.
    moved: Option<String>,
    can_return: bool,
}

/// How the attempt of `frame` begins. `chosen`: the mode that a person chose for it.
pub(crate) fn restored(frame: &Frame, program: &Program, chosen: Option<Chosen<'_>>) -> Restored {
    let Situation { mode, shell, worktree, .. } = &frame.situation;
    let Beginning { mode, refused } = starting_mode::beginning(&frame.launch, mode.as_deref(), chosen);
    let launch = match &mode {
        Some(mode) => frame.launch.clone().in_mode(mode),
        None => frame.launch.clone(),
    };
    let lost_mode = refused.map(|was| situation::of_mode(&was, launch.permission_mode.as_deref()));
    let kept_worktree = worktree.as_deref().filter(|_| returns_to_worktree(frame, program));
    let lost_worktree = worktree.as_deref().filter(|_| kept_worktree.is_none());
    let lost_worktree = lost_worktree.map(|worktree| situation::of_worktree(worktree, !worktree.is_dir()));
    let can_return = shell.as_deref().is_some_and(Path::is_dir);
    let starts_in = kept_worktree.unwrap_or(&frame.cwd);
    let moved = shell.as_deref().filter(|shell| !program.tells_directory && *shell != starts_in);
    let moved = moved.map(|shell| situation::of_shell(shell, starts_in, !can_return));
    let lost = lost_mode.into_iter().chain(lost_worktree).collect();
    Restored { launch, mode, lost, moved, can_return }
}

/// Whether Claude Code returns the agent of `frame` to the worktree that it entered, if its session continues in place.
pub(crate) fn returns_to_worktree(frame: &Frame, program: &Program) -> bool {
    program.returns_to_worktrees && frame.situation.worktree.as_deref().is_some_and(Path::is_dir)
}

impl Restored {
    /// The notices for the agent. `by_command`: whether it first runs a command, which returns its shell to its former
    /// directory.
    pub(crate) fn notices(&self, by_command: bool) -> impl Iterator<Item = String> {
        let moved = self.moved.iter().filter(|_| !(by_command && self.can_return));
        self.lost.iter().chain(moved).cloned().collect::<Vec<_>>().into_iter()
    }
}
