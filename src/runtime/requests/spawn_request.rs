//! Records agents' requests. Nothing runs inside an agent's tool call: the tree's runner continues when the agent's turn has
//! ended.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::core::agent::child_worktree::Remote;
use crate::core::agent::child_worktree::pushed_worktree::{self, Pushed};
use crate::core::agent::launch::Launch;
use crate::core::agent::overrides::{BadLaunch, Overrides};
use crate::core::agent::{permission_mode, starting_mode};
use crate::core::chain::frame::{Detached, Frame, Task};
use crate::core::chain::limits::Limits;
use crate::core::housekeeping::hosting::Labels;
use crate::core::id::{ChainName, FrameId, RequestId, SessionId};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{External, Request, RequestKind, RequestResult, SpawnForm};
use crate::core::requests::request_state::RequestState;
use crate::runtime::RuntimeError;
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::fork::{self, BadSource, ForkSource};
use crate::runtime::while_trying;
use crate::runtime::worktrees::{remote, worktree};
use crate::store::{AskedFor, Caller, NewFrame, NewGroup, Requests, ResultUse, Store, StoreError, Target};

/// A task and its name in the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTask {
    /// The task.
    pub task: Task,
    /// Its name, on one line.
    pub name: String,
}

impl NamedTask {
    fn in_full(&self) -> String {
        match &self.task {
            Task::Prompt(text) => format!("--prompt \"{text}\""),
            Task::File(_) | Task::Group(_) => self.name.clone(),
        }
    }
}

/// The requested agents: one, or several at the same time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpawnRequest {
    /// Their tasks, at least one.
    pub tasks: Vec<NamedTask>,
    /// Their working directory.
    pub cwd: PathBuf,
    /// The remote to which the worktrees are pushed.
    pub(crate) remote: Option<Remote>,
    /// Whether each works in its own git worktree.
    pub apart: bool,
    /// The conversation that all of them begin with.
    pub source: Option<ForkSource>,
    /// What happens to their reply.
    pub form: SpawnForm,
    /// Whether they become a separate chain, even if an agent asks for them.
    pub detached: bool,
    /// Whether the agent that asks gets an object with their results.
    pub json: bool,
}

/// Creates a chain: a root, or a group of agents without a parent. `started_from`: the session of Claude Code whose user starts
/// it; `name`: its name; `on`: the labels of the host that runs it, if that need not be this one. Returns the id of its top.
pub(crate) fn start(
    store: &Store,
    request: &SpawnRequest,
    launch: &Launch,
    limits: Limits,
    started_from: Option<SessionId>,
    name: Option<ChainName>,
    on: Option<Labels>,
) -> Result<FrameId, RuntimeError> {
    let mut members = request.frames(store, launch, limits, None)?;
    for member in &mut members {
        member.started_from = started_from;
        if let (Some(_), Some(worktree)) = (&on, &member.launch.worktree) {
            member.pushed = remote::push_base(worktree, pushed_worktree::first_reference(member.id))?;
        }
    }
    // For a group, it is stored with its first member.
    if let Some(first) = members.first_mut() {
        (first.name, first.on) = (name, on);
    }
    let created = match members.as_slice() {
        [only] => store.create(only, None),
        _ => store.create(&request.group(members.clone()), None),
    };
    // Without an answer of the server, the chain may have been recorded.
    if created.as_ref().is_err_and(|error| !matches!(error, StoreError::Server { .. })) {
        for member in &members {
            if let (Some(worktree), Some(Pushed { snapshot: Some(snapshot), .. })) =
                (&member.launch.worktree, &member.pushed)
            {
                remote::delete_base(worktree, &snapshot.reference);
            }
        }
    }
    Ok(created?)
}

/// Records that the calling agent wants the reply of another agent, or of several. Returns the id of the child, or of
/// their group.
pub(crate) fn spawn(
    store: &Store,
    caller: Caller,
    call: Option<&str>,
    mut request: SpawnRequest,
    mut overrides: Overrides,
) -> Result<FrameId, RuntimeError> {
    let parent = frame_of(store, caller)?;
    if let Some(source) = &request.source {
        // A conversation may contain what the agent may not read.
        if source.root != Some(parent.root) {
            return Err(BadSource::Foreign(source.baseline.session.to_string()).into());
        }
        overrides.model = overrides.model.or_else(|| source.model.clone());
    }
    if request.form == SpawnForm::Handoff {
        let is_joined = |request: &Request| matches!(request.state, RequestState::Delivering { .. });
        let mut background = store.requests(Requests::Background(parent.id))?.into_iter();
        if let Some((Request { kind: RequestKind::Spawn { child, .. }, .. }, _)) =
            background.find(|(request, _)| !is_joined(request))
        {
            return Err(RuntimeError::InBackground(child));
        }
    }
    let giving = giving(store, &parent)?;
    let launch = if request.form == SpawnForm::Handoff {
        giving.successors(overrides, request.tasks.len())?
    } else {
        giving.child(overrides)?
    };
    // The parent's rights decide, not the rights that its child would have. A worktree contains the files that were
    // committed in the repository, and its agent works in the same subfolder of it.
    if !parent.launch.is_unrestricted() && !request.cwd.starts_with(&parent.cwd) {
        return Err(BadLaunch::Outside { own: parent.cwd, child: request.cwd }.into());
    }
    if request.form == SpawnForm::Background
        && let Some(source) = request.source.take()
    {
        let is_own = source.baseline.checkpoint == Some(caller.attempt);
        request.source = Some(if is_own { fork::kept_for_background(store, caller, source)? } else { source });
    }
    // Its own agents work where it can continue with their work.
    request.remote = agent_lookup::worktrees(store, &parent)?.into_iter().find_map(|worktree| worktree.remote);
    // Agents may have written its own directory, too.
    let began = if parent.launch.is_unrestricted() { None } else { Some(agent_lookup::base(store, &parent)?) };
    let frames = request.frames(store, &launch, store.chain_of(parent.id)?.limits, began.as_deref())?;
    let title = request.title();
    let detached = if request.detached {
        let (cwd, base) = (parent.cwd.clone(), agent_lookup::base(store, &parent)?);
        Some(Detached { by: parent.id, cwd, base, worktrees: agent_lookup::worktrees(store, &parent)? })
    } else {
        None
    };
    let (form, json, detached) = (request.form, request.json, detached.as_ref());
    let asked = Some(AskedFor { caller, call, title: &title, form, json, detached });
    Ok(match frames.as_slice() {
        [only] => store.create(only, asked)?,
        _ => store.create(&request.group(frames), asked)?,
    })
}

/// The rights that the agent of `parent` can give a child now. The agent may have switched to another permission mode since it
/// was started.
fn giving(store: &Store, parent: &Frame) -> Result<Launch, RuntimeError> {
    let Some((attempt, digest)) = agent_lookup::running(store, parent.id)? else { return Ok(parent.launch.clone()) };
    let is_in = starting_mode::current_mode(&parent.launch, attempt.mode.as_deref(), digest.rights.modes.as_ref());
    Ok(starting_mode::giving(&parent.launch, is_in.as_deref()))
}

impl SpawnRequest {
    /// The full title of a request for these agents.
    pub(crate) fn title(&self) -> String {
        match self.tasks.as_slice() {
            [NamedTask { task: Task::File(path), .. }] => path.display().to_string(),
            tasks => tasks.iter().map(NamedTask::in_full).collect::<Vec<_>>().join(" "),
        }
    }

    /// `began`: where the chain of the agent that asks was started; `None`: a person asks, or an agent that may do everything.
    fn frames(
        &self,
        store: &Store,
        launch: &Launch,
        limits: Limits,
        began: Option<&Path>,
    ) -> Result<Vec<NewFrame>, RuntimeError> {
        self.tasks.iter().map(|named| self.frame(store, named, launch, limits, began)).collect()
    }

    fn frame(
        &self,
        store: &Store,
        named: &NamedTask,
        launch: &Launch,
        limits: Limits,
        began: Option<&Path>,
    ) -> Result<NewFrame, RuntimeError> {
        let (id, task) = (FrameId::random(), named.task.clone());
        let (worktree, cwd) = if self.apart {
            let folder = store.dir().worktrees().map_err(while_trying("find the folder of worktrees"))?;
            let remote = self.remote.clone();
            let (worktree, cwd) = worktree::plan(&folder, &self.cwd, began, remote, &task.title(), &id.short())?;
            (Some(worktree), cwd)
        } else {
            (None, self.cwd.clone())
        };
        let launch = Launch { worktree, ..launch.clone() };
        let launch = match &self.source {
            Some(source) => launch.forking(source.native_questions),
            None => launch,
        };
        let baseline = self.source.as_ref().map(|source| source.baseline);
        Ok(NewFrame { id, task, cwd, launch, limits, baseline, started_from: None, name: None, on: None, pushed: None })
    }

    fn group(&self, members: Vec<NewFrame>) -> NewGroup {
        let tasks = self.tasks.iter().map(|named| named.name.clone()).collect();
        NewGroup { members, tasks, cwd: self.cwd.clone() }
    }
}

/// Records questions of the calling agent. Returns the id of the first.
pub(crate) fn ask(
    store: &Store,
    caller: Caller,
    call: Option<&str>,
    forms: Vec<Form>,
) -> Result<RequestId, RuntimeError> {
    let (after, now) = (frame_of(store, caller)?.launch.questions_expire, Timestamp::now());
    let forms = forms.into_iter().map(|form| form.expiring_after(after, now));
    let kinds: Vec<_> = forms.map(RequestKind::Ask).collect();
    Ok(store.request(caller, call, &kinds)?[0])
}

/// Where the calling agent can ask with files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The directory in which they must be, with links resolved; `None`: anywhere.
    pub(crate) below: Option<PathBuf>,
    /// Whether it may write there without a permission.
    pub(crate) may_write: bool,
}

/// Where the calling agent can ask with files: an agent can read back what a question contains.
pub(crate) fn reach(store: &Store, caller: Caller) -> Result<Reach, RuntimeError> {
    let frame = frame_of(store, caller)?;
    let below = if frame.launch.is_unrestricted() {
        None
    } else {
        Some(fs::canonicalize(&frame.cwd).map_err(while_trying("find the agent's directory"))?)
    };
    Ok(Reach { below, may_write: giving(store, &frame)?.covers(permission_mode::ACCEPT_EDITS) })
}

/// Records that the calling agent waits for something outside the chain. Returns the request's id.
pub(crate) fn wait(
    store: &Store,
    caller: Caller,
    call: Option<&str>,
    wait: External,
) -> Result<RequestId, RuntimeError> {
    frame_of(store, caller)?;
    Ok(store.request(caller, call, &[RequestKind::Wait(wait)])?[0])
}

/// The result of a frame that the calling agent asks about; `None`: it has none yet. If the chain was not started in the
/// agent's name, the agent waits for it from now on, and the runner of its tree runs that chain, too.
fn result_of_chain(store: &Store, caller: Caller, frame: FrameId) -> Result<Option<RequestResult>, RuntimeError> {
    let Some(known) = store.frame(frame)? else { return Ok(None) };
    let result = known.result(store.replies(frame)?.reply);
    if result.is_none() {
        store.request(
            caller,
            None,
            &[RequestKind::Spawn { child: frame, task: known.task.title(), form: SpawnForm::Call, json: false }],
        )?;
    }
    Ok(result)
}

/// The result of a request, delivered or not; `None`: it is open, or was withdrawn.
pub(crate) fn result_of(store: &Store, request: RequestId) -> Result<Option<RequestResult>, RuntimeError> {
    Ok(store.requests(Requests::One(request))?.pop().and_then(|(_, result)| result))
}

/// The result of the frame or request that the calling agent asks about; `None`: it has none yet.
pub(crate) fn result_for(store: &Store, caller: Caller, of: Target) -> Result<Option<RequestResult>, RuntimeError> {
    match of {
        Target::Frame(frame) => result_of_chain(store, caller, frame),
        Target::Request(request) => result_of(store, request),
    }
}

/// The request already made by a call that now runs as a program, which must not make it again. The call was resumed in
/// this attempt, or its hook died after it had recorded the request. `is_it` compares a recorded request with the one that
/// the program is asked for.
pub(crate) fn made_before(
    store: &Store,
    caller: Caller,
    is_it: impl Fn(&RequestKind) -> bool,
) -> Result<Option<RequestId>, RuntimeError> {
    let given = store.at_end(caller.frame, caller.attempt)?.given.into_iter();
    let meant: Vec<_> = given.filter(|given| is_it(&given.kind)).map(|given| given.request).collect();
    if let Some(returned) = store.use_results(caller, ResultUse::Returned(&meant))?.pop() {
        return Ok(Some(returned));
    }
    let made = store.requests(Requests::Undelivered(caller.attempt))?.into_iter();
    let Some((made, _)) = made.into_iter().find(|(made, _)| made.call.is_some() && is_it(&made.kind)) else {
        return Ok(None);
    };
    // A program that another call runs makes its own request.
    let open = agent_lookup::running(store, caller.frame)?.map(|(_, digest)| digest.calls.open).unwrap_or_default();
    if !matches!(open.as_slice(), [only] if made.call.as_ref() == Some(&only.id)) {
        return Ok(None);
    }
    Ok(store.use_results(caller, ResultUse::OfProgram(made.id))?.pop())
}

fn frame_of(store: &Store, caller: Caller) -> Result<Frame, RuntimeError> {
    store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))
}
