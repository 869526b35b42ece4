//! `agent-cli inbox`: walks a person through everything that waits for them.

use std::io::{self, IsTerminal};

use clap::Args;

use crate::app::App;
use crate::app::answer;
use crate::app::chains::run;
use crate::app::chains::unattended::{self, AfterAnswer};
use crate::app::lookup::Projects;
use crate::cli::arguments::id_completion;
use crate::cli::chain::answering::terminal_prompt::{Line, Prompt};
use crate::cli::chain::answering::there_and_then::{self, for_people};
use crate::cli::chain::answering::walk::step::Exit;
use crate::cli::chain::answering::walk::{Asked, Walk, WalkManner};
use crate::cli::chain::drive;
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, print_line, tell};
use crate::cli::report::status_report::OutputOptions;
use crate::core::id::FrameId;
use crate::store::{Attending, Store, StoreError, Target};

/// Answer open questions, approvals and plans one after the other
///
/// Shows each question of this project in full, with what its agent said last, and takes your answer: text, the key or
/// number of an option, `allow` or `deny`. `:edit` opens your editor, `:skip` leaves a question open, `:back` returns to
/// the previous one, and `:quit` or Ctrl-C leaves. Nothing is sent before you press Enter, and an answer can be replaced
/// until its agent has it. Questions asked in the meantime come at the end.
///
/// With an id, only shows the questions of that chain or agent, or that question.
///
/// Needs a terminal. In a script, use `questions --json` and `answer`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli inbox
  agent-cli inbox 4f2c1a90 --resume")]
pub(crate) struct Inbox {
    /// Id of a question, or of a chain or agent (a name, `last`) for all of its questions [default: the questions of this project]
    #[arg(add = id_completion::questions(), conflicts_with = "all_projects")]
    id: Option<String>,

    /// Also show what the agents of other projects ask
    #[arg(short = 'p', long)]
    all_projects: bool,

    /// Continue the answered chains at the end without asking
    #[arg(long)]
    resume: bool,

    #[arg(skip)]
    replace: bool,
}

impl Inbox {
    /// Creates the inbox of the current project, or of the chain, agent or question `id`.
    pub(super) fn of(id: Option<String>, resume: bool, replace: bool) -> Self {
        Self { id, all_projects: false, resume, replace }
    }

    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = for_people(context, &store)?;
        if !confirm::is_at_a_terminal() || !io::stdout().is_terminal() {
            return Err(CliError::usage("the inbox needs a terminal")
                .hint("agent-cli questions --json lists the open questions")
                .hint("agent-cli answer ID ANSWER answers one"));
        }
        let mut walk = self.walk(app)?;
        let mut prompt = Prompt::new()?;
        let (exit, answered) = attended(&store, &mut walk, &mut prompt)?;
        if exit == Exit::Interrupted && answered.is_empty() {
            return Ok(ExitStatus::Interrupted);
        }
        let chains = continuable(&store, &answered, self.resume)?;
        if chains.is_empty() {
            return Ok(if exit == Exit::Interrupted { ExitStatus::Interrupted } else { ExitStatus::Ok });
        }
        if exit != Exit::Interrupted && (self.resume || agrees(&mut prompt, chains.len())?) {
            let output_options = OutputOptions::default();
            if let (Some(_), [chain]) = (&self.id, chains.as_slice()) {
                let again = || context.settings(None);
                let status = drive::go_on(context, &store, run::next(&store, *chain, again)?, *chain, output_options)?;
                return there_and_then::finish(context, &store, *chain, status, again, output_options);
            }
            let all = ResumeAll { claude: None, stale_check: true, max_parallel_total: None, output_options };
            return all.continue_these(context, &context.app(&store), &chains);
        }
        tell(if chains.len() == 1 { "resume the chain with:" } else { "resume them with:" });
        for root in chains {
            print_line(&format!("agent-cli resume {root}"))?;
        }
        Ok(if exit == Exit::Interrupted { ExitStatus::Interrupted } else { ExitStatus::Ok })
    }
}

impl Inbox {
    /// Selects the questions. If an id names a chain or agent, it must have at least one.
    fn walk<'a>(&self, app: App<'a>) -> Result<Walk<'a>, CliError> {
        let Some(id) = &self.id else {
            return if self.all_projects {
                Ok(Walk::new(app, Asked::InProject(None, Projects::default()), WalkManner::default()))
            } else {
                Walk::of_project(app)
            };
        };
        let asked = match answer::named(&app, id)? {
            Target::Request(question) => {
                app.store.questions(question, false)?.pop().ok_or(StoreError::NotAQuestion(question))?;
                Asked::Only(question)
            }
            Target::Frame(agent) if app.store.questions(Some(agent), true)?.is_empty() => {
                return Err(CliError::from(answer::no_open_question(app.store, agent)?));
            }
            Target::Frame(agent) => Asked::Below(agent),
        };
        Ok(Walk::new(app, asked, WalkManner { replace: self.replace, is_uninvited: false }))
    }
}

/// Asks the questions of the chain of `root`. Returns the chains that the person wants to continue now.
pub(crate) fn answer_below(context: &Context, store: &Store, root: FrameId) -> Result<Vec<FrameId>, CliError> {
    let app = for_people(context, store)?;
    let mut walk = Walk::new(app, Asked::Below(root), WalkManner::default());
    let mut prompt = Prompt::new()?;
    let (exit, answered) = attended(store, &mut walk, &mut prompt)?;
    let chains = continuable(store, &answered, false)?;
    let continues = exit != Exit::Interrupted && !chains.is_empty() && agrees(&mut prompt, chains.len())?;
    if exit == Exit::AtEnd && chains.is_empty() && walk.has_dropped() {
        // Whoever is typing an answer does not expect that the dialogue is over.
        wait_for_enter()?;
    }
    Ok(if continues { chains } else { Vec::new() })
}

/// Waits until the person has read the screen, before the dashboard covers it.
pub(crate) fn wait_for_enter() -> Result<(), CliError> {
    Prompt::new()?.line("Enter: back to the dashboard ").map(drop)
}

/// Runs the walk. Returns how it ended, and the chains that got an answer.
fn attended(store: &Store, walk: &mut Walk<'_>, prompt: &mut Prompt) -> Result<(Exit, Vec<FrameId>), CliError> {
    let attending = Attending::mark(store.dir())?;
    let exit = walk.go(prompt)?;
    drop(attending);
    walk.report(exit)?;
    Ok((exit, walk.answered()))
}

/// The answered chains that a command must continue. `at_once`: include those that continue automatically.
fn continuable(store: &Store, answered: &[FrameId], at_once: bool) -> Result<Vec<FrameId>, CliError> {
    let (mut chains, mut waiting) = (Vec::new(), None);
    for root in answered {
        let id = root.short();
        match unattended::after_answer(store, *root)? {
            AfterAnswer::Removed => tell(&format!("{id} has been removed")),
            AfterAnswer::Done => tell(&format!("{id} is done: agent-cli show {id} --reply")),
            AfterAnswer::RunsElsewhere => tell(&format!("{id} continues: another process is already running it")),
            AfterAnswer::OnAnotherHost(elsewhere) => {
                tell(&format!("the agents of {id} {elsewhere}, where it continues"));
            }
            AfterAnswer::Continues(_) if at_once => chains.push(*root),
            AfterAnswer::Continues(by) => tell(&format!("{id} continues: {}", by.words())),
            AfterAnswer::CanContinue => chains.push(*root),
            AfterAnswer::LeftToPeople { why, next } => {
                tell(&format!("{id} {why}"));
                hint(&format!("{next} continues it"));
            }
            AfterAnswer::Waits(by) => {
                tell(&format!("{id} cannot continue yet"));
                waiting = waiting.or_else(|| by.is_none().then_some(root));
            }
        }
    }
    if let Some(root) = waiting {
        hint(&format!("agent-cli resume {} says what it waits for", root.short()));
    }
    Ok(chains)
}

fn agrees(prompt: &mut Prompt, chains: usize) -> Result<bool, CliError> {
    let what = if chains == 1 { "the chain".to_owned() } else { format!("{chains} chains") };
    Ok(match prompt.line(&format!("continue {what} now? [Y/n] "))? {
        Line::Typed(typed) => typed.trim().is_empty() || confirm::is_yes(&typed),
        Line::Interrupted | Line::Closed | Line::Outdated => false,
    })
}
