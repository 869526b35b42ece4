//! `agent-cli history`: shows what agents asked, who answered, and what they did next.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::lists::history::{self, Input, Outcome};
use crate::app::lists::whole_question::of_form;
use crate::app::view::exchange::{CallStatus, ExchangeView, RecordKind, RecordView};
use crate::app::view::question::AskedForView;
use crate::cli::arguments::pager_option::PagerOption;
use crate::cli::arguments::since::{Since, since};
use crate::cli::arguments::{at_least_one, id_completion};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{fitted, one_line, past};
use crate::cli::output::{self, ListCommand, hint, print, print_json, tell};
use crate::core::events::agent_event::AgentEventKind;
use crate::core::requests::approval::{self, Before};
use crate::core::steering::origin::{FromPage, Origin};
use crate::core::text::escape::shortened;
use crate::core::text::shell::shell_word;
use crate::local_zone::local_zone;

/// Show what agents asked, who answered what, and what followed
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
    #[arg(add = id_completion::questions())]
    id: Option<String>,

    /// Also show what was asked in other projects
    #[arg(short = 'p', long, conflicts_with = "id")]
    all_projects: bool,

    /// Show only what was asked since this time (14:00, 2026-11-20) or this long ago (7d)
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = since)]
    since: Option<Since>,

    /// Show at most this many, the newest [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<usize>, conflicts_with = "id")]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pager: PagerOption,
}

impl History {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let _paged = self.pager.begin(self.json);
        let store = context.store()?;
        let app = context.app(&store);
        let input = Input {
            id: self.id.clone(),
            all_projects: self.all_projects,
            since: self.since.as_ref().map(|since| since.time),
            most: self.limit.or(if self.json { None } else { Some(MOST) }),
        };
        let Outcome { exchanges, is_one, elsewhere, has_more } = history::history(&app, &input)?;
        if self.json {
            print_json(&exchanges)?;
            self.tell_of_hidden(elsewhere, has_more);
            return Ok(ExitStatus::Ok);
        }
        if exchanges.is_empty() {
            let ever = history::history(&app, &Input { since: None, most: Some(1), ..input })?;
            if !ever.exchanges.is_empty() {
                tell("no questions since then");
                let all = if self.all_projects { " --all-projects" } else { "" };
                let of = self.id.as_ref().map(|id| format!(" {}", shell_word(id)));
                hint(&format!("agent-cli history{all}{} shows earlier ones", of.unwrap_or_default()));
            } else if ever.elsewhere > 0 {
                tell("no questions in this project yet");
            } else {
                tell("no questions yet");
            }
        }
        let zone = local_zone();
        exchanges.iter().try_for_each(|exchange| print(&text(exchange, app.now, &zone, is_one)))?;
        self.tell_of_hidden(elsewhere, has_more);
        Ok(ExitStatus::Ok)
    }

    fn tell_of_hidden(&self, elsewhere: u64, has_more: bool) {
        let since = self.since.as_ref().map(Since::option);
        let options = [(self.all_projects, "--all-projects"), (since.is_some(), since.as_deref().unwrap_or_default())];
        let command = ListCommand::new("history", "question", &options);
        command.tell_of_elsewhere(elsewhere);
        if has_more {
            tell(&format!("there are more: {}", command.with("--limit N")));
        }
    }
}

/// The default limit of the list.
const MOST: usize = 100;

/// Formats an exchange. `whole`: include the whole question and all of the answers.
fn text(exchange: &ExchangeView, now: Timestamp, zone: &TimeZone, whole: bool) -> String {
    let (width, shown) = (output::width(), &exchange.shown);
    let mut lines = vec![
        format!("{} {}, {}", exchange.id.short(), what(shown), past(exchange.asked, now, zone)),
        format!("  of {} in the chain {}", one_line(&exchange.task), exchange.chain.short()),
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
        text.push_str(&in_full(shown, width));
    } else {
        lines.push(format!("  {}", shortened(&summary(shown))));
    }
    for (at, record) in exchange.records.iter().enumerate() {
        let is_replacing = |later: &RecordView| later.what == RecordKind::AnswerReplaced;
        let is_replaced = exchange.records[at + 1..].iter().any(is_replacing);
        let said = of_record(record, is_replaced, now, zone);
        match record.answer.as_ref().or(record.default.as_ref()) {
            Some(answer) if whole => {
                lines.push(format!("  {said}:"));
                flush(&mut lines, &mut text);
                text.push_str(&approval::quoted(answer, width));
            }
            Some(answer) => lines.push(format!("  {said}: {}", shortened(answer))),
            None => lines.push(format!("  {said}")),
        }
        lines.extend(record.by.as_ref().map(|origin| format!("    {}", by(origin))));
    }
    lines.extend(outcome(exchange, now, zone));
    flush(&mut lines, &mut text);
    text
}

fn what(shown: &AskedForView) -> &'static str {
    match shown {
        AskedForView::Permission { .. } => "approval of a call",
        AskedForView::Plan { .. } => "approval of a plan",
        AskedForView::Question(_) => "question",
    }
}

fn summary(shown: &AskedForView) -> String {
    match shown {
        AskedForView::Question(form) => form.question.clone(),
        AskedForView::Permission { question, .. } => shortened(question),
        AskedForView::Plan { question, .. } => format!("ExitPlanMode: {}", shortened(question)),
    }
}

fn in_full(shown: &AskedForView, width: Option<usize>) -> String {
    match shown {
        AskedForView::Permission { tool, input, place, .. } => {
            approval::view(tool, input, &Before::Unknown, place.as_ref(), width)
        }
        AskedForView::Plan { plan, .. } => approval::quoted(plan.text.as_deref().unwrap_or_default(), width),
        AskedForView::Question(form) => of_form(form, width),
    }
}

/// Formats a record. `is_replaced`: a later answer replaced this one.
fn of_record(record: &RecordView, is_replaced: bool, now: Timestamp, zone: &TimeZone) -> String {
    let ago = past(record.at, now, zone);
    let later = if is_replaced { ", replaced later" } else { "" };
    match record.what {
        RecordKind::Answered => format!("answered {ago}{later}"),
        RecordKind::AnswerReplaced => format!("replaced by a new answer {ago}{later}"),
        RecordKind::Expired if record.default.is_some() => format!("expired {ago}: the default is used"),
        RecordKind::Expired => format!("expired {ago}"),
        RecordKind::Withdrawn => format!("withdrawn {ago}: its agent no longer waits for an answer"),
    }
}

/// Names the person or agent that gave an answer, as far as this is recorded.
fn by(origin: &Origin) -> String {
    let terminal = origin.terminal.as_deref().map_or("no terminal".to_owned(), one_line);
    let user = origin.user.as_deref().map_or_else(|| format!("user {}", origin.uid), one_line);
    let agent = origin.agent.map(|agent| format!(", below agent {}", agent.short())).unwrap_or_default();
    match &origin.file {
        // In this case, the user is the file's owner, and the process is the one that read the file.
        Some(file) => format!("in the file {} of {user}", one_line(&file.path.display().to_string())),
        None if origin.page.is_some() => {
            let page = origin.page.as_ref().map(FromPage::in_words).unwrap_or_default();
            format!("on the {} (process {})", one_line(&page), origin.process)
        }
        None if origin.client.is_some() => {
            let client = origin.client.as_deref().map(one_line).unwrap_or_default();
            format!("by {user} in {client} (process {}{agent})", origin.process)
        }
        None => {
            let unknown = if origin.orphaned { ", not known who started it" } else { "" };
            format!("by {user} (process {}, {terminal}{agent}{unknown})", origin.process)
        }
    }
}

/// Says whether the agent got the answer, and what it did next.
fn outcome(exchange: &ExchangeView, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let Some(given) = exchange.given.as_ref().filter(|_| exchange.status != CallStatus::Open) else {
        return match exchange.status {
            CallStatus::Open => vec!["  open".to_owned()],
            CallStatus::Resolved | CallStatus::Expired => vec!["  not delivered yet".to_owned()],
            CallStatus::Delivering | CallStatus::Delivered | CallStatus::Withdrawn => Vec::new(),
        };
    };
    let is_delivered = exchange.status == CallStatus::Delivered;
    let verb = if is_delivered { "delivered" } else { "given to the running agent" };
    let then = exchange.then.as_ref().and_then(|event| deed(&event.what));
    std::iter::once(format!("  {verb} {}", past(given.at, now, zone)))
        .chain(then.map(|then| format!("    {then}")))
        .collect()
}

fn deed(what: &AgentEventKind) -> Option<String> {
    match what {
        AgentEventKind::ToolUse { summary, .. } => Some(format!("then called {}", one_line(summary))),
        AgentEventKind::Text { text } => Some(format!("then said: {}", one_line(text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::steering::origin::FromFile;

    fn record(what: RecordKind, default: Option<&str>) -> RecordView {
        let default = default.map(str::to_owned);
        RecordView { at: Timestamp::UNIX_EPOCH, what, answer: None, replaced: None, default, by: None }
    }

    #[test]
    fn withdrawn_expired_and_replaced_are_distinguished() {
        let ann = |user: &str| Origin { uid: 7, user: Some(user.into()), process: 42, ..Origin::default() };
        let origin = Origin { terminal: Some("/dev/pts/1".into()), ..ann("ann\u{1b}") };
        assert_eq!(by(&origin), "by ann\\u{1b} (process 42, /dev/pts/1)");
        let file = FromFile { path: "/q.md".into(), changed: Timestamp::UNIX_EPOCH };
        assert_eq!(by(&Origin { file: Some(file), ..ann("ann") }), "in the file /q.md of ann");
        for (record, is_replaced, expected) in [
            (record(RecordKind::Answered, None), false, "answered 00:00 (0 s ago)"),
            (record(RecordKind::Answered, None), true, "answered 00:00 (0 s ago), replaced later"),
            (record(RecordKind::AnswerReplaced, None), false, "replaced by a new answer 00:00 (0 s ago)"),
            (
                record(RecordKind::AnswerReplaced, None),
                true,
                "replaced by a new answer 00:00 (0 s ago), replaced later",
            ),
            (record(RecordKind::Expired, None), false, "expired 00:00 (0 s ago)"),
            (record(RecordKind::Expired, Some("z")), false, "expired 00:00 (0 s ago): the default is used"),
            (
                record(RecordKind::Withdrawn, None),
                false,
                "withdrawn 00:00 (0 s ago): its agent no longer waits for an answer",
            ),
        ] {
            assert_eq!(of_record(&record, is_replaced, Timestamp::UNIX_EPOCH, &TimeZone::UTC), expected);
        }
    }
}
