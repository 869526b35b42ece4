//! Starts a chain that does not end with the process that starts it.

use std::io;
use std::path::Path;

use crate::app::App;
use crate::app::chains::run::{self, RunSurroundings};
use crate::app::config::sources::Configuration;
use crate::app::error::AppError;
use crate::app::spawn::{self, Input, instructions};
use crate::core::id::FrameId;

/// What is only read when a chain is started.
pub(crate) trait Surroundings: RunSurroundings {
    /// The settings for work in `cwd`.
    fn configuration(&self, cwd: &Path) -> Result<Configuration, AppError>;
}

/// Starts a chain with these instructions, none of which is on standard input. Returns it.
pub(crate) fn spawn(app: &App<'_>, input: Input, surroundings: &impl Surroundings) -> Result<FrameId, AppError> {
    let cwd = spawn::working_directory(&app.directory, input.cwd.as_deref())?;
    let configuration = surroundings.configuration(&cwd)?;
    let tasks = instructions::tasks(&app.directory, &input.tasks, &mut io::empty())?;
    let settings = surroundings.run_settings(None)?;
    let new = spawn::start(app, input, tasks, &configuration, settings, &mut |_| {})?;
    run::in_background(app.store, new.chain, surroundings)?;
    Ok(new.chain)
}
