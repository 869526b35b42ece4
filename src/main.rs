//! The `agent-cli` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_cli::run(std::env::args_os())
}
