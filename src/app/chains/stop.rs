//! Stops or pauses an agent and everything below it.

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup;
use crate::app::view::outcome::{StopOutcome, StoppedAgentView, StoppedView};
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::steering::stop_order::{By, Stop, StopKind};
use crate::runtime::Stopping;
use crate::runtime::steering::stop::{self, Stopped};
use crate::store::StoreError;

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) id: String,
    pub(crate) kind: StopKind,
    /// Do not let a running tool finish.
    pub(crate) now: bool,
    pub(crate) reason: Option<String>,
    /// How long a running tool may take to finish. `None`: return before the agents have ended.
    pub(crate) waits: Option<Stopping>,
}

impl Input {
    /// Lets running tools finish, and does not wait for them.
    pub(crate) fn new(id: String, kind: StopKind) -> Self {
        Self { id, kind, now: false, reason: None, waits: None }
    }
}

#[derive(Debug)]
pub(crate) struct Outcome {
    /// The agent in the state before the stop.
    pub(crate) agent: Frame,
    pub(crate) kind: StopKind,
    pub(crate) stopped: Stopped,
    pub(crate) outcome: StopOutcome,
    pub(crate) reason: Option<String>,
}

/// The size limit of a reason, in bytes. A reason is part of the parent's result, and of lists.
const LONGEST_REASON: usize = 1_000;

/// Stops or pauses an agent. If the input says so, waits until the agents have ended.
pub(crate) fn stop(app: &App<'_>, input: Input) -> Result<Outcome, AppError> {
    let Input { id, kind, now, reason, waits } = input;
    if kind == StopKind::Pause && app.asker.agent.is_some() {
        // An agent could not resume the agents that it had paused.
        let refusal = Refusal::new("agents cannot pause agents");
        return Err(refusal.hint("stop it with agent-cli stop, or end your turn").into());
    }
    let id = lookup::frame_named(app, &id)?;
    if app.asker.agent.is_some_and(|caller| caller.frame == id) {
        return Err(Refusal::new("an agent cannot stop itself").hint("end your turn").into());
    }
    let agent = app.store.frame(id)?.ok_or(StoreError::UnknownFrame(id))?;
    let by = app.asker.agent.map_or(By::Person, |caller| By::Agent(caller.frame));
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
        let refusal = Refusal::new(format!("a reason may have at most {LONGEST_REASON} bytes"));
        return Err(refusal.hint(format!("agent-cli tell {} TEXT sends longer texts", id.short())).into());
    }
    let wanted = Stop { how: kind, now, by, reason, of: id, report: None };
    if let (Some(Stopping { tell, .. }), false, FrameState::Running { .. }) = (&waits, now, &agent.state) {
        tell(&format!("the running tool of {} may finish; --now does not wait for it", id.short()));
    }
    let stopped = stop::stop(app.store, &agent, &wanted, waits)?;
    let outcome = outcome(&stopped);
    Ok(Outcome { agent, kind, stopped, outcome, reason: wanted.reason })
}

fn outcome(stopped: &Stopped) -> StopOutcome {
    let runs = |state: &FrameState| matches!(state, FrameState::Running { .. });
    match &stopped.after {
        _ if stopped.agents.is_empty() => StopOutcome::Nothing,
        _ if stopped.agents.iter().any(|(_, state)| runs(state)) => StopOutcome::Asked,
        FrameState::Done if stopped.before != FrameState::Done => StopOutcome::Replied,
        FrameState::Paused { .. } => StopOutcome::Paused,
        _ => StopOutcome::Stopped,
    }
}

impl Outcome {
    pub(crate) fn view(&self) -> StoppedView {
        let agents = self.stopped.agents.iter();
        StoppedView {
            id: self.agent.id,
            status: self.stopped.after.status(),
            outcome: self.outcome,
            reason: self.reason.clone(),
            agents: agents.map(|(id, state)| StoppedAgentView { id: *id, status: state.status() }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;

    fn input(id: String, kind: StopKind) -> Input {
        Input { id, kind, now: false, reason: None, waits: None }
    }

    #[test]
    fn an_agent_that_waits_is_stopped_at_once() {
        let (_temp, store) = store::testing::store();
        let (agent, _) = store.asking("When?");
        let app = testing::app(&store);
        let reason = Some(" ".to_owned());
        let stopped = stop(&app, Input { reason, ..input(agent.to_string(), StopKind::Stop) }).unwrap().view();
        assert_eq!((stopped.id, stopped.outcome), (agent, StopOutcome::Stopped));
        assert_eq!(stopped.reason, None, "blanks are not a reason");
        let again = stop(&app, input(agent.to_string(), StopKind::Stop)).unwrap().view();
        assert_eq!(again.outcome, StopOutcome::Nothing);
    }

    #[test]
    fn agents_neither_pause_nor_stop_themselves() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let app = testing::app_of(&store, caller);
        let refused = |kind| stop(&app, input(caller.frame.to_string(), kind)).unwrap_err().to_string();
        assert_eq!(refused(StopKind::Pause), "agents cannot pause agents");
        assert_eq!(refused(StopKind::Stop), "an agent cannot stop itself");
    }

    #[test]
    fn a_reason_has_a_limit() {
        let (_temp, store) = store::testing::store();
        let agent = store.start(store.root()).frame;
        let app = testing::app(&store);
        let reason =
            |length: usize| Input { reason: Some("x".repeat(length)), ..input(agent.to_string(), StopKind::Stop) };
        let refused = stop(&app, reason(LONGEST_REASON + 1)).unwrap_err();
        assert_eq!(refused.to_string(), "a reason may have at most 1000 bytes");
        assert_eq!(stop(&app, reason(LONGEST_REASON)).unwrap().reason.unwrap().len(), LONGEST_REASON);
    }
}
