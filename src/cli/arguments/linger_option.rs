//! The option for how long calls linger. Commands that run agents have it.

use std::time::Duration;

use clap::Args;

use crate::cli::error::CliError;
use crate::core::text::time::duration;

/// How long agents stay in calls whose results are expected soon.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LingerOption {
    /// How long an agent's process stays in a call while its result is expected soon; 0: not at all [default: 20s]
    ///
    /// A result that arrives in this time returns without another start of claude. Only this run is affected.
    #[arg(long = "linger", hide_short_help = true, value_name = "DURATION", value_parser = linger)]
    pub(crate) time: Option<Duration>,
}

impl LingerOption {
    /// Refuses the option to agents, because the person or process that runs a chain decides this.
    pub(crate) fn refuse_to_agents(self) -> Result<(), CliError> {
        match self.time {
            None => Ok(()),
            Some(_) => Err(CliError::usage("agents cannot use --linger").hint("leave it out")),
        }
    }
}

fn linger(text: &str) -> Result<Duration, String> {
    Duration::try_from(duration(text)?).map_err(|error| error.to_string())
}
