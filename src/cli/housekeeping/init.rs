//! `agent-cli init` and `agent-cli uninit`: add the convention to CLAUDE.md or install the plugin, and remove them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::chains::run::RunSurroundings;
use crate::app::housekeeping::setup::plugin::PluginPlan;
use crate::app::housekeeping::setup::{Place, Plan, init, uninit};
use crate::app::view::outcome::Change;
use crate::claude::environment::config_dir::config_dir;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, hint, print, print_json, print_quoted, tell, warn};
use crate::core::agent::launch::Launch;
use crate::core::requests::convention;
use crate::core::text::bars::Bars;
use crate::store::StateDir;

/// Tell the agents of this project how to start others, ask and wait
///
/// Writes the convention into CLAUDE.md in the current directory, between two marker lines: the words with which instruction files
/// start agents, ask you and wait, such as `_spawn_`. Also creates hello.md, a task to try, unless there is one. Shows the change
/// and asks first. Run again, it updates only what is between the markers; `agent-cli uninit` removes all of it.
///
/// If CLAUDE.md already defines the words, or a file that agents here get as well, nothing is written. No permission rules are
/// needed: agent-cli lets its agents make requests, and nothing else.
///
/// With --plugin, nothing is written into CLAUDE.md. Instead, the plugin for Claude Code is installed, with which sessions start chains
/// and hear about them: `claude plugin` registers it for you in all projects. Run again, it is updated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli init && agent-cli spawn hello.md
  agent-cli init --user --dry-run
  agent-cli init --plugin
  agent-cli init --print >> AGENTS.md")]
pub(crate) struct Init {
    /// Print the convention, and do nothing else
    #[arg(long, conflicts_with = "SetupOptions")]
    print: bool,

    #[command(flatten)]
    options: SetupOptions,
}

/// Remove what `agent-cli init` has written
///
/// Removes the text between the markers of agent-cli from CLAUDE.md, together with the markers, and hello.md if you have not changed
/// it. Everything else stays as it is. If `agent-cli init` created CLAUDE.md and it contains nothing else, the file is removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli uninit --dry-run
  agent-cli uninit --user")]
pub(crate) struct Uninit {
    #[command(flatten)]
    options: SetupOptions,
}

#[derive(Debug, Args)]
struct SetupOptions {
    /// The CLAUDE.md in your Claude Code directory, for all of your projects
    #[arg(long)]
    user: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,

    /// Print the change, and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// The plugin for Claude Code sessions, instead of CLAUDE.md
    #[arg(long, conflicts_with_all = ["user", "json"])]
    plugin: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Init {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::SetUp)?;
        if self.print {
            print(convention::TEXT)?;
            return Ok(ExitStatus::Ok);
        }
        if self.options.plugin {
            let plan = PluginPlan::install(plugin_directory(context)?, context.claude(None)?);
            return self.options.carry_out_for_plugin(context, "init", &plan);
        }
        let plan = init::plan(&context.asker(), &self.options.place()?)?;
        self.options.carry_out(context, "init", &plan)
    }
}

impl Uninit {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        if self.options.plugin {
            let plan = PluginPlan::remove(plugin_directory(context)?, context.claude(None)?);
            return self.options.carry_out_for_plugin(context, "uninit", &plan);
        }
        let plan = uninit::plan(&context.asker(), &self.options.place()?)?;
        self.options.carry_out(context, "uninit", &plan)
    }
}

impl SetupOptions {
    fn place(&self) -> Result<Place, CliError> {
        let config = config_dir(&Launch::default()).and_then(|config| std::path::absolute(config).ok());
        if self.user {
            let config = config.ok_or_else(|| CliError::failed("there is no home directory").hint("set HOME"))?;
            return Ok(Place::User(config));
        }
        let directory = fs::canonicalize(".")
            .map_err(|error| CliError::failed(format!("the current directory cannot be used: {error}")))?;
        Ok(Place::Project { directory, config })
    }

    /// Shows the change, asks for confirmation, and carries the change out.
    fn carry_out(&self, context: &Context, command: &str, plan: &Plan) -> Result<ExitStatus, CliError> {
        plan.hides.as_deref().into_iter().for_each(|hidden| warn_of_hidden(hidden, plan.file()));
        if self.dry_run {
            if self.json {
                print_json(&plan.view(true))?;
            } else {
                print_quoted(&shown(plan, output::width()))?;
                print(&report(plan, true))?;
            }
            return Ok(ExitStatus::Ok);
        }
        if plan.change != Change::Unchanged {
            if !self.yes {
                self.confirm(command, plan)?;
            }
            plan.carry_out(&context.asker())?;
        }
        if self.json {
            print_json(&plan.view(false))?;
        } else {
            print(&report(plan, false))?;
        }
        explain(plan);
        Ok(ExitStatus::Ok)
    }

    /// Shows the commands for the plugin, asks for confirmation, and runs them.
    fn carry_out_for_plugin(
        &self,
        context: &Context,
        command: &str,
        plan: &PluginPlan,
    ) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::SetUp)?;
        let directory = plan.directory.display();
        let is_removal = command == "uninit";
        let files = format!("would {} {directory}\n", if is_removal { "remove" } else { "write" });
        let calls = plan.commands().into_iter().map(|call| format!("would run {call}\n"));
        let shown = if is_removal { calls.chain([files]).collect() } else { files + &calls.collect::<String>() };
        if self.dry_run {
            print(&shown)?;
            return Ok(ExitStatus::Ok);
        }
        if !self.yes {
            if let Some(obstacle) = confirm::obstacle() {
                let error =
                    CliError::usage(format!("cannot ask whether to change your Claude Code settings: {obstacle}"));
                return Err(error.hint(format!(
                    "agent-cli {command} --plugin --yes changes them without asking, --dry-run shows how"
                )));
            }
            output::ask(&shown);
            if !confirm::confirm("do this?")? {
                return Err(CliError::declined("nothing was changed"));
            }
        }
        plan.carry_out(&context.asker())?;
        print(if is_removal { "the plugin was removed\n" } else { "the plugin is installed\n" })?;
        hint("sessions that are already running notice it after /reload-plugins");
        Ok(ExitStatus::Ok)
    }

    fn confirm(&self, command: &str, plan: &Plan) -> Result<(), CliError> {
        let command = if self.user { format!("{command} --user") } else { command.to_owned() };
        let file = plan.file().display();
        if let Some(obstacle) = confirm::obstacle() {
            return Err(CliError::usage(format!("cannot ask whether to change {file}: {obstacle}"))
                .hint(format!("agent-cli {command} --yes changes it without asking, --dry-run shows how")));
        }
        output::ask(&shown(plan, output::width_of_errors()));
        let question = match plan.change {
            Change::Deleted | Change::Removed => "remove this?",
            _ => "write this?",
        };
        if confirm::confirm(question)? { Ok(()) } else { Err(CliError::declined("nothing was changed")) }
    }
}

/// The directory of the plugin's files. Claude Code reads them there.
fn plugin_directory(context: &Context) -> Result<PathBuf, CliError> {
    Ok(context.state_dir()?.join(StateDir::PLUGIN))
}

/// Formats the change of each file.
fn shown(plan: &Plan, width: Option<usize>) -> String {
    /// How many lines to show around a change.
    const CONTEXT: usize = 3;
    let mut view = Bars::new(width);
    for (path, old, new) in plan.texts() {
        view.named("", &if path == plan.file() { named(plan) } else { path.display().to_string() });
        view.diff_of_file(old, new, 1, CONTEXT);
    }
    view.text()
}

/// The path of CLAUDE.md. If it is a link, its target is added.
fn named(plan: &Plan) -> String {
    let leads_to = plan.leads_to().map(|target| format!(" (a link to {})", target.display())).unwrap_or_default();
    format!("{}{leads_to}", plan.file().display())
}

/// Formats one line for each file.
fn report(plan: &Plan, is_dry: bool) -> String {
    let done = match (plan.change, is_dry) {
        (Change::Unchanged, _) => "unchanged",
        (Change::Added | Change::Updated, false) => "wrote",
        (Change::Added | Change::Updated, true) => "would write",
        (Change::Deleted, false) => "removed",
        (Change::Deleted, true) => "would remove",
        (Change::Removed, false) => "removed the section of agent-cli from",
        (Change::Removed, true) => "would remove the section of agent-cli from",
    };
    let verb = match (plan.change == Change::Added, is_dry) {
        (true, false) => "wrote",
        (true, true) => "would write",
        (false, false) => "removed",
        (false, true) => "would remove",
    };
    let file = format!("{done} {}\n", named(plan));
    file + &plan.task.iter().map(|task| format!("{verb} {}\n", task.display())).collect::<String>()
}

/// Warns that agents will lose the instructions of a directory above.
fn warn_of_hidden(hidden: &Path, file: &Path) {
    let (shown, file) = (hidden.display(), file.display());
    warn(&format!("with {file}, agents here no longer get the instructions in {shown}"));
    if let Some(folder) = hidden.ancestors().skip(1).find(|folder| !folder.ends_with(".claude")) {
        hint(&format!("agent-cli init in {} keeps it", folder.display()));
    }
}

/// Explains what a person should know afterwards.
fn explain(plan: &Plan) {
    if let Some((path, missing)) = &plan.defined_in {
        let (is_other, path) = (path != plan.file(), path.display());
        if is_other {
            tell(&format!("agents here are already told by {path}"));
            hint("agent-cli init --print prints the text, if this project should have its own");
        } else if missing.is_empty() {
            tell(&format!("{path} already defines the words of instruction files, without the markers of agent-cli"));
            hint("to let agent-cli keep it up to date, remove that text, then run agent-cli init");
        } else {
            warn(&format!("{path} defines some words of instruction files, but not {}", convention::listed(missing)));
            hint("remove that text, then run agent-cli init; agent-cli init --print shows all of it");
        }
    }
    if let Some(task) = &plan.kept_task {
        let is_new = plan.change == Change::Added;
        let why = if is_new { "was there before" } else { "was changed since agent-cli init wrote it" };
        tell(&format!("{} {why}: it stays", task.display()));
    }
    if plan.change == Change::Added && plan.task.is_some() {
        hint("agent-cli spawn hello.md starts an agent that asks you a question");
    }
}
