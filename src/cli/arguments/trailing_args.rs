//! The arguments after `--`, for `claude`.

use std::ffi::OsString;

use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::app::error::Refusal;
use crate::claude::options::{self, BadArgument};
use crate::cli::error::CliError;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::overrides::BadLaunch;

/// Arguments for `claude`, as they were typed.
#[derive(Clone, Debug, Args)]
pub(crate) struct ForClaude {
    /// Arguments for every claude process of the chain
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    args: Vec<String>,
}

impl ForClaude {
    pub(crate) fn words(self) -> Vec<String> {
        self.args
    }

    /// The parsed options.
    pub(crate) fn parsed(&self) -> Result<ClaudeArgs, CliError> {
        Ok(options::parse(&self.args)?)
    }
}

/// Explains an option of `claude` that was given before the `--`.
pub(crate) fn misplaced(error: &clap::Error, arguments: &[OsString]) -> Option<CliError> {
    let command = arguments.iter().skip(1).find(|argument| !argument.as_encoded_bytes().starts_with(b"-"))?;
    if command != "spawn" && command != "resume" {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = option.split('=').next().filter(|name| options::knows(name))?;
    (error.kind() == ErrorKind::UnknownArgument).then(|| {
        CliError::usage(format!("{option} is an option of claude, not of agent-cli"))
            .hint(format!("options of claude go after --, as in agent-cli spawn FILE -- {option}"))
    })
}

impl From<BadLaunch> for CliError {
    fn from(error: BadLaunch) -> Self {
        let hint = match &error {
            BadLaunch::Outside { .. } => "start it in that directory, or in one below it".to_owned(),
            BadLaunch::Widens(_) => "leave it out".to_owned(),
            BadLaunch::ReplacesPrompt(_) => "--append-system-prompt=TEXT adds to it".to_owned(),
            BadLaunch::OtherSchema => "leave --schema out: the new agent's reply has to fit yours".to_owned(),
            BadLaunch::SeveralReplies => "leave --handoff out, and reply with what they reply".to_owned(),
            BadLaunch::DashedValue(option) => format!("give a value that does not begin with a dash: {option}=VALUE"),
        };
        Self::usage(error.to_string()).hint(hint)
    }
}

impl From<BadArgument> for CliError {
    fn from(error: BadArgument) -> Self {
        Refusal::from(error).into()
    }
}
