//! Adds up what the running agents of a chain spend, and says when the chain's budget is spent.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::claude::stream::output_reader::OutputFollower;
use crate::core::agent::usage::prices::Prices;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, FrameId};
use crate::runtime::RuntimeError;
use crate::runtime::conclude::attempt_cost;
use crate::store::{Attempt, Attempts, StateDir, Store};

/// How often the outputs of running agents are read. A hook that stops an agent after its tool starts later than this.
const LOOK: Duration = Duration::from_millis(50);
/// How often to check whether a chain without a budget has been given one.
const RARELY: Duration = Duration::from_millis(250);

/// Watches the budget of a chain until it is dropped.
pub(super) struct BudgetWatch {
    spent: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl BudgetWatch {
    /// Watches the budget of the chain of `root`, whichever processes run its agents.
    pub(super) fn start(dir: StateDir, root: FrameId, prices: Prices) -> Self {
        let (sender, spent) = watch::channel(false);
        let task = tokio::spawn(async move {
            if let Err(error) = watch(&dir, root, prices, &sender).await {
                tracing::warn!("the budget is only checked before agents start: {error}");
                std::future::pending::<()>().await;
            }
        });
        Self { spent, task }
    }

    /// Reports whether the budget is spent, starting with the next check.
    pub(super) fn spent(&self) -> watch::Receiver<bool> {
        let mut spent = self.spent.clone();
        spent.mark_unchanged();
        spent
    }

    /// Whether it was spent at the last check.
    pub(super) fn is_spent(&self) -> bool {
        *self.spent.borrow()
    }
}

impl Drop for BudgetWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(dir: &StateDir, root: FrameId, prices: Prices, spent: &watch::Sender<bool>) -> Result<(), RuntimeError> {
    let store = Store::open(dir.path())?;
    let mut meter = Meter { store, root, prices, limit: None, version: None, running: HashMap::new() };
    loop {
        tokio::time::sleep(if meter.limit.is_some() { LOOK } else { RARELY }).await;
        let is_spent = meter.is_spent()?;
        // Each check is news for agents that have started since the last one.
        spent.send_if_modified(|before| std::mem::replace(before, is_spent) || is_spent);
    }
}

struct Meter {
    store: Store,
    root: FrameId,
    prices: Prices,
    /// The chain's budget, and what its ended attempts have spent of it.
    limit: Option<(f64, f64)>,
    /// The version of the records when they were read last.
    version: Option<i64>,
    running: HashMap<AttemptId, Metered>,
}

/// A running attempt.
struct Metered {
    frame: Frame,
    attempt: Attempt,
    output: OutputFollower,
    /// How many answers it had, and whether it had ended its turn, when its cost was computed.
    seen: (u64, bool),
    usd: f64,
}

impl Meter {
    fn is_spent(&mut self) -> Result<bool, RuntimeError> {
        let version = self.store.changes().version_of_others()?;
        if self.version.replace(version) != Some(version) {
            self.read_records()?;
        }
        let Some((max_usd, ended_usd)) = self.limit else { return Ok(false) };
        let mut spent_usd = ended_usd;
        for metered in self.running.values_mut() {
            spent_usd += metered.look(&self.store, &self.prices)?;
        }
        Ok(spent_usd >= max_usd)
    }

    fn read_records(&mut self) -> Result<(), RuntimeError> {
        let chain = self.store.chain_of(self.root)?;
        let Some(max_usd) = chain.limits.max_budget_usd else {
            self.limit = None;
            return Ok(());
        };
        self.limit = Some((max_usd, self.store.spent(self.root)?.cost_usd + chain.others_usd));
        let mut before = std::mem::take(&mut self.running);
        for attempt in self.store.attempts(Attempts::Running)? {
            let known = before.remove(&attempt.id);
            let metered = match known {
                Some(known) => known,
                None => match self.store.frame(attempt.frame)? {
                    Some(frame) => Metered::new(self.store.dir(), frame, attempt),
                    None => continue,
                },
            };
            self.running.insert(metered.attempt.id, metered);
        }
        let mut families = HashMap::new();
        for root in self.running.values().map(|metered| metered.frame.root) {
            families.insert(root, self.store.chain_of(root)?.family);
        }
        let is_of_family = |root| chain.family.is_some() && families.get(&root) == Some(&chain.family);
        self.running.retain(|_, metered| metered.frame.root == self.root || is_of_family(metered.frame.root));
        Ok(())
    }
}

impl Metered {
    fn new(dir: &StateDir, frame: Frame, attempt: Attempt) -> Self {
        let output = OutputFollower::new(dir.printed(frame.id), attempt.output_from);
        Self { frame, attempt, output, seen: (0, false), usd: 0.0 }
    }

    /// The cost of the attempt so far.
    fn look(&mut self, store: &Store, prices: &Prices) -> Result<f64, RuntimeError> {
        // An attempt of another process may not have its file yet.
        let Ok(digest) = self.output.read() else { return Ok(self.usd) };
        let seen = (digest.answers.count(), digest.result.is_some());
        if seen != self.seen {
            self.usd = attempt_cost::so_far(store, &self.frame, &self.attempt, digest, prices)?;
            self.seen = seen;
        }
        Ok(self.usd)
    }
}
