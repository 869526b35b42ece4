//! Starts a chain that outlives the process that starts it.

use std::io;
use std::path::{Path, PathBuf};

use crate::app::chains::run::{self, RunSurroundings};
use crate::app::config::sources::Configuration;
use crate::app::error::{AppError, Refusal};
use crate::app::spawn::{self, Input, instructions};
use crate::app::{App, GivenText};
use crate::core::agent::launch::OnPermission;
use crate::core::chain::limits::{self, NewLimits};
use crate::core::id::{BadName, ChainName, FrameId};
use crate::runtime::housekeeping::removal;

/// A front's environment, for starting chains.
pub(crate) trait Surroundings: RunSurroundings {
    /// The settings for work in `cwd`.
    fn configuration(&self, cwd: &Path) -> Result<Configuration, AppError>;
}

/// A chain that a person describes outside a command line. Empty values count as omitted.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) prompt: Option<String>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    /// In US dollars.
    pub(crate) budget: Option<String>,
    pub(crate) worktree: Option<bool>,
}

impl Described {
    /// # Errors
    ///
    /// The name or the budget is invalid.
    pub(crate) fn input(self) -> Result<Input, Refusal> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let tasks: Vec<_> =
            self.files.into_iter().map(GivenText::File).chain(given(self.prompt).map(GivenText::Text)).collect();
        let budget = |usd: String| {
            limits::budget_in(&usd).map_err(|wanted| Refusal::new(format!("the budget must be {wanted}")))
        };
        Ok(Input {
            tasks,
            cwd: self.directory,
            name: given(self.name).as_deref().map(name).transpose()?,
            model: given(self.model),
            limits: NewLimits { max_budget_usd: given(self.budget).map(budget).transpose()?, ..NewLimits::default() },
            worktree: self.worktree,
            // A front that is not a command line can show questions to a person.
            on_permission: Some(OnPermission::Ask),
            ..Input::default()
        })
    }
}

/// Parses a name that a person has entered.
pub(crate) fn name(text: &str) -> Result<ChainName, Refusal> {
    text.trim().parse().map_err(|error: BadName| Refusal::new(error.to_string()))
}

/// Starts a chain with these instructions and returns it. None of the instructions may be on standard input.
pub(crate) fn spawn(app: &App<'_>, input: Input, surroundings: &impl Surroundings) -> Result<FrameId, AppError> {
    let cwd = spawn::working_directory(&app.directory, input.cwd.as_deref())?;
    let configuration = surroundings.configuration(&cwd)?;
    let tasks = instructions::tasks(&app.directory, &input.tasks, &mut io::empty())?;
    let settings = surroundings.run_settings(None)?;
    let new = spawn::start(app, input, tasks, &configuration, settings, &mut |_| {})?;
    if let Err(error) = run::in_background(app.store, new.chain, surroundings) {
        // The asker does not learn its id, and will ask for it again.
        removal::remove_unused(app.store, new.chain)?;
        return Err(error);
    }
    Ok(new.chain)
}
