//! The option `--no-pager`, for commands with long results.

use clap::Args;

use crate::cli::output::pager::{self, Paged};

/// Whether a long result is shown in a pager.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PagerOption {
    /// Do not show a long result in $AGENT_CLI_PAGER, $PAGER or less
    #[arg(long)]
    no_pager: bool,
}

impl PagerOption {
    /// Shows the output in a pager until the result is dropped. `is_for_programs`: the command prints JSON, or follows
    /// events.
    pub(crate) fn begin(self, is_for_programs: bool) -> Option<Paged> {
        (!self.no_pager && !is_for_programs).then(pager::begin)
    }
}
