//! Resolves an id, a name or `last`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::core::agent::child_worktree::Worktree;
use crate::core::id::{FrameId, IdPrefix, Reference};
use crate::core::requests::request::RequestResult;
use crate::runtime::requests::agent_lookup;
use crate::runtime::worktrees::directory::{of_repository, project_of};
use crate::store::{ChainFilter, ChainKind, Chains, ResultUse, Scope, Store, StoreError, Target, WorktreesOf};

/// The result of an agent's request.
#[derive(Debug, PartialEq)]
pub(crate) struct LookedUp {
    pub(crate) target: Target,
    /// `None` if no result exists yet.
    pub(crate) result: Option<RequestResult>,
}

impl LookedUp {
    /// Records that the agent has read the result. Called after the result was printed, because reading a result twice does
    /// no harm.
    pub(crate) fn record_read(&self, app: &App<'_>) -> Result<(), AppError> {
        let (Some(caller), Some(read)) = (app.asker.agent, &self.result) else { return Ok(()) };
        match app.store.use_results(caller, ResultUse::LookedUp(self.target, read)) {
            // This attempt gets no more results.
            Err(StoreError::StaleCaller { .. }) => Ok(()),
            used => {
                used?;
                Ok(())
            }
        }
    }
}

/// The frame that an id names, for commands that only read.
pub(crate) fn frame_named(app: &App<'_>, id: &str) -> Result<FrameId, AppError> {
    match target_named(app, id)? {
        Target::Frame(frame) => Ok(frame),
        request @ Target::Request(_) => Ok(app.store.chain_of(request)?.frame),
    }
}

/// The target of an id, a name or `last`, for commands that only read.
pub(crate) fn target_named(app: &App<'_>, id: &str) -> Result<Target, AppError> {
    let id = id_of(app, id)?;
    Ok(match app.asker.agent {
        Some(caller) => agent_lookup::named(app.store, caller, &id)?,
        None => app.store.lookup(Scope::All, &id)?,
    })
}

/// The id for a word on the command line. Agents use no names, because they must not see other chains.
pub(crate) fn id_of(app: &App<'_>, text: &str) -> Result<IdPrefix, AppError> {
    if app.asker.agent.is_some() {
        let Ok(Reference::Name(_) | Reference::Last) = text.parse() else { return Ok(text.parse()?) };
        let error = Refusal::new(format!("`{text}` is not an id, and agents name other agents by their ids"));
        return Err(error.hint("agent-cli ls lists the agents that you have started").into());
    }
    let found = match text.parse::<Reference>()? {
        Reference::Id(id) => return Ok(id),
        Reference::Name(name) => {
            let found = app.store.chains(Chains::Named(&name))?.chains;
            match found.first() {
                Some(chain) => chain.id,
                None => with_task(app, text)?.ok_or(StoreError::Unknown(text.to_owned()))?,
            }
        }
        Reference::Last => {
            let mut projects = Projects::new(app.store)?;
            let here = here(app, &mut projects)?;
            let directories = projects.directories(app.store, &here)?;
            let newest = app.store.chains(Chains::LastIn(&directories))?.chains;
            let none = || Refusal::unknown("no chain was started in this project");
            newest.first().ok_or_else(|| none().hint("agent-cli ls --all-projects --all lists all chains"))?.id
        }
    };
    Ok(found.to_string().parse()?)
}

/// The only agent with this task in the project's chains, if there is exactly one. Agents that have not ended take
/// precedence.
fn with_task(app: &App<'_>, task: &str) -> Result<Option<FrameId>, AppError> {
    /// How many chains are searched. A person means one of few.
    const MOST: usize = 20;
    let mut projects = Projects::new(app.store)?;
    let here = here(app, &mut projects)?;
    let mut kinds = app.store.chain_kinds()?;
    kinds.retain(|kind| projects.of(&kind.cwd) == here);
    let kinds = ChainKind::with_other_states(&kinds, |_| true);
    let filter = ChainFilter { text: Some(task.to_owned()), ..ChainFilter::default() };
    let matching = app.store.matching_chains(&kinds, &filter)?;
    let mut found = Vec::new();
    for root in matching.iter().take(MOST) {
        let tree = app.store.tree(*root)?;
        let nodes = tree.parents_first().into_iter().filter(|node| node.title == task && !node.is_group);
        found.extend(nodes.map(|node| (node.id, node.is_over())));
    }
    let open: Vec<_> = found.iter().filter(|(_, is_over)| !is_over).collect();
    match (open.as_slice(), found.as_slice()) {
        ([(id, _)], _) | ([], [(id, _)]) if matching.len() <= MOST => Ok(Some(*id)),
        (_, []) => Ok(None),
        _ => {
            let named: Vec<_> = found.iter().take(5).map(|(id, _)| id.short()).collect();
            let more = if found.len() > named.len() || matching.len() > MOST { " and others" } else { "" };
            let error = Refusal::unknown(format!("`{task}` is the task of several agents: {}{more}", named.join(", ")));
            Err(error.hint("agent-cli tree shows where each of them is").into())
        }
    }
}

/// Finds the project of directories. Each directory is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Projects {
    known: HashMap<PathBuf, PathBuf>,
    /// The worktrees of chains. What is in the place of one may not show which repository it belonged to.
    worktrees: Vec<Worktree>,
}

impl Projects {
    pub(crate) fn new(store: &Store) -> Result<Self, StoreError> {
        let worktrees = store.worktrees(WorktreesOf::Roots)?.into_iter().map(|(_, worktree)| worktree).collect();
        Ok(Self { worktrees, ..Self::default() })
    }

    pub(crate) fn of(&mut self, dir: &Path) -> PathBuf {
        if let Some(known) = self.known.get(dir) {
            return known.clone();
        }
        let worktree = self.worktrees.iter().find(|worktree| dir.starts_with(&worktree.path));
        let project = worktree.map_or_else(|| project_of(dir), |worktree| of_repository(&worktree.repository));
        self.known.insert(dir.to_owned(), project.clone());
        project
    }

    /// The directories of a project in which the roots of chains work.
    pub(crate) fn directories(&mut self, store: &Store, project: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let mut directories: Vec<_> = store.chain_kinds()?.into_iter().map(|kind| kind.cwd).collect();
        directories.dedup();
        directories.retain(|dir| self.of(dir) == project);
        Ok(directories)
    }
}

/// The project of the asker's directory.
pub(crate) fn here(app: &App<'_>, projects: &mut Projects) -> Result<PathBuf, AppError> {
    let cannot = |error| Refusal::failure(format!("the current directory cannot be used: {error}"));
    Ok(projects.of(&fs::canonicalize(&app.directory).map_err(cannot)?))
}

/// The chain of a target. A question or another request stands for the chain in which it was made.
pub(crate) fn chain_of(store: &Store, target: Target) -> Result<FrameId, StoreError> {
    match target {
        Target::Frame(frame) => Ok(frame),
        Target::Request(_) => Ok(store.chain_of(target)?.root),
    }
}
