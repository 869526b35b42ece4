//! Lists chains: the newest first, or those that need a person first.

use std::collections::HashSet;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::project::Selection;
use crate::app::view::chain::{ChainState, ChainView};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::store::{ChainFilter, ChainKind, Chains, Summary};

/// The chains to list.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Also list chains that are done.
    pub(crate) with_done: bool,
    /// Also list chains of other projects.
    pub(crate) all_projects: bool,
    /// Only list chains in one of these states. Empty: all states.
    pub(crate) states: Vec<ChainState>,
    /// Only list chains that match.
    pub(crate) filter: ChainFilter,
    /// Sort by state, so that chains that need a person come first. Otherwise the newest come first.
    pub(crate) by_state: bool,
    /// The most chains to list. `None`: all.
    pub(crate) most: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) chains: Vec<ChainView>,
    pub(crate) omitted: Omitted,
}

/// How many chains are not listed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Omitted {
    /// Chains of other projects.
    pub(crate) elsewhere: u64,
    /// Chains that are done.
    pub(crate) done: u64,
    /// Chains that did not fit on the list.
    pub(crate) more: u64,
    /// Whether no chains exist at all.
    pub(crate) is_empty: bool,
}

/// Lists chains. An agent's list contains the agents that it has started.
pub(crate) fn chains(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    let abandoned: HashSet<_> = app.store.abandoned()?.into_values().collect();
    let (chains, omitted) = match app.asker.agent {
        Some(caller) => {
            let mut chains = app.store.chains(Chains::StartedBy(caller.frame))?.chains;
            let has = |chain: &Summary, text: &Option<String>| {
                text.as_ref().is_none_or(|text| chain.title.to_lowercase().contains(&text.to_lowercase()))
            };
            let ChainFilter { text, task, since, .. } = &input.filter;
            let is_new = |chain: &Summary| since.is_none_or(|since| chain.created >= since);
            chains.retain(|chain| has(chain, text) && has(chain, task) && is_new(chain));
            (chains, Omitted { is_empty: true, ..Omitted::default() })
        }
        None => selected(app, input, &abandoned)?,
    };
    let mut chains =
        ChainView::gather_all(app.store, &chains, &abandoned, app.now).collect::<Result<Vec<_>, RuntimeError>>()?;
    let omitted = Omitted { is_empty: omitted.is_empty && chains.is_empty(), ..omitted };
    chains.retain(|chain| input.states.is_empty() || input.states.iter().any(|state| chain.is_in(*state)));
    if input.by_state {
        chains.sort_by_key(|chain| (chain.state.rank(), std::cmp::Reverse(chain.created)));
    }
    let most = input.most.unwrap_or(usize::MAX);
    // All matching chains were read, because only the whole chain shows such a state.
    let more = if input.has_shown_state() { chains.len().saturating_sub(most) as u64 } else { omitted.more };
    chains.truncate(most);
    Ok(Outcome { chains, omitted: Omitted { more, ..omitted } })
}

/// One chain, open or done, if there are any.
pub(crate) fn any(app: &App<'_>, all_projects: bool) -> Result<Outcome, AppError> {
    chains(app, &Input { with_done: true, all_projects, most: Some(1), ..Input::default() })
}

/// Selects the chains to list. However many chains exist, this reads only a few.
fn selected(app: &App<'_>, input: &Input, abandoned: &HashSet<FrameId>) -> Result<(Vec<Summary>, Omitted), AppError> {
    let Input { with_done, all_projects, ref states, most, .. } = *input;
    let most = most.unwrap_or(usize::MAX);
    let mut selection = Selection::new(app, all_projects)?;
    // In these chains, an agent may be in the requested state while the first agent is in another state.
    let mut unusual: Vec<Summary> = Vec::new();
    if !states.is_empty() {
        for status in [AgentStatus::Running, AgentStatus::Paused, AgentStatus::Cancelled] {
            let found = app.store.chains(Chains::With { status, most: usize::MAX })?.chains;
            unusual.extend(found.into_iter().filter(|chain| selection.includes(&chain.cwd)));
        }
    }
    if !with_done {
        unusual.extend(selection.continued(app.store)?);
    }
    let mut seen = HashSet::new();
    unusual.retain(|chain| seen.insert(chain.id));

    let mut omitted = Omitted { is_empty: true, ..Omitted::default() };
    let (mut done, mut elsewhere) = (Vec::new(), Vec::new());
    let is_asked_for = |status| states.is_empty() || states.iter().any(|state| state.may_be_of(status, false));
    let is_open = |status| with_done || !states.is_empty() || status != AgentStatus::Done;
    let mut is_meant = |kind: &ChainKind| {
        omitted.is_empty = false;
        if !is_asked_for(kind.status) {
            return false;
        }
        let is_open = is_open(kind.status);
        let is_here = selection.includes(&kind.cwd);
        match (is_here, is_open) {
            (true, false) => done.push(kind.clone()),
            (false, true) => elsewhere.push(kind.clone()),
            (true, true) | (false, false) => {}
        }
        is_here && is_open
    };
    let all = app.store.chain_kinds()?;
    let kinds: Vec<_> = all.iter().filter(|kind| is_meant(kind)).cloned().collect();
    let is_filtered = input.filter != ChainFilter::default();
    let count = |kinds: &[ChainKind]| match is_filtered {
        true => app.store.matching_chains(kinds, &input.filter).map(|found| found.len() as u64),
        false => Ok(kinds.iter().map(|kind| kind.count).sum()),
    };
    (omitted.done, omitted.elsewhere) = (count(&done)?, count(&elsewhere)?);
    let kinds = ChainKind::with_other_states(&kinds, |status| is_asked_for(status) && is_open(status));
    let enough = if input.has_shown_state() { usize::MAX } else { most.saturating_add(unusual.len()) };
    let mut found = match is_filtered {
        true => {
            let matching = app.store.matching_chains(&kinds, &input.filter)?;
            if !unusual.is_empty() {
                let all: HashSet<_> = app.store.matching_chains(&all, &input.filter)?.into_iter().collect();
                unusual.retain(|chain| all.contains(&chain.id));
                seen.retain(|chain| all.contains(chain));
            }
            let few = &matching[..enough.min(matching.len())];
            omitted.more = (matching.len() - few.len()) as u64;
            app.store.chains(Chains::Of(few))?.chains
        }
        false => {
            let newest = app.store.chains(Chains::Newest { most: enough, kinds: Some(&kinds) })?;
            omitted.more = newest.more;
            newest.chains
        }
    };
    if states.is_empty() {
        if input.by_state && omitted.more > 0 && !is_filtered {
            found.extend(urgent(app, most, &kinds, &found)?);
        }
        if !unusual.is_empty() {
            let is_done = |chain: &&Summary| chain.state.status() == AgentStatus::Done;
            omitted.done = omitted.done.saturating_sub(unusual.iter().filter(is_done).count() as u64);
            let known: HashSet<_> = found.iter().map(|chain| chain.id).collect();
            found.extend(unusual.into_iter().filter(|chain| !known.contains(&chain.id)));
            found.sort_by_key(|chain| std::cmp::Reverse(chain.created));
            omitted.more += found.len().saturating_sub(most.max(known.len())) as u64;
        }
        return Ok((found, omitted));
    }
    if input.has_shown_state() {
        let others = found.iter().filter(|chain| seen.insert(chain.id)).cloned().collect::<Vec<_>>();
        unusual.extend(others);
        unusual.sort_by_key(|chain| std::cmp::Reverse(chain.created));
        return Ok((unusual, omitted));
    }
    let mut chains = Vec::new();
    let usual = found.into_iter().filter(|chain| !seen.contains(&chain.id));
    for chain in unusual.into_iter().chain(usual) {
        let is_unusual = seen.contains(&chain.id);
        let status = if is_unusual { app.store.tree(chain.id)?.status(app.now) } else { chain.state.status() };
        let is_abandoned = abandoned.contains(&chain.id);
        if states.iter().any(|state| state.may_be_of(status, is_abandoned)) {
            chains.push(chain);
        }
    }
    chains.sort_by_key(|chain| std::cmp::Reverse(chain.created));
    omitted.more += chains.len().saturating_sub(most) as u64;
    chains.truncate(most);
    Ok((chains, omitted))
}

/// The chains of these kinds that may need a person, without the `known` ones. Reads the newest of each sort.
fn urgent(app: &App<'_>, most: usize, kinds: &[ChainKind], known: &[Summary]) -> Result<Vec<Summary>, AppError> {
    let mut roots: Vec<_> = app.store.candidates(app.now)?.into_iter().map(|candidate| candidate.root).collect();
    roots.sort_unstable();
    roots.dedup();
    roots.truncate(most);
    let failed: Vec<_> = kinds.iter().filter(|kind| kind.status == AgentStatus::Failed).cloned().collect();
    let mut seen: HashSet<_> = known.iter().map(|chain| chain.id).collect();
    let mut found = Vec::new();
    for of in [
        Chains::Asking { most },
        Chains::Of(&roots),
        Chains::With { status: AgentStatus::Running, most },
        Chains::With { status: AgentStatus::Cancelled, most },
        Chains::Newest { most, kinds: Some(&failed) },
    ] {
        found.extend(app.store.chains(of)?.chains.into_iter().filter(|chain| seen.insert(chain.id)));
    }
    let is_meant =
        |chain: &Summary| kinds.iter().any(|kind| kind.cwd == chain.cwd && kind.status == chain.state.status());
    found.retain(is_meant);
    Ok(found)
}

impl Input {
    /// Whether the input asks for a state that only the whole chain shows.
    fn has_shown_state(&self) -> bool {
        self.states.iter().any(|state| matches!(state, ChainState::Shown(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::waiting_on::shown_state::ShownState;
    use crate::store;
    use crate::store::testing::{new, refused, reply};
    use crate::store::{NewFrame, Store};

    /// A chain that was started in this directory.
    fn chain(store: &Store, cwd: &str) -> FrameId {
        store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap()
    }

    fn ids(app: &App<'_>, input: &Input) -> (Vec<FrameId>, Omitted) {
        let Outcome { chains, omitted } = chains(app, input).unwrap();
        (chains.into_iter().map(|chain| chain.id).collect(), omitted)
    }

    fn status(status: AgentStatus) -> Input {
        Input { states: vec![ChainState::Agent(status)], all_projects: true, ..Input::default() }
    }

    #[test]
    fn what_is_not_listed_is_counted() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        assert_eq!(ids(&app, &Input::default()), (vec![], Omitted { is_empty: true, ..Omitted::default() }));
        let (open, done) = (chain(&store, "/"), chain(&store, "/"));
        store.end(store.start(done), &reply("fine"));
        let elsewhere = [chain(&store, "/elsewhere"), chain(&store, "/elsewhere")];
        let none = Omitted::default();
        let (found, omitted) = ids(&app, &Input::default());
        assert_eq!((found, omitted), (vec![open], Omitted { elsewhere: 2, done: 1, ..none }));
        let (found, omitted) = ids(&app, &Input { with_done: true, ..Input::default() });
        assert_eq!((found, omitted), (vec![done, open], Omitted { elsewhere: 2, ..none }));
        let (found, omitted) = ids(&app, &Input { all_projects: true, most: Some(2), ..Input::default() });
        assert_eq!((found, omitted), (vec![elsewhere[1], elsewhere[0]], Omitted { done: 1, more: 1, ..none }));
    }

    #[test]
    fn a_chain_is_found_by_its_state_and_by_that_of_an_agent_in_it() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let failed = chain(&store, "/");
        store.end(store.start(failed), &refused("no"));
        let done = chain(&store, "/");
        store.end(store.start(done), &reply("fine"));
        let root = store.start(chain(&store, "/"));
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        store.end(root, &Ending::Suspended);
        assert_eq!(ids(&app, &status(AgentStatus::Running)).0, []);
        store.start(child);
        assert_eq!(ids(&app, &status(AgentStatus::Running)).0, [root.frame], "its child runs");
        assert_eq!(ids(&app, &status(AgentStatus::Waiting)).0, []);
        assert_eq!(ids(&app, &status(AgentStatus::Failed)).0, [failed]);
        let (found, omitted) = ids(&app, &status(AgentStatus::Done));
        assert_eq!((found, omitted.done), (vec![done], 0), "also without the option that lists what is done");
        let abandoned = Input { states: vec![ChainState::Abandoned], ..Input::default() };
        assert_eq!(ids(&app, &abandoned).0, [root.frame], "nothing runs the child");
        let two = [AgentStatus::Failed, AgentStatus::Running].map(ChainState::Agent).to_vec();
        let newest = |most| ids(&app, &Input { states: two.clone(), most, ..Input::default() });
        assert_eq!(newest(None).0, [root.frame, failed]);
        let (found, omitted) = newest(Some(1));
        assert_eq!((found, omitted.more), (vec![root.frame], 1));
    }

    #[test]
    fn a_chain_that_needs_a_person_is_first_however_old_it_is() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let asks = store.start(chain(&store, "/"));
        store.request(asks, None, &[store::testing::ask("When?")]).unwrap();
        store.end(asks, &Ending::Suspended);
        let failed = chain(&store, "/");
        store.end(store.start(failed), &refused("no"));
        let waits = [(); 9].map(|()| {
            let root = store.start(chain(&store, "/"));
            let until = crate::core::requests::request::External::Time(jiff::Timestamp::MAX);
            store.request(root, None, &[crate::core::requests::request::RequestKind::Wait(until)]).unwrap();
            store.end(root, &Ending::Suspended);
            root.frame
        });
        let by_state = |states: Vec<ChainState>, most| {
            ids(&app, &Input { by_state: true, states, most: Some(most), ..Input::default() })
        };
        let (found, omitted) = by_state(vec![], 3);
        assert_eq!((found, omitted.more), (vec![asks.frame, failed, waits[8]], 8));
        let shown = |state| vec![ChainState::Shown(state)];
        assert_eq!(by_state(shown(ShownState::Asks), 9).0, [asks.frame]);
        let (found, omitted) = by_state(shown(ShownState::Waits), 4);
        assert_eq!((found.len(), omitted.more), (4, 5));
        assert_eq!(by_state(shown(ShownState::Stopped), 9).0, []);
        let filter = ChainFilter { text: Some("TASK".into()), ..ChainFilter::default() };
        let input = Input { filter, most: Some(2), ..Input::default() };
        assert_eq!((ids(&app, &input).0, ids(&app, &input).1.more), (vec![waits[8], waits[7]], 9));
        let filter = ChainFilter { task: Some("other".into()), ..ChainFilter::default() };
        assert_eq!(ids(&app, &Input { filter, ..Input::default() }).0, []);
    }

    #[test]
    fn an_agent_sees_what_it_has_started() {
        let (_temp, store) = store::testing::store();
        chain(&store, "/");
        let caller = store.start(chain(&store, "/"));
        let app = testing::app_of(&store, caller);
        assert_eq!(ids(&app, &Input::default()), (vec![], Omitted { is_empty: true, ..Omitted::default() }));
        let started = [1, 2].map(|_| store.request_child(caller, None, &new("child"), "child").unwrap().1);
        let mut found = ids(&app, &Input::default());
        found.0.sort();
        let mut expected = started.to_vec();
        expected.sort();
        assert_eq!(found, (expected, Omitted::default()));
        assert_eq!(ids(&app, &Input { most: Some(1), ..Input::default() }).0.len(), 1);
        assert_eq!(ids(&app, &status(AgentStatus::Done)).0, []);
    }
}
