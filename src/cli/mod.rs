//! The command line: one file for each command, its arguments beside its function.
//!
//! Raw arguments become a resolved `context::Context`; commands read through the store and change state through the
//! runtime. Results go to standard output, everything else to standard error.

mod agent;
mod arguments;
mod chain;
mod housekeeping;
mod report;
mod view;

mod context;
mod error;
mod exit;
mod hints;
mod lookup;
mod output;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, Parser, Subcommand};

use arguments::lazy::{self, Lazy};
use context::Context;
use error::CliError;
use exit::ExitStatus;
use output::{Manner, tell};

use crate::core::text::escape;
use crate::runtime::protocol::Typed;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::store::{Caller, Store};

/// Run chains of headless Claude Code agents that can pause for minutes or weeks
///
/// An agent can spawn agents, to any depth, and each of them can stop to wait for a person, a file, a time or another
/// agent. While it waits, no process runs and nothing is paid. `resume` continues the chain where it stopped.
#[derive(Debug, Parser)]
#[command(name = "agent-cli", version, after_help = exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,

    /// Print progress to standard error, as on a terminal
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,

    /// Print nothing but errors to standard error
    #[arg(short, long, global = true)]
    quiet: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Spawn(Lazy<chain::spawn::Spawn>),
    Resume(Lazy<chain::resume::Resume>),
    Watch(Lazy<chain::unattended::watch::Watch>),
    Ask(Lazy<chain::ask::Ask>),
    Wait(Lazy<chain::wait::WaitCommand>),
    Questions(Lazy<chain::questions::Questions>),
    Inbox(Lazy<chain::answering::inbox::Inbox>),
    Answer(Lazy<chain::answering::answer::Answer>),
    Stop(Lazy<chain::stop::Stop>),
    Pause(Lazy<chain::stop::Pause>),
    Tell(Lazy<chain::tell::Tell>),
    Ls(Lazy<view::ls::Ls>),
    Tree(Lazy<view::tree::TreeCommand>),
    Show(Lazy<view::show::Show>),
    Logs(Lazy<view::logs::Logs>),
    Open(Lazy<view::open::Open>),
    History(Lazy<view::history::History>),
    Stats(Lazy<view::stats::Stats>),
    Notifications(Lazy<view::notifications::Notifications>),
    Doctor(Lazy<view::doctor::Doctor>),
    Export(Lazy<housekeeping::export::Export>),
    Import(Lazy<housekeeping::import::Import>),
    Rm(Lazy<chain::rm::Rm>),
    Gc(Lazy<housekeeping::gc::Gc>),
    Fsck(Lazy<housekeeping::fsck::Fsck>),
    Service(Lazy<housekeeping::service::ServiceCommand>),
    Completions(Lazy<housekeeping::completions::Completions>),
    Hook(Lazy<agent::hook::Hook>),
    HookResult(Lazy<agent::hook_result::HookResult>),
    #[command(name = "permission")]
    PermissionTool(Lazy<agent::permission::PermissionTool>),
}

/// Runs the program with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    if housekeeping::completions::complete(Cli::command, &arguments) {
        return ExitStatus::Ok.into();
    }
    let cli: Cli = match lazy::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, arguments).into(),
    };
    output::colour(cli.color);
    let is_driver = matches!(cli.command, Subcommands::Spawn(_) | Subcommands::Resume(_) | Subcommands::Watch(_));
    let times = is_driver && !context::is_called_by_an_agent() && !io::stderr().is_terminal();
    output::write_errors(Manner { quiet: cli.quiet, times });
    let context = match Context::from_environment(cli.verbose) {
        Ok(context) => context,
        Err(error) => return reported(Err(error), &arguments).into(),
    };
    let exit = reported(execute(cli.command, &context), &arguments);
    // Only after everything else: the commands of a person may take their time.
    if is_driver {
        context.finish_notifications();
    }
    exit.into()
}

/// Prints help, or what is wrong with the arguments.
fn unparsed(error: &clap::Error, arguments: Vec<OsString>) -> ExitStatus {
    output::colour(named_colour(&arguments));
    if error.use_stderr() && wants_json(&arguments) {
        print_error(&usage_error(error));
    }
    let exit = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Ok };
    match arguments::claude_args::misplaced(error, &arguments) {
        Some(error) => drop(error.report()),
        None => usage(error, arguments),
    }
    exit
}

fn execute(command: Subcommands, context: &Context) -> Result<ExitStatus, CliError> {
    match command {
        Subcommands::Spawn(Lazy(command)) => command.run(context),
        Subcommands::Resume(Lazy(command)) => command.run(context),
        Subcommands::Watch(Lazy(command)) => command.run(context),
        Subcommands::Ask(Lazy(command)) => command.run(context),
        Subcommands::Wait(Lazy(command)) => command.run(context),
        Subcommands::Questions(Lazy(command)) => command.run(context),
        Subcommands::Inbox(Lazy(command)) => command.run(context),
        Subcommands::Answer(Lazy(command)) => command.run(context),
        Subcommands::Stop(Lazy(command)) => command.run(context),
        Subcommands::Pause(Lazy(command)) => command.run(context),
        Subcommands::Tell(Lazy(command)) => command.run(context),
        Subcommands::Ls(Lazy(command)) => command.run(context),
        Subcommands::Tree(Lazy(command)) => command.run(context),
        Subcommands::Show(Lazy(command)) => command.run(context),
        Subcommands::Logs(Lazy(command)) => command.run(context),
        Subcommands::Open(Lazy(command)) => command.run(context),
        Subcommands::History(Lazy(command)) => command.run(context),
        Subcommands::Stats(Lazy(command)) => command.run(context),
        Subcommands::Notifications(Lazy(command)) => command.run(context),
        Subcommands::Doctor(Lazy(command)) => command.run(context),
        Subcommands::Export(Lazy(command)) => command.run(context),
        Subcommands::Import(Lazy(command)) => command.run(context),
        Subcommands::Rm(Lazy(command)) => command.run(context),
        Subcommands::Gc(Lazy(command)) => command.run(context),
        Subcommands::Fsck(Lazy(command)) => command.run(context),
        Subcommands::Service(Lazy(command)) => command.run(context),
        Subcommands::Completions(Lazy(command)) => command.run(),
        Subcommands::Hook(Lazy(command)) => command.run(context, typed),
        Subcommands::HookResult(Lazy(command)) => command.run(context),
        Subcommands::PermissionTool(Lazy(command)) => command.run(context),
    }
}

/// Reports an error.
fn reported(result: Result<ExitStatus, CliError>, arguments: &[OsString]) -> ExitStatus {
    match result {
        Ok(exit) => exit,
        Err(error) => {
            if wants_json(arguments) && !output::has_begun() {
                print_error(&error);
            }
            error.report()
        }
    }
}

/// The words of a command that an agent calls.
fn typed(words: &[String]) -> Typed {
    let line: Vec<OsString> =
        std::iter::once("agent-cli").chain(words.iter().map(String::as_str)).map(Into::into).collect();
    let Ok(Cli { command, .. }) = lazy::parse(&line) else { return Typed::Other };
    match command {
        Subcommands::Answer(_) | Subcommands::Inbox(_) => Typed::Answer,
        Subcommands::Wait(Lazy(wait)) if wait.runs_a_command() => Typed::NeedsPermission,
        Subcommands::Wait(Lazy(wait)) => request_from_directory(|store, caller| wait.resolve(store, caller)),
        Subcommands::Ask(Lazy(ask)) if ask.reads_standard_input() => Typed::Other,
        Subcommands::Ask(Lazy(ask)) => request_from_directory(|store, caller| ask.resolve(store, caller)),
        Subcommands::Spawn(Lazy(spawn)) => request_from_directory(|store, caller| spawn.resolve(store, caller)),
        _ => Typed::Other,
    }
}

/// A request that is resolved in the directory of the agent's shell, where it would run as a program.
fn request_from_directory(resolve: impl FnOnce(&Store, Caller) -> Result<AgentRequest, CliError> + 'static) -> Typed {
    Typed::Request(Box::new(|store, caller, pwd| {
        std::env::set_current_dir(pwd).map_err(|error| format!("{pwd} cannot be entered: {error}"))?;
        resolve(store, caller).map_err(|error| error.to_string())
    }))
}

/// Whether a program reads the output, even if the arguments are wrong.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json" || argument == "--stream")
}

/// The error also goes to standard error: if it cannot be printed, it is not lost.
fn print_error(error: &CliError) {
    let _ = output::print_json(&error.to_json());
}

/// Clap's message, without the lines on usage.
fn usage_error(error: &clap::Error) -> CliError {
    let said = error.render().to_string();
    let (message, rest) = said.split_once("\n\n").unwrap_or((&said, ""));
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command was given",
        _ => message.trim().trim_start_matches("error: "),
    };
    let tips = rest.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    tips.fold(CliError::usage(message), CliError::hint)
}

/// The choice in arguments that cannot be parsed as a whole.
fn named_colour(arguments: &[OsString]) -> ColorChoice {
    let words = || arguments.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let named = words().zip(words().skip(1)).filter(|(word, _)| word == "--color").map(|(_, value)| value.into_owned());
    let joined = words().filter_map(|word| word.strip_prefix("--color=").map(str::to_owned));
    named.chain(joined).find_map(|value| value.parse().ok()).unwrap_or_default()
}

/// Prints clap's output: help, or an error, which quotes arguments.
fn usage(error: &clap::Error, arguments: Vec<OsString>) {
    if arguments.iter().all(|argument| escape::is_plain(&argument.to_string_lossy())) {
        // If standard error is closed, nobody can be told.
        let _ = error.print();
        return;
    }
    // Without colours, every control character comes from an argument.
    let plain = Cli::command().styles(clap::builder::Styles::plain()).try_get_matches_from(arguments);
    tell(plain.err().map(|error| error.render().ansi().to_string()).unwrap_or_default().trim_end());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_command_line_is_read_or_refused(words in prop::collection::vec("(\\PC{0,8}|--?[a-z-]{0,12}(=\\PC{0,4})?)", 0..6), at in 0..12usize) {
            let names = ["spawn", "resume", "ask", "wait", "questions", "answer", "ls", "tree", "show", "completions", "hook", ""];
            let line: Vec<String> = ["agent-cli", names[at]].into_iter().map(str::to_owned).chain(words).collect();
            let whole = Cli::try_parse_from(&line);
            let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
            match (whole, lazy::parse::<Cli>(&line)) {
                (Ok(whole), Ok(quick)) => prop_assert_eq!(format!("{whole:?}"), format!("{quick:?}")),
                (Err(whole), Err(quick)) => prop_assert_eq!(whole.to_string(), quick.to_string()),
                (whole, quick) => prop_assert!(false, "{:?} is not {:?}", quick, whole),
            }
        }
    }
}
