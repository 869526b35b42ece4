//! The walk through the inbox: one question after the other, in the order that the person chooses.

use std::collections::HashSet;

use crate::app::App;
use crate::app::answer::{self, AnswerStatus, Input, TooLate};
use crate::app::lookup::{Projects, here};
use crate::cli::chain::answering::editor;
use crate::cli::chain::answering::terminal_prompt::{Line, Prompt};
use crate::cli::chain::answering::typed::{self, Command, TypedLine};
use crate::cli::error::CliError;
use crate::cli::output::format::cut;
use crate::cli::output::{self, ListCommand, tell};
use crate::cli::report::question_text;
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::request::RequestKind;
use crate::core::text::wrap::wrapped_text;
use crate::runtime::activity::excerpts::last_words;
use crate::store::Question;

/// Questions in the order in which they are shown, and the answers that were given here.
pub(super) struct Walk<'a> {
    app: App<'a>,
    /// The project whose questions are shown; `None`: all.
    project: Option<std::path::PathBuf>,
    projects: Projects,
    items: Vec<Item>,
    at: usize,
    /// How many open questions come after the items.
    behind: usize,
    /// How many open questions belong to other projects.
    elsewhere: u64,
}

/// How many questions are read in advance.
const AHEAD: usize = 20;

#[derive(Clone, Copy, Debug)]
struct Item {
    id: RequestId,
    root: FrameId,
    /// Whether it was answered here.
    answered: bool,
}

/// How a person left the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    AtWill,
    /// With Ctrl-C.
    Interrupted,
}

/// Where a person goes from a question.
enum WalkStep {
    Next,
    /// To the next one: this one can no longer be answered here.
    Drop,
    Back,
    Leave(Exit),
}

impl<'a> Walk<'a> {
    pub(super) fn new(app: App<'a>, all_projects: bool) -> Result<Self, CliError> {
        let mut projects = Projects::default();
        let project = if all_projects { None } else { Some(here(&app, &mut projects)?) };
        Ok(Self { app, project, projects, items: Vec::new(), at: 0, behind: 0, elsewhere: 0 })
    }

    pub(super) fn go(&mut self, prompt: &mut Prompt) -> Result<Exit, CliError> {
        loop {
            self.refresh()?;
            let Some(item) = self.items.get(self.at).copied() else { return Ok(Exit::AtWill) };
            let step = match answer::answer_status(&self.app, item.id, item.answered)? {
                AnswerStatus::Open(asked) => self.visit(prompt, &asked)?,
                AnswerStatus::Answered(asked) => {
                    tell(&format!("{} has been answered{}", item.id.short(), by(&asked)));
                    WalkStep::Drop
                }
                AnswerStatus::Expired => {
                    tell(&format!("{} has expired", item.id.short()));
                    WalkStep::Drop
                }
                AnswerStatus::Gone => {
                    tell(&format!("{} is gone: its agent no longer waits for an answer", item.id.short()));
                    WalkStep::Drop
                }
            };
            match step {
                WalkStep::Next => self.at += 1,
                WalkStep::Drop => drop(self.items.remove(self.at)),
                WalkStep::Back if self.at == 0 => tell("this is the first one"),
                WalkStep::Back => self.at -= 1,
                WalkStep::Leave(exit) => return Ok(exit),
            }
        }
    }

    /// Appends questions that were asked since.
    fn refresh(&mut self) -> Result<(), CliError> {
        let known: HashSet<RequestId> = self.items.iter().map(|item| item.id).collect();
        let wanted = self.items.iter().filter(|item| !item.answered).count() + AHEAD;
        let directories = self.project.as_ref().map(|project| self.projects.directories(self.app.store, project));
        let open = self.app.store.first_questions(wanted, directories.transpose()?.as_deref(), true)?;
        let new = open.questions.into_iter().filter(|open| !known.contains(&open.id));
        self.items.extend(new.map(|open| Item { id: open.id, root: open.root, answered: false }));
        (self.behind, self.elsewhere) = (usize::try_from(open.more).unwrap_or(usize::MAX), open.elsewhere);
        Ok(())
    }

    /// Shows one question, and handles what the person types.
    fn visit(&mut self, prompt: &mut Prompt, asked: &Question) -> Result<WalkStep, CliError> {
        let (columns, _) = output::size_of_errors();
        let text = format!("\n({} of {}) {}", self.at + 1, self.items.len() + self.behind, self.shown(asked)?);
        let how = wrapped_text(&how_to_answer(&asked.kind), columns);
        Prompt::forget_typed_ahead();
        if let Some(line) = prompt.show(&wrapped_text(&text, columns), how.lines().count() + 1)? {
            return Ok(step(&line));
        }
        output::ask(&how);
        let mut written = String::new();
        loop {
            let line = prompt.line("> ")?;
            let Line::Typed(line) = &line else { return Ok(step(&line)) };
            let (text, is_text) = match typed::read(line) {
                TypedLine::Answer(text) => (answer::spelled_out(&asked.kind, text), false),
                TypedLine::Text(text) => (text.to_owned(), true),
                TypedLine::Command(Command::Edit) => match editor::write(&written) {
                    Ok(Some(text)) => {
                        written.clone_from(&text);
                        (text, false)
                    }
                    Ok(None) => {
                        tell("the answer is empty, so it was not sent");
                        continue;
                    }
                    Err(error) => {
                        error.report();
                        continue;
                    }
                },
                TypedLine::Command(Command::Help | Command::All) | TypedLine::Nothing => {
                    output::ask(&wrapped_text(&typed::help(), columns));
                    output::ask(&how);
                    continue;
                }
                TypedLine::Command(command) => return Ok(where_to(command)),
                TypedLine::NoCommand(word) => {
                    tell(&format!("{word} is not a command; to answer with exactly this: :text {word}"));
                    continue;
                }
            };
            match self.record(asked, &text, is_text) {
                Ok(step) => return Ok(step),
                Err(error) => drop(error.report()),
            }
        }
    }

    fn record(&mut self, asked: &Question, text: &str, is_text: bool) -> Result<WalkStep, CliError> {
        let item = &mut self.items[self.at];
        let (question, text) = (asked.id.short(), text.to_owned());
        let input = Input { question: asked.id, text, is_verbatim: is_text, mode: None, replace: item.answered };
        let recorded = answer::answer_in_time(&self.app, &input);
        match recorded.map_err(|error| CliError::from(error).without_hints())? {
            Ok(_) => {
                let again = if item.answered { "answer replaced" } else { "answer recorded" };
                item.answered = true;
                tell(again);
                Ok(WalkStep::Next)
            }
            Err(TooLate::Answered(asked)) => {
                let by = asked.map(|asked| by(&asked)).unwrap_or_default();
                tell(&format!("{question} has already been answered{by}; yours was not recorded"));
                Ok(WalkStep::Drop)
            }
            // An answer that was given here still counts.
            Err(TooLate::Delivered(error)) => {
                CliError::from(error).without_hints().report();
                Ok(WalkStep::Next)
            }
            Err(TooLate::Removed) => {
                tell(&format!("{question} has been removed with its chain; yours was not recorded"));
                Ok(WalkStep::Drop)
            }
            Err(TooLate::Closed(error)) => {
                CliError::from(error).without_hints().report();
                Ok(WalkStep::Drop)
            }
        }
    }

    /// The whole question, and the last words of its agent.
    fn shown(&self, asked: &Question) -> Result<String, CliError> {
        let width = output::width_of_errors();
        let mut text = question_text::whole(self.app.store, asked, width)?;
        // If the agent's words cannot be read, the question must still be shown.
        if let Ok(Some(said)) = last_words(self.app.store, asked.frame) {
            text.push_str("what the agent said last:\n");
            text.push_str(&approval::quoted(said.trim(), width));
        }
        Ok(text)
    }

    /// The chains with an answer that was given here.
    pub(super) fn answered(&self) -> Vec<FrameId> {
        let mut roots: Vec<FrameId> = Vec::new();
        for item in self.items.iter().filter(|item| item.answered) {
            if !roots.contains(&item.root) {
                roots.push(item.root);
            }
        }
        roots
    }

    /// Reports what was recorded, and what was not.
    pub(super) fn report(&self, exit: Exit) {
        let answered = self.items.iter().filter(|item| item.answered).count();
        let open = self.items.len() + self.behind - answered;
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match (answered, open) {
            (0, 0) => tell("no open questions"),
            (_, 0) => tell(&format!("{} recorded", count(answered, "answer"))),
            _ => tell(&format!("{} recorded, {} left open", count(answered, "answer"), count(open, "question"))),
        }
        if exit == Exit::AtWill {
            ListCommand::new("inbox", "question", &[]).tell_of_elsewhere(self.elsewhere);
        }
    }
}

/// Who has answered, and what.
fn by(asked: &Question) -> String {
    let who = asked.origin.as_ref().and_then(|origin| origin.user.clone());
    let who = who.map(|user| format!(" by {}", cut(&user, 40))).unwrap_or_default();
    let what = asked.answer.as_ref().map(|answer| format!(": {}", cut(answer, 60))).unwrap_or_default();
    format!("{who}{what}")
}

fn how_to_answer(kind: &RequestKind) -> String {
    let how = match kind {
        RequestKind::Permission { .. } => "allow, or deny and why".to_owned(),
        RequestKind::Plan(plan) => {
            let modes = plan.modes.iter().map(|mode| cut(mode, 40)).collect::<Vec<_>>().join("|");
            format!("allow, allow {modes}, or deny and why")
        }
        RequestKind::Ask(form) => match form.naming() {
            Some(naming) => format!("your answer: {naming}"),
            None => "your answer".to_owned(),
        },
        _ => "your answer".to_owned(),
    };
    format!("{how}\nor :edit :skip :back :quit, :? for help\n")
}

/// The step for a line that is not an answer.
fn step(line: &Line) -> WalkStep {
    match line {
        Line::Interrupted => WalkStep::Leave(Exit::Interrupted),
        Line::Closed => WalkStep::Leave(Exit::AtWill),
        Line::Typed(text) => match typed::read(text) {
            TypedLine::Command(command) => where_to(command),
            _ => WalkStep::Next,
        },
    }
}

fn where_to(command: Command) -> WalkStep {
    match command {
        Command::Back => WalkStep::Back,
        Command::Quit => WalkStep::Leave(Exit::AtWill),
        Command::Skip | Command::All | Command::Edit | Command::Help => WalkStep::Next,
    }
}
