//! Lists what an agent said and did.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup::frame_named;
use crate::core::chain::tree::Tree;
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::activity::TEXT;
use crate::runtime::activity::chain_events::ChainEvents;

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) id: String,
    /// Also list the events of all agents below.
    pub(crate) with_descendants: bool,
    pub(crate) since: Option<Timestamp>,
    /// List only this many events, the last ones. `None`: all.
    pub(crate) tail: Option<usize>,
    /// Do not truncate texts, calls and results.
    pub(crate) is_full: bool,
    /// Whether the asker follows later events.
    pub(crate) follows: bool,
}

/// The selected events, followed by all later ones.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) top: FrameId,
    /// Events that have been read already.
    read: VecDeque<AgentEvent>,
    rest: ChainEvents<'a>,
    since: Timestamp,
    /// When each agent's last event happened, including skipped events.
    last: HashMap<FrameId, Timestamp>,
}

/// How many bytes of each output to read at first, and the factor for each further read.
const END: u64 = 256 << 10;
const MORE: u64 = 8;

/// Reads an agent's events in chronological order. `is_shown`: whether an event counts towards the last events.
///
/// An output can have gigabytes. If only some events are selected, this reads the end first, and more only if necessary.
pub(crate) fn logs<'a>(
    app: &App<'a>,
    input: &Input,
    is_shown: impl Fn(&AgentEvent) -> bool,
) -> Result<Outcome<'a>, AppError> {
    if input.follows && app.asker.agent.is_some() {
        // An agent would wait for itself.
        return Err(Refusal::new("agents cannot follow events").hint("leave --follow out").into());
    }
    let top = frame_named(app, &input.id)?;
    let since = input.since.unwrap_or(Timestamp::MIN);
    let outcome = |rest, read| Outcome { top, read, rest, since, last: HashMap::new() };
    let longest = if input.is_full { None } else { Some(TEXT) };
    let mut most = END;
    loop {
        let mut events = ChainEvents::new(app.store, top, input.with_descendants, longest)?;
        if input.tail.is_none() && input.since.is_none() {
            return Ok(outcome(events, VecDeque::new()));
        }
        let is_cut = events.skip_to_end(most)?;
        let is_complete = |events: &ChainEvents<'_>, since: Option<Timestamp>| {
            !is_cut || since.is_some_and(|since| events.complete_since().is_some_and(|complete| complete <= since))
        };
        // All earlier events would be skipped anyway.
        let has_all = is_complete(&events, input.since);
        let Some(tail) = input.tail else {
            if has_all {
                return Ok(outcome(events, VecDeque::new()));
            }
            most = most.saturating_mul(MORE);
            continue;
        };
        let mut last = VecDeque::new();
        while let Some(event) = events.next(None)? {
            if event.at >= since && is_shown(&event) {
                last.push_back(event);
            }
            if last.len() > tail {
                last.pop_front();
            }
        }
        let has_enough = last.len() == tail && is_complete(&events, last.front().map(|event| event.at));
        if has_all || has_enough || tail == 0 {
            return Ok(outcome(events, last));
        }
        most = most.saturating_mul(MORE);
    }
}

impl<'a> Outcome<'a> {
    /// The next event that has already happened.
    pub(crate) fn next(&mut self) -> Result<Option<AgentEvent>, RuntimeError> {
        loop {
            let next = self.read.pop_front().map_or_else(|| self.rest.next(None), |event| Ok(Some(event)))?;
            let Some(event) = next else { return Ok(None) };
            self.last.insert(event.frame, event.at);
            if event.at >= self.since {
                return Ok(Some(event));
            }
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        self.rest.tree()
    }

    /// Returns the later events, and when each agent's last event happened.
    pub(crate) fn into_later(self) -> (ChainEvents<'a>, HashMap<FrameId, Timestamp>) {
        (self.rest, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::core::events::agent_event::AgentEventKind;
    use crate::store;
    use crate::store::testing::{ask, new, reply};

    fn input(id: FrameId) -> Input {
        let id = id.to_string();
        Input { id, with_descendants: false, since: None, tail: None, is_full: false, follows: false }
    }

    fn kinds(app: &App<'_>, input: &Input, is_shown: impl Fn(&AgentEvent) -> bool) -> Vec<(FrameId, &'static str)> {
        let mut outcome = logs(app, input, is_shown).unwrap();
        let mut found = Vec::new();
        while let Some(event) = outcome.next().unwrap() {
            let kind = match event.what {
                AgentEventKind::Request { .. } => "request",
                AgentEventKind::Ended { .. } => "ended",
                _ => "other",
            };
            found.push((event.frame, kind));
        }
        found.retain(|(_, kind)| *kind != "other");
        found
    }

    #[test]
    fn events_are_selected_by_agent_number_and_time() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(store.start(child), &reply("fine"));
        store.request(caller, None, &[ask("When?")]).unwrap();
        let app = testing::app(&store);
        let all = |_: &AgentEvent| true;
        let root = caller.frame;
        assert_eq!(kinds(&app, &input(root), all), [(root, "request"), (root, "request")]);
        let whole = || Input { with_descendants: true, ..input(root) };
        let expected = [(root, "request"), (child, "ended"), (root, "request")];
        assert_eq!(kinds(&app, &whole(), all), expected);
        let counts =
            |event: &AgentEvent| matches!(event.what, AgentEventKind::Request { .. } | AgentEventKind::Ended { .. });
        for tail in 0..5 {
            let found = kinds(&app, &Input { tail: Some(tail), ..whole() }, counts);
            assert_eq!(found, expected[3_usize.saturating_sub(tail)..]);
        }
        let since = |since| Input { since: Some(since), tail: Some(9), ..whole() };
        assert_eq!(kinds(&app, &since(Timestamp::MAX), all), []);
        assert_eq!(kinds(&app, &since(Timestamp::UNIX_EPOCH), all), expected);
        assert_eq!(kinds(&app, &Input { tail: None, ..since(Timestamp::MAX) }, all), []);
        assert_eq!(logs(&app, &whole(), all).unwrap().tree().top(), root);
    }

    #[test]
    fn an_agent_cannot_follow_events() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let app = testing::app_of(&store, caller);
        let follows = Input { follows: true, ..input(caller.frame) };
        assert_eq!(logs(&app, &follows, |_| true).unwrap_err().to_string(), "agents cannot follow events");
        assert!(logs(&app, &input(caller.frame), |_| true).is_ok());
        assert!(logs(&testing::app(&store), &follows, |_| true).is_ok());
    }
}
