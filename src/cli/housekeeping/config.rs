//! `agent-cli config`: lists and changes settings.

use std::env;
use std::fs;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::app::asker::PersonsTask;
use crate::app::config::change::{self, Changed, Files};
use crate::app::config::file;
use crate::app::config::layers::{Ignored, Settings, ValueSource, without_password};
use crate::app::config::setting::{SETTINGS, Setting};
use crate::app::config::sources::{Configuration, PROJECT_FILE};
use crate::app::config::value::SettingValue;
use crate::app::view::settings::{ConfigView, GetView};
use crate::cli::chain::answering::editor;
use crate::cli::confirm;
use crate::cli::context::{Context, config_path};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::one_line;
use crate::cli::output::{self, hint, print, print_json, print_line, tell, warn};
use crate::core::text::shell::shell_path;
use crate::core::text::wrap::{columns, wrapped};

/// List and change settings
///
/// Settings take precedence in this order: an option, a variable, the project's .agent-cli.toml, your config.toml, the default. The
/// project's file is the nearest in the current directory or above it, within the git repository. It can narrow what your own
/// file says, but not widen it: what runs a command, or loosens a permission or a limit, counts once you have trusted the file
/// with `agent-cli config trust`, and only as long as it does not change.
///
/// Without a command this lists the settings in effect and where each comes from.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  agent-cli config set spawn.model sonnet
  agent-cli config set --project limits.max-budget-usd 5
  agent-cli config set spawn.claude-args -- --max-turns=50",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    command: Option<ConfigSubcommand>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Print the value of a setting
    Get {
        #[arg(value_name = "KEY", value_parser = keys())]
        key: String,

        /// Print a JSON object, with where the value comes from
        #[arg(long)]
        json: bool,
    },
    /// Set a setting in your config file
    Set {
        #[arg(value_name = "KEY", value_parser = keys())]
        key: String,

        /// The value; of a list, each word
        #[arg(value_name = "VALUE", required = true)]
        value: Vec<String>,

        #[command(flatten)]
        which: FileArgs,
    },
    /// Remove a setting from your config file
    Unset {
        #[arg(value_name = "KEY", value_parser = keys())]
        key: String,

        #[command(flatten)]
        which: FileArgs,
    },
    /// Print the path of your config file
    Path {
        #[command(flatten)]
        which: FileArgs,
    },
    /// Open your config file in $VISUAL or $EDITOR
    Edit {
        #[command(flatten)]
        which: FileArgs,
    },
    /// Trust the project's file as it is now
    ///
    /// On a terminal, shows what the file sets and asks first.
    Trust {
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Stop trusting the project's file
    Untrust,
}

#[derive(Clone, Copy, Debug, Args)]
struct FileArgs {
    /// The project's file instead of your own
    #[arg(long)]
    project: bool,
}

impl ConfigCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Some(command) = self.command else { return list(context, self.json) };
        if let ConfigSubcommand::Get { key, json } = &command {
            return get(context, named(key)?, *json);
        }
        if let ConfigSubcommand::Path { which } = command {
            print_line(&files(context)?.path(which.file())?.display().to_string())?;
            return Ok(ExitStatus::Ok);
        }
        context.asker().may(PersonsTask::ChangeSettings)?;
        match command {
            ConfigSubcommand::Set { key, value, which } => set(context, named(&key)?, &value, which),
            ConfigSubcommand::Unset { key, which } => change(context, named(&key)?, None, which),
            ConfigSubcommand::Edit { which } => edited(context, which),
            ConfigSubcommand::Trust { yes } => trust_project(context, yes),
            ConfigSubcommand::Untrust => untrust_project(context),
            ConfigSubcommand::Get { .. } | ConfigSubcommand::Path { .. } => Ok(ExitStatus::Ok),
        }
    }
}

fn keys() -> PossibleValuesParser {
    PossibleValuesParser::new(SETTINGS.iter().map(|setting| setting.key))
}

fn named(key: &str) -> Result<&'static Setting, CliError> {
    Setting::named(key).ok_or_else(|| CliError::usage(file::unknown(key)))
}

impl FileArgs {
    fn file(self) -> change::WhichFile {
        if self.project { change::WhichFile::Project } else { change::WhichFile::User }
    }
}

fn files(context: &Context) -> Result<Files, CliError> {
    // This reads the user's file, so that what is wrong with it is said, whatever else the command does.
    drop(context.usable_configuration());
    // A server that cannot be used must not keep a person from naming another one.
    let state_dir = context.place()?;
    Ok(Files { user: config_path(), home: dirs::home_dir(), directory: env::current_dir(), state_dir })
}

fn list(context: &Context, json: bool) -> Result<ExitStatus, CliError> {
    let found = context.usable_configuration()?;
    if json {
        print_json(&ConfigView::new(&found, config_path()))?;
    } else {
        let width = output::width().unwrap_or(usize::MAX);
        print(&SETTINGS.iter().map(|setting| lines(&found.settings, setting, width)).collect::<String>())?;
    }
    Ok(report(context, &found))
}

/// Reports values that have no effect. A broken file counts as a failure.
fn report(context: &Context, found: &Configuration) -> ExitStatus {
    context.warn_of_problems(found);
    report_ignored(found, &found.settings.ignored.iter().collect::<Vec<_>>());
    if found.problems.is_empty() && found.unusable.is_empty() { ExitStatus::Ok } else { ExitStatus::Failed }
}

/// Reports values of the project's file that are ignored.
fn report_ignored(found: &Configuration, ignored: &[&Ignored]) {
    let file = found.project.as_deref().unwrap_or(Path::new(PROJECT_FILE)).display();
    for it in ignored {
        let why = if it.needs_trust { "you have not trusted the file" } else { "only your own file can set it" };
        warn(&format!("`{}` in {file} is ignored: {why}", it.setting.key));
    }
    if ignored.iter().any(|it| it.needs_trust) {
        hint("read the file, then run agent-cli config trust");
    }
}

/// A setting as TOML, unless it is not set, and a comment: its origin, or what it is for.
fn entry(settings: &Settings, setting: &Setting) -> (String, String) {
    let Some(value) = settings.shown(setting) else {
        return (String::new(), format!("{} is not set: {}", setting.key, setting.help));
    };
    let origin = match settings.origin(setting) {
        ValueSource::Default => "default".to_owned(),
        ValueSource::User(path) | ValueSource::Project(path) => path.display().to_string(),
        ValueSource::Variable(name) => format!("${name}"),
    };
    (format!("{} = {}", setting.key, value.to_toml()), one_line(&origin))
}

/// Formats a setting as a line of TOML. If that would be wider than the terminal, the comment is above the value.
fn lines(settings: &Settings, setting: &Setting, width: usize) -> String {
    let (value, comment) = entry(settings, setting);
    let line = if value.is_empty() { format!("# {comment}\n") } else { format!("{value}  # {comment}\n") };
    if columns(line.trim_end()) <= width {
        return line;
    }
    let comment = wrapped(&comment, width.saturating_sub(2), 2).join("\n# ");
    if value.is_empty() { format!("# {comment}\n") } else { format!("# {comment}\n{value}\n") }
}

fn get(context: &Context, setting: &'static Setting, json: bool) -> Result<ExitStatus, CliError> {
    let found = context.usable_configuration()?;
    context.warn_of_problems(&found);
    let ignored = found.settings.ignored.iter().find(|it| it.setting.key == setting.key);
    report_ignored(&found, &ignored.into_iter().collect::<Vec<_>>());
    if json {
        print_json(&GetView::new(&found.settings, setting, ignored))?;
        return Ok(ExitStatus::Ok);
    }
    let Some(value) = found.settings.value(setting) else {
        let error = CliError::failed(format!("{} is not set", setting.key));
        // If the project's file sets it, trusting that file is the fix, not setting it again.
        let is_ignored = ignored.is_some_and(|it| it.needs_trust);
        let hint = format!("agent-cli config set {} VALUE sets it", setting.key);
        return Err(if is_ignored { error } else { error.hint(hint) });
    };
    print_line(&value.to_string())?;
    Ok(ExitStatus::Ok)
}

fn set(context: &Context, setting: &Setting, words: &[String], which: FileArgs) -> Result<ExitStatus, CliError> {
    let value = files(context)?.value(setting, words, which.file())?;
    change(context, setting, Some(&value), which)
}

fn change(
    context: &Context,
    setting: &Setting,
    value: Option<&SettingValue>,
    which: FileArgs,
) -> Result<ExitStatus, CliError> {
    let files = files(context)?;
    let Some(changed) = files.change(&context.asker(), setting, value, which.file())? else {
        tell(&format!("{} is not set in {}", setting.key, files.path(which.file())?.display()));
        return Ok(ExitStatus::Ok);
    };
    let (key, path) = (setting.key, changed.path.display());
    tell(&match value {
        Some(value) => {
            format!("set {key} to {} in {path}", one_line(&without_password(setting, value.clone()).to_string()))
        }
        None => format!("removed {key} from {path}"),
    });
    if !changed.is_trusted {
        tell("you have not trusted the rest of that file: agent-cli config trust");
    }
    // `context` remembers the file as it was.
    let found = Context::of_person().usable_configuration();
    if let Some(instead) = found.ok().and_then(|found| overriding(&found.settings, setting, which)) {
        warn(&format!("here, {instead} sets {key}, and takes precedence"));
    }
    Ok(ExitStatus::Ok)
}

/// What sets this setting in place of the file.
fn overriding(settings: &Settings, setting: &Setting, which: FileArgs) -> Option<String> {
    match settings.origin(setting) {
        ValueSource::Variable(name) => Some(format!("${name}")),
        ValueSource::Project(path) if !which.project => Some(shell_path(path)),
        ValueSource::Project(_) | ValueSource::User(_) | ValueSource::Default => None,
    }
}

fn edited(context: &Context, which: FileArgs) -> Result<ExitStatus, CliError> {
    let files = files(context)?;
    let path = files.path(which.file())?;
    let option = if which.project { " --project" } else { "" };
    let instead = format!("agent-cli config set{option} KEY VALUE changes a setting without an editor");
    editor::refuse_without_a_terminal(&path, &instead)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| CliError::failed(format!("{}: {error}", folder.display())))?;
    }
    editor::open(&path, &format!("{} was not checked", path.display()))?;
    let Some(Changed { path, is_trusted, problems }) = files.edited(which.file())? else { return Ok(ExitStatus::Ok) };
    for problem in &problems {
        warn(&format!("{}: {problem}", path.display()));
    }
    if !is_trusted {
        tell("what runs a command, or loosens a permission or a limit, counts after agent-cli config trust");
    }
    Ok(if problems.is_empty() { ExitStatus::Ok } else { ExitStatus::Failed })
}

fn trust_project(context: &Context, is_confirmed: bool) -> Result<ExitStatus, CliError> {
    let (files, asker) = (files(context)?, context.asker());
    let source = files.project_to_trust(&asker)?;
    let settings = source.if_trusted(files.home.as_deref());
    let set = SETTINGS.iter().filter(|setting| matches!(settings.origin(setting), ValueSource::Project(_)));
    let entries: Vec<String> = set.map(|setting| entry(&settings, setting).0).collect();
    if is_confirmed {
        entries.iter().for_each(|entry| tell(entry));
    } else {
        confirm_trust(&source.path, &entries)?;
    }
    // The file may have changed since it was shown. What was shown is trusted.
    files.trust_project(&asker, &source)?;
    tell(&format!("{} is trusted with this content", source.path.display()));
    Ok(report(context, &context.configuration(&files.directory.unwrap_or_default())?))
}

/// Shows what the file sets, and asks whether to trust it.
fn confirm_trust(path: &Path, entries: &[String]) -> Result<(), CliError> {
    let path = path.display();
    if let Some(obstacle) = confirm::obstacle() {
        let error = CliError::usage(format!("cannot ask whether to trust {path}: {obstacle}"));
        return Err(error.hint("read the file; agent-cli config trust --yes trusts it without asking"));
    }
    output::ask(&entries.iter().map(|entry| format!("{entry}\n")).collect::<String>());
    if confirm::confirm(&format!("trust {path} with these settings?"))? {
        Ok(())
    } else {
        Err(CliError::declined("nothing was trusted"))
    }
}

fn untrust_project(context: &Context) -> Result<ExitStatus, CliError> {
    let (path, was_trusted) = files(context)?.untrust_project(&context.asker())?;
    let what = if was_trusted { "is not trusted any more" } else { "was not trusted" };
    tell(&format!("{} {what}", shell_path(&path)));
    Ok(ExitStatus::Ok)
}
