//! `agent-cli permission`: Claude Code asks about calls that need an approval.

use std::io::{self, BufRead};

use clap::Args;

use crate::claude::tools::permission_server;
use crate::cli::agent::note;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_json;
use crate::runtime::protocol::permission;

/// Decide on calls that need an approval: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct PermissionTool {}

impl PermissionTool {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let asking = context.asking()?;
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(|error| CliError::failed(format!("cannot read what claude asks: {error}")))?;
            let answer = permission_server::respond(&line, |call| {
                permission::decide(asking.as_ref(), call, |caller, error| {
                    note(context, caller, "permission", &error.into());
                })
            });
            if let Some(answer) = answer {
                print_json(&answer)?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}
