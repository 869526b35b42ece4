//! `agent-cli history`: what agents asked, who answered, and what they did then.

use std::path::Path;

use clap::Args;
use jiff::Timestamp;

use crate::app::lookup::{self, Projects};
use crate::app::view::exchange::{ExchangeView, given_at};
use crate::cli::arguments::{at_least_one, candidates};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, fitted, one_line};
use crate::cli::output::{self, ListCommand, print, print_json, tell};
use crate::cli::report::asked::of_form;
use crate::cli::view::logs;
use crate::core::events::agent_event::Happening;
use crate::core::events::log_entry::LogEntry;
use crate::core::requests::approval::{self, Before};
use crate::core::requests::request::RequestKind;
use crate::core::steering::origin::Origin;
use crate::core::text::escape::shortened;
use crate::runtime::activity::next_deed;
use crate::store::{Asked, EventRecord, Exchange, Store, Target};

/// Show what agents asked, who answered what, and what they did next
///
/// Lists every question, approval and plan on record, newest last: whether it was answered, was withdrawn or has
/// expired; every answer with who gave it (user, process, terminal), replaced ones included; and what the agent did
/// first once it had the answer. With the id of a question, shows that one in full. `gc` and `rm` remove chains with
/// their history.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli history --since 7d
  agent-cli history 4f2c1a90 --json | jq '.[].records'")]
pub(crate) struct History {
    /// Id of a question, agent or chain, the name of a chain, or `last` [default: all chains of this project]
    #[arg(add = candidates::questions())]
    id: Option<String>,

    /// Also show what was asked in other projects
    #[arg(short = 'p', long, conflicts_with = "id")]
    all_projects: bool,

    /// Show only what was asked since this time, or within this duration before now, such as 7d
    #[arg(long, value_name = "WHEN", value_parser = logs::since)]
    since: Option<Timestamp>,

    /// Show at most this many, the newest [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one(), conflicts_with = "id")]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

impl History {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let asked = match (&self.id, context.caller) {
            (Some(id), _) => match lookup::target_named(&context.app(&store), id)? {
                Target::Frame(frame) => Asked::Below(frame),
                Target::Request(request) => Asked::One(request),
            },
            (None, Some(caller)) => Asked::Below(caller.frame),
            (None, None) => Asked::Anywhere,
        };
        let is_listed = asked == Asked::Anywhere;
        let most = self.limit.unwrap_or(if self.json || !is_listed { usize::MAX } else { MOST });
        let mut projects = Projects::default();
        let project = if is_listed && !self.all_projects {
            Some(lookup::here(&context.app(&store), &mut projects)?)
        } else {
            None
        };
        let mut elsewhere = 0;
        let mut is_meant = |cwd: &Path| {
            let is_here = project.as_ref().is_none_or(|project| projects.of(cwd) == *project);
            elsewhere += u64::from(!is_here);
            is_here
        };
        let since = self.since.unwrap_or(Timestamp::MIN);
        // One more than is shown says that there are more.
        let mut exchanges = store.exchanges(asked, since, most.saturating_add(1), &mut is_meant)?;
        let has_more = exchanges.len() > most;
        exchanges.drain(..exchanges.len().saturating_sub(most));
        if self.json {
            let listed = exchanges.into_iter().map(|exchange| ExchangeView::gather(&store, exchange));
            print_json(&listed.collect::<Result<Vec<_>, _>>()?)?;
            self.tell_of_hidden(elsewhere, has_more);
            return Ok(ExitStatus::Ok);
        }
        if exchanges.is_empty() {
            tell("no questions yet");
        }
        let (now, whole) = (Timestamp::now(), matches!(asked, Asked::One(_)));
        for exchange in &exchanges {
            print(&text(&store, exchange, now, whole)?)?;
        }
        self.tell_of_hidden(elsewhere, has_more);
        Ok(ExitStatus::Ok)
    }

    fn tell_of_hidden(&self, elsewhere: u64, has_more: bool) {
        let since = self.since.map(|since| format!("--since {since}"));
        let options = [(self.all_projects, "--all-projects"), (since.is_some(), since.as_deref().unwrap_or_default())];
        let command = ListCommand::new("history", "question", &options);
        command.tell_of_elsewhere(elsewhere);
        if has_more {
            tell(&format!("there are more: {}", command.with("--limit N")));
        }
    }
}

/// More than a person looks through.
const MOST: usize = 100;

fn text(store: &Store, exchange: &Exchange, now: Timestamp, whole: bool) -> Result<String, CliError> {
    let width = output::width();
    let mut lines = vec![
        format!("{} {}, {} ago", exchange.id.short(), what(&exchange.kind), age(exchange.asked, now)),
        format!("  of {} in the chain {}", one_line(&exchange.title), exchange.root.short()),
    ];
    let mut text = String::new();
    let flush = |lines: &mut Vec<String>, text: &mut String| {
        for line in lines.drain(..) {
            text.push_str(&width.map_or(line.clone(), |width| fitted(&line, width)));
            text.push('\n');
        }
    };
    if whole {
        flush(&mut lines, &mut text);
        text.push_str(&shown(&exchange.kind, width));
    } else {
        lines.push(format!("  {}", shortened(&summary(&exchange.kind))));
    }
    for (at, record) in exchange.records.iter().enumerate() {
        let is_replacing = |later: &EventRecord| matches!(later.entry, LogEntry::AnswerReplaced { .. });
        let is_replaced = exchange.records[at + 1..].iter().any(is_replacing);
        let (said, answer) = of_record(record, is_replaced, now);
        match answer {
            Some(answer) if whole => {
                lines.push(format!("  {said}:"));
                flush(&mut lines, &mut text);
                text.push_str(&approval::quoted(&answer, width));
            }
            Some(answer) => lines.push(format!("  {said}: {}", shortened(&answer))),
            None => lines.push(format!("  {said}")),
        }
        lines.extend(record.entry.origin().map(|origin| format!("    {}", by(origin))));
    }
    lines.extend(outcome(store, exchange, now)?);
    flush(&mut lines, &mut text);
    Ok(text)
}

fn what(kind: &RequestKind) -> &'static str {
    match kind {
        RequestKind::Permission { .. } => "approval of a call",
        RequestKind::Plan(_) => "approval of a plan",
        _ => "question",
    }
}

fn summary(kind: &RequestKind) -> String {
    match kind {
        RequestKind::Ask(form) => form.question.clone(),
        other => other.command(),
    }
}

fn shown(kind: &RequestKind, width: Option<usize>) -> String {
    match kind {
        RequestKind::Permission { tool, input, place, .. } => {
            approval::view(tool, input, &Before::Unknown, place.as_ref(), width)
        }
        RequestKind::Plan(plan) => approval::quoted(plan.text.as_deref().unwrap_or_default(), width),
        RequestKind::Ask(form) => of_form(form, width),
        other => approval::quoted(&other.command(), width),
    }
}

/// What happened, and the answer that was given. `is_replaced`: by a later one.
fn of_record(record: &EventRecord, is_replaced: bool, now: Timestamp) -> (String, Option<String>) {
    let ago = format!("{} ago", age(record.at, now));
    let later = if is_replaced { ", replaced later" } else { "" };
    match &record.entry {
        LogEntry::Answered { answer, .. } => (format!("answered {ago}{later}"), Some(answer.clone())),
        LogEntry::AnswerReplaced { answer, .. } => {
            (format!("replaced by a new answer {ago}{later}"), Some(answer.clone()))
        }
        LogEntry::Expired { default: Some(default), .. } => {
            (format!("expired {ago}: the default is used"), Some(default.clone()))
        }
        LogEntry::Expired { default: None, .. } => (format!("expired {ago}"), None),
        // Nothing else becomes of a question.
        _ => (format!("withdrawn {ago}: its agent no longer waits for an answer"), None),
    }
}

/// Who gave an answer, as far as that was recorded.
fn by(origin: &Origin) -> String {
    let terminal = origin.terminal.as_deref().map_or("no terminal".to_owned(), one_line);
    let user = origin.user.as_deref().map_or_else(|| format!("user {}", origin.uid), one_line);
    let agent = origin.agent.map(|agent| format!(", below agent {}", agent.short())).unwrap_or_default();
    match &origin.file {
        // The user is then the file's owner, and the process the one that has read it.
        Some(file) => format!("in the file {} of {user}", one_line(&file.path.display().to_string())),
        None => {
            let unknown = if origin.orphaned { ", not known who started it" } else { "" };
            format!("by {user} (process {}, {terminal}{agent}{unknown})", origin.process)
        }
    }
}

/// Lines about what became of the answer.
fn outcome(store: &Store, exchange: &Exchange, now: Timestamp) -> Result<Vec<String>, CliError> {
    if exchange.status == "open" {
        return Ok(vec!["  open".to_owned()]);
    }
    let Some(at) = given_at(exchange) else {
        let is_over = matches!(exchange.status.as_str(), "resolved" | "expired");
        return Ok(is_over.then(|| "  not delivered yet".to_owned()).into_iter().collect());
    };
    let verb = if exchange.status == "delivered" { "delivered" } else { "given to the running agent" };
    let then = next_deed::after(store, exchange)?.and_then(|event| deed(&event.what));
    Ok(std::iter::once(format!("  {verb} {} ago", age(at, now)))
        .chain(then.map(|then| format!("    {then}")))
        .collect())
}

fn deed(what: &Happening) -> Option<String> {
    match what {
        Happening::ToolUse { summary, .. } => Some(format!("then called {}", one_line(summary))),
        Happening::Text { text } => Some(format!("then said: {}", one_line(text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{FrameId, RequestId};
    use crate::core::steering::origin::FromFile;

    const ID: uuid::Uuid = uuid::Uuid::nil();
    const WITHDRAWN: LogEntry = LogEntry::Withdrawn { request: RequestId(ID) };

    fn record(entry: LogEntry) -> EventRecord {
        EventRecord { seq: 1, at: Timestamp::UNIX_EPOCH, frame: FrameId(ID), entry }
    }

    fn answered(answer: &str) -> LogEntry {
        LogEntry::Answered { request: RequestId(ID), answer: answer.into(), by: Origin::default() }
    }

    fn replaced(answer: &str) -> LogEntry {
        let (request, answer, replaced) = (RequestId(ID), answer.into(), "x".into());
        LogEntry::AnswerReplaced { request, answer, replaced, by: Origin::default() }
    }

    fn expired(default: Option<&str>) -> LogEntry {
        LogEntry::Expired { request: RequestId(ID), expires_at: None, default: default.map(str::to_owned) }
    }

    #[test]
    fn withdrawn_expired_and_replaced_are_distinguished() {
        let ann = |user: &str| Origin { uid: 7, user: Some(user.into()), process: 42, ..Origin::default() };
        let origin = Origin { terminal: Some("/dev/pts/1".into()), ..ann("ann\u{1b}") };
        assert_eq!(by(&origin), "by ann\\u{1b} (process 42, /dev/pts/1)");
        let file = FromFile { path: "/q.md".into(), changed: Timestamp::UNIX_EPOCH };
        assert_eq!(by(&Origin { file: Some(file), ..ann("ann") }), "in the file /q.md of ann");
        let expired_now = "expired 0 s ago";
        for (entry, is_replaced, expected, answer) in [
            (answered("x"), false, "answered 0 s ago", Some("x")),
            (answered("x"), true, "answered 0 s ago, replaced later", Some("x")),
            (replaced("y"), false, "replaced by a new answer 0 s ago", Some("y")),
            (replaced("y"), true, "replaced by a new answer 0 s ago, replaced later", Some("y")),
            (expired(None), false, expired_now, None),
            (expired(Some("z")), false, "expired 0 s ago: the default is used", Some("z")),
            (WITHDRAWN, false, "withdrawn 0 s ago: its agent no longer waits for an answer", None),
        ] {
            let said = of_record(&record(entry), is_replaced, Timestamp::UNIX_EPOCH);
            assert_eq!(said, (expected.to_owned(), answer.map(str::to_owned)));
        }
    }
}
