//! `agent-cli show`: shows everything known about a frame.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::locate;
use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup::frame_named;
use crate::cli::output::format::{age, one_line, table};
use crate::cli::output::{self, print, print_json};
use crate::cli::report::asked;
use crate::cli::report::chain_status::abandoned;
use crate::cli::report::costs::{self, SpentJson};
use crate::cli::report::denied;
use crate::cli::report::history;
use crate::cli::report::waits::described;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::worktree::Worktree;
use crate::core::attempt::usage::Spent;
use crate::core::chain::frame::{Baseline, Frame, Task, Trouble};
use crate::core::chain::limits::Limits;
use crate::core::chain::state::FrameState;
use crate::core::chain::waiting_on::Blocker;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, MessageId, SessionId};
use crate::core::steering::message::Message;
use crate::runtime::activity::now::{Doing, activity_of};
use crate::runtime::run::external_waits;
use crate::runtime::steering::opening::Opening;
use crate::store::{self, Attempt, Store};

/// Show everything known about an agent: sessions, transcripts, costs and history
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Id of an agent, chain or session, the name of a chain, or `last`
    #[arg(add = candidates::all_agents())]
    id: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    id: FrameId,
    parent: Option<FrameId>,
    root: FrameId,
    depth: u32,
    task: Task,
    cwd: std::path::PathBuf,
    status: &'static str,
    /// Whether it is recorded as running but nothing runs it.
    abandoned: bool,
    error: Option<String>,
    #[serde(skip)]
    stopped: bool,
    since: Timestamp,
    created: Timestamp,
    /// Only for an agent that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<Doing>,
    waiting_on: Vec<Blocker>,
    reply: Option<String>,
    trouble: Option<Trouble>,
    children: Vec<FrameId>,
    launch: Launch,
    limits: Limits,
    checkpoint: Option<AttemptId>,
    baseline: Option<Baseline>,
    sessions: Vec<Session>,
    output: std::path::PathBuf,
    /// The command that opens a copy of its conversation.
    open: Option<String>,
    denied: Vec<denied::DeniedCall>,
    /// What it has cost itself.
    #[serde(flatten)]
    spent: SpentJson,
    /// What it and all agents below it have cost.
    with_descendants: SpentJson,
    #[serde(skip)]
    costs: (Spent, Spent),
    /// What it was told from outside.
    messages: Vec<MessageJson>,
    events: Vec<EventJson>,
}

#[derive(Debug, Serialize)]
struct MessageJson {
    id: MessageId,
    at: Timestamp,
    text: String,
    /// Whether an attempt that was or may yet be kept was given it.
    delivered: bool,
    /// Whether the agent was over and continued for it.
    instruction: bool,
    /// What it replied to an instruction.
    reply: Option<String>,
}

#[derive(Debug, Serialize)]
struct Session {
    id: SessionId,
    attempt: AttemptId,
    resumed: Option<SessionId>,
    began: Timestamp,
    ended: Option<Timestamp>,
    outcome: Option<String>,
    message: Option<String>,
    kept: Option<bool>,
    transcript: Option<std::path::PathBuf>,
    #[serde(flatten)]
    spent: SpentJson,
    model: Option<String>,
    #[serde(skip)]
    cost: Spent,
}

#[derive(Debug, Serialize)]
struct EventJson {
    at: Timestamp,
    #[serde(flatten)]
    entry: LogEntry,
}

impl Show {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let id = frame_named(context, &store, &self.id)?;
        let gone = || CliError::new(ExitStatus::NoSuchFrame, format!("agent {} no longer exists", id.short()));
        let shown = gather(&store, store.frame(id)?.ok_or_else(gone)?)?;
        if self.json {
            print_json(&shown)?;
        } else {
            print(&words(&shown, Timestamp::now()))?;
            let of_chain = shown.parent.is_none().then_some(shown.limits.max_budget_usd).flatten();
            costs::passed(shown.root, &shown.costs.1, of_chain).iter().for_each(|warning| output::warn(warning));
            for asked in store.questions(Some(id), true)?.iter().filter(|asked| asked.frame == id) {
                print(&format!("\n{}", asked::whole(&store, asked, output::width())?))?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}

fn gather(store: &Store, frame: Frame) -> Result<Shown, CliError> {
    let mut tree = store.tree(frame.id)?;
    let attempts = store.attempts(frame.id)?;
    let now = Timestamp::now();
    let of = |attempt: &Attempt| costs::of_attempt(&attempt.spending, attempt.began, attempt.ended, now);
    let own = attempts.iter().map(of).fold(Spent::default(), Spent::plus);
    let all = store.spent(frame.id)?;
    external_waits::observe(store, &mut tree, now)?;
    let blockers = tree.blockers(now).into_iter();
    let events = store.events(frame.id, 0)?.into_iter();
    Ok(Shown {
        doing: activity_of(store, frame.id, now)?,
        waiting_on: blockers.filter(|blocker| blocker.frame == frame.id).collect(),
        reply: store.replies(frame.id)?.reply.filter(|_| frame.state.is_over()),
        children: tree.children(frame.id).to_vec(),
        denied: denied::of_frame(store, frame.id)?,
        open: match Opening::of(store, &frame) {
            // Claude Code would run the suspended call again, so a copy is needed in which it is closed.
            Ok(_) if frame.suspended.is_some() => Some(format!("agent-cli open {}", frame.id.short())),
            opening => opening.ok().map(|opening| opening.command()),
        },
        messages: store.steering(frame.id)?.messages.into_iter().map(message).collect(),
        output: store.dir().output(frame.id),
        spent: own.into(),
        with_descendants: all.into(),
        costs: (own, all),
        sessions: attempts.into_iter().map(|attempt| session(store, &frame, of(&attempt), attempt)).collect(),
        events: events.map(|event| EventJson { at: event.at, entry: event.entry }).collect(),
        id: frame.id,
        parent: frame.parent,
        root: frame.root,
        depth: frame.depth,
        task: frame.task,
        cwd: frame.cwd,
        status: frame.state.name(),
        abandoned: store::abandoned(store)?.contains_key(&frame.id),
        stopped: frame.state.was_stopped(),
        error: match frame.state {
            FrameState::Failed { failure } => Some(failure.message),
            _ => None,
        },
        since: frame.since,
        created: frame.created,
        trouble: frame.trouble,
        launch: frame.launch,
        limits: store.chain_of(frame.id)?.limits,
        checkpoint: frame.checkpoint,
        baseline: frame.baseline,
    })
}

fn message(message: Message) -> MessageJson {
    let Message { id, made, delivered_in, instructs, text, reply, .. } = message;
    MessageJson { id, at: made, text, delivered: delivered_in.is_some(), instruction: instructs, reply }
}

/// The transcript in Claude Code's folder or, if that is missing, the kept copy.
fn session(store: &Store, frame: &Frame, cost: Spent, attempt: Attempt) -> Session {
    let found = config_dir(&frame.launch).and_then(|config| locate::find(&config, &frame.cwd, attempt.session));
    let copy = || Some(store.dir().checkpoint(frame.id, attempt.id)).filter(|copy| copy.is_file());
    Session {
        transcript: found.or_else(copy),
        id: attempt.session,
        attempt: attempt.id,
        resumed: attempt.resumed,
        began: attempt.began,
        ended: attempt.ended,
        outcome: attempt.outcome,
        message: attempt.message,
        kept: attempt.kept,
        spent: cost.into(),
        model: attempt.model,
        cost,
    }
}

type Row = Vec<String>;

fn row(name: &str, value: impl Into<String>) -> Row {
    vec![name.to_owned(), value.into()]
}

fn words(shown: &Shown, now: Timestamp) -> String {
    let mut rows = task_rows(shown);
    rows.extend(status_rows(shown, now));
    rows.extend(message_rows(&shown.messages));
    rows.extend(shown.children.iter().map(|child| row("child", child.to_string())));
    rows.extend(launch_rows(&shown.launch));
    rows.extend(cost_rows(shown));
    rows.extend(output_rows(shown));
    rows.extend(shown.sessions.iter().flat_map(|session| session_rows(session, shown.abandoned, now)));
    let events = shown.events.iter().map(|event| (event.at, &event.entry));
    rows.extend(history::lines(events, now).into_iter().map(|line| row("history", line)));
    table(&rows)
}

fn task_rows(shown: &Shown) -> Vec<Row> {
    let mut rows = vec![row("agent", shown.id.to_string())];
    rows.extend(shown.parent.map(|parent| row("parent", parent.to_string())));
    rows.push(row("chain", format!("{} (depth {})", shown.root, shown.depth)));
    let task = match &shown.task {
        Task::File(path) => path.display().to_string(),
        Task::Prompt(text) => one_line(text),
        Task::Group(tasks) => format!("{} agents: {}", tasks.len(), tasks.join(" ")),
    };
    rows.push(row("task", task));
    rows.extend(shown.baseline.map(|baseline| row("fork of", baseline.session.to_string())));
    rows.push(row("directory", shown.cwd.display().to_string()));
    rows.extend(shown.launch.worktree.iter().map(|worktree| {
        let Worktree { path, branch, .. } = worktree;
        row("worktree", format!("{}, branch {branch}", path.display()))
    }));
    rows
}

fn status_rows(shown: &Shown, now: Timestamp) -> Vec<Row> {
    let status =
        if shown.abandoned { abandoned(shown.root) } else { format!("{} for {}", shown.status, age(shown.since, now)) };
    let mut rows = vec![row("state", status)];
    rows.extend(meaning(shown.status, shown.stopped).map(|meaning| row("", meaning)));
    let doing = shown.doing.as_ref().filter(|_| !shown.abandoned);
    rows.extend(doing.map(|doing| row("does", doing.words(now))));
    let waits = shown.waiting_on.iter().map(|blocker| described(&blocker.what) + &asked::expiry(&blocker.what));
    rows.extend(waits.map(|wait| row("waits for", wait)));
    rows.extend(shown.error.iter().map(|error| row("error", one_line(error))));
    // A failure is often the last trouble, in the same words.
    let is_said = |what: &str| shown.error.as_ref().is_some_and(|error| error.contains(what.trim()));
    let trouble = shown.trouble.iter().filter(|trouble| !is_said(&trouble.what));
    rows.extend(trouble.map(|trouble| row("trouble", one_line(&trouble.what))));
    rows.extend(denied::words(&shown.denied).into_iter().map(|call| row("denied", call)));
    rows.extend(denied::hint(&shown.denied).map(|hint| row("", hint)));
    rows.extend(shown.reply.iter().map(|reply| row("reply", one_line(reply))));
    rows
}

fn message_rows(messages: &[MessageJson]) -> Vec<Row> {
    let of_one = |message: &MessageJson| {
        let pending = if message.delivered { "" } else { " (not delivered yet)" };
        let reply = message.reply.iter().map(|reply| row("reply", one_line(reply)));
        std::iter::once(row("message", one_line(&message.text) + pending)).chain(reply).collect::<Vec<_>>()
    };
    messages.iter().flat_map(of_one).collect()
}

fn launch_rows(launch: &Launch) -> Vec<Row> {
    let mut rows = vec![row("claude", launch.claude.display().to_string())];
    rows.extend(launch.model.iter().map(|model| row("model", model)));
    rows.extend(launch.permission_mode.iter().map(|mode| row("permissions", mode)));
    if launch.on_permission == OnPermission::Ask {
        rows.push(row("approvals", "ask a person"));
    }
    if !launch.args.is_empty() {
        rows.push(row("arguments", launch.args.words().join(" ")));
    }
    rows
}

fn cost_rows(shown: &Shown) -> Vec<Row> {
    let (own, all) = &shown.costs;
    let mut rows = vec![row("tokens", costs::tokens(own.usage)), row("cost", costs::words(own))];
    if !shown.children.is_empty() {
        rows.push(row("total", format!("{}, including all agents below it", costs::words(all))));
    }
    rows
}

/// What it said and did, and how to see more of that.
fn output_rows(shown: &Shown) -> Vec<Row> {
    let open = shown.open.iter().map(|command| row("open", command));
    let chain = if shown.task.is_group() { " --chain" } else { "" };
    let logs = format!("agent-cli logs {}{chain}", shown.id.short());
    open.chain([row("output", shown.output.display().to_string()), row("logs", logs)]).collect()
}

fn session_rows(session: &Session, is_abandoned: bool, now: Timestamp) -> Vec<Row> {
    let kept = match session.kept {
        Some(true) => "kept",
        Some(false) => "discarded",
        None if is_abandoned => "abandoned",
        None => "running",
    };
    let outcome = session.outcome.as_deref().unwrap_or("not ended");
    let (began, cost) = (age(session.began, now), costs::words(&session.cost));
    let mut rows = vec![row("session", format!("{} {outcome}, {kept}, {began} ago, {cost}", session.id))];
    rows.extend(session.message.iter().map(|message| row("", one_line(message))));
    rows.extend(session.transcript.iter().map(|path| row("", path.display().to_string())));
    rows
}

/// What the word for a state means, where it does not say so itself.
fn meaning(status: &str, was_stopped: bool) -> Option<&'static str> {
    match status {
        "failed" if was_stopped => Some("it is over; resume ID --prompt TEXT continues it"),
        "failed" => Some("its last attempt ended with an error; resume tries again"),
        "cancelled" => Some("Ctrl-C ended the command that ran it; resume continues it"),
        "paused" => Some("it rests until somebody resumes it"),
        _ => None,
    }
}
