//! Resolves the ids that an agent uses: it can refer to itself, its descendants, and their requests, and any other id is
//! treated as unknown. Also looks up processes that want to answer, and the output of running agents.

use std::io::BufReader;
use std::path::PathBuf;

use crate::claude::stream::digest::Digest;
use crate::claude::stream::output_reader;
use crate::core::agent::child_worktree::Worktree;
use crate::core::chain::frame::Frame;
use crate::core::id::{FrameId, IdPrefix, SessionId};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Attempts, Caller, Chains, Notifications, Scope, Store, StoreError, Target};

/// What an id refers to for an agent that asks for a result. By its full id, this includes a chain that the agent's session
/// started before it was adopted.
///
/// # Errors
///
/// [`RuntimeError::UnknownToAgent`], an ambiguous id, or an error of the state directory.
pub(crate) fn named_or_started(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Target, RuntimeError> {
    found(store, Scope::Agent(caller.frame), id)
}

/// The agent that an id or a name refers to for an agent that wants to wait for its end.
///
/// # Errors
///
/// As above, and [`RuntimeError::Deadlock`] for the caller itself and for those above it.
pub(crate) fn to_wait_for(store: &Store, caller: Caller, text: &str) -> Result<Frame, RuntimeError> {
    let id = &match text.parse() {
        Ok(id) => id,
        Err(_) => called(store, caller, text)?,
    };
    let found = match named_or_started(store, caller, id) {
        Err(RuntimeError::UnknownToAgent(unknown)) => Err(above(store, caller, id)?
            .map_or(RuntimeError::UnknownToAgent(unknown), |above| RuntimeError::Deadlock { id: above })),
        found => found,
    };
    let frame = match found? {
        Target::Request(request) => return Err(RuntimeError::NotAnAgent(request)),
        Target::Frame(frame) if frame == caller.frame => return Err(RuntimeError::Deadlock { id: frame }),
        Target::Frame(frame) => store.frame(frame)?,
    };
    frame.ok_or_else(|| RuntimeError::UnknownToAgent(id.as_str().to_owned()))
}

/// The id of the only agent below the caller that has this task, or of the chain of this name that its session started before it was
/// adopted.
fn called(store: &Store, caller: Caller, name: &str) -> Result<IdPrefix, RuntimeError> {
    let tree = store.tree(caller.frame)?;
    let below = tree.parents_first().into_iter().filter(|node| node.id != caller.frame && node.title == name);
    let mut ids: Vec<FrameId> = below.map(|node| node.id).collect();
    if let (true, Ok(chain)) = (ids.is_empty(), name.parse()) {
        let named = store.chains(Chains::Named(&chain))?.chains;
        ids.extend(named.into_iter().map(|chain| chain.id).filter(|id| {
            let whole = id.to_string().parse();
            whole.is_ok_and(|id| named_or_started(store, caller, &id).is_ok())
        }));
    }
    match ids[..] {
        [] => Err(RuntimeError::UnknownToAgent(name.to_owned())),
        [id] => id.to_string().parse().map_err(|_| RuntimeError::UnknownToAgent(name.to_owned())),
        _ => Err(RuntimeError::SameTask { task: name.to_owned(), ids }),
    }
}

/// The ancestor that the caller has named. An agent knows at most the id of the agent that started it, so parts of other
/// ids match nothing.
fn above(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Option<FrameId>, RuntimeError> {
    let mut next = store.frame(caller.frame)?.and_then(|frame| frame.parent);
    while let Some(above) = next {
        if id.as_str() == above.to_string() || id.as_str() == above.short() {
            return Ok(Some(above));
        }
        next = store.frame(above)?.and_then(|frame| frame.parent);
    }
    Ok(None)
}

/// The only directory whose files an agent may read without asking, and pass on to people and other agents; `None`: it may do
/// everything.
pub(crate) fn reads_only_in(store: &Store, caller: Caller) -> Result<Option<PathBuf>, RuntimeError> {
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    Ok((!frame.launch.is_unrestricted()).then_some(frame.cwd))
}

/// What an id refers to for an agent.
pub(crate) fn named(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Target, RuntimeError> {
    found(store, Scope::Below(caller.frame), id)
}

fn found(store: &Store, scope: Scope, id: &IdPrefix) -> Result<Target, RuntimeError> {
    store.lookup(scope, id).map_err(|error| match error {
        StoreError::Unknown(unknown) => RuntimeError::UnknownToAgent(unknown),
        error => error.into(),
    })
}

/// The frame whose agent asked for `frame`, for itself or as one of a group; `None`: no agent did.
pub(crate) fn asked_by(store: &Store, frame: &Frame) -> Result<Option<Frame>, StoreError> {
    let above = |frame: &Frame| frame.parent.map_or(Ok(None), |parent| store.frame(parent));
    match above(frame)? {
        Some(group) if group.task.is_group() => above(&group),
        parent => Ok(parent),
    }
}

/// The directory of the uppermost agent above `frame`, or of `frame` itself if it has no parent. No agent asked for the
/// uppermost one, so a person named its directory. If the chain was detached, the uppermost agent belongs to the chain that
/// it comes from.
pub(crate) fn base(store: &Store, frame: &Frame) -> Result<PathBuf, StoreError> {
    if let Some(detached) = store.chain_of(frame.id)?.detached {
        return Ok(detached.base);
    }
    if let Some(root) = store.frame(frame.root)?.filter(|root| !root.task.is_group()) {
        return Ok(root.cwd);
    }
    let mut top = frame.clone();
    while let Some(above) = asked_by(store, &top)? {
        top = above;
    }
    Ok(top.cwd)
}

/// The directories whose settings apply to the agent of `frame`: a child also has those of its chain's project.
pub(crate) fn settings_dirs(store: &Store, frame: &Frame) -> Result<[PathBuf; 2], StoreError> {
    Ok([base(store, frame)?, frame.cwd.clone()])
}

/// The worktrees of an agent and of those above it.
pub(crate) fn worktrees(store: &Store, frame: &Frame) -> Result<Vec<Worktree>, StoreError> {
    let (mut worktrees, mut next) = (Vec::new(), Some(frame.clone()));
    while let Some(agent) = next {
        worktrees.extend(agent.launch.worktree.clone());
        next = asked_by(store, &agent)?;
    }
    worktrees.extend(store.chain_of(frame.id)?.detached.map(|detached| detached.worktrees).unwrap_or_default());
    Ok(worktrees)
}

/// The running attempt of a frame, and what it has printed so far.
pub(crate) fn running(store: &Store, frame: FrameId) -> Result<Option<(Attempt, Digest)>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame))?.pop() else { return Ok(None) };
    let read = || output_reader::read(BufReader::new(store.dir().open_printed(frame, attempt.output_from)?));
    let digest = read().map_err(while_trying(READ_PRINTED))?;
    Ok(Some((attempt, digest)))
}

/// How many notifications are checked. The command of an older one has long ended.
const NEWEST: usize = 1000;

/// The agent whose session this is. A person's session that was adopted as a chain still belongs to that person; its agent
/// has another session.
pub(crate) fn agent_of(store: &Store, session: SessionId) -> Result<Option<FrameId>, StoreError> {
    let Ok(id) = session.to_string().parse::<IdPrefix>() else { return Ok(None) };
    let found = match store.lookup(Scope::All, &id) {
        Ok(Target::Frame(frame)) => frame,
        Ok(Target::Request(_)) | Err(StoreError::Unknown(_) | StoreError::Ambiguous { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let has_it = store.frame(found)?.is_some_and(|frame| frame.session == session)
        || store.attempts(Attempts::Of(found.into()))?.iter().any(|attempt| attempt.session == session);
    Ok(has_it.then_some(found))
}

/// Whether one of these is a notification whose command may be running.
pub(crate) fn is_of_notification(store: &Store, named: &[String]) -> Result<bool, StoreError> {
    if named.is_empty() {
        return Ok(false);
    }
    let known = store.outbox().list(Notifications::Newest(NEWEST))?;
    Ok(known.iter().any(|known| named.contains(&known.id.to_string())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::chain::frame::Detached;
    use crate::core::requests::request::SpawnForm;
    use crate::store::testing::{self, ask, new};
    use crate::store::{AskedFor, NewFrame, NewGroup};

    fn id(text: &str) -> IdPrefix {
        text.parse().unwrap()
    }

    /// A chain of three running agents, the uppermost first.
    fn three() -> (tempfile::TempDir, Store, [Caller; 3]) {
        let (temp, store) = testing::store();
        let top = store.start(store.root());
        let below = |caller| store.start(store.request_child(caller, None, &new("a task"), "a task").unwrap().1);
        let middle = below(top);
        let lowest = below(middle);
        (temp, store, [top, middle, lowest])
    }

    #[test]
    fn an_agent_waits_neither_for_itself_nor_for_those_above_it() {
        let (_temp, store, [top, middle, lowest]) = three();
        let wait = |caller, name: &str| to_wait_for(&store, caller, name);
        assert_eq!(wait(top, &lowest.frame.to_string()).unwrap().id, lowest.frame);
        for name in [lowest.frame, middle.frame, top.frame] {
            for name in [name.to_string(), name.short()] {
                assert!(matches!(wait(lowest, &name), Err(RuntimeError::Deadlock { .. })), "{name}");
            }
        }
        // A part of an ancestor's id must not resolve.
        let part = &top.frame.to_string()[..10];
        assert!(matches!(wait(lowest, part), Err(RuntimeError::UnknownToAgent(_))));
        let asked = store.request(middle, None, &[ask("When?")]).unwrap()[0];
        assert!(matches!(wait(middle, &asked.to_string()), Err(RuntimeError::NotAnAgent(it)) if it == asked));
    }

    #[test]
    fn a_task_names_the_only_agent_below_that_has_it() {
        let (_temp, store, [top, middle, _]) = three();
        let both = to_wait_for(&store, top, "a task");
        assert!(matches!(both, Err(RuntimeError::SameTask { ids, .. }) if ids.len() == 2));
        let (_, child) = store.request_child(middle, None, &new("tests.md"), "tests.md").unwrap();
        assert_eq!(to_wait_for(&store, top, "tests.md").unwrap().id, child);
        let elsewhere = store.start(store.root());
        assert!(matches!(to_wait_for(&store, elsewhere, "tests.md"), Err(RuntimeError::UnknownToAgent(_))));
    }

    #[test]
    fn an_agent_names_only_what_is_below_it() {
        let (_temp, store, [top, middle, lowest]) = three();
        let names = |caller, frame: FrameId| named(&store, caller, &id(&frame.to_string())).is_ok();
        assert!(names(top, lowest.frame) && names(middle, lowest.frame));
        assert!(!names(lowest, middle.frame) && !names(middle, top.frame));
        let other = store.root();
        assert!(!names(top, other));
    }

    #[test]
    fn only_an_agent_without_limits_reads_everywhere() {
        let (_temp, store) = testing::store();
        let reads = |mode: &str| {
            let launch = Launch { permission_mode: Some(mode.to_owned()), ..Launch::default() };
            let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
            reads_only_in(&store, store.start(root)).unwrap()
        };
        assert_eq!(reads("acceptEdits").as_deref(), Some(Path::new("/srv")));
        assert_eq!(reads("bypassPermissions"), None);
    }

    #[test]
    fn the_agent_that_asked_for_one_is_above_it_or_above_its_group() {
        let (_temp, store, [top, middle, _]) = three();
        let asking = |id| asked_by(&store, &store.frame(id).unwrap().unwrap()).unwrap().map(|frame| frame.id);
        assert_eq!((asking(top.frame), asking(middle.frame)), (None, Some(top.frame)));
        let group = NewGroup {
            members: vec![new("one"), new("other")],
            tasks: vec!["one".into(), "other".into()],
            cwd: "/srv".into(),
        };
        let (_, group) = store.request_child(top, None, &group, "one other").unwrap();
        let members = store.replies(group).unwrap().members;
        assert_eq!(members.iter().map(|member| asking(member.id)).collect::<Vec<_>>(), [Some(top.frame); 2]);
    }

    #[test]
    fn an_agent_is_based_where_a_person_started_the_uppermost_one() {
        let (_temp, store) = testing::store();
        let at = |task: &str, cwd: &str| NewFrame { cwd: cwd.into(), ..new(task) };
        let based = |id| base(&store, &store.frame(id).unwrap().unwrap()).unwrap();
        let top = store.start(store.create_root(&at("top", "/srv")).unwrap());
        let (_, below) = store.request_child(top, None, &at("below", "/srv/a"), "below").unwrap();
        assert_eq!((based(top.frame), based(below)), (PathBuf::from("/srv"), "/srv".into()));
        let members = vec![at("one", "/one"), at("other", "/other")];
        let group = NewGroup { members, tasks: vec!["one".into()], cwd: "/srv".into() };
        let group = store.create_root(&group).unwrap();
        let other = store.replies(group).unwrap().members[1].id;
        let (_, below) = store.request_child(store.start(other), None, &at("a task", "/x"), "a task").unwrap();
        assert_eq!((based(below), based(other)), (PathBuf::from("/other"), "/other".into()));
    }

    #[test]
    fn a_detached_chain_keeps_the_base_and_the_worktrees_of_the_agent_that_started_it() {
        let (_temp, store) = testing::store();
        let worktree = |name: &str| Worktree {
            remote: None,
            repository: "/srv/.git".into(),
            path: format!("/worktrees/{name}").into(),
            branch: name.to_owned(),
            base: "c0ffee".to_owned(),
        };
        let frame = |task: &str, worktree: Option<Worktree>| {
            let mut new = new(task);
            new.launch.worktree = worktree;
            new
        };
        let top = store.start(store.create_root(&frame("top", None)).unwrap());
        let (_, apart) = store.request_child(top, None, &frame("apart", Some(worktree("a"))), "apart").unwrap();
        let apart = store.start(apart);
        let load = |id| store.frame(id).unwrap().unwrap();
        let from = Detached {
            by: apart.frame,
            cwd: "/worktrees/a".into(),
            base: base(&store, &load(apart.frame)).unwrap(),
            worktrees: worktrees(&store, &load(apart.frame)).unwrap(),
        };
        let (title, form) = ("free", SpawnForm::Background);
        let asked = AskedFor { caller: apart, call: None, title, form, json: false, detached: Some(&from) };
        let chain = store.create(&frame("free", Some(worktree("b"))), Some(asked)).unwrap();
        let (_, below) = store.request_child(store.start(chain), None, &frame("below", None), "below").unwrap();
        assert_eq!(base(&store, &load(below)).unwrap(), load(top.frame).cwd);
        assert_eq!(worktrees(&store, &load(below)).unwrap(), [worktree("b"), worktree("a")]);
        assert_eq!(worktrees(&store, &load(top.frame)).unwrap(), []);
    }
}
