//! `agent-cli notifications`: lists notifications with their outcomes, and tests commands.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;

use crate::app::asker::PersonsTask;
use crate::app::lists::notifications;
use crate::app::view::outcome::{NotificationStatus, NotificationView};
use crate::cli::arguments::at_least_one;
use crate::cli::context::{Context, config_path};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, table};
use crate::cli::output::{hint, print, print_json, print_line, tell, warn};
use crate::core::notifications::occasion::Occasion;
use crate::core::text::time::time_until;
use crate::runtime::notifications::config_file::ConfigFile;

/// List notifications, and whether they could be sent
///
/// agent-cli runs your commands when something happens that you want to know about. The commands are in the config
/// file: $AGENT_CLI_CONFIG, or by default agent-cli/config.toml in your configuration directory (~/.config).
///
/// The keys are question, approval, done, failed, limit, stalled and budget; timeout is how long a command may take. A
/// command gets a JSON object on standard input and the main fields in its environment. `spawn`, `resume` and `watch`
/// run it, and run it again after a while if it fails, six times in all.
#[derive(Debug, Args)]
#[command(after_help = "A config file:
  [on]
  question = \"notify-send -- \\\"$AGENT_CLI_CHAIN_NAME asks\\\" \\\"$AGENT_CLI_MESSAGE\\\"\"
  timeout = \"10s\"

Example:
  agent-cli notifications --test question")]
pub(crate) struct NotificationsCommand {
    /// Run the command for EVENT now with an example, and say whether it succeeds
    #[arg(long, value_name = "EVENT", value_parser = event())]
    test: Option<Occasion>,

    /// List the newest, at most this many [default: 20, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<usize>, conflicts_with = "test")]
    limit: Option<usize>,

    /// Print a JSON array; with --test an object
    #[arg(long)]
    json: bool,
}

/// The default limit of the list.
const MOST: usize = 20;

impl NotificationsCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // Checked before anything is read.
        context.asker().may(PersonsTask::SeeNotifications)?;
        if let Some(event) = self.test {
            return try_out(context, event, self.json);
        }
        let most = self.limit.unwrap_or(if self.json { usize::MAX } else { MOST });
        let listed = notifications::notifications(&context.app(&context.store()?), most)?;
        if self.json {
            print_json(&listed)?;
            return Ok(ExitStatus::Ok);
        }
        if listed.is_empty() {
            tell("no notifications");
            if !context.config().is_ok_and(|config| config.is_some()) {
                hint("agent-cli notifications --help says how to get some");
            }
            return Ok(ExitStatus::Ok);
        }
        let now = Timestamp::now();
        let head = ["EVENT", "CHAIN", "WHEN", ""].map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(listed.iter().map(|it| row(it, now))).collect();
        print(&table(&rows))?;
        Ok(ExitStatus::Ok)
    }
}

fn try_out(context: &Context, event: Occasion, json: bool) -> Result<ExitStatus, CliError> {
    let config = config_of(context)?;
    for problem in &config.problems {
        warn(&format!("{}: {problem}", config.path.display()));
    }
    let own_program = context.settings(None)?.own_program;
    let tried = notifications::try_out(&context.asker(), &context.state_dir()?, &config, &own_program, event)?;
    if json {
        print_json(&tried)?;
    } else if tried.sent {
        print_line(&format!("the command for {} succeeded", event.name()))?;
    }
    match tried.why {
        None => Ok(ExitStatus::Ok),
        Some(_) if json => Ok(ExitStatus::Failed),
        Some(why) => Err(CliError::failed(format!("the command for {} failed: {why}", event.name()))
            .hint(format!("{} has it", config.path.display()))),
    }
}

fn config_of(context: &Context) -> Result<ConfigFile, CliError> {
    let none = || {
        let path = config_path().map(|path| path.display().to_string());
        CliError::failed("there is no config file").hint(match path {
            Some(path) => format!("write {path}; agent-cli notifications --help has an example"),
            None => "set AGENT_CLI_CONFIG".to_owned(),
        })
    };
    let config = context.config().map_err(|error| CliError::failed(error.to_string()).hint(error.hint))?;
    config.ok_or_else(none)
}

fn row(listed: &NotificationView, now: Timestamp) -> Vec<String> {
    let why = listed.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let status = match (listed.status, listed.next_try) {
        (NotificationStatus::Pending, Some(due)) if listed.failures > 0 => {
            format!("failed, next try in {}{why}", time_until(due, now))
        }
        (NotificationStatus::Pending, _) => "not sent yet".to_owned(),
        (NotificationStatus::Failed, _) => format!("could not be sent{why}"),
        (NotificationStatus::Outdated, _) => "not sent, because it was outdated".to_owned(),
        (NotificationStatus::Sent, _) => "sent".to_owned(),
    };
    vec![listed.event.clone(), listed.chain.short(), format!("{} ago", age(listed.at, now)), status]
}

fn event() -> impl TypedValueParser<Value = Occasion> {
    let parser = PossibleValuesParser::new(Occasion::ALL.map(Occasion::name));
    parser.try_map(|name| Occasion::named(&name).ok_or("unknown"))
}
