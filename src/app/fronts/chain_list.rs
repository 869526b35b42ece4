//! Lists chains by who must act, one part at a time.

use std::collections::HashSet;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::board::Section;
use crate::app::lists::chains::{self, Input, has_text};
use crate::app::view::chain::{ChainState, ChainView};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::id::FrameId;
use crate::store::{ChainKind, Chains, Summary};

/// The chains to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Show {
    /// All chains that are not done. Chains that need a person come first.
    #[default]
    Open,
    Section(Section),
    Done,
    All,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) chains: Vec<ChainView>,
    pub(crate) has_more: bool,
    /// Whether no chains exist at all.
    pub(crate) is_empty: bool,
}

/// The number of chains in a part.
pub(crate) const MOST: usize = 50;

impl Show {
    pub(crate) const ALL: [Self; 7] = [
        Self::Open,
        Self::Section(Section::NeedsYou),
        Self::Section(Section::Working),
        Self::Section(Section::CanContinue),
        Self::Section(Section::Waiting),
        Self::Done,
        Self::All,
    ];
}

/// Lists part number `part` of the chains. With `matching`, only lists chains whose id, name, task or directory contains this
/// text.
pub(crate) fn chains(app: &App<'_>, show: Show, matching: Option<&str>, part: usize) -> Result<Outcome, AppError> {
    let skip = part.saturating_mul(MOST);
    if let Show::Section(section) = show {
        return of_section(app, section, matching, skip);
    }
    let input = Input {
        with_done: matches!(show, Show::All | Show::Done),
        all_projects: true,
        states: if show == Show::Done { vec![ChainState::Agent(AgentStatus::Done)] } else { Vec::new() },
        by_state: show != Show::All,
        matching: matching.map(str::to_owned),
        skip,
        most: Some(MOST),
        ..Input::default()
    };
    let mut found = chains::chains(app, &input)?;
    if show != Show::All {
        found.chains.sort_by_key(|chain| Section::of(chain.state));
    }
    let has_more = found.omitted.more > 0;
    Ok(Outcome { chains: found.chains, has_more, is_empty: found.omitted.is_empty })
}

/// Lists the newest chains of a section. Reads only chains that may belong to it, and only until the part is full.
fn of_section(app: &App<'_>, section: Section, matching: Option<&str>, skip: usize) -> Result<Outcome, AppError> {
    let mut kinds = app.store.chain_kinds()?;
    let is_empty = kinds.is_empty();
    kinds.retain(|kind| kind.status != AgentStatus::Done);
    let kinds = ChainKind::with_other_states(&kinds, |status| status != AgentStatus::Done);
    let abandoned: HashSet<FrameId> = app.store.abandoned()?.into_values().collect();
    let may_continue: HashSet<FrameId> =
        app.store.candidates(app.now)?.into_iter().map(|candidate| candidate.root).collect();
    let of_status = |status| -> Result<HashSet<FrameId>, AppError> {
        let found = app.store.chains(Chains::With { status, most: usize::MAX })?.chains;
        Ok(found.into_iter().map(|chain| chain.id).collect())
    };
    let (runs, interrupted) = (of_status(AgentStatus::Running)?, of_status(AgentStatus::Cancelled)?);
    let paused = of_status(AgentStatus::Paused)?;
    let may_belong = |chain: &Summary| {
        let (asks, is_over) = (chain.open_questions > 0, chain.state.is_over());
        // Something that is not recorded may have happened to the chain.
        let is_open = !is_over && (may_continue.contains(&chain.id) || abandoned.contains(&chain.id));
        is_open
            || match section {
                Section::NeedsYou => asks || is_over || interrupted.contains(&chain.id),
                Section::Working => runs.contains(&chain.id),
                Section::CanContinue => interrupted.contains(&chain.id),
                Section::Waiting => !is_over && !runs.contains(&chain.id) && (!asks || paused.contains(&chain.id)),
                Section::Ended => is_over,
            }
    };
    let all = app.store.chains(Chains::Newest { most: usize::MAX, kinds: Some(&kinds) })?.chains;
    let mut left = skip;
    let mut outcome = Outcome { is_empty, ..Outcome::default() };
    let has_matching = |chain: &Summary| matching.is_none_or(|text| has_text(chain, text));
    let found: Vec<Summary> = all.into_iter().filter(may_belong).filter(has_matching).collect();
    for view in ChainView::gather_all(app.store, &found, &abandoned, app.now) {
        let view = view?;
        match Section::of(view.state) == section {
            true if left > 0 => left -= 1,
            true if outcome.chains.len() == MOST => {
                outcome.has_more = true;
                break;
            }
            true => outcome.chains.push(view),
            false => {}
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::app::testing;
    use crate::core::attempt::ending::Ending;
    use crate::core::requests::request::{External, RequestKind};
    use crate::store::testing::{ask, new, refused, reply, store};
    use crate::store::{NewFrame, Store};

    fn chain(store: &Store, name: &str, kind: Option<RequestKind>) -> FrameId {
        let root = store.create_root(&NewFrame { cwd: format!("/{name}").into(), ..new("a task") }).unwrap();
        if let Some(kind) = kind {
            let caller = store.start(root);
            store.request(caller, None, &[kind]).unwrap();
            store.end(caller, &Ending::Suspended);
        }
        root
    }

    fn until(at: Timestamp) -> Option<RequestKind> {
        Some(RequestKind::Wait(External::Time(at)))
    }

    #[test]
    fn each_chain_is_in_the_group_of_its_state() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let listed = |show| -> Vec<FrameId> {
            chains(&app, show, None, 0).unwrap().chains.into_iter().map(|chain| chain.id).collect()
        };
        assert!(chains(&app, Show::Section(Section::Waiting), None, 0).unwrap().is_empty);
        let asks = chain(&store, "a", Some(ask("When?")));
        let waits = chain(&store, "b", until(Timestamp::MAX));
        let due = chain(&store, "c", until(Timestamp::UNIX_EPOCH));
        let (failed, done, ready) = (chain(&store, "d", None), chain(&store, "e", None), chain(&store, "f", None));
        store.end(store.start(failed), &refused("no"));
        store.end(store.start(done), &reply("fine"));
        let abandoned = chain(&store, "g", None);
        store.start(abandoned);
        assert_eq!(listed(Show::Section(Section::NeedsYou)), [abandoned, failed, asks]);
        assert_eq!(listed(Show::Section(Section::CanContinue)), [ready, due]);
        assert_eq!(listed(Show::Section(Section::Waiting)), [waits]);
        assert_eq!(listed(Show::Section(Section::Ended)), []);
        assert_eq!(listed(Show::Open), [asks, abandoned, failed, ready, due, waits]);
        assert_eq!(listed(Show::Section(Section::Working)), []);
        assert_eq!(listed(Show::Done), [done]);
        assert_eq!((listed(Show::Open).len(), listed(Show::All).len()), (6, 7));
    }

    #[test]
    fn groups_are_listed_in_parts_also_with_a_text() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        for number in 0..MOST + 3 {
            chain(&store, &format!("even{}", number % 2), Some(ask("When?")));
            chain(&store, "other", until(Timestamp::MAX));
        }
        let part = |show, text, part| {
            let found = chains(&app, show, text, part).unwrap();
            let all_match = found.chains.iter().all(|chain| {
                let place = chain.cwd.display().to_string();
                place.starts_with("/even") && text.is_none_or(|text: &str| place.contains(&text.to_lowercase()))
            });
            (found.chains.len(), found.has_more, all_match)
        };
        let needs = Show::Section(Section::NeedsYou);
        assert_eq!([part(needs, None, 0), part(needs, None, 1)], [(MOST, true, true), (3, false, true)]);
        assert_eq!(part(needs, None, 2), (0, false, true));
        assert_eq!(part(needs, Some("EVEN1"), 0), ((MOST + 3) / 2, false, true));
        let all = MOST + 3;
        assert_eq!(
            [part(Show::All, Some("even"), 0), part(Show::All, Some("even"), 1)].map(|part| part.0),
            [MOST, all - MOST]
        );
    }
}
