//! Resumes a chain, changes how it continues, or looks up the result of an agent's request.

use crate::app::asker::PersonsTask;
use crate::app::chains::afresh;
use crate::app::chains::estimate::{self, OfTop};
use crate::app::chains::run::{self, NextRun, RunSurroundings};
use crate::app::chains::tell::{self, DeferredText};
use crate::app::config::chain_defaults;
use crate::app::error::{AppError, Refusal};
use crate::app::housekeeping::hosts;
use crate::app::lookup::{LookedUp, frame_named};
use crate::app::view::estimate::EstimateView;
use crate::app::{App, lookup};
use crate::core::agent::launch::Launch;
use crate::core::agent::overrides::Repair;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::NewLimits;
use crate::core::id::{FrameId, IdPrefix, SessionId};
use crate::runtime::requests::{adopt, agent_lookup, spawn_request};
use crate::runtime::run::frame_error::first_agent;
use crate::runtime::run::status::{self, ChainStatus};
use crate::runtime::steering::try_again;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{ChainChange, ChainOf, Driving, Instruction, Scope, Store, StoreError, Target};

pub(crate) struct Input {
    pub(crate) id: String,
    pub(crate) limits: NewLimits,
    /// How to start agents from now on. The program in it is the one that the asker names.
    pub(crate) repair: Repair,
    /// A new instruction for a finished agent.
    pub(crate) prompt: Option<DeferredText>,
    /// Continue the agent in a new session that begins with a summary.
    pub(crate) afresh: bool,
    /// Retry now instead of waiting for a usage limit or backoff.
    pub(crate) now: bool,
    /// Report to agents which files changed while they waited.
    pub(crate) stale_check: bool,
}

impl Input {
    /// Continues the chain unchanged, or with an instruction.
    pub(crate) fn new(id: String, prompt: Option<String>) -> Self {
        let prompt = prompt.map(|prompt| -> DeferredText { Box::new(move || Ok(prompt)) });
        let (limits, repair) = (NewLimits::default(), Repair::default());
        Self { id, limits, repair, prompt, afresh: false, now: false, stale_check: true }
    }
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The result of a request, for an agent.
    Result(LookedUp),
    Chain(Resumed),
}

/// A chain, after the requested changes.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) top: FrameId,
    pub(crate) named: Option<Named>,
    /// How many agents have new launch options from now on.
    pub(crate) repaired: usize,
    pub(crate) next: NextRun,
    /// Until it runs the chain, others leave what it has changed to this process.
    pub(crate) driving: Option<Driving>,
}

/// A chain and the name that it had.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) root: FrameId,
    pub(crate) name: String,
}

impl Input {
    /// Whether this only continues the chain.
    pub(crate) fn changes_nothing(&self) -> bool {
        !(self.limits.any() || self.now || self.repairs() || self.prompt.is_some() || self.afresh)
    }

    fn repairs(&self) -> bool {
        self.repair != Repair::default()
    }
}

/// Returns the chain of `id` and its status, if nothing in it can run. `None` if a whole [`resume()`] is needed to find out.
/// Only for askers that are not agents and [change nothing](Input::changes_nothing).
pub(crate) fn look(store: &Store, id: &str) -> Result<Option<(FrameId, ChainStatus)>, RuntimeError> {
    let top = match id.parse::<FrameId>() {
        // A complete id, as cron passes it, needs no search.
        Ok(top) => top,
        Err(_) => match id.parse::<IdPrefix>().map(|prefix| store.lookup(Scope::All, &prefix)) {
            Ok(Ok(target)) => lookup::chain_of(store, target)?,
            _ => return Ok(None),
        },
    };
    Ok(status::poll_here(store, top)?.map(|status| (top, status)))
}

/// Finds the chain and changes it as requested. A refused request changes nothing.
pub(crate) fn resume(
    app: &App<'_>,
    mut input: Input,
    surroundings: &impl RunSurroundings,
) -> Result<Outcome, AppError> {
    let store = app.store;
    if let Some(caller) = app.asker.agent {
        refuse_to_agents(&input)?;
        let target = agent_lookup::named_or_started(store, caller, &lookup::id_of(app, &input.id)?)?;
        let result = spawn_request::result_for(store, caller, target)?;
        return Ok(Outcome::Result(LookedUp { target, result }));
    }
    let changes = !input.changes_nothing();
    if changes {
        app.asker.may(PersonsTask::ChangeChain)?;
    }
    if let Some(named) = &input.repair.questions_dir {
        input.repair.questions_dir = Some(chain_defaults::new_questions_dir(&app.path(named))?);
    }
    let top = lookup::chain_of(store, target(app, &input, surroundings)?)?;
    let is_status = !changes && hosts::waits_elsewhere(store, top)?;
    let offer = || Ok(surroundings.run_settings(None)?.host.offer);
    let not_taken = match if is_status { None } else { hosts::take(store, top, offer)? } {
        Some(why) if changes => return Err(why.into()),
        not_taken => not_taken,
    };
    let ChainOf { root, name, .. } = store.chain_of(top)?;
    let (claude, questions_dir) = (input.repair.claude.clone(), input.repair.questions_dir.clone());
    if input.afresh {
        afresh::check(app, top, input.prompt.is_some())?;
    }
    let launch =
        input.repairs().then(|| repair(store, top, &input.repair, input.prompt.is_some(), surroundings)).transpose()?;
    let instruction = input.prompt.map(|prompt| instruction(app, top, prompt)).transpose()?;
    questions_dir.as_deref().map_or(Ok(()), chain_defaults::make_questions_dir)?;
    let is_run_here = changes && root == top || input.afresh;
    let driving = is_run_here.then(|| Driving::mark(store.dir(), root)).transpose()?;
    // All refusals have happened before this transaction, or happen in it.
    let change = ChainChange { limits: input.limits, launch, instruction, afresh: input.afresh, name: None };
    let repaired = if change == ChainChange::default() { 0 } else { store.change_chain(top, change)? };
    if input.now {
        try_again::end_pauses(store, top)?;
    }
    let settings = || Ok(RunSettings { stale_check: input.stale_check, ..surroundings.run_settings(claude)? });
    let next = match (run::next(store, top, settings)?, not_taken) {
        (NextRun::Run(_), Some(why)) => return Err(why.into()),
        // Its host is lost, or it would not be an error of this kind.
        (NextRun::Nothing(_), Some(why @ StoreError::NotTaken { .. })) if hosts::runs(store, top)? => {
            return Err(why.into());
        }
        (next, _) => next,
    };
    Ok(Outcome::Chain(Resumed { top, named: name.map(|name| Named { root, name }), repaired, next, driving }))
}

/// Estimates what [`resume()`] would send and cost. Refuses what that would refuse.
pub(crate) fn estimate(
    app: &App<'_>,
    input: Input,
    surroundings: &impl RunSurroundings,
    run: &RunSettings,
) -> Result<EstimateView, AppError> {
    let top = frame_named(app, &input.id)?;
    let of_top = OfTop { instructs: input.prompt.is_some(), afresh: input.afresh };
    if input.afresh {
        afresh::can_start(app, top, of_top.instructs)?;
    }
    let repair = match input.repairs() {
        true => repair(app.store, top, &input.repair, of_top.instructs, surroundings)?,
        false => Repair::default(),
    };
    input.prompt.map(|prompt| instruction(app, top, prompt)).transpose()?;
    estimate::of_chain(app, top, &repair, of_top, run)
}

fn refuse_to_agents(input: &Input) -> Result<(), Refusal> {
    if input.limits.any() {
        return Err(Refusal::limits_of_agents());
    }
    if input.prompt.is_some() {
        let refusal = Refusal::new("agents cannot give others new instructions");
        return Err(refusal.hint("agent-cli spawn --prompt TEXT starts an agent with them"));
    }
    if input.afresh {
        let refusal = Refusal::new("agents cannot make others start afresh");
        return Err(refusal.hint("ask a person to do it"));
    }
    if input.now || input.repairs() {
        let refusal = Refusal::new("agents cannot use --now or change how claude is started");
        return Err(refusal.hint("leave it out"));
    }
    Ok(())
}

/// Resolves the id. Adopts an unknown session if Claude Code has it.
fn target(app: &App<'_>, input: &Input, surroundings: &impl RunSurroundings) -> Result<Target, AppError> {
    let error = match app.store.lookup(Scope::All, &lookup::id_of(app, &input.id)?) {
        Ok(target) => return Ok(target),
        Err(error) => error,
    };
    if let (StoreError::Unknown(_), Ok(session)) = (&error, input.id.trim().parse::<SessionId>())
        && let Some(frame) = adopt::adopt(app.store, session, adopted(&input.repair, surroundings)?)?
    {
        return Ok(Target::Frame(frame));
    }
    Err(error.into())
}

/// The launch options of an adopted session.
fn adopted(repair: &Repair, surroundings: &impl RunSurroundings) -> Result<Launch, AppError> {
    let of_surroundings = surroundings.launch()?;
    let claude = surroundings.claude(repair.claude.as_deref())?;
    let Repair { model, permission_mode, questions_dir, args, .. } = repair.clone();
    let permission_mode = permission_mode.or(of_surroundings.permission_mode);
    Ok(Launch { claude, model, permission_mode, args: args.unwrap_or_default(), questions_dir, ..of_surroundings })
}

/// Returns the changes to the launch options of the chain's agents, after Claude Code has accepted them. `instructs`: whether the
/// first of them gets a new instruction.
fn repair(
    store: &Store,
    top: FrameId,
    repair: &Repair,
    instructs: bool,
    surroundings: &impl RunSurroundings,
) -> Result<Repair, AppError> {
    let Some(frame) = store.frame(top)? else { return Err(StoreError::UnknownFrame(top).into()) };
    if frame.root != top {
        let refusal = Refusal::new(format!(
            "{} was started by an agent: options can be changed only for the whole chain",
            top.short()
        ));
        return Err(refusal.hint(format!("use the id of the chain: agent-cli resume {}", frame.root.short())).into());
    }
    if frame.state == FrameState::Done && !instructs {
        let refusal = Refusal::new(format!("{} is done: it starts no more agents", top.short()));
        return Err(refusal.hint(format!("agent-cli resume {} --prompt TEXT continues it", top.short())).into());
    }
    let claude = repair.claude.as_deref().map(|named| surroundings.claude(Some(named))).transpose()?;
    let settings = || surroundings.run_settings(repair.claude.clone());
    let repair = Repair { claude, ..repair.clone() };
    if let Some(first) = first_agent(store, top)? {
        let repaired = first.launch.clone().repaired(&first.launch, &repair);
        run::check(store, &settings()?, &repaired, &first.cwd)?;
    }
    Ok(repair)
}

/// Builds the new instruction for an agent, which must have ended.
fn instruction(app: &App<'_>, id: FrameId, prompt: DeferredText) -> Result<Instruction, AppError> {
    let frame = tell::agent(app.store, id)?;
    if !frame.state.is_over() {
        let refusal = Refusal::new(format!("{} is still {}", id.short(), frame.state.name()));
        return Err(refusal.hint(format!("agent-cli tell {} TEXT sends it a message", id.short())).into());
    }
    Ok(Instruction {
        text: tell::read(prompt, &format!("agent-cli resume {} --prompt", id.short()))?,
        sender: tell::sender(app),
    })
}

impl Named {
    /// Whether another chain has the name now.
    pub(crate) fn is_lost(&self, store: &Store) -> bool {
        matches!(store.chain_of(self.root), Ok(ChainOf { name: None, .. }))
    }
}

#[cfg(test)]
mod tests;
