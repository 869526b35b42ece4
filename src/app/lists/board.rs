//! Lists the chains that may need a person's attention, by who must act, and the chains that have ended today.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::project::Selection;
use crate::app::view::chain::ChainView;
use crate::core::chain::frame_state::AgentStatus;
use crate::core::chain::waiting_on::shown_state::{Actor, ShownState};
use crate::core::id::FrameId;
use crate::store::{ChainKind, Chains, Summary};

/// Which chains are on the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    /// Also include chains of other projects.
    pub(crate) all_projects: bool,
    /// When the day began.
    pub(crate) today: Timestamp,
}

/// A section of the page, and of the board: chains that call for the same action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    NeedsYou,
    Working,
    /// On the dashboard these are part of `Waiting`.
    CanContinue,
    Waiting,
    /// Done or stopped. The board only has those that ended today.
    Ended,
}

#[derive(Debug, Default)]
pub(crate) struct Board {
    /// By section, then by state.
    pub(crate) chains: Vec<(Section, ChainView)>,
    /// How many older open chains are left out.
    pub(crate) more: u64,
    /// How many other chains have ended today.
    pub(crate) more_done: u64,
    /// How many open chains belong to other projects.
    pub(crate) elsewhere: u64,
}

/// The most chains of each kind to read.
const MOST: usize = 100;
/// The most chains that are done to show.
const MOST_DONE: usize = 20;

impl Section {
    pub(crate) const ALL: [Self; 5] = [Self::NeedsYou, Self::Working, Self::CanContinue, Self::Waiting, Self::Ended];
    pub(crate) const OF_BOARD: [Self; 4] = [Self::NeedsYou, Self::Working, Self::Waiting, Self::Ended];

    pub(crate) fn of(state: ShownState) -> Self {
        match (state, state.actor()) {
            (ShownState::CanContinue, _) => Self::CanContinue,
            (ShownState::Paused, _) | (_, Actor::Others) => Self::Waiting,
            (_, Actor::Asked | Actor::Resumer | Actor::Repairer) => Self::NeedsYou,
            (_, Actor::Runner) => Self::Working,
            (_, Actor::Nobody) => Self::Ended,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Working => "Working",
            Self::CanContinue => "Can continue",
            Self::Waiting => "Waiting",
            Self::Ended => "Ended",
        }
    }
}

/// Reads the board. However many chains exist, this reads only a few: those with the oldest questions, those that are
/// running, paused or interrupted, and the newest open chains.
pub(crate) fn board(app: &App<'_>, input: Input) -> Result<Board, AppError> {
    let mut selection = Selection::new(app, input.all_projects)?;
    let (open, elsewhere) = open_kinds(app, &mut selection)?;
    let kinds = ChainKind::with_other_states(&open, |status| status != AgentStatus::Done);
    let newest = app.store.chains(Chains::Newest { most: MOST, kinds: Some(&kinds) })?;
    // Those of other projects, and those that failed, are among them.
    let ended = app.store.chains(Chains::EndedSince { since: input.today, most: MOST })?;
    let of_selection = ended.chains.into_iter().filter(|chain| selection.includes(&chain.cwd));
    let (mut done, other): (Vec<_>, Vec<_>) = of_selection.partition(|chain| chain.state.status() == AgentStatus::Done);
    let more_done = ended.more + done.len().saturating_sub(MOST_DONE) as u64;
    done.truncate(MOST_DONE);
    let mut found = Found::default();
    found.add(newest.chains);
    found.add(done.into_iter().chain(other));
    for status in [AgentStatus::Running, AgentStatus::Paused, AgentStatus::Cancelled] {
        let unusual = app.store.chains(Chains::With { status, most: MOST })?.chains;
        found.add(unusual.into_iter().filter(|chain| selection.includes(&chain.cwd)));
    }
    found.add(selection.continued(app.store)?);
    let directories = selection.directories(app.store)?;
    let questions = app.store.first_questions(MOST, directories.as_deref(), true)?.questions;
    let mut asking: Vec<FrameId> = questions.iter().map(|question| question.root).collect();
    asking.retain(|root| !found.known.contains(root));
    found.add(app.store.chains(Chains::Of(&asking))?.chains);
    let count: u64 = open.iter().map(|kind| kind.count).sum();
    let listed = found.chains.iter().filter(|chain| chain.state.status() != AgentStatus::Done).count();
    let mut board = Board { chains: Vec::new(), more: count.saturating_sub(listed as u64), more_done, elsewhere };
    let abandoned: HashSet<_> = app.store.abandoned()?.into_values().collect();
    for view in ChainView::gather_all(app.store, &found.chains, &abandoned, app.now) {
        let view = view?;
        let section = match Section::of(view.state) {
            Section::CanContinue => Section::Waiting,
            section => section,
        };
        // A chain that was stopped or paused long ago needs no attention.
        if section != Section::Ended || view.since >= input.today {
            board.chains.push((section, view));
        }
    }
    board.sort();
    Ok(board)
}

/// The chains found so far, without duplicates.
#[derive(Default)]
struct Found {
    known: HashSet<FrameId>,
    chains: Vec<Summary>,
}

impl Found {
    fn add(&mut self, chains: impl IntoIterator<Item = Summary>) {
        let new = chains.into_iter().filter(|chain| self.known.insert(chain.id));
        self.chains.extend(new);
    }
}

/// The kinds of the selected open chains, and the number of open chains in other projects.
fn open_kinds(app: &App<'_>, selection: &mut Selection) -> Result<(Vec<ChainKind>, u64), AppError> {
    let mut elsewhere = 0;
    let mut kinds = app.store.chain_kinds()?;
    kinds.retain(|kind| kind.status != AgentStatus::Done);
    kinds.retain(|kind| {
        let is_here = selection.includes(&kind.cwd);
        elsewhere += if is_here { 0 } else { kind.count };
        is_here
    });
    Ok((kinds, elsewhere))
}

impl Board {
    /// Sorts by section and state. In each state, the chain that entered it last comes first.
    fn sort(&mut self) {
        self.chains.sort_by_key(|(section, chain)| (*section, chain.state.rank(), std::cmp::Reverse(chain.since)));
    }

    /// The chains of a section.
    pub(crate) fn of(&self, wanted: Section) -> impl Iterator<Item = &ChainView> {
        self.chains.iter().filter(move |(section, _)| *section == wanted).map(|(_, chain)| chain)
    }

    /// Whether an agent works. Its activity changes without a change of the records.
    pub(crate) fn is_active(&self) -> bool {
        self.chains.iter().any(|(_, chain)| !chain.doing.is_empty())
    }

    /// Reads the activities of working agents again.
    pub(crate) fn refresh_activities(&mut self, app: &App<'_>) -> Result<(), AppError> {
        for (_, chain) in self.chains.iter_mut().filter(|(_, chain)| !chain.doing.is_empty()) {
            chain.refresh_activities(app.store, app.now)?;
        }
        Ok(())
    }

    /// When the next chain changes without a recorded event.
    pub(crate) fn next_by_time(&self, now: Timestamp) -> Option<Timestamp> {
        let times = self.chains.iter().filter_map(|(_, chain)| chain.changes_at);
        times.filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::core::attempt::ending::Ending;
    use crate::store;
    use crate::store::testing::{ask, new, refused, reply};
    use crate::store::{NewFrame, Store};

    fn chain(store: &Store, cwd: &str) -> FrameId {
        store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap()
    }

    fn asking(store: &Store, cwd: &str) -> FrameId {
        let chain = chain(store, cwd);
        let caller = store.start(chain);
        store.request(caller, None, &[ask("When?")]).unwrap();
        store.end(caller, &Ending::Suspended);
        chain
    }

    fn shown(app: &App<'_>, all_projects: bool, today: Timestamp) -> Board {
        board(app, Input { all_projects, today }).unwrap()
    }

    fn of(board: &Board, section: Section) -> Vec<FrameId> {
        board.of(section).map(|chain| chain.id).collect()
    }

    #[test]
    fn chains_are_sorted_by_who_must_act() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let (done, failed, interrupted) = (chain(&store, "/"), chain(&store, "/"), chain(&store, "/"));
        store.end(store.start(done), &reply("fine"));
        store.end(store.start(failed), &refused("no"));
        store.end(store.start(interrupted), &Ending::Stopped { worked: true });
        let (ready, asks) = (chain(&store, "/"), asking(&store, "/"));
        let elsewhere = asking(&store, "/elsewhere");
        let board = shown(&app, false, Timestamp::UNIX_EPOCH);
        assert_eq!(of(&board, Section::NeedsYou), [asks, interrupted, failed]);
        assert_eq!(of(&board, Section::Waiting), [ready]);
        assert_eq!(of(&board, Section::Ended), [done]);
        assert_eq!((board.elsewhere, board.more, board.more_done), (1, 0, 0));
        let all = shown(&app, true, Timestamp::UNIX_EPOCH);
        assert!(of(&all, Section::NeedsYou).contains(&elsewhere) && all.elsewhere == 0);
        let tomorrow = Timestamp::now() + jiff::SignedDuration::from_hours(24);
        assert_eq!(of(&shown(&app, false, tomorrow), Section::Ended), []);
        assert_eq!(of(&shown(&app, false, tomorrow), Section::NeedsYou).len(), 3);
    }

    #[test]
    fn an_old_question_is_shown_however_many_chains_are_newer() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let asks = asking(&store, "/");
        (0..MOST + 2).for_each(|_| _ = chain(&store, "/"));
        let board = shown(&app, false, Timestamp::UNIX_EPOCH);
        assert_eq!(of(&board, Section::NeedsYou), [asks]);
        assert_eq!((of(&board, Section::Waiting).len(), board.more), (MOST, 2));
        (0..MOST_DONE + 3).for_each(|_| _ = store.end(store.start(chain(&store, "/")), &reply("fine")));
        let board = shown(&app, false, Timestamp::UNIX_EPOCH);
        assert_eq!((of(&board, Section::Ended).len(), board.more_done), (MOST_DONE, 3));
    }

    #[test]
    fn every_state_is_in_a_section() {
        let sections: Vec<_> = ShownState::ALL.map(|state| format!("{} {:?}", state.name(), Section::of(state))).into();
        insta::assert_snapshot!(sections.join("\n"), @"
        asks NeedsYou
        approve NeedsYou
        plan NeedsYou
        over_budget NeedsYou
        can_continue CanContinue
        abandoned NeedsYou
        interrupted NeedsYou
        failed NeedsYou
        working Working
        limit Waiting
        retry Waiting
        waits Waiting
        paused Waiting
        stopped Ended
        done Ended
        ");
    }
}
