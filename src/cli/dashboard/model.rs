//! The state of the dashboard, and the effects of keys.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::lists::board::Board;
use crate::app::view::chain::ChainView;
use crate::app::view::outcome::Continuer;
use crate::core::chain::waiting_on::shown_state::{Actor, ShownState};
use crate::core::id::FrameId;
use crate::core::steering::stop_order::StopKind;
use crate::local_zone::local_zone;

/// Everything that the dashboard draws.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) board: Board,
    pub(super) selected: Option<FrameId>,
    /// The position of the selected chain, in case the chain disappears.
    place: usize,
    pub(super) view: View,
    /// The last message, until the next key.
    pub(super) said: Option<String>,
    /// The program or person that continues chains.
    pub(super) continues: Continues,
    pub(super) all_projects: bool,
    /// The directory in which the dashboard was started.
    pub(super) here: PathBuf,
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
    pub(super) has_colours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Chains,
    Help,
    /// Asks for confirmation.
    Confirm(Question),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether to stop this chain.
    Stop(FrameId),
    /// Whether to remove it.
    Remove(FrameId),
    /// Whether to quit, which stops the agents that this process runs.
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    /// This process.
    Here,
    Elsewhere(Continuer),
    /// Only a person.
    Person,
}

/// An action of a key that affects more than the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Answer(FrameId),
    Logs(FrameId),
    Open(FrameId),
    Stop(FrameId, StopKind),
    Resume(FrameId),
    Remove(FrameId),
    /// Read the board again, because it now shows other projects.
    Reload,
    /// Suspend the process, until the person returns from the shell.
    Suspend,
    Redraw,
    Quit,
    /// Like Ctrl-C.
    Interrupt,
}

impl Model {
    pub(super) fn new(here: PathBuf, continues: Continues, has_colours: bool) -> Self {
        Self {
            board: Board::default(),
            selected: None,
            place: 0,
            view: View::Chains,
            said: None,
            continues,
            all_projects: true,
            here,
            now: Timestamp::now(),
            zone: local_zone(),
            has_colours,
        }
    }

    /// Shows a new board. The same chain stays selected.
    pub(super) fn show(&mut self, board: Board) {
        self.board = board;
        let chains = &self.board.chains;
        let at = chains.iter().position(|(_, chain)| Some(chain.id) == self.selected);
        self.select(at.unwrap_or(self.place));
        let is_gone = |id: FrameId| !self.board.chains.iter().any(|(_, chain)| chain.id == id);
        if matches!(self.view, View::Confirm(Question::Stop(id) | Question::Remove(id)) if is_gone(id)) {
            self.view = View::Chains;
        }
    }

    pub(super) fn selected_chain(&self) -> Option<&ChainView> {
        self.board.chains.iter().map(|(_, chain)| chain).find(|chain| Some(chain.id) == self.selected)
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        self.said = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Interrupt),
                KeyCode::Char('z') => Some(Action::Suspend),
                KeyCode::Char('l') => Some(Action::Redraw),
                KeyCode::Char('d') if self.view == View::Chains => self.move_by(PAGE),
                KeyCode::Char('u') if self.view == View::Chains => self.move_by(-PAGE),
                _ => {
                    self.view = View::Chains;
                    None
                }
            };
        }
        match self.view {
            View::Confirm(question) => {
                self.view = View::Chains;
                match (question, key.code) {
                    (Question::Stop(chain), KeyCode::Char('y')) => Some(Action::Stop(chain, StopKind::Stop)),
                    (Question::Remove(chain), KeyCode::Char('y')) => Some(Action::Remove(chain)),
                    (Question::Quit, KeyCode::Char('y')) => Some(Action::Quit),
                    _ => None,
                }
            }
            View::Help => {
                self.view = View::Chains;
                None
            }
            View::Chains => self.press_at_chains(key.code),
        }
    }

    fn press_at_chains(&mut self, key: KeyCode) -> Option<Action> {
        match key {
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::PageDown => self.move_by(PAGE),
            KeyCode::PageUp => self.move_by(-PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.move_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_by(isize::MAX),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => {
                self.view = View::Help;
                None
            }
            KeyCode::Char('t') => {
                self.all_projects = !self.all_projects;
                Some(Action::Reload)
            }
            KeyCode::Char('q') if self.continues == Continues::Here && self.board.is_active() => {
                self.view = View::Confirm(Question::Quit);
                None
            }
            KeyCode::Char('q') => Some(Action::Quit),
            KeyCode::Enter | KeyCode::Char('a' | 'l' | 'o' | 's' | 'p' | 'r' | 'd') => self.act(key),
            _ => None,
        }
    }

    /// Handles a key that acts on the selected chain.
    fn act(&mut self, key: KeyCode) -> Option<Action> {
        let chain = self.selected_chain()?;
        let (id, is_asked) = (chain.id, chain.open_questions > 0);
        if let Some(refused) = refused(key, chain) {
            self.said = Some(refused.replace("ID", &id.short()));
            return None;
        }
        match key {
            KeyCode::Enter if is_asked => Some(Action::Answer(id)),
            KeyCode::Char('a') => Some(Action::Answer(id)),
            KeyCode::Enter | KeyCode::Char('l') => Some(Action::Logs(id)),
            KeyCode::Char('o') => Some(Action::Open(id)),
            KeyCode::Char('p') => Some(Action::Stop(id, StopKind::Pause)),
            KeyCode::Char('r') => Some(Action::Resume(id)),
            KeyCode::Char('s') => {
                self.view = View::Confirm(Question::Stop(id));
                None
            }
            KeyCode::Char('d') => {
                self.view = View::Confirm(Question::Remove(id));
                None
            }
            _ => None,
        }
    }

    /// Whether this key does something now.
    pub(super) fn has_effect(&self, key: &str) -> bool {
        let is_of_a_chain = matches!(key, "a" | "l" | "o" | "s" | "p" | "r" | "d");
        let code = key.chars().next().map(KeyCode::Char);
        let acts = |chain| code.is_some_and(|code| refused(code, chain).is_none());
        !is_of_a_chain || self.selected_chain().is_some_and(acts)
    }

    fn move_by(&mut self, rows: isize) -> Option<Action> {
        self.select(self.place.saturating_add_signed(rows));
        None
    }

    fn select(&mut self, place: usize) {
        let last = self.board.chains.len().saturating_sub(1);
        self.place = place.min(last);
        self.selected = self.board.chains.get(self.place).map(|(_, chain)| chain.id);
    }
}

/// Why a key does nothing for a chain.
fn refused(key: KeyCode, chain: &ChainView) -> Option<&'static str> {
    let state = chain.state;
    let is_asking = state.actor() == Actor::Asked;
    let why = match key {
        // A question that is as new as this state may not be counted yet.
        KeyCode::Char('a') if !is_asking && chain.open_questions == 0 => "it asks nothing",
        KeyCode::Char('s') if matches!(state, ShownState::Done) => "it is done already",
        KeyCode::Char('s') if matches!(state, ShownState::Stopped) => "it was stopped already",
        KeyCode::Char('p') if state.is_over() => "it has ended",
        KeyCode::Char('p') if matches!(state, ShownState::Paused) => "it was paused already: r continues it",
        KeyCode::Char('r') if matches!(state, ShownState::Done | ShownState::Stopped) => {
            "it has ended: agent-cli resume ID --prompt TEXT continues it"
        }
        KeyCode::Char('r') if matches!(state, ShownState::OverBudget) => {
            "its budget is spent: agent-cli resume ID --max-budget-usd X"
        }
        KeyCode::Char('r') if is_asking => "it waits for your answer: a",
        KeyCode::Char('r') if matches!(state, ShownState::Working) => "it is working",
        KeyCode::Char('d') if !chain.doing.is_empty() || matches!(state, ShownState::Working) => {
            "it is working: s stops it"
        }
        KeyCode::Char('r') if matches!(state, ShownState::Limit { .. }) => {
            "its usage limit is reached: agent-cli resume ID --now retries now"
        }
        _ => return None,
    };
    Some(why)
}

/// The number of chains in a page.
const PAGE: isize = 10;
