//! The command line: one file a command, its arguments beside its function.
//!
//! Raw arguments become a resolved `context::Context`; commands read through the store and change state through the
//! runtime. Results go to standard output, everything else to standard error.

mod context;
mod error;
mod exit;
mod outcome;
mod output;
mod tasks;
mod text;

mod answer;
mod ask;
mod completions;
mod doctor;
mod duration;
mod export;
mod fsck;
mod gc;
mod hook;
mod import;
mod limits;
mod ls;
mod permission;
mod questions;
mod resume;
mod show;
mod spawn;
mod tree;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use context::Context;
use exit::Exit;

/// Run chains of headless Claude Code agents that can pause for minutes or weeks
///
/// An agent may spawn agents, to any depth, and any of them may stop to wait for a person, a file, a time or another
/// agent. While it waits, nothing runs and nothing is paid. `resume` carries on where the chain stopped.
#[derive(Debug, Parser)]
#[command(name = "agent-cli", version, after_help = exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Say on standard error what happens
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Spawn(spawn::Spawn),
    Resume(resume::Resume),
    Ask(ask::Ask),
    Wait(wait::Wait),
    Questions(questions::Questions),
    Answer(answer::Answer),
    Ls(ls::Ls),
    Tree(tree::Tree),
    Show(show::Show),
    Doctor(doctor::Doctor),
    Export(export::Export),
    Import(import::Import),
    Gc(gc::Gc),
    Fsck(fsck::Fsck),
    Completions(completions::Completions),
    Hook(hook::Hook),
    #[command(name = "permission")]
    PermissionTool(permission::PermissionTool),
}

/// Runs the program with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody can be told that standard error is closed.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok }.into();
        }
    };
    let result = Context::from_environment(cli.verbose).and_then(|context| match cli.command {
        Command::Spawn(command) => command.run(&context),
        Command::Resume(command) => command.run(&context),
        Command::Ask(command) => command.run(&context),
        Command::Wait(command) => command.run(&context),
        Command::Questions(command) => command.run(&context),
        Command::Answer(command) => command.run(&context),
        Command::Ls(command) => command.run(&context),
        Command::Tree(command) => command.run(&context),
        Command::Show(command) => command.run(&context),
        Command::Doctor(command) => command.run(&context),
        Command::Export(command) => command.run(&context),
        Command::Import(command) => command.run(&context),
        Command::Gc(command) => command.run(&context),
        Command::Fsck(command) => command.run(&context),
        Command::Completions(command) => command.run(),
        Command::Hook(command) => command.run(&context),
        Command::PermissionTool(command) => command.run(&context),
    });
    match result {
        Ok(exit) => exit,
        Err(error) => error.report(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_command_line_is_read_or_refused(words in prop::collection::vec("(\\PC{0,8}|--?[a-z-]{0,12}(=\\PC{0,4})?)", 0..6), at in 0..12usize) {
            let names = ["spawn", "resume", "ask", "wait", "questions", "answer", "ls", "tree", "show", "completions", "hook", ""];
            let line = ["agent-cli", names[at]].into_iter().map(str::to_owned).chain(words);
            let _ = Cli::try_parse_from(line);
        }
    }
}
