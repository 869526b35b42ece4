//! Asks the person at the terminal the questions of the chain that they run, and continues the chain.

use jiff::Timestamp;

use crate::app::App;
use crate::app::answer;
use crate::app::chains::run::{self, NextRun};
use crate::app::error::AppError;
use crate::cli::chain::answering::terminal_prompt::Prompt;
use crate::cli::chain::answering::walk::step::Exit;
use crate::cli::chain::answering::walk::{Asked, Walk, WalkManner};
use crate::cli::chain::drive;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, tell};
use crate::cli::report::status_report::{OutputOptions, needs_an_answer};
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::runtime::RunSettings;
use crate::runtime::run::status::{self, ChainStatus};
use crate::store::Store;

/// Creates the context for a person's answers. Refuses agents.
pub(super) fn for_people<'a>(context: &Context, store: &'a Store) -> Result<App<'a>, CliError> {
    let app = context.app_to_decide(store);
    answer::only_people(&app)?;
    Ok(app)
}

/// Whether a command with this final status asks the person first.
pub(crate) fn asks(context: &Context, status: &ChainStatus, output_options: OutputOptions) -> bool {
    needs_a_person(status) && drive::can_ask(context, output_options) && output::live::is_in_the_foreground()
}

fn needs_a_person(status: &ChainStatus) -> bool {
    matches!(status, ChainStatus::Waits { blockers, .. } if needs_an_answer(blockers))
}

/// Asks the open questions of the chain below `top` and continues it, until no question is left or the person leaves. Then
/// reports the chain's status.
pub(crate) fn finish(
    context: &Context,
    store: &Store,
    top: FrameId,
    mut status: ChainStatus,
    settings: impl Fn() -> Result<RunSettings, AppError>,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    if asks(context, &status, output_options) {
        // If the person cannot be asked, the chain waits as it would without a terminal.
        if let Err(error) = ask(context, store, top, &mut status, settings, output_options) {
            error.report();
        }
    }
    if store.frame(top)?.is_none() {
        return Err(CliError::new(ExitStatus::NoSuchFrame, format!("{} has been removed", top.short())));
    }
    drive::report(store, top, status, output_options)
}

fn ask(
    context: &Context,
    store: &Store,
    top: FrameId,
    status: &mut ChainStatus,
    settings: impl Fn() -> Result<RunSettings, AppError>,
    output_options: OutputOptions,
) -> Result<(), CliError> {
    // An agent's session can have a terminal, too.
    let Ok(app) = for_people(context, store) else { return Ok(()) };
    let mut prompt = Prompt::new()?;
    let manner = WalkManner { is_uninvited: true, ..WalkManner::default() };
    let mut walk = Walk::new(app, Asked::Below(top), manner);
    while needs_a_person(status) {
        let before = walk.seen();
        let exit = walk.go(&mut prompt)?;
        if walk.seen() == before && exit == Exit::AtEnd {
            return Ok(());
        }
        if store.frame(top)?.is_none() {
            return Ok(());
        }
        if let Some(blockers) = paused(store, top)? {
            *status = ChainStatus::Waits { new: false, blockers, busy: Vec::new(), errors: Vec::new() };
            return Ok(());
        }
        let has_left = exit != Exit::AtEnd;
        match run::next(store, top, &settings)? {
            // The report says whether the chain has come to wait in this run, and what it waits for now.
            NextRun::Nothing(ChainStatus::Waits { blockers: now, busy, .. }) if has_left && busy.is_empty() => {
                if let ChainStatus::Waits { blockers, .. } = status {
                    *blockers = now;
                }
                return Ok(());
            }
            NextRun::Nothing(now) => {
                *status = now;
                return Ok(());
            }
            NextRun::Run(_) if matches!(exit, Exit::Interrupted | Exit::Closed) => {
                tell(&format!("{} can continue: agent-cli resume {}", top.short(), top.short()));
                return Ok(());
            }
            next @ NextRun::Run(_) => *status = drive::go_on(context, store, next, top, output_options)?,
        }
        if has_left {
            return Ok(());
        }
    }
    Ok(())
}

/// What the chain waits for, if a person has paused it in the meantime and nothing else in it can continue.
fn paused(store: &Store, top: FrameId) -> Result<Option<Vec<Blocker>>, CliError> {
    let blockers = store.tree(top)?.blockers(Timestamp::now());
    let is_paused = blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Paused { .. }));
    Ok(if is_paused && !status::can_run(store, top)? { Some(blockers) } else { None })
}
