//! `agent-cli inbox`: walks through everything that waits for a person.

use std::io::{self, IsTerminal};

use clap::Args;

use crate::app::answer;
use crate::app::chains::unattended::{self, AfterAnswer};
use crate::app::{App, Asker};
use crate::claude::processes::marks;
use crate::cli::chain::answering::terminal_prompt::{Line, Prompt};
use crate::cli::chain::answering::walk::{Exit, Walk};
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, print_line, tell};
use crate::cli::report::status_report::OutputOptions;
use crate::core::id::FrameId;
use crate::store::{Attending, Store};

/// Answer open questions, approvals and plans one after the other
///
/// Shows each question of this project in full, with what its agent said last, and takes your answer: text, the key or
/// number of an option, `allow` or `deny`. `:edit` opens your editor, `:skip` leaves a question open, `:back` returns to
/// the previous one, and `:quit` or Ctrl-C leaves. Nothing is sent before you press Enter, and an answer can be replaced
/// until its agent has it. Questions asked in the meantime come at the end.
///
/// Needs a terminal. In a script, use `questions --json` and `answer`.
#[derive(Debug, Args)]
pub(crate) struct Inbox {
    /// Also show what the agents of other projects ask
    #[arg(short = 'p', long)]
    all_projects: bool,

    /// Continue the answered chains at the end without asking
    #[arg(long)]
    resume: bool,
}

/// The surroundings for a person's answers; agents are refused.
pub(super) fn for_people<'a>(context: &Context, store: &'a Store) -> Result<App<'a>, CliError> {
    let app = context.app_with_origin(store);
    let (sessions, runner) = (marks::sessions().collect(), marks::runner());
    let app = App { asker: Asker { sessions, runner, ..app.asker }, ..app };
    answer::only_people(&app)?;
    Ok(app)
}

impl Inbox {
    /// The inbox of the current project.
    pub(super) fn here(resume: bool) -> Self {
        Self { all_projects: false, resume }
    }

    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = for_people(context, &store)?;
        if !confirm::is_at_a_terminal() || !io::stdout().is_terminal() {
            return Err(CliError::usage("the inbox needs a terminal")
                .hint("agent-cli questions --json lists the open questions")
                .hint("agent-cli answer ID ANSWER answers one"));
        }
        let mut prompt = Prompt::new()?;
        let mut walk = Walk::new(app, self.all_projects)?;
        let attending = Attending::mark(store.dir())?;
        let exit = walk.go(&mut prompt)?;
        drop(attending);
        let answered = walk.answered();
        walk.report(exit);
        if exit == Exit::Interrupted && answered.is_empty() {
            return Ok(ExitStatus::Interrupted);
        }
        let chains = continuable(&store, &answered)?;
        if chains.is_empty() {
            return Ok(if exit == Exit::Interrupted { ExitStatus::Interrupted } else { ExitStatus::Ok });
        }
        if exit == Exit::AtWill && (self.resume || agrees(&mut prompt, chains.len())?) {
            let output_options = OutputOptions { json: false, stream: false, exit_code: false };
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

/// The answered chains that a command must continue.
fn continuable(store: &Store, answered: &[FrameId]) -> Result<Vec<FrameId>, CliError> {
    let (mut chains, mut waiting) = (Vec::new(), None);
    for root in answered {
        let id = root.short();
        match unattended::after_answer(store, *root)? {
            AfterAnswer::Removed => tell(&format!("{id} has been removed")),
            AfterAnswer::RunsElsewhere => tell(&format!("{id} continues: another process is already running it")),
            AfterAnswer::CanContinue => chains.push(*root),
            AfterAnswer::Waits => {
                tell(&format!("{id} cannot continue yet"));
                waiting = Some(root);
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
        Line::Interrupted | Line::Closed => false,
    })
}
