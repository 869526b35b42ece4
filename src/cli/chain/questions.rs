//! `agent-cli questions`: lists the questions of agents.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::lists::questions::{self, Input, Outcome};
use crate::app::lists::whole_question;
use crate::app::view::question::{AskedForView, QuestionView};
use crate::cli::arguments::pager_option::PagerOption;
use crate::cli::arguments::{at_least_one, id_completion};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{self, age, cut, one_line, table};
use crate::cli::output::{self, ListCommand, hint, print, print_json, print_quoted, tell};
use crate::cli::report::question_text;
use crate::cli::report::waits::{described, in_part};
use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::requests::request::RequestKind;
use crate::core::text::extent;
use crate::core::text::shell::shell_word;
use crate::core::text::wrap::columns;
use crate::local_zone::local_zone;
use crate::runtime::requests::answer_files;
use crate::store::{Question, Store};

/// List open questions, or show one in full
///
/// The list shows the first line of each question, or the tool call that needs an approval, and how much more there is.
/// With an id, everything is shown: every line of a call, and how files would change. Without one, the questions of this
/// project's chains are listed, oldest first; what is left out is counted on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli questions
  agent-cli questions 4f2c1a90
  agent-cli questions --all-projects --json")]
pub(crate) struct QuestionsCommand {
    /// Id of a question, or of a chain or agent (a name, `last`) for all of its questions, to show in full
    #[arg(add = id_completion::questions())]
    id: Option<String>,

    /// Include answered and expired questions
    #[arg(long)]
    all: bool,

    /// Also list the questions of other projects
    #[arg(short = 'p', long, conflicts_with = "id")]
    all_projects: bool,

    /// List at most this many [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<usize>, conflicts_with = "id")]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pager: PagerOption,
}

/// The default limit of the list.
const MOST: usize = 100;

impl QuestionsCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let _paged = self.pager.begin(self.json);
        let store = context.store()?;
        let app = context.app(&store);
        let input = Input {
            id: self.id.clone(),
            with_closed: self.all,
            all_projects: self.all_projects,
            most: self.limit.or(if self.json { None } else { Some(MOST) }),
        };
        let Outcome { questions, elsewhere, has_more } = questions::questions(&app, &input)?;
        if let (Some(id), false) = (&self.id, self.json) {
            if questions.is_empty() {
                tell(if self.all { "no questions" } else { "no open questions" });
            }
            let exit = in_full(&store, &questions)?;
            if questions.is_empty() {
                let with_closed = Input { with_closed: true, ..input };
                if !self.all && !questions::questions(&app, &with_closed)?.questions.is_empty() {
                    hint(&format!("agent-cli questions {} --all shows the closed ones", shell_word(id)));
                }
                for blocker in questions::waits_of(&app, id)? {
                    tell(&format!("{} waits for {}", blocker.frame.short(), described(&blocker.what)));
                }
            }
            return Ok(exit);
        }
        let listed = questions::views(&app, questions)?;
        if self.json {
            print_json(&listed)?;
            self.tell_of_hidden(elsewhere, has_more);
            return Ok(ExitStatus::Ok);
        }
        if listed.is_empty() {
            let open = if self.all { "" } else { "open " };
            let place = if elsewhere == 0 { "" } else { " in this project" };
            tell(&format!("no {open}questions{place}"));
        } else {
            print(&as_table(&listed, app.now))?;
        }
        self.tell_of_hidden(elsewhere, has_more);
        if listed.is_empty() && questions::are_there_other_waits(&app)? {
            hint("agent-cli ls shows what else chains wait for: times, files, commands, agents");
        }
        Ok(ExitStatus::Ok)
    }

    fn tell_of_hidden(&self, elsewhere: u64, has_more: bool) {
        let options = [(self.all, "--all"), (self.all_projects, "--all-projects")];
        let command = ListCommand::new("questions", "question", &options);
        command.tell_of_elsewhere(elsewhere);
        if has_more {
            tell(&format!("there are more: {}", command.with("--limit N")));
        }
    }
}

fn as_table(listed: &[QuestionView], now: Timestamp) -> String {
    let head = ["QUESTION", "ASKED", "BY", "CHAIN", ""].map(str::to_owned).to_vec();
    let lines = |listed| rows(listed, now, output::width()).into_iter().chain(offered(listed, now));
    table(&std::iter::once(head).chain(listed.iter().flat_map(lines)).collect::<Vec<_>>())
}

/// Prints each question in full, with how to answer it.
fn in_full(store: &Store, questions: &[Question]) -> Result<ExitStatus, CliError> {
    let all = questions.iter().map(|question| question_text::wrapped(store, question, output::width()));
    print_quoted(&all.collect::<Result<Vec<_>, _>>()?.join("\n"))?;
    if let Some(open) = questions.iter().find(|question| question.answer.is_none() && question.expired.is_none()) {
        if let RequestKind::Ask(form) = answer_files::observed(store, open.clone(), Timestamp::now())?.kind {
            question_text::hint_at_file(&form);
        }
        hint(&format!("agent-cli answer {} {}", open.id.short(), question_text::to_answer(&open.kind)));
    }
    Ok(ExitStatus::Ok)
}

/// Formats a question as rows of the list. On a terminal the text has its own row, because the other columns leave little
/// room.
fn rows(listed: &QuestionView, now: Timestamp, width: Option<usize>) -> Vec<Vec<String>> {
    const LONG: usize = 120;
    let most = width.map_or(LONG, |width| width.saturating_sub(listed.id.short().len() + 2));
    let note = |text: String| vec![String::new(), text];
    let (text, (lines, characters)) = match &listed.asked_for {
        AskedForView::Permission { question, tool, input, .. } => {
            let (lines, characters) = extent::extent(input);
            (question.clone(), (lines, characters + tool.chars().count() + 2))
        }
        AskedForView::Plan { question, plan } => {
            (question.clone(), extent::extent(&plan.text.as_deref().unwrap_or_default().into()))
        }
        AskedForView::Question(form) => {
            let texts: Vec<&str> = std::iter::once(form.question.as_str()).chain(form.context.as_deref()).collect();
            (form.question.clone(), extent::extent(&texts.into()))
        }
    };
    let (first, more) = in_part(listed.id, &text, lines, characters, most);
    let mut row = vec![listed.id.short(), age(listed.asked, now), one_line(&listed.task), listed.chain.short()];
    let mut rows = Vec::new();
    if width.is_some() {
        row.push(String::new());
        rows.extend([row, note(first)]);
    } else {
        row.push(first);
        rows.push(row);
    }
    rows.extend(more.map(note));
    let reason = match &listed.asked_for {
        AskedForView::Permission { reason, .. } => reason.as_deref(),
        AskedForView::Question(_) | AskedForView::Plan { .. } => None,
    };
    let reason = reason.map(|reason| format!("asked by a hook: {}", one_line(reason.trim())));
    rows.extend(reason.filter(|reason| columns(reason) <= most).map(note));
    rows.extend(listed.answer.iter().map(|answer| note(format!("-> {}", cut(answer, most)))));
    if listed.expired.is_some() {
        let default = form(listed).and_then(|form| form.default.as_ref());
        let default = default.map(|default| format!(", so the default counts: {}", cut(default, most)));
        rows.push(note(format!("-> {}{}", question_text::NOBODY, default.unwrap_or_default())));
    }
    rows
}

fn form(listed: &QuestionView) -> Option<&Form> {
    match &listed.asked_for {
        AskedForView::Question(form) => Some(form),
        AskedForView::Permission { .. } | AskedForView::Plan { .. } => None,
    }
}

/// The rows below an open question: its options, default and expiry.
fn offered(listed: &QuestionView, now: Timestamp) -> Vec<Vec<String>> {
    let is_open = listed.answer.is_none() && listed.expired.is_none();
    let Some(form) = form(listed).filter(|_| is_open) else { return Vec::new() };
    let below = |text: String| vec![String::new(), text];
    let together = listed.asked_together.map(question_text::together);
    let (options, about) = (options(form), about(form, now, &local_zone()));
    options.into_iter().chain(together).chain(about).map(|text| below(format!("  {text}"))).collect()
}

/// The options of a question and how to choose from them, a line each.
pub(crate) fn options(form: &Form) -> Vec<String> {
    let number = |(at, option): (usize, &QuestionOption)| match one_line(&option.description) {
        description if description.is_empty() => format!("{} {}", form.mark(at), one_line(&option.key)),
        description => format!("{} {}: {description}", form.mark(at), one_line(&option.key)),
    };
    form.options.iter().enumerate().map(number).chain(whole_question::choosing(form).map(str::to_owned)).collect()
}

/// The default of a question, when it expires, and what is known about its file, a line each.
pub(crate) fn about(form: &Form, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let default = form.default.iter().map(|default| format!("default: {}", one_line(default)));
    let expiry = form.expires_at.map(|at| format::expiry(at, now, zone));
    let in_file = form.answer_file.as_ref().and_then(|file| file.note(now)).map(|note| one_line(&note));
    default.chain(expiry).chain(in_file).collect()
}
