//! The live display of `spawn` and `resume` on a terminal.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::report::beside::{Beside, Seen};
use crate::cli::report::live_rows::{Agents, clock};
use crate::core::id::FrameId;
use crate::store::Store;

/// A display that is drawn.
#[derive(Debug)]
pub(crate) struct Live {
    watching: Beside,
    began: Instant,
}

/// How often times are drawn anew.
const LOOK: Duration = Duration::from_millis(250);
/// How many lines stay free for what is written above.
const FREE: usize = 4;

impl Live {
    /// Draws the chain of `top`, if standard error can be drawn on.
    pub(crate) fn start(state_dir: &Path, top: FrameId) -> Result<Option<Self>, CliError> {
        if output::is_quiet() || !output::live::can_draw() {
            return Ok(None);
        }
        let mut agents = Agents::default();
        let watching = Beside::start(state_dir, top, LOOK, move |seen| {
            match seen {
                Seen::Before(event) | Seen::Event(event) => agents.absorb(event),
                Seen::Chain(tree) => {
                    let (columns, lines) = output::size_of_errors();
                    // The last column of some terminals begins a new line.
                    let width = columns.saturating_sub(1);
                    let rows = agents.rows(tree, width, lines.saturating_sub(FREE).max(1), Timestamp::now());
                    output::live::draw(&rows);
                }
            }
            Ok(())
        })?;
        Ok(Some(Self { watching, began: Instant::now() }))
    }

    /// Removes the display, and sums up what was shown.
    pub(crate) fn finish(self, store: &Store, top: FrameId) -> Result<(), CliError> {
        self.watching.finish();
        output::live::clear();
        let tree = store.tree(top)?;
        let agents = tree.parents_first().iter().filter(|node| !node.is_group).count();
        let agents = if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") };
        let took = clock(SignedDuration::try_from(self.began.elapsed()).unwrap_or_default());
        let cost = store.spent(top)?.cost_usd;
        output::tell(&format!("{agents}, {took}, ${cost:.4} in all"));
        Ok(())
    }
}
