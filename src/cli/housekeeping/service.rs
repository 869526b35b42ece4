//! `agent-cli service`: installs what continues chains without a person.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::app::asker::PersonsTask;
use crate::app::housekeeping::hosts;
use crate::app::housekeeping::service::{self, Input, Outcome};
use crate::claude::doctor::surroundings;
use crate::claude::environment::variables::Variables;
use crate::claude::invocation::STATE_DIR;
use crate::cli::arguments::at_least_one;
use crate::cli::context::{CONFIG, Context, config_of_this_shell};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, print, print_json, tell, warn};
use crate::core::housekeeping::hosting::Labels;
use crate::core::housekeeping::service_units::Duty;
use crate::core::text::shell::quoted;
use crate::runtime::housekeeping::service::{Manager, PlannedFile, Service, ServiceError, ServicePlan};

/// Install a service that continues chains
///
/// Installs a systemd user timer (on macOS a launchd agent) that runs `agent-cli resume --all` every minute. It also
/// catches up after the machine was off or asleep. No process runs in between. With `--work`, a systemd service or launchd agent
/// keeps `agent-cli work` running instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli service install --dry-run
  agent-cli service install
  agent-cli service install --save-login --max-parallel-total 8
  agent-cli service install --work --labels gpu
  agent-cli service status --json")]
pub(crate) struct ServiceCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the files of the service and start it, and print what was written
    Install {
        /// How many agents may run at once over all chains [default: 4]
        #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
        max_parallel_total: Option<u32>,

        /// Keep `agent-cli work` running instead; requires a server that hosts share
        #[arg(long)]
        work: bool,

        /// With --work: the labels of this host, separated by commas [default: the setting labels]
        #[arg(long, value_name = "LABELS", requires = "work")]
        labels: Option<Labels>,

        /// Save the login variables of this shell to a file that only you can read
        #[arg(long)]
        save_login: bool,

        /// Print the files and commands, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the service is installed and active
    Status {
        /// Print a JSON object: installed, active, lingers, files
        #[arg(long)]
        json: bool,
    },
    /// Stop the service and remove its files, also the one with saved variables
    Uninstall,
}

impl ServiceCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::ChangeService)?;
        let service = Service::of_user()?;
        match self.action {
            Action::Install { max_parallel_total, work, labels, save_login, dry_run } => {
                let duty = if work { Duty::Work { labels } } else { Duty::Resume };
                install(context, &service, duty, max_parallel_total, save_login, dry_run)?;
            }
            Action::Status { json: true } => print_json(&service.status())?,
            Action::Status { json: false } => print(&described(&service))?,
            Action::Uninstall => {
                let (removed, failed) = service.uninstall()?;
                if let Some(error) = failed {
                    warn(&error.to_string());
                    hint("if the service is running, it ends when you log out");
                }
                if removed.is_empty() {
                    tell("the service is not installed");
                }
                print(&lines("removed", &removed))?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}

fn install(
    context: &Context,
    service: &Service,
    duty: Duty,
    max_parallel: Option<u32>,
    save_login: bool,
    dry_run: bool,
) -> Result<(), CliError> {
    if let Duty::Work { .. } = duty {
        hosts::shared(&context.store()?)?;
    }
    let mut paths = vec![(STATE_DIR, context.state_dir()?)];
    paths.extend(config_of_this_shell().map(|path| (CONFIG, path)));
    let program = &context.settings(None)?.own_program;
    let shell = Variables::of_process();
    let around = surroundings::look(Path::new("/"), &shell, &context.launch()?);
    let input = Input { program, paths: &paths, duty, max_parallel, save_login };
    let value = |name: &str| shell.value(name).map(OsStr::to_owned);
    if dry_run {
        return print_plan(&service::plan(&context.asker(), service, &input, &around, value)?);
    }
    let Outcome { installed, has_nothing_to_save, missing_login } =
        service::install(&context.asker(), service, &input, &around, value)?;
    for PlannedFile { path, is_there, .. } in &installed.files {
        print(&format!("{} {}\n", if *is_there { "unchanged" } else { "wrote" }, path.display()))?;
    }
    if let Some(path) = &installed.removed {
        print(&format!("removed {}\n", path.display()))?;
    }
    if let Some(error) = installed.failed {
        return Err(error.into());
    }
    let environment = service.environment().display();
    if has_nothing_to_save {
        tell("this shell has no login variables to save");
    }
    if !missing_login.is_empty() {
        let missing = missing_login.join(", ");
        warn(&format!(
            "the login exists only in this shell's environment ({missing}), which the service does not have"
        ));
        hint(&format!("agent-cli service install --save-login writes it to {environment}, which only you can read"));
    }
    report(service);
    Ok(())
}

fn print_plan(plan: &ServicePlan) -> Result<(), CliError> {
    // Others may see what is printed.
    let hidden = |line: &str| match line.split_once('=') {
        Some((name, _)) if !line.starts_with('#') => format!("{name}=\"(its value)\""),
        _ => line.to_owned(),
    };
    for PlannedFile { path, text, mode, is_there } in &plan.files {
        let shown = |line: &str| if mode & 0o077 == 0 { hidden(line) } else { line.to_owned() };
        if *is_there {
            print(&format!("unchanged {}\n", path.display()))?;
            continue;
        }
        print(&format!("would write {}\n", path.display()))?;
        let text: String = text.lines().map(|line| format!("  {}", shown(line)).trim_end().to_owned() + "\n").collect();
        print(&text)?;
    }
    if let Some(path) = &plan.removed {
        print(&format!("would remove {}\n", path.display()))?;
    }
    for command in &plan.commands {
        print(&format!("would run {}\n", command.join(" ")))?;
    }
    Ok(())
}

/// The hint if the service ends with the user's session.
const LINGER: &str = "loginctl enable-linger lets it run always";

/// What the installed service does while it is active.
fn effect(service: &Service) -> &'static str {
    if service.keeps_working() {
        "the service keeps agent-cli work running"
    } else {
        "the service continues chains every minute"
    }
}

/// Explains what a person should know about a newly installed service.
fn report(service: &Service) {
    tell(&format!("{}; agent-cli service status shows whether it is active", effect(service)));
    if service.manager() == Manager::Systemd && service.status().lingers == Some(false) {
        warn("the service only runs while you are logged in");
        hint(LINGER);
    }
}

fn described(service: &Service) -> String {
    let status = service.status();
    let mut text = match (status.installed, status.active) {
        (false, _) => "not installed\n".to_owned(),
        (true, true) => format!("installed, and active: {}\n", effect(service)),
        (true, false) => "installed, but not active\n".to_owned(),
    };
    if status.installed && !status.active {
        hint("agent-cli service install starts it");
    }
    match status.lingers.filter(|_| status.installed) {
        Some(true) => text.push_str("runs while you are logged out, too\n"),
        Some(false) => {
            text.push_str("only runs while you are logged in\n");
            hint(LINGER);
        }
        None => {}
    }
    text + &lines("file", &status.files)
}

fn lines(what: &str, paths: &[PathBuf]) -> String {
    paths.iter().fold(String::new(), |mut text, path| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what} {}", path.display());
        text
    })
}

impl From<ServiceError> for CliError {
    fn from(error: ServiceError) -> Self {
        let failed = Self::failed(error.to_string());
        match error {
            ServiceError::Write { .. } | ServiceError::Remove { .. } => {
                failed.hint("check the permissions of its folder")
            }
            ServiceError::SeveralLines(name) => failed.hint(format!(
                "leave out --save-login, and put {} into \"env\" in Claude Code's settings",
                quoted(&name)
            )),
            ServiceError::Manager { .. } => failed
                .hint("without a service manager of the user, use cron: * * * * * agent-cli resume --all")
                .hint("agent-cli service uninstall removes the files that were written"),
            ServiceError::ControlCharacter { .. } => failed.hint("use a directory without them"),
            ServiceError::NotUtf8 { .. } => failed.hint("rename it"),
            ServiceError::NoHome => failed.hint("set HOME"),
            ServiceError::RelativeHome(_) => failed.hint("set HOME to an absolute path"),
        }
    }
}
