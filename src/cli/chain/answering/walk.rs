//! Walks through the inbox: one question after the other, in the order that the person chooses.

use std::collections::HashSet;
use std::mem;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::app::App;
use crate::app::answer::{self, AnswerStatus, Input, Outcome, TooLate};
use crate::app::lookup::{Projects, here};
use crate::cli::chain::answering::editor;
use crate::cli::chain::answering::said_back::said_back;
use crate::cli::chain::answering::terminal_prompt::{Line, Prompt};
use crate::cli::chain::answering::typed::{self, Command, TypedLine, default, how_to_answer};
use crate::cli::chain::answering::walk::step::{Exit, WalkStep};
use crate::cli::confirm;
use crate::cli::error::CliError;
use crate::cli::output::format::cut;
use crate::cli::output::{self, ListCommand, tell};
use crate::cli::report::question_text;
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::proposed_plan::{Permit, permit};
use crate::core::requests::request::RequestKind;
use crate::core::text::wrap::wrapped_text;
use crate::runtime::activity::excerpts::last_words;
use crate::store::{Driving, Question};

pub(super) mod step;

/// The questions in the order in which they are shown, and the answers that were given here.
pub(super) struct Walk<'a> {
    app: App<'a>,
    questions: Asked,
    manner: WalkManner,
    items: Vec<Item>,
    at: usize,
    /// Questions that can no longer be answered here.
    dropped: HashSet<RequestId>,
    /// How many open questions come after the loaded items.
    behind: usize,
    /// How many open questions belong to other projects.
    elsewhere: u64,
    /// Leaves the chain to this process after the last answer.
    driving: Option<Driving>,
}

/// The questions to walk through.
pub(super) enum Asked {
    /// The questions of a project. `None`: of all projects.
    InProject(Option<PathBuf>, Projects),
    /// The questions of a chain or agent, and of the agents below it.
    Below(FrameId),
    Only(RequestId),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WalkManner {
    /// Whether the command that asks runs the chain. The person has not asked for its questions, so an empty line leaves one
    /// open.
    pub(super) is_uninvited: bool,
    /// Whether earlier answers may be replaced.
    pub(super) replace: bool,
}

/// How many questions are loaded in advance.
const AHEAD: usize = 20;

#[derive(Clone, Copy, Debug)]
struct Item {
    id: RequestId,
    root: FrameId,
    /// Whether it was answered here.
    answered: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(app: App<'a>, questions: Asked, manner: WalkManner) -> Self {
        Self {
            app,
            questions,
            manner,
            items: Vec::new(),
            at: 0,
            dropped: HashSet::new(),
            behind: 0,
            elsewhere: 0,
            driving: None,
        }
    }

    /// All questions of the current project.
    pub(super) fn of_project(app: App<'a>) -> Result<Self, CliError> {
        let mut projects = Projects::default();
        let project = here(&app, &mut projects)?;
        Ok(Self::new(app, Asked::InProject(Some(project), projects), WalkManner::default()))
    }

    pub(super) fn go(&mut self, prompt: &mut Prompt) -> Result<Exit, CliError> {
        let mut is_outdated = false;
        loop {
            let was_outdated = mem::take(&mut is_outdated);
            self.refresh()?;
            let Some(item) = self.items.get(self.at).copied() else { return Ok(Exit::AtEnd) };
            let step = match answer::answer_status(&self.app, item.id, self.replaces(&item))? {
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
                WalkStep::Outdated => is_outdated = true,
                WalkStep::Drop => {
                    self.dropped.insert(self.items.remove(self.at).id);
                    if was_outdated && let Some(exit) = self.after_outdated(prompt)? {
                        return Ok(exit);
                    }
                }
                WalkStep::Back if self.at == 0 => tell("this is the first one"),
                WalkStep::Back => self.at -= 1,
                WalkStep::Leave(exit) => return Ok(exit),
            }
        }
    }

    /// Makes sure that what the person is typing is no answer to the next question, and no command of their shell.
    fn after_outdated(&mut self, prompt: &mut Prompt) -> Result<Option<Exit>, CliError> {
        self.refresh()?;
        if self.manner.is_uninvited || self.at == self.items.len() {
            Prompt::forget_the_rest();
            return Ok(None);
        }
        let line = prompt.line("Enter: the next question ")?;
        Ok(if let WalkStep::Leave(exit) = WalkStep::from_line(&line) { Some(exit) } else { None })
    }

    fn replaces(&self, item: &Item) -> bool {
        item.answered || self.manner.replace
    }

    /// Appends questions that were asked in the meantime.
    fn refresh(&mut self) -> Result<(), CliError> {
        self.app.now = Timestamp::now();
        let found = match self.questions {
            // It may have been answered before, but its answer may be replaced.
            Asked::Only(question) if self.items.is_empty() => self.app.store.questions(question, false)?,
            _ => self.open(self.items.iter().filter(|item| !item.answered).count() + AHEAD)?,
        };
        let known: HashSet<RequestId> = self.items.iter().map(|item| item.id).collect();
        let new = found.into_iter().filter(|open| !known.contains(&open.id) && !self.dropped.contains(&open.id));
        self.items.extend(new.map(|open| Item { id: open.id, root: open.root, answered: false }));
        Ok(())
    }

    /// Reads the questions that are open now. Of a project, it reads at most this many, and counts the others.
    fn open(&mut self, wanted: usize) -> Result<Vec<Question>, CliError> {
        let store = self.app.store;
        Ok(match &mut self.questions {
            Asked::InProject(project, projects) => {
                let directories = project.as_ref().map(|project| projects.directories(store, project));
                let open = store.first_questions(wanted, directories.transpose()?.as_deref(), true)?;
                (self.behind, self.elsewhere) = (usize::try_from(open.more).unwrap_or(usize::MAX), open.elsewhere);
                open.questions
            }
            Asked::Below(frame) => store.questions(Some(*frame), true)?,
            Asked::Only(question) => store.questions(*question, true)?,
        })
    }

    /// Shows one question, and handles what the person types.
    fn visit(&mut self, prompt: &mut Prompt, asked: &Question) -> Result<WalkStep, CliError> {
        self.driving = None;
        let (columns, _) = output::size_of_errors();
        let text = format!("\n({} of {}) {}", self.at + 1, self.items.len() + self.behind, self.shown(asked)?);
        let how = wrapped_text(&how_to_answer(&asked.kind, self.manner.is_uninvited), columns);
        if self.manner.is_uninvited {
            // The person may be typing, because they did not expect a question.
            Prompt::forget_the_rest();
        } else {
            Prompt::forget_typed_ahead();
        }
        let denies = |text: &str| permit(&answer::spelled_out(&asked.kind, text)).is_some_and(|it| it != Permit::Allow);
        let is_approval = !matches!(asked.kind, RequestKind::Ask(_));
        let denies: Option<&dyn Fn(&str) -> bool> = is_approval.then_some(&denies);
        let mut typed = prompt.show(&wrapped_text(&text, columns), how.lines().count() + 1, denies)?;
        if typed.is_none() {
            // An extra Enter from paging is not an answer.
            Prompt::forget_typed_ahead();
            output::ask(&how);
        }
        let replace = self.replaces(&self.items[self.at]);
        let mut written = String::new();
        loop {
            let line = match typed.take() {
                Some(line) => line,
                None => prompt.line_unless("> ", &mut || {
                    self.app.now = Timestamp::now();
                    answer::is_outdated(&self.app, asked, replace).unwrap_or_default()
                })?,
            };
            let Line::Typed(line) = &line else { return Ok(WalkStep::from_line(&line)) };
            let (text, is_text) = match typed::read(line) {
                TypedLine::Answer(text) => match self.meant(prompt, asked, text)? {
                    Ok(text) => (text, false),
                    Err(Some(step)) => return Ok(step),
                    Err(None) => continue,
                },
                TypedLine::Text(text) => (text.to_owned(), true),
                TypedLine::Command(Command::Edit) => match editor::write(&written) {
                    Ok(Some(text)) => {
                        written.clone_from(&text);
                        (answer::spelled_out(&asked.kind, &text), false)
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
                TypedLine::Nothing if default(&asked.kind).is_some() => (String::new(), false),
                TypedLine::Nothing if self.manner.is_uninvited => return Ok(WalkStep::Leave(Exit::AtWill)),
                TypedLine::Command(Command::Help | Command::All) | TypedLine::Nothing => {
                    output::ask(&wrapped_text(&typed::help(), columns));
                    output::ask(&how);
                    continue;
                }
                TypedLine::Command(command) => return Ok(WalkStep::from_command(command)),
                TypedLine::NoCommand(word) => {
                    tell(&format!("{word} is not a command; to answer with exactly this: :text {word}"));
                    continue;
                }
            };
            match self.record(asked, &text, is_text) {
                Ok(step) => return Ok(step),
                Err(error) => {
                    self.driving = None;
                    error.report();
                }
            }
        }
    }

    /// Interprets a typed line as an answer. Asks the person if it may have been meant for this program.
    fn meant(
        &self,
        prompt: &mut Prompt,
        asked: &Question,
        text: &str,
    ) -> Result<Result<String, Option<WalkStep>>, CliError> {
        let is_free = matches!(&asked.kind, RequestKind::Ask(form) if form.free_text && form.chosen(text).is_none());
        if !is_free || !typed::could_be_a_command(text) {
            return Ok(Ok(answer::spelled_out(&asked.kind, text)));
        }
        let question = format!("send \"{}\" as the answer? [y/N] ", text.trim());
        let line = prompt.line(&question)?;
        let Line::Typed(typed) = &line else { return Ok(Err(Some(WalkStep::from_line(&line)))) };
        Ok(match typed::read(typed) {
            TypedLine::Answer(yes) if confirm::is_yes(yes) => Ok(text.to_owned()),
            TypedLine::Command(Command::Skip | Command::Back | Command::Quit) => Err(Some(WalkStep::from_line(&line))),
            _ => {
                tell("nothing was sent; :skip leaves the question open, :quit leaves");
                Err(None)
            }
        })
    }

    /// Records an answer. Empty text stands for the default.
    fn record(&mut self, asked: &Question, text: &str, is_text: bool) -> Result<WalkStep, CliError> {
        let replace = self.replaces(&self.items[self.at]);
        // While the person thinks about another question, any process may continue with what they have answered.
        if self.manner.is_uninvited && self.at + 1 == self.items.len() {
            self.driving = Some(Driving::mark(self.app.store.dir(), asked.root)?);
        }
        let item = &mut self.items[self.at];
        let default = default(&asked.kind).filter(|_| text.is_empty());
        let (question, is_verbatim) = (asked.id.short(), is_text || default.is_some());
        let given = default.unwrap_or(text).to_owned();
        let input = Input { question: asked.id, text: given, is_verbatim, mode: None, replace, shown: None };
        let recorded = answer::answer_in_time(&self.app, &input);
        match recorded.map_err(|error| CliError::from(error).without_hints())? {
            Ok(Outcome { text: recorded, .. }) => {
                let said = said_back(&asked.kind, &input.text, &recorded);
                let default = if default.is_some() { " (the default)" } else { "" };
                let instead = if asked.answer.is_some() { "; the earlier answer was replaced" } else { "" };
                item.answered = true;
                tell(&format!("{said}{default}{instead}"));
                Ok(WalkStep::Next)
            }
            Err(TooLate::Answered(asked)) => {
                let by = asked.map(|asked| by(&asked)).unwrap_or_default();
                tell(&format!("{question} has already been answered{by}; yours was not recorded"));
                Ok(WalkStep::Drop)
            }
            // An answer that was already given here still counts.
            Err(TooLate::Delivered(error)) => {
                tell(&format!("{error}; the new one was not recorded"));
                Ok(WalkStep::Next)
            }
            Err(TooLate::Removed) => {
                tell(&format!("{question} has been removed with its chain; yours was not recorded"));
                Ok(WalkStep::Drop)
            }
            Err(TooLate::Closed(error)) => {
                tell(&format!("{error}; yours was not recorded"));
                Ok(WalkStep::Drop)
            }
        }
    }

    /// The whole question, and the agent's last words.
    fn shown(&self, asked: &Question) -> Result<String, CliError> {
        let width = output::width_of_errors();
        let mut text = question_text::whole(self.app.store, asked, width)?;
        // The question must be shown even if the agent's words cannot be read.
        if let Ok(Some(said)) = last_words(self.app.store, asked.frame) {
            text.push_str("what the agent said last:\n");
            text.push_str(&approval::quoted(said.trim(), width));
        }
        Ok(text)
    }

    /// The chains that got an answer here.
    pub(super) fn answered(&self) -> Vec<FrameId> {
        let mut roots: Vec<FrameId> = Vec::new();
        for item in self.items.iter().filter(|item| item.answered) {
            if !roots.contains(&item.root) {
                roots.push(item.root);
            }
        }
        roots
    }

    /// Whether questions could no longer be answered here.
    pub(super) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// How many questions were passed or dropped.
    pub(super) fn seen(&self) -> usize {
        self.at + self.dropped.len()
    }

    /// Reports how many questions were answered here, and how many are open now.
    pub(super) fn report(&mut self, exit: Exit) -> Result<(), CliError> {
        let answered = self.items.iter().filter(|item| item.answered).count();
        let open = self.open(0)?.len() + self.behind;
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match (answered, open) {
            (0, 0) => tell("no open questions"),
            (_, 0) => tell(&format!("{} recorded", count(answered, "answer"))),
            _ => tell(&format!("{} recorded, {} left open", count(answered, "answer"), count(open, "question"))),
        }
        if exit != Exit::Interrupted && matches!(self.questions, Asked::InProject(..)) {
            ListCommand::new("inbox", "question", &[]).tell_of_elsewhere(self.elsewhere);
        }
        Ok(())
    }
}

/// The user who has answered, and the answer.
fn by(asked: &Question) -> String {
    let who = asked.origin.as_ref().and_then(|origin| origin.user.clone());
    let who = who.map(|user| format!(" by {}", cut(&user, 40))).unwrap_or_default();
    let what = asked.answer.as_ref().map(|answer| format!(": {}", cut(answer, 60))).unwrap_or_default();
    format!("{who}{what}")
}
