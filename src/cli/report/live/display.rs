//! The live display on a terminal: a row for each agent of the chains that this process drives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::report::live::rows::{Agents, clock, rows};
use crate::cli::report::live::watcher::{ChainWatcher, WatchUpdate};
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::store::Store;

/// A display on the terminal.
#[derive(Debug)]
pub(crate) struct LiveDisplay {
    state_dir: PathBuf,
    shown: Arc<Mutex<Shown>>,
    watching: HashMap<FrameId, ChainWatcher>,
    /// Every chain that was shown.
    chains: BTreeSet<FrameId>,
    began: Instant,
}

/// The chains that are driven now, in the order in which that began.
#[derive(Debug, Default)]
struct Shown {
    chains: BTreeMap<usize, (Agents, Option<Tree>)>,
    begun: usize,
}

/// How often times are redrawn.
const LOOK: Duration = Duration::from_millis(250);
/// How many lines are left for messages above the display.
const FREE: usize = 4;

impl LiveDisplay {
    /// A display without chains; `None`: standard error cannot be drawn on.
    pub(crate) fn new(state_dir: &Path) -> Option<Self> {
        let can_draw = !output::is_quiet() && output::live::can_draw();
        can_draw.then(|| Self {
            state_dir: state_dir.to_owned(),
            shown: Arc::default(),
            watching: HashMap::new(),
            chains: BTreeSet::new(),
            began: Instant::now(),
        })
    }

    /// Also draws the chain of `top`. The chain is driven whether or not that works.
    pub(crate) fn begin(&mut self, top: FrameId) {
        let mut shown = locked(&self.shown);
        let place = shown.begun;
        shown.begun += 1;
        shown.chains.insert(place, (Agents::default(), None));
        drop(shown);
        let of_thread = Arc::clone(&self.shown);
        let see = move |seen: WatchUpdate<'_>| {
            let mut shown = locked(&of_thread);
            let Some((agents, tree)) = shown.chains.get_mut(&place) else { return Ok(()) };
            match seen {
                WatchUpdate::Before(event) | WatchUpdate::Event(event) => agents.absorb(event),
                WatchUpdate::Chain(now) => {
                    *tree = Some(now.clone());
                    shown.draw();
                }
                WatchUpdate::Last => {
                    shown.chains.remove(&place);
                    shown.draw();
                }
            }
            Ok(())
        };
        match ChainWatcher::start(&self.state_dir, top, LOOK, see) {
            Ok(watching) => drop(self.watching.insert(top, watching)),
            Err(error) => output::warn(&format!("{} is not shown: {error}", top.short())),
        }
        self.chains.insert(top);
    }

    /// Removes the rows of a chain that is no longer driven.
    pub(crate) fn end(&mut self, top: FrameId) {
        if let Some(watching) = self.watching.remove(&top) {
            watching.finish();
        }
    }

    /// Removes the display, and sums up what was shown.
    pub(crate) fn finish(mut self, store: &Store) -> Result<(), CliError> {
        let left: Vec<_> = self.watching.keys().copied().collect();
        left.into_iter().for_each(|top| self.end(top));
        output::live::clear();
        let (mut agents, mut cost) = (0, 0.0);
        for top in &self.chains {
            if store.frame(*top)?.is_none() {
                // It was removed in the meantime.
                continue;
            }
            agents += store.tree(*top)?.parents_first().iter().filter(|node| !node.is_group).count();
            cost += store.spent(*top)?.cost_usd;
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let chains = match self.chains.len() {
            0 => return Ok(()),
            1 => String::new(),
            several => format!("{several} chains, "),
        };
        let took = clock(SignedDuration::try_from(self.began.elapsed()).unwrap_or_default());
        output::tell(&format!("{chains}{}, {took}, ${cost:.4} in all", count(agents, "agent")));
        Ok(())
    }
}

impl Shown {
    fn draw(&self) {
        let (columns, lines) = output::size_of_errors();
        // On some terminals the last column begins a new line.
        let width = columns.saturating_sub(1);
        let chains: Vec<_> = self.chains.values().filter_map(|(agents, tree)| Some((agents, tree.as_ref()?))).collect();
        output::live::draw(&rows(&chains, width, lines.saturating_sub(FREE).max(1), Timestamp::now()));
    }
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
