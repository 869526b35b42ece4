//! Lists chains by who must act, one part at a time.

use std::collections::HashSet;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::board::Section;
use crate::app::lists::project::Selection;
use crate::app::view::chain::ChainView;
use crate::core::chain::frame_state::AgentStatus;
use crate::core::id::FrameId;
use crate::store::{ChainFilter, ChainKind, Chains, SearchIn};

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

/// Lists part number `part` of the chains. With `text`, only lists chains with this text in their id, name, directory, or one
/// of their tasks.
pub(crate) fn chains(app: &App<'_>, show: Show, text: Option<&str>, part: usize) -> Result<Outcome, AppError> {
    let filter = text.map_or_else(ChainFilter::default, |text| ChainFilter {
        text: Some(text.to_owned()),
        search_in: SearchIn::WordsAndPlace,
        ..ChainFilter::default()
    });
    let skip = part.saturating_mul(MOST);
    let mut kinds = app.store.chain_kinds()?;
    let is_empty = kinds.is_empty();
    let found = match show {
        Show::Open => in_sections(app, &Section::ALL, kinds, &filter, skip)?,
        Show::Section(section) => in_sections(app, &[section], kinds, &filter, skip)?,
        Show::Done | Show::All => {
            kinds.retain(|kind| show == Show::All || kind.status == AgentStatus::Done);
            let matching = app.store.matching_chains(&kinds, &filter)?;
            let part = &matching[skip.min(matching.len())..];
            let found = app.store.chains(Chains::Of(&part[..MOST.min(part.len())]))?.chains;
            let abandoned = app.store.abandoned()?.into_values().collect();
            let views = ChainView::gather_all(app.store, &found, &abandoned, app.now);
            Outcome { chains: views.collect::<Result<_, _>>()?, has_more: part.len() > MOST, is_empty }
        }
    };
    Ok(Outcome { is_empty, ..found })
}

/// The chains that have ended, but in which a person has continued an agent.
fn continued(app: &App<'_>, filter: &ChainFilter) -> Result<Vec<FrameId>, AppError> {
    let mut continued: Vec<FrameId> =
        Selection::new(app, true)?.continued(app.store)?.into_iter().map(|chain| chain.id).collect();
    if !continued.is_empty() && *filter != ChainFilter::default() {
        let kinds = ChainKind::with_other_states(&app.store.chain_kinds()?, |_| true);
        let matching: HashSet<FrameId> = app.store.matching_chains(&kinds, filter)?.into_iter().collect();
        continued.retain(|chain| matching.contains(chain));
    }
    Ok(continued)
}

/// Lists the newest chains of each of these sections. Reads only chains that may belong to them, and only until the part is
/// full.
fn in_sections(
    app: &App<'_>,
    sections: &[Section],
    mut kinds: Vec<ChainKind>,
    filter: &ChainFilter,
    skip: usize,
) -> Result<Outcome, AppError> {
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
    let failed: Vec<ChainKind> = kinds.iter().filter(|kind| kind.status == AgentStatus::Failed).cloned().collect();
    let failed: HashSet<FrameId> = app.store.matching_chains(&failed, filter)?.into_iter().collect();
    let asking = ChainFilter { asks: true, ..filter.clone() };
    let asking: HashSet<FrameId> = app.store.matching_chains(&kinds, &asking)?.into_iter().collect();
    let continued = continued(app, filter)?;
    let may_belong = |chain: &FrameId, section| {
        let (asks, is_over) = (asking.contains(chain), failed.contains(chain));
        // Something that is not recorded may have happened to the chain.
        let is_open =
            continued.contains(chain) || !is_over && (may_continue.contains(chain) || abandoned.contains(chain));
        is_open
            || match section {
                Section::NeedsYou => asks || is_over || interrupted.contains(chain),
                Section::Working => runs.contains(chain),
                Section::CanContinue => interrupted.contains(chain),
                Section::Waiting => !is_over && !runs.contains(chain) && (!asks || paused.contains(chain)),
                Section::Ended => is_over,
            }
    };
    let mut all = app.store.matching_chains(&kinds, filter)?;
    // A failed chain is listed already.
    let mut known: HashSet<FrameId> = all.iter().copied().collect();
    all.splice(0..0, continued.iter().copied().filter(|chain| known.insert(*chain)));
    let read = |few: &[FrameId]| -> Result<Vec<ChainView>, AppError> {
        let few = app.store.chains(Chains::Of(few))?.chains;
        Ok(ChainView::gather_all(app.store, &few, &abandoned, app.now).collect::<Result<_, _>>()?)
    };
    let place = |view: &ChainView| (view.id, Section::of(view.state));
    let (mut chains, has_more) = part_of(sections, &all, may_belong, skip, read, place)?;
    // Stable: of each state, the newest comes first.
    chains.sort_by_key(|chain| (Section::of(chain.state), chain.state.rank()));
    Ok(Outcome { chains, has_more, is_empty: false })
}

/// Reads the chains of these sections until the part is full. Each is listed once, also if its state changes while others are read:
/// it may then be read for one section and belong to an earlier one.
fn part_of<T>(
    sections: &[Section],
    all: &[FrameId],
    may_belong: impl Fn(&FrameId, Section) -> bool,
    skip: usize,
    mut read: impl FnMut(&[FrameId]) -> Result<Vec<T>, AppError>,
    place: impl Fn(&T) -> (FrameId, Section),
) -> Result<(Vec<T>, bool), AppError> {
    let (mut part, mut counted) = (Vec::new(), HashSet::new());
    let most = skip.saturating_add(MOST);
    for (current, section) in sections.iter().enumerate() {
        let found: Vec<FrameId> = all.iter().filter(|chain| may_belong(chain, *section)).copied().collect();
        let mut unread = found.as_slice();
        while !unread.is_empty() {
            // One more than the part holds tells whether there is another part.
            let (few, rest) = unread.split_at(MOST.min((most - counted.len()).saturating_add(1)).min(unread.len()));
            unread = rest;
            for chain in read(few)? {
                let (id, actual) = place(&chain);
                let is_in = |at| at <= current || !may_belong(&id, actual);
                if !sections.iter().position(|section| *section == actual).is_some_and(is_in) || !counted.insert(id) {
                    continue;
                }
                if counted.len() > most {
                    return Ok((part, true));
                }
                if counted.len() > skip {
                    part.push(chain);
                }
            }
        }
    }
    Ok((part, false))
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
        assert_eq!(listed(Show::Section(Section::NeedsYou)), [asks, abandoned, failed]);
        assert_eq!(listed(Show::Section(Section::CanContinue)), [ready, due]);
        assert_eq!(listed(Show::Section(Section::Waiting)), [waits]);
        assert_eq!(listed(Show::Section(Section::Ended)), []);
        assert_eq!(listed(Show::Open), [asks, abandoned, failed, ready, due, waits]);
        assert_eq!(listed(Show::Section(Section::Working)), []);
        assert_eq!(listed(Show::Done), [done]);
        assert_eq!((listed(Show::Open).len(), listed(Show::All).len()), (6, 7));
    }

    #[test]
    fn a_chain_that_changes_while_others_are_read_is_listed_once() {
        let all: Vec<FrameId> = (0..4).map(|_| FrameId::random()).collect();
        for from in Section::ALL {
            for to in Section::ALL {
                for after in 0..=Section::ALL.len() {
                    let mut reads = 0;
                    let read = |few: &[FrameId]| {
                        reads += 1;
                        let state = |chain: FrameId| if chain == all[1] && reads > after { to } else { from };
                        Ok(few.iter().map(|chain| (*chain, state(*chain))).collect())
                    };
                    let may_belong = |_: &FrameId, section| section == from || section == Section::NeedsYou;
                    let (listed, has_more) =
                        part_of(&Section::ALL, &all, may_belong, 0, read, |chain: &(FrameId, Section)| *chain).unwrap();
                    let mut ids: Vec<FrameId> = listed.into_iter().map(|(id, _)| id).collect();
                    ids.sort_unstable();
                    let mut expected = all.clone();
                    expected.sort_unstable();
                    assert_eq!((ids, has_more), (expected, false), "{from:?} {to:?} {after}");
                }
            }
        }
    }

    #[test]
    fn each_open_chain_is_in_one_part_those_that_need_a_person_first() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let asks: Vec<_> = (0..5).map(|_| chain(&store, "a", Some(ask("When?")))).collect();
        let waits: Vec<_> = (0..MOST).map(|_| chain(&store, "b", until(Timestamp::MAX))).collect();
        let parts = [0, 1, 2].map(|part| chains(&app, Show::Open, None, part).unwrap());
        assert_eq!(
            parts.each_ref().map(|part| (part.chains.len(), part.has_more)),
            [(MOST, true), (5, false), (0, false)]
        );
        let listed: Vec<_> = parts.into_iter().flat_map(|part| part.chains).map(|chain| chain.id).collect();
        let newest = |chains: Vec<FrameId>| chains.into_iter().rev();
        assert_eq!(listed, newest(asks).chain(newest(waits)).collect::<Vec<_>>());
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
        assert_eq!([2, usize::MAX].map(|far| part(needs, None, far)), [(0, false, true); 2]);
        assert_eq!(part(needs, Some("EVEN1"), 0), ((MOST + 3) / 2, false, true));
        let all = MOST + 3;
        assert_eq!(
            [part(Show::All, Some("even"), 0), part(Show::All, Some("even"), 1)].map(|part| part.0),
            [MOST, all - MOST]
        );
    }
}
