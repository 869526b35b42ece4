//! The command line. Each command has a file with its arguments and its function.
//!
//! A command gets its arguments and a `context::Context`. It reads from the store, and changes state through the runtime.
//! Results go to standard output, everything else to standard error.

mod arguments;
mod chain;
mod dashboard;
mod hook_commands;
mod housekeeping;
mod report;
mod view;

mod confirm;
mod context;
mod error;
mod exit;
mod output;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::builder::Styles;
use clap::{Arg, Args, ColorChoice, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use arguments::command_groups::{self, Group};
use arguments::manner_options::MannerOptions;
use chain::request_from_agent;
use context::Context;
use error::CliError;
use error::usage::{named_colour, usage_error, wants_json};
use exit::ExitStatus;
use output::{Manner, tell};

use crate::app::config::setting::COLOR;
use crate::core::text::escape;
use crate::runtime::protocol::Typed;
use crate::runtime::run::signals;

/// Run chains of headless Claude Code agents that can pause for minutes or weeks
///
/// An agent can spawn agents, to any depth, and each of them can stop to wait for a person, a file, a time or another
/// agent. While it waits, no process runs and nothing is billed. `resume` continues the chain where it stopped. Without a
/// command, on a terminal, shows all chains, those that need you first, and takes your answers.
#[derive(Debug, Parser)]
#[command(name = "agent-cli", version, after_long_help = exit::HELP, max_term_width = command_groups::WIDEST)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,

    #[command(flatten)]
    manner: MannerOptions,
}

/// Generates the enum `Subcommands` and `GROUPS` from names, aliases, variants, arguments, and the values that commands need
/// besides the context. Commands in the group without a title are hidden.
macro_rules! commands {
    ($($group:literal {
        $($name:literal $(| $alias:literal)* => $variant:ident($arguments:ty) $(with $more:expr)?,)*
    })*) => {
        #[derive(Debug, Subcommand)]
        enum Subcommands {
            $($(#[command(name = $name $(, alias = $alias)*)] $variant($arguments),)*)*
        }

        const GROUPS: &[Group] = &[$(Group { title: $group, commands: &[$(&[$name $(, $alias)*],)*] },)*];

        impl Subcommands {
            /// Describes the command of this name or alias.
            fn described(name: &str) -> Option<Command> {
                match name {
                    $($($name $(| $alias)* => {
                        Some(<$arguments>::augment_args(Command::new($name)$(.alias($alias))*))
                    })*)*
                    _ => None,
                }
            }

            fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
                match self {
                    $($(Self::$variant(command) => command.run(context $(, $more)?),)*)*
                }
            }
        }
    };
}

commands! {
    "Run" {
        "spawn" => Spawn(chain::spawn::Spawn),
        "resume" => Resume(chain::resume::Resume),
        "watch" => Watch(dashboard::watch::Watch),
        "work" => Work(chain::unattended::work::Work),
        "stop" | "kill" => Stop(chain::steering::stop::StopCommand),
        "pause" => Pause(chain::steering::stop::PauseCommand),
        "tell" => Tell(chain::steering::tell::Tell),
        "name" => Name(chain::steering::name::Name),
    }
    "Answer" {
        "inbox" => Inbox(chain::answering::inbox::Inbox),
        "questions" => Questions(chain::questions::QuestionsCommand),
        "answer" => Answer(chain::answering::answer::Answer),
    }
    "See" {
        "ls" | "ps" | "list" => Ls(view::ls::Ls),
        "tree" => Tree(view::tree::TreeCommand),
        "show" | "status" => Show(view::show::Show),
        "logs" => Logs(view::logs::Logs),
        "open" | "attach" => Open(view::open::OpenCommand),
        "history" => History(view::history::History),
        "stats" => Stats(view::stats::Stats),
        "metrics" => Metrics(view::metrics::MetricsCommand),
    }
    "Keep" {
        "rm" => Rm(chain::rm::Rm),
        "gc" => Gc(housekeeping::gc::Gc),
        "fsck" => Fsck(housekeeping::fsck::Fsck),
        "export" => Export(housekeeping::transfer::export::ExportCommand),
        "import" => Import(housekeeping::transfer::import::Import),
        "move" => Move(housekeeping::transfer::to_server::MoveCommand),
        "hosts" => Hosts(housekeeping::transfer::hosts::HostsCommand),
        "access" => Access(housekeeping::transfer::access::AccessCommand),
    }
    "Set up" {
        "init" => Init(housekeeping::init::Init),
        "uninit" => Uninit(housekeeping::init::Uninit),
        "doctor" => Doctor(view::doctor::Doctor),
        "config" => Config(housekeeping::config::ConfigCommand),
        "service" => Service(housekeeping::service::ServiceCommand),
        "notifications" => Notifications(view::notifications::NotificationsCommand),
        "mcp" => Mcp(housekeeping::mcp::Mcp),
        "serve" => Serve(housekeeping::serve::Serve),
        "completions" => Completions(housekeeping::completions::Completions),
    }
    "For agents" {
        "ask" => Ask(chain::ask::Ask),
        "wait" => Wait(chain::wait::WaitCommand),
    }
    "" {
        "hook" => Hook(hook_commands::Hook) with typed,
        "hook-result" => HookResult(hook_commands::HookResult),
        "permission" => PermissionTool(hook_commands::PermissionTool),
        "check-reply" => CheckReply(hook_commands::CheckReply),
        "guard" => Guard(hook_commands::Guard),
        "man" => Man(housekeeping::man::Man) with Cli::command,
        "news" => News(housekeeping::news::News),
    }
}

/// Runs the program with these arguments. The first one is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    if housekeeping::completions::complete(Cli::command, &arguments) {
        return ExitStatus::Ok.into();
    }
    signals::outlive_full_files();
    let Cli { command, manner } = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            return match without_command(&arguments) {
                Some(manner) => on_its_own(manner, &arguments).into(),
                None => unparsed(&error, &arguments).into(),
            };
        }
    };
    output::colour(manner.color.unwrap_or_default());
    let is_driver = matches!(
        command,
        Subcommands::Spawn(_) | Subcommands::Resume(_) | Subcommands::Watch(_) | Subcommands::Work(_)
    );
    let times = is_driver && !context::is_called_by_an_agent() && !io::stderr().is_terminal();
    output::write_errors(Manner { quiet: manner.quiet, times });
    let context = match Context::from_environment(manner.verbose).and_then(|context| context.with_server(manner.store))
    {
        Ok(context) => context,
        Err(error) => return reported(Err(error), &arguments).into(),
    };
    if let (None, Some(colour)) = (manner.color, configured_colour(&context)) {
        output::colour(colour);
    }
    let result = command.run(&context);
    context.warn_of_config(result.as_ref().err());
    let exit = reported(result, &arguments);
    // Send notifications last, because the person's commands may be slow.
    context.finish_notifications(is_driver);
    exit.into()
}

/// The options of a command line that names no command.
fn without_command(line: &[OsString]) -> Option<MannerOptions> {
    let program = MannerOptions::augment_args(Command::new("agent-cli"));
    MannerOptions::from_arg_matches_mut(&mut program.try_get_matches_from(line).ok()?).ok()
}

/// Runs the program without a command: the dashboard, or its usage.
fn on_its_own(manner: MannerOptions, arguments: &[OsString]) -> ExitStatus {
    if manner.quiet || !dashboard::is_possible() || context::is_called_by_an_agent() {
        return match parse_among_all(&arguments[..1], Styles::default()) {
            Err(error) => unparsed(&error, arguments),
            Ok(_) => ExitStatus::Usage,
        };
    }
    let context = Context::from_environment(manner.verbose).and_then(|context| context.with_server(manner.store));
    let shown = context.and_then(|context| {
        manner.color.or_else(|| configured_colour(&context)).into_iter().for_each(output::colour);
        let shown = dashboard::show(&context);
        context.warn_of_config(shown.as_ref().err());
        shown
    });
    reported(shown, arguments)
}

/// The colour choice in the config file. Without a terminal, only an option enables colours.
fn configured_colour(context: &Context) -> Option<ColorChoice> {
    let is_shown = io::stdout().is_terminal() || io::stderr().is_terminal();
    let found = is_shown.then(|| context.usable_configuration().ok()).flatten()?;
    found.settings.text(&COLOR)?.parse().ok()
}

/// Parses a command line. The first word is the program's name.
fn parse(line: &[OsString]) -> Result<Cli, clap::Error> {
    called(line).map_or_else(|| parse_among_all(line, Styles::default()), Ok)
}

/// Parses a command line with all commands, because help and errors mention other commands.
fn parse_among_all(line: &[OsString], styles: Styles) -> Result<Cli, clap::Error> {
    let program = Cli::command().styles(styles).mut_subcommands(with_negative_numbers);
    let mut program = command_groups::listed(program, GROUPS);
    let parsed = program.try_get_matches_from_mut(line).and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let visible = |name: &str| {
        let found = program.find_subcommand(name).filter(|command| !command.is_hide_set());
        found.map(Command::get_name)
    };
    parsed.map_err(|error| view::ls::suggesting_selection(command_groups::suggesting_visible(error, visible)))
}

/// Lets options take negative numbers, so that the error says what is wrong with the number.
fn with_negative_numbers(command: Command) -> Command {
    let takes_one = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    command.mut_args(|arg| if takes_one(&arg) { arg.allow_negative_numbers(true) } else { arg })
}

/// Parses the called command if its command line is valid. Only this command's arguments are described, because describing
/// all commands takes a good part of a poll's time.
fn called(line: &[OsString]) -> Option<Cli> {
    let name = line.iter().skip(1).filter_map(|word| word.to_str()).find(|word| !word.starts_with('-'))?;
    let program = MannerOptions::augment_args(Command::new("agent-cli")).subcommand(Subcommands::described(name)?);
    Cli::from_arg_matches_mut(&mut program.try_get_matches_from(line).ok()?).ok()
}

/// Prints help, or the error in the arguments.
fn unparsed(error: &clap::Error, arguments: &[OsString]) -> ExitStatus {
    output::colour(named_colour(arguments));
    if error.use_stderr() && wants_json(arguments) {
        print_error(&usage_error(error));
    }
    let better = arguments::trailing_args::misplaced(error, arguments);
    match better.or_else(|| view::unnamed::without_id(error, arguments)) {
        Some(error) => drop(error.report()),
        None => {
            let written = usage(error, arguments);
            if !error.use_stderr() {
                return reported(written.map(|()| ExitStatus::Ok).map_err(Into::into), arguments);
            }
            // If standard error is closed, the message is lost.
        }
    }
    ExitStatus::Usage
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

/// Parses the command line of a command that an agent calls.
fn typed(words: &[String]) -> Typed {
    let line: Vec<OsString> =
        std::iter::once("agent-cli").chain(words.iter().map(String::as_str)).map(Into::into).collect();
    // The program refuses --store to agents when it runs.
    let Ok(Cli { command, manner: MannerOptions { store: None, .. } }) = parse(&line) else { return Typed::Other };
    match command {
        Subcommands::Answer(_) | Subcommands::Inbox(_) => Typed::Answer,
        Subcommands::Wait(wait) if wait.runs_a_command() => Typed::NeedsPermission,
        Subcommands::Wait(wait) => request_from_agent::typed(|| wait.input()),
        Subcommands::Ask(ask) => request_from_agent::typed(|| Ok(ask.into())),
        Subcommands::Spawn(spawn) if spawn.returns_at_once() => Typed::ReturnsAtOnce,
        Subcommands::Spawn(spawn) => request_from_agent::typed(|| spawn.request()),
        _ => Typed::Other,
    }
}

/// Prints the error as JSON. It also goes to standard error, so it is not lost if this fails.
fn print_error(error: &CliError) {
    let _ = output::print_json(&error.view());
}

/// Prints clap's output: help, or an error that quotes arguments.
fn usage(error: &clap::Error, arguments: &[OsString]) -> Result<(), output::PrintError> {
    if arguments.iter().all(|argument| escape::is_plain(&argument.to_string_lossy())) {
        return output::print_of_clap(error);
    }
    // Without colours, every control character comes from an argument.
    let plain = parse_among_all(arguments, Styles::plain());
    tell(plain.err().map(|error| error.render().ansi().to_string()).unwrap_or_default().trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_poll_describes_no_other_command() {
        let line = ["agent-cli", "--quiet", "resume", "4f2c1a90", "--json"].map(OsString::from);
        assert!(called(&line).is_some());
        for name in GROUPS.iter().flat_map(|group| group.commands).copied().flatten() {
            assert!(Subcommands::described(name).is_some(), "{name}");
        }
    }

    #[test]
    fn agents_cannot_choose_a_store_with_their_requests() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(matches!(typed(&words("-q ask When?")), Typed::Request(_)));
        for line in ["--store postgres://x ask When?", "ask When? --store=postgres://x"] {
            assert!(matches!(typed(&words(line)), Typed::Other), "{line}");
        }
    }

    #[test]
    fn an_alias_is_the_command() {
        for (alias, id) in [("kill", true), ("ps", false), ("list", false), ("status", true), ("attach", true)] {
            let line: Vec<OsString> =
                ["agent-cli", alias].into_iter().chain(id.then_some("last")).map(Into::into).collect();
            assert!(called(&line).is_some(), "{alias}");
        }
    }

    #[test]
    fn each_command_is_in_a_group_unless_it_is_hidden() {
        let program = Cli::command();
        for group in GROUPS {
            for names in group.commands {
                let command = program.find_subcommand(names[0]).expect("a command");
                assert_eq!(command.is_hide_set(), group.title.is_empty(), "{}", names[0]);
                assert_eq!(command.get_all_aliases().collect::<Vec<_>>(), names[1..], "{}", names[0]);
            }
        }
    }

    /// What is wrong with a command line. Which commands are suggested, and in which order, is this program's choice.
    fn without_tips(error: &clap::Error) -> String {
        let is_kept = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("tip: ");
        error.to_string().lines().filter(is_kept).collect::<Vec<_>>().join("\n")
    }

    proptest! {
        #[test]
        fn any_command_line_is_read_or_refused(
            before in prop::collection::vec(prop::sample::select(vec!["-v", "--quiet", "--color", "--color=never", "always", "ls", "--"]), 0..3),
            words in prop::collection::vec("(\\PC{0,8}|--?[a-z-]{0,12}(=\\PC{0,4})?)", 0..6),
            at in 0..12usize,
        ) {
            let names = ["spawn", "resume", "ask", "wait", "questions", "answer", "ls", "tree", "show", "completions", "hook", ""];
            let named = ["agent-cli"].into_iter().chain(before).chain([names[at]]).map(str::to_owned);
            let line: Vec<String> = named.chain(words).collect();
            let whole = Cli::try_parse_from(&line);
            let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
            match (whole, parse(&line)) {
                (Ok(whole), Ok(quick)) => prop_assert_eq!(format!("{whole:?}"), format!("{quick:?}")),
                (Err(whole), Err(quick)) => prop_assert_eq!(without_tips(&whole), without_tips(&quick)),
                (whole, quick) => prop_assert!(false, "{:?} is not {:?}", quick, whole),
            }
        }
    }
}
