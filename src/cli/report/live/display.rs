//! Draws the live display on a terminal: a row for each agent of the chains that this process runs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::report::costs::usd;
use crate::cli::report::live::rows::{Agents, RowLayout, ShownChain, clock, rows};
use crate::cli::report::live::watcher::{ChainWatcher, WatchUpdate};
use crate::core::chain::frame::Frame;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::runtime::run::signals;
use crate::store::{Store, StoreError};

/// A display on the terminal.
#[derive(Debug)]
pub(crate) struct LiveDisplay {
    state_dir: PathBuf,
    shown: Arc<Mutex<Shown>>,
    watching: HashMap<FrameId, ChainWatcher>,
    /// Every chain that was shown, with its cost when the display began to show it.
    chains: BTreeMap<FrameId, f64>,
    began: Instant,
}

/// The chains that run now, in the order in which they began.
#[derive(Debug, Default)]
struct Shown {
    chains: BTreeMap<usize, (String, Agents, Option<Tree>)>,
    begun: usize,
}

/// How often times are redrawn.
const LOOK: Duration = Duration::from_millis(250);
/// How many columns are reserved for the terminal's echo, such as `^C`.
const MARGIN: usize = 3;
/// How many lines are reserved for messages above the display.
const FREE: usize = 4;

impl LiveDisplay {
    /// Creates a display without chains. `None` if standard error cannot be drawn on.
    pub(crate) fn new(state_dir: &Path) -> Option<Self> {
        let can_draw = !output::is_quiet() && output::live::can_draw();
        can_draw.then(|| Self {
            state_dir: state_dir.to_owned(),
            shown: Arc::default(),
            watching: HashMap::new(),
            chains: BTreeMap::new(),
            began: Instant::now(),
        })
    }

    /// Adds the chain of `top` to the display. The chain runs even if this fails.
    pub(crate) fn begin(&mut self, store: &Store, top: FrameId) {
        let name = || -> Result<_, StoreError> {
            let titled = |frame: Option<Frame>| frame.map_or_else(|| top.short(), |frame| frame.task.title());
            Ok(match store.chain_of(top)?.name {
                Some(name) => name,
                None => titled(store.frame(top)?),
            })
        };
        // Ignore errors, because the run itself reports them.
        let (name, cost) = (name().unwrap_or_default(), store.spent(top).map_or(0.0, |spent| spent.cost_usd));
        let mut shown = locked(&self.shown);
        let place = shown.begun;
        shown.begun += 1;
        shown.chains.insert(place, (name, Agents::default(), None));
        drop(shown);
        let of_thread = Arc::clone(&self.shown);
        let see = move |seen: WatchUpdate<'_>| {
            let mut shown = locked(&of_thread);
            let Some((_, agents, tree)) = shown.chains.get_mut(&place) else { return Ok(()) };
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
        self.chains.entry(top).or_insert(cost);
    }

    /// Removes the rows of a chain that no longer runs.
    pub(crate) fn end(&mut self, top: FrameId) {
        if let Some(watching) = self.watching.remove(&top) {
            watching.finish();
        }
    }

    /// Removes the display, and prints a summary of the shown chains.
    pub(crate) fn finish(mut self, store: &Store) -> Result<(), CliError> {
        let left: Vec<_> = self.watching.keys().copied().collect();
        left.into_iter().for_each(|top| self.end(top));
        output::live::clear();
        let (mut agents, mut before, mut cost) = (0, 0.0, 0.0);
        for (top, at_first) in &self.chains {
            if store.frame(*top)?.is_none() {
                // The chain was removed in the meantime.
                continue;
            }
            agents += store.tree(*top)?.parents_first().iter().filter(|node| !node.is_group).count();
            before += at_first;
            cost += store.spent(*top)?.cost_usd;
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let chains = match self.chains.len() {
            0 => return Ok(()),
            1 => String::new(),
            several => format!("{several} chains, "),
        };
        let took = clock(SignedDuration::try_from(self.began.elapsed()).unwrap_or_default());
        let of_run = format!("{took}, {}", usd((cost - before).max(0.0)));
        let agents = format!("{chains}{}", count(agents, "agent"));
        output::tell(&match before > 0.0 {
            true => format!("this run: {of_run}; in all: {agents}, {}", usd(cost)),
            false => format!("{agents}, {of_run}"),
        });
        Ok(())
    }
}

impl Drop for LiveDisplay {
    /// Also after an error, so that the terminal shows keys again.
    fn drop(&mut self) {
        self.watching.drain().for_each(|(_, watching)| watching.finish());
        output::live::clear();
    }
}

impl Shown {
    fn draw(&self) {
        let (columns, lines) = output::size_of_errors();
        let shown = self
            .chains
            .values()
            .filter_map(|(name, agents, tree)| Some(ShownChain { name, agents, tree: tree.as_ref()? }));
        let (width, most) = (columns.saturating_sub(MARGIN), lines.saturating_sub(FREE).max(1));
        let layout = RowLayout { width, most, is_stopping: signals::is_stopping() };
        output::live::draw(&rows(&shown.collect::<Vec<_>>(), layout, Timestamp::now()));
    }
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
