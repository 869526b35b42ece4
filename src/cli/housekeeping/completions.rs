//! `agent-cli completions`: prints shell completions.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print;

/// A completion script sets this variable.
const VARIABLE: &str = "AGENT_CLI_COMPLETE";
const PROGRAM: &str = "agent-cli";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example, for ~/.bashrc:
  eval \"$(agent-cli completions bash)\"")]
pub(crate) struct Completions {
    /// The shell [default: that of $SHELL]
    shell: Option<Shell>,
}

impl Completions {
    pub(crate) fn run(self, _: &Context) -> Result<ExitStatus, CliError> {
        let unnamed = || CliError::usage("no shell was given, and $SHELL names none that is known");
        let named = self.shell.or_else(Shell::from_env);
        let name = named.ok_or_else(|| unnamed().hint("agent-cli completions bash"))?.to_string();
        let unknown = || CliError::usage(format!("no completions for {name}"));
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(unknown)?;
        let mut script = Vec::new();
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(|error| CliError::failed(format!("the script cannot be written: {error}")))?;
        print(&String::from_utf8_lossy(&script))?;
        Ok(ExitStatus::Ok)
    }
}

/// Prints completions if a script requests them, and returns whether it did. `program` describes the whole command line.
pub(crate) fn complete(program: impl Fn() -> Command, arguments: &[OsString]) -> bool {
    let Some(shell) = std::env::var_os(VARIABLE) else { return false };
    let here = std::env::current_dir().ok();
    let words: Vec<_> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let shells = Shells::builtins();
    let shell = Path::new(&shell).file_stem().and_then(|name| shells.completer(&name.to_string_lossy()));
    if let Some(shell) = shell.filter(|_| names_an_id(&program(), &words)) {
        let mut offered = Vec::new();
        let mut command = program();
        command.build();
        // Shells do not show errors of completions.
        let _ = shell.write_complete(&mut command, words, here.as_deref(), &mut offered);
        let _ = print(&without_options(&String::from_utf8_lossy(&offered)));
        return true;
    }
    CompleteEnv::with_factory(program)
        .var(VARIABLE)
        .bin(PROGRAM)
        .try_complete(arguments, here.as_deref())
        .unwrap_or(true)
}

/// Whether to complete an id and not an option. Without ids to offer, a shell would insert `--`, the common beginning of all
/// options.
fn names_an_id(program: &Command, words: &[OsString]) -> bool {
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse::<usize>().ok());
    let word = words.get(index.unwrap_or(words.len().saturating_sub(1)));
    let command = words.get(1).and_then(|name| program.find_subcommand(name));
    let is_id = |argument: &Arg| ["id", "ids"].contains(&argument.get_id().as_str());
    let takes_one = command.is_some_and(|command| command.get_positionals().any(is_id));
    takes_one && word.is_none_or(|word| !word.to_string_lossy().starts_with('-'))
}

/// Removes options from the candidates.
fn without_options(offered: &str) -> String {
    let between = std::env::var("_CLAP_IFS").ok().filter(|between| !between.is_empty());
    let between = between.as_deref().unwrap_or("\n");
    offered.split(between).filter(|word| !word.starts_with('-')).collect::<Vec<_>>().join(between)
}
