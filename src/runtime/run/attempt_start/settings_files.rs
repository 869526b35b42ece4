//! The files that `claude` is started with: its settings, and the file that names agent-cli's tool for approvals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::claude::invocation::{ATTEMPT, FRAME, STATE_DIR};
use crate::claude::settings::merged::{self, OwnHooks, StopHook};
use crate::claude::settings::{mcp_policy, of_project, own_plugin, permission_rules};
use crate::claude::tools::{native_agents, permission_server};
use crate::core::chain::frame::{Frame, Task};
use crate::core::id::AttemptId;
use crate::core::steering::fresh_start;
use crate::failpoint::Step;
use crate::runtime::programs::Program;
use crate::runtime::requests::agent_lookup;
use crate::runtime::run::attempt_start::elsewhere::ElsewhereSettings;
use crate::runtime::run::attempt_start::protection;
use crate::runtime::run::places::Places;
use crate::runtime::{RunSettings, RuntimeError, while_trying};
use crate::store::Store;

/// The settings file: the user's own settings with agent-cli's rules and, if `claude` can use them, hooks.
///
/// It is a file because Claude Code would keep a copy of settings passed as text.
pub(super) fn settings(
    store: &Store,
    own: &RunSettings,
    frame: &Frame,
    program: &Program,
    elsewhere: Option<&ElsewhereSettings>,
) -> Result<Option<PathBuf>, RuntimeError> {
    let base = elsewhere.map_or(&frame.cwd, |elsewhere| &elsewhere.base);
    let mut user = elsewhere.map(|elsewhere| elsewhere.settings.clone());
    match frame.launch.args.last(merged::OPTION) {
        None => {}
        Some(given) => match merged::read(given, base) {
            Some(given) if given.is_object() && user.is_some() => {
                user.iter_mut().for_each(|user| of_project::merge(user, given.clone()));
            }
            Some(given) => user = Some(given),
            // Claude Code reports what is wrong with them.
            None => return Ok(None),
        },
    }
    let returning = has_hooks(frame, program).then_some(own.own_program.as_path());
    let rules = permission_rules::rules(returning, instructions_to_allow(store, frame)?, &frame.situation.rules);
    let stop_file = store.dir().stop_file(frame.id);
    let message_file = store.dir().message_file(frame.id);
    let stop =
        StopHook { file: &stop_file, message_file: &message_file, after_all_calls: program.hooks_after_all_calls };
    let hooks = OwnHooks {
        program: &own.own_program,
        native_questions: frame.launch.native_questions,
        limits_agents: frame.launch.native_agents.is_some(),
        linger: whole_seconds(own.linger),
        parallel_total: own.places.as_ref().map(Places::most),
        stop,
        denies_all: frame.summary_lacks().map(|_| fresh_start::NO_TOOLS),
    };
    let hooks = Some(hooks).filter(|_| has_hooks(frame, program));
    let mut merged = merged::settings(user.as_ref(), &rules, hooks.as_ref());
    // Settings of the user may set them for interactive sessions.
    let state_dir = store.dir().path().display().to_string();
    merged::set_variables(&mut merged, [(STATE_DIR, state_dir), (FRAME, frame.id.to_string())]);
    let dirs = protection::reached(&frame.launch, Some(&frame.cwd));
    let programs = [own.own_program.as_path(), &program.path];
    merged::deny(&mut merged, protection::rules(store, own.config.as_deref(), programs, &dirs));
    if frame.launch.native_agents.is_some_and(|most| most == 0 || !has_hooks(frame, program)) {
        merged::deny(&mut merged, native_agents::ALL.map(str::to_owned).to_vec());
    }
    own_plugin::switch_off(&mut merged, base, &frame.launch);
    let text = merged.to_string();
    let file = store.dir().settings(frame.id);
    let written = store.dir().write(Step::Settings, &file, text.as_bytes());
    written.map_err(while_trying("write the settings"))?;
    Ok(Some(file))
}

pub(super) fn has_hooks(frame: &Frame, program: &Program) -> bool {
    program.suspends && !frame.launch.no_hooks
}

/// Less than a second is not nothing.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// The file that tells `claude` about agent-cli's tool for approvals, unless a policy forbids it. Claude Code does not pass its whole
/// environment on.
pub(super) fn permission_tool(
    store: &Store,
    own: &RunSettings,
    frame: &Frame,
    attempt: AttemptId,
) -> Result<Option<PathBuf>, RuntimeError> {
    let dirs = agent_lookup::settings_dirs(store, frame)?;
    if let Some(policy) = dirs.iter().find_map(|dir| mcp_policy::forbidding(dir, &frame.launch)) {
        // Claude Code denies the calls itself then.
        tracing::debug!("{} forbids the tool for approvals", policy.file.display());
        return Ok(None);
    }
    let state_dir = store.dir().path().display().to_string();
    let environment = [(FRAME, frame.id.to_string()), (ATTEMPT, attempt.to_string()), (STATE_DIR, state_dir)];
    let lingers = merged::lingers(whole_seconds(own.linger), own.places.as_ref().map(Places::most));
    let config = permission_server::config(&own.own_program, &environment, &lingers, own.linger);
    let Some(config) = config else { return Ok(None) };
    let file = store.dir().permission_tool(frame.id);
    let written = store.dir().write(Step::Settings, &file, config.to_string().as_bytes());
    written.map_err(while_trying("write the file that leads to the permission tool"))?;
    Ok(Some(file))
}

/// A person named the instructions of a root. An agent named the instructions of its child, and could otherwise read any
/// file through its children. A child in its own worktree may also read a file in its parent's directory, because the
/// worktree may lack it.
fn instructions_to_allow<'a>(store: &Store, frame: &'a Frame) -> Result<Option<&'a Path>, RuntimeError> {
    let Task::File(path) = &frame.task else { return Ok(None) };
    let detached = if frame.depth == 1 { store.chain_of(frame.id)?.detached } else { None };
    if frame.depth == 1 && detached.is_none() {
        return Ok(Some(path));
    }
    if frame.launch.worktree.is_none() {
        return Ok(None);
    }
    let of_detached = detached.map(|detached| detached.cwd);
    let asking = agent_lookup::asked_by(store, frame)?.map(|agent| agent.cwd);
    let Some(asking) = of_detached.or(asking) else { return Ok(None) };
    let is_there = path.canonicalize().is_ok_and(|file| file.starts_with(&asking));
    Ok(is_there.then_some(path))
}

#[cfg(test)]
mod tests;
