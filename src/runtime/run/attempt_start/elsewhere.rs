//! Settings for an agent that works in another directory than the one where its chain was started.

use std::path::PathBuf;

use serde_json::Value;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::settings::of_project;
use crate::core::chain::frame::Frame;
use crate::failpoint::{self, Step};
use crate::runtime::requests::agent_lookup;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;

/// Settings for an agent that works in another directory than the uppermost agent of its chain. A person named the
/// uppermost agent's directory.
#[derive(Debug)]
pub(super) struct ElsewhereSettings {
    /// Where the uppermost agent works.
    pub(super) base: PathBuf,
    /// The settings of the project there, as they apply to this agent.
    pub(super) settings: Value,
    /// Which other settings files apply, and where the instructions of its folder are; `None`: a person trusts its folder.
    pub(super) own: Option<(String, PathBuf)>,
}

/// The settings for `frame` if it works in another directory; `None`: it works where its chain was started.
pub(super) fn look(store: &Store, frame: &Frame) -> Result<Option<ElsewhereSettings>, RuntimeError> {
    let base = agent_lookup::base(store, frame)?;
    if base == frame.cwd {
        return Ok(None);
    }
    let mut places = vec![base.clone()];
    // The same directory of each worktree.
    places.extend(agent_lookup::worktrees(store, frame)?.iter().filter_map(|worktree| {
        let within = base.strip_prefix(worktree.repository.parent()?).ok()?;
        frame.cwd.starts_with(&worktree.path).then(|| worktree.path.join(within))
    }));
    let settings = of_project::settings(&base, &places, &frame.launch);
    if of_project::is_trusted(&frame.cwd, &frame.launch) {
        return Ok(Some(ElsewhereSettings { base, settings, own: None }));
    }
    let folder = store.dir().settings(frame.id).with_file_name("instructions");
    let config = config_dir(&frame.launch);
    let collected = || of_project::collect_instructions(&folder, &frame.cwd, config.as_deref());
    failpoint::around(Step::Settings, collected).map_err(while_trying("collect the instructions of its directory"))?;
    Ok(Some(ElsewhereSettings { base, settings, own: Some((of_project::remaining(&frame.launch), folder)) }))
}
