//! `agent-cli permission`: Claude Code asks about calls that need an approval.
//!
//! It answers as plain `claude -p` does, where there is nobody to ask: such a call is denied.

use std::io;

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use super::output::print_json;
use crate::claude::permission_tool::{self, Call, Permission};
use crate::claude::question::ASK_USER_QUESTION;

/// Decide on calls that need an approval: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct PermissionTool {}

/// What an agent is told whose question no hook has seen: hooks are switched off.
const NO_QUESTIONS: &str = "nobody can be asked this way here: run `agent-cli ask QUESTION` and end your turn";

impl PermissionTool {
    pub(super) fn run(self) -> Result<Exit, CliError> {
        for line in io::stdin().lines() {
            let line = line.map_err(|error| CliError::failed(format!("cannot read what claude asks: {error}")))?;
            if let Some(answer) = permission_tool::respond(&line, decide) {
                print_json(&answer)?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn decide(call: &Call) -> Permission {
    if call.tool == ASK_USER_QUESTION {
        return Permission::Deny { message: NO_QUESTIONS.to_owned() };
    }
    // What Claude Code itself says of most tools.
    let message = format!("Claude requested permissions to use {}, but you haven't granted it yet.", call.tool);
    Permission::Deny { message }
}
