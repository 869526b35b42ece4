//! `agent-cli show`: shows everything known about an agent.

use clap::Args;
use jiff::Timestamp;

use crate::app::chains::unattended;
use crate::app::lists::single_agent::{self, Outcome};
use crate::app::view::agent_detail::{AgentDetailView, MessageView, SessionView};
use crate::cli::arguments::id_completion;
use crate::cli::arguments::pager_option::PagerOption;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{cut, one_line, past, table, time_since};
use crate::cli::output::{self, TonedLine, print_json, print_line, print_quoted, print_toned};
use crate::cli::report::costs::{self, limit_usd};
use crate::cli::report::denied_calls;
use crate::cli::report::estimate;
use crate::cli::report::history;
use crate::cli::report::question_text;
use crate::cli::report::status_report::{self, abandoned};
use crate::cli::report::waits::with_expiry;
use crate::cli::view::ls::tone;
use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::chain::frame::Task;
use crate::core::chain::limits::Limits;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::text::wrap::{columns, wrapped};
use crate::local_zone::local_zone;

/// Show everything about an agent: sessions, costs and history
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli show 4f2c1a90
  agent-cli show last --reply")]
pub(crate) struct Show {
    /// Id of an agent, chain or session, the name of a chain, or `last`
    #[arg(add = id_completion::all_agents())]
    id: String,

    /// Print its whole reply, and nothing else
    #[arg(long, conflicts_with = "json")]
    reply: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pager: PagerOption,
}

impl Show {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let _paged = self.pager.begin(self.json);
        let store = context.store()?;
        let app = context.app(&store);
        if self.reply {
            print_line(&single_agent::reply(&app, &self.id)?)?;
            return Ok(ExitStatus::Ok);
        }
        let Outcome { agent: shown, questions } = single_agent::agent(&app, &self.id, &context.settings(None)?)?;
        if self.json {
            print_json(&shown)?;
        } else {
            print_toned(&toned(&words(&shown, app.now), shown.state, app.now))?;
            let of_chain = shown.parent.is_none().then_some(shown.limits.max_budget_usd).flatten();
            costs::passed(shown.chain, &shown.with_descendants.0, of_chain)
                .iter()
                .for_each(|warning| output::warn(warning));
            for asked in &questions {
                print_quoted(&format!("\n{}", question_text::wrapped(&store, asked, output::width())?))?;
            }
            // Agents neither answer nor continue others.
            if context.caller.is_none() {
                let waits = [shown.waiting_on, shown.waiting_below].concat();
                status_report::hint_at_waits(shown.chain, &waits, false, unattended::continuer(&store)?);
            }
        }
        Ok(ExitStatus::Ok)
    }
}

/// Splits a text into lines. The state in the text has its tone.
fn toned(text: &str, state: ShownState, now: Timestamp) -> Vec<TonedLine> {
    let words = state.words(now, &local_zone());
    let part =
        |line: &str| line.starts_with("state ").then(|| line.find(&words)).flatten().map(|at| at..at + words.len());
    let line = |line: &str| TonedLine { text: line.to_owned(), part: part(line).unwrap_or(0..0), tone: tone(state) };
    text.lines().map(line).collect()
}

/// A row: its name, its value, and whether people copy the value.
#[derive(Debug)]
struct Row {
    name: String,
    value: String,
    is_copied: bool,
}

fn row(name: &str, value: impl Into<String>) -> Row {
    Row { name: name.to_owned(), value: value.into(), is_copied: false }
}

/// A row with an id, a path or a command, which must not be wrapped.
fn copied(name: &str, value: impl Into<String>) -> Row {
    Row { is_copied: true, ..row(name, value) }
}

/// Lays out the rows for a terminal of this width. If a value that people copy is too long, it gets its own line. Other
/// values may take a few lines.
fn laid_out(rows: &[Row], width: usize) -> String {
    const LINES: usize = 4;
    let named = rows.iter().map(|row| columns(&row.name)).max().unwrap_or(0) + 2;
    let named = if width < NARROW { 2 } else { named };
    let mut text = String::new();
    for Row { name, value, is_copied } in rows {
        let value = one_line(value);
        let gap = " ".repeat(named.saturating_sub(columns(name)).max(if name.is_empty() { 0 } else { 2 }));
        let line = format!("{name}{gap}{value}");
        let lines = match columns(&line) {
            wide if wide <= width => vec![line],
            _ if *is_copied => [name.clone(), value].into_iter().filter(|line| !line.is_empty()).collect(),
            _ => {
                let shown = cut(&value, (width - named.min(width)) * LINES);
                wrapped(&format!("{name}{gap}{shown}"), width, named)
            }
        };
        text.extend(lines.iter().flat_map(|line| [line.trim_end(), "\n"]));
    }
    text
}

/// On narrower terminals, values are not aligned.
const NARROW: usize = 60;

fn words(shown: &AgentDetailView, now: Timestamp) -> String {
    let mut rows = task_rows(shown);
    rows.extend(status_rows(shown, now));
    rows.extend(message_rows(&shown.messages));
    rows.extend(shown.children.iter().map(|child| copied("child", child.to_string())));
    rows.extend(launch_rows(&shown.launch));
    rows.extend(limits_row(&shown.limits));
    rows.extend(cost_rows(shown));
    rows.extend(shown.next_request.iter().map(|next| row("continuing", estimate::words(next, now))));
    rows.extend(output_rows(shown));
    rows.extend(shown.sessions.iter().flat_map(|session| session_rows(session, shown.abandoned, now)));
    let events = shown.events.iter().map(|event| (event.at, &event.entry));
    rows.extend(history::lines(events, now, &local_zone()).into_iter().map(|line| row("history", line)));
    match output::width() {
        Some(width) => laid_out(&rows, width),
        None => table(&rows.into_iter().map(|row| vec![row.name, row.value]).collect::<Vec<_>>()),
    }
}

fn task_rows(shown: &AgentDetailView) -> Vec<Row> {
    let mut rows = vec![copied("agent", shown.id.to_string())];
    rows.extend(shown.parent.map(|parent| copied("parent", parent.to_string())));
    rows.push(row("chain", format!("{} (depth {})", shown.chain, shown.depth)));
    rows.extend(shown.detached_by.map(|agent| row("detached by", agent.to_string())));
    let task = match &shown.task {
        Task::File(path) => path.display().to_string(),
        Task::Prompt(text) => one_line(text),
        Task::Group(tasks) => format!("{} agents: {}", tasks.len(), tasks.join(" ")),
    };
    rows.push(row("task", task));
    rows.extend(shown.baseline.map(|baseline| copied("fork of", baseline.session.to_string())));
    rows.push(copied("directory", shown.cwd.display().to_string()));
    rows.extend(shown.launch.worktree.iter().map(|worktree| {
        let Worktree { path, branch, .. } = worktree;
        copied("worktree", format!("{}, branch {branch}", path.display()))
    }));
    let remote = shown.launch.worktree.as_ref().and_then(|worktree| worktree.remote.as_ref());
    rows.extend(remote.zip(shown.pushed.as_ref()).map(|(remote, pushed)| row("pushed", pushed.words(&remote.name))));
    rows
}

fn status_rows(shown: &AgentDetailView, now: Timestamp) -> Vec<Row> {
    let status = if shown.abandoned {
        abandoned(shown.chain)
    } else {
        let state = shown.state.words(now, &local_zone());
        format!("{state} ({})", time_since(shown.since, now))
    };
    let mut rows = vec![row("state", status)];
    rows.extend(meaning(shown).map(|meaning| row("", meaning)));
    let doing = shown.doing.as_ref().filter(|_| !shown.abandoned);
    rows.extend(doing.map(|doing| row("does", doing.words(now))));
    let waits = shown.waiting_on.iter().map(|blocker| with_expiry(&blocker.what));
    let below = shown.waiting_below.iter();
    let below =
        below.map(|blocker| format!("{}, which waits for {}", blocker.frame.short(), with_expiry(&blocker.what)));
    rows.extend(waits.chain(below).map(|wait| row("waits for", wait)));
    rows.extend(shown.handed_off_to.map(|successor| row("handed off to", successor.short())));
    rows.extend(shown.error.iter().map(|error| row("error", one_line(error))));
    // The last trouble is often the failure, in the same words.
    let is_said = |what: &str| shown.error.as_ref().is_some_and(|error| error.contains(what.trim()));
    let trouble = shown.trouble.iter().filter(|trouble| !is_said(&trouble.what));
    rows.extend(trouble.map(|trouble| row("trouble", one_line(&trouble.what))));
    rows.extend(denied_calls::words(&shown.denied).into_iter().map(|call| row("denied", call)));
    rows.extend(denied_calls::hint(&shown.denied).map(|hint| row("", hint)));
    if shown.starts_afresh {
        rows.push(row("starts afresh", "its next turn writes a summary, with which a new session begins"));
    }
    rows.extend(
        shown.afresh_advice.iter().map(|reason| {
            row("advice", format!("{}: agent-cli resume {} --afresh", reason.in_words(), shown.id.short()))
        }),
    );
    rows.extend(shown.summary.iter().map(|summary| row("summary", one_line(summary))));
    rows.extend(shown.report.iter().map(|report| row("report", one_line(report))));
    rows.extend(shown.reply.iter().map(|reply| row("reply", one_line(reply))));
    let is_long = |reply: &String| reply.trim().lines().nth(1).is_some();
    if output::width().is_some() && shown.reply.as_ref().is_some_and(is_long) {
        rows.push(row("", format!("agent-cli show {} --reply prints all of it", shown.id.short())));
    }
    rows
}

fn message_rows(messages: &[MessageView]) -> Vec<Row> {
    let of_one = |message: &MessageView| {
        let pending = if message.delivered { "" } else { " (not delivered yet)" };
        let reply = message.reply.iter().map(|reply| row("reply", one_line(reply)));
        std::iter::once(row("message", one_line(&message.text) + pending)).chain(reply).collect::<Vec<_>>()
    };
    messages.iter().flat_map(of_one).collect()
}

/// The limits of the chain that differ from the usual ones.
fn limits_row(limits: &Limits) -> Option<Row> {
    let usual = Limits::default();
    let differs = |of: fn(&Limits) -> u32, words: &str| {
        Some(of(limits)).filter(|most| *most != of(&usual)).map(|most| format!("{most} {words}"))
    };
    let limits = [
        limits.max_budget_usd.map(limit_usd),
        differs(|limits| limits.max_agents, "agents"),
        differs(|limits| limits.max_parallel, "at a time"),
        differs(|limits| limits.max_depth, "levels deep"),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| row("limits", format!("of the chain: at most {}", limits.join(", "))))
}

fn launch_rows(launch: &Launch) -> Vec<Row> {
    let mut rows = vec![copied("claude", launch.claude.display().to_string())];
    rows.extend(launch.model.iter().map(|model| row("model", model)));
    rows.extend(launch.permission_mode.iter().map(|mode| row("permissions", mode)));
    rows.extend(launch.native_agents.map(|most| match most {
        0 => row("native agents", "off"),
        most => row("native agents", format!("at most {most}")),
    }));
    if launch.on_permission == OnPermission::Ask {
        rows.push(row("approvals", "ask a person"));
    }
    rows.extend(launch.schema.iter().map(|schema| copied("schema", one_line(&schema.text()))));
    if !launch.args.is_empty() {
        rows.push(copied("arguments", launch.args.words().join(" ")));
    }
    rows
}

fn cost_rows(shown: &AgentDetailView) -> Vec<Row> {
    let (own, all) = (&shown.cost.0, &shown.with_descendants.0);
    let mut rows = vec![row("tokens", costs::tokens(own.usage)), row("cost", costs::words(own))];
    if !shown.children.is_empty() {
        rows.push(row("total", format!("{}, including all agents below it", costs::words(all))));
    }
    rows
}

/// The agent's last output, and how to see more of it.
fn output_rows(shown: &AgentDetailView) -> Vec<Row> {
    let open = shown.open.iter().map(|command| copied("open", command));
    let chain = if shown.task.is_group() { " --chain" } else { "" };
    let logs = format!("agent-cli logs {}{chain}", shown.id.short());
    let earlier = format!("agent-cli open {} --earlier", shown.id.short());
    let open = open.chain(shown.summary.iter().map(|_| copied("before that", &earlier)));
    open.chain([copied("output", shown.output.display().to_string()), copied("logs", logs)]).collect()
}

fn session_rows(session: &SessionView, is_abandoned: bool, now: Timestamp) -> Vec<Row> {
    let kept = match session.kept {
        Some(true) => "kept",
        Some(false) => "discarded",
        None if is_abandoned => "abandoned",
        None => "running",
    };
    let outcome = session.outcome.as_deref().unwrap_or("not ended");
    let began = past(session.began, now, &local_zone());
    let cost = costs::words(&session.cost.0);
    let mut rows = vec![row("session", format!("{} {outcome}, {kept}, {began}, {cost}", session.id))];
    rows.extend(session.message.iter().map(|message| row("", one_line(message))));
    rows.extend(session.transcript.iter().map(|path| copied("", path.display().to_string())));
    rows
}

/// Explains a state whose name is not clear, with the command that continues the agent.
fn meaning(shown: &AgentDetailView) -> Option<String> {
    let resume = format!("agent-cli resume {}", shown.id.short());
    Some(match shown.state {
        ShownState::Stopped if shown.task.is_group() => return None,
        ShownState::Failed if shown.task.is_group() => {
            format!("agent-cli tree {} shows which of its agents failed; resume retries one", shown.id.short())
        }
        ShownState::Stopped => format!("it has ended; {resume} --prompt TEXT continues it"),
        ShownState::Failed => format!("its last attempt ended with an error; {resume} tries again"),
        ShownState::Interrupted => format!("Ctrl-C ended the command that ran it; {resume} continues it"),
        ShownState::Paused => format!("it does nothing until {resume} continues it"),
        _ => return None,
    })
}
