//! `agent-cli config`: lists and changes settings.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::app::asker::PersonsTask;
use crate::app::config::layers::{Origin, Settings};
use crate::app::config::setting::{InProject, SETTINGS, Setting};
use crate::app::config::sources::{self, Configuration, PROJECT_FILE, Source};
use crate::app::config::trust;
use crate::app::config::value::{Kind, Value};
use crate::app::config::{edit, file};
use crate::app::view::settings::{ConfigView, IgnoredView, SettingView};
use crate::cli::chain::answering::editor;
use crate::cli::context::{Context, config_path};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::one_line;
use crate::cli::output::{hint, print, print_json, print_line, tell, warn};
use crate::core::text::shell::shell_path;

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
        which: Which,
    },
    /// Remove a setting from your config file
    Unset {
        #[arg(value_name = "KEY", value_parser = keys())]
        key: String,

        #[command(flatten)]
        which: Which,
    },
    /// Print the path of your config file
    Path {
        #[command(flatten)]
        which: Which,
    },
    /// Open your config file in $VISUAL or $EDITOR
    Edit {
        #[command(flatten)]
        which: Which,
    },
    /// Trust the project's file as it is now
    Trust,
    /// Stop trusting the project's file
    Untrust,
}

#[derive(Clone, Copy, Debug, Args)]
struct Which {
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
            print_line(&target(which)?.display().to_string())?;
            return Ok(ExitStatus::Ok);
        }
        context.asker().may(PersonsTask::ChangeSettings)?;
        match command {
            ConfigSubcommand::Set { key, value, which } => set(context, named(&key)?, &value, which),
            ConfigSubcommand::Unset { key, which } => unset(context, named(&key)?, which),
            ConfigSubcommand::Edit { which } => edited(context, which),
            ConfigSubcommand::Trust => trust_project(context),
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

fn current_dir() -> Result<PathBuf, CliError> {
    env::current_dir().map_err(|error| CliError::failed(format!("the current directory cannot be used: {error}")))
}

/// The file that a command is about, whether it exists or not.
fn target(which: Which) -> Result<PathBuf, CliError> {
    if !which.project {
        return config_path().ok_or_else(|| {
            CliError::failed("no home directory to keep a config file in").hint("set AGENT_CLI_CONFIG to its path")
        });
    }
    let cwd = current_dir()?;
    Ok(sources::project_path(&cwd).unwrap_or_else(|| sources::project_folder(&cwd).join(PROJECT_FILE)))
}

fn list(context: &Context, json: bool) -> Result<ExitStatus, CliError> {
    let found = context.usable_configuration()?;
    if json {
        print_json(&ConfigView {
            settings: SETTINGS.iter().map(|setting| described(&found.settings, setting)).collect(),
            ignored: found.settings.ignored.iter().map(ignored).collect(),
            user_file: config_path(),
            project_file: found.project.clone(),
            is_project_trusted: found.is_project_trusted,
        })?;
    } else {
        print(&SETTINGS.iter().map(|setting| line(&found.settings, setting)).collect::<String>())?;
    }
    Ok(report(&found))
}

/// Says what does not count. What is wrong with a file is a failure.
fn report(found: &Configuration) -> ExitStatus {
    for problem in &found.problems {
        warn(&format!("{}: {}", problem.path.display(), problem.what));
    }
    let file = found.project.as_deref().unwrap_or(Path::new(PROJECT_FILE)).display();
    for it in &found.settings.ignored {
        let why = if it.needs_trust { "you have not trusted the file" } else { "only your own file can set it" };
        warn(&format!("`{}` in {file} is ignored: {why}", it.setting.key));
    }
    if found.settings.ignored.iter().any(|it| it.needs_trust) {
        hint("read the file, then run agent-cli config trust");
    }
    if found.problems.is_empty() { ExitStatus::Ok } else { ExitStatus::Failed }
}

/// A setting as a line of TOML, with where it comes from.
fn line(settings: &Settings, setting: &Setting) -> String {
    let Some(value) = settings.value(setting) else {
        return format!("# {} is not set: {}\n", setting.key, setting.help);
    };
    let origin = match settings.origin(setting) {
        Origin::Default => "default".to_owned(),
        Origin::User(path) | Origin::Project(path) => path.display().to_string(),
        Origin::Variable(name) => format!("${name}"),
    };
    format!("{} = {}  # {}\n", setting.key, value.to_toml(), one_line(&origin))
}

fn described(settings: &Settings, setting: &'static Setting) -> SettingView {
    let (origin, file, variable) = match settings.origin(setting) {
        Origin::Default => ("default", None, None),
        Origin::User(path) => ("user", Some(path.clone()), None),
        Origin::Project(path) => ("project", Some(path.clone()), None),
        Origin::Variable(name) => ("environment", None, Some(*name)),
    };
    let value = settings.value(setting).map(|value| value.to_json());
    SettingView { key: setting.key, value, origin, file, variable, help: setting.help }
}

fn ignored(it: &crate::app::config::layers::Ignored) -> IgnoredView {
    IgnoredView { key: it.setting.key, value: it.value.to_json(), needs_trust: it.needs_trust }
}

fn get(context: &Context, setting: &'static Setting, json: bool) -> Result<ExitStatus, CliError> {
    let found = context.usable_configuration()?;
    for problem in &found.problems {
        warn(&format!("{}: {}", problem.path.display(), problem.what));
    }
    if json {
        print_json(&described(&found.settings, setting))?;
        return Ok(ExitStatus::Ok);
    }
    let Some(value) = found.settings.value(setting) else {
        return Err(CliError::failed(format!("{} is not set", setting.key))
            .hint(format!("agent-cli config set {} VALUE", setting.key)));
    };
    print_line(&value.to_string())?;
    Ok(ExitStatus::Ok)
}

fn set(context: &Context, setting: &Setting, words: &[String], which: Which) -> Result<ExitStatus, CliError> {
    let wrong = |wanted: &str| CliError::usage(format!("{} is not {wanted}", setting.key));
    let value = match (setting.kind, words) {
        (Kind::Words, words) => Value::Words(words.to_vec()),
        (kind, [word]) => Value::from_text(kind, word).map_err(|wanted| {
            CliError::usage(format!("{word:?} is not {wanted}")).hint(format!("{} is {}", setting.key, setting.help))
        })?,
        (_, _) => return Err(wrong("a list").hint("put a value of several words into quotes")),
    };
    if which.project && setting.in_project == InProject::Never {
        return Err(CliError::usage(format!("{} cannot be set for a project", setting.key))
            .hint("leave --project out: it is about all of your chains"));
    }
    // A path is meant from where it is typed.
    let value = match setting.kind {
        Kind::Path => value.in_folder(Kind::Path, &current_dir()?, dirs::home_dir().as_deref()),
        _ => value,
    };
    change(context, setting, Some(&value), which)
}

fn unset(context: &Context, setting: &Setting, which: Which) -> Result<ExitStatus, CliError> {
    change(context, setting, None, which)
}

/// Changes a file. A project's file that was trusted, or that is new, is trusted as it is then: the change is the user's own.
fn change(context: &Context, setting: &Setting, value: Option<&Value>, which: Which) -> Result<ExitStatus, CliError> {
    let path = target(which)?;
    let source = read(&path, which)?;
    let before = source.as_ref().map_or("", |source| source.text.as_str());
    let is_own = source.as_ref().is_none_or(|source| is_trusted(context, source));
    let cannot = |why: String| CliError::failed(format!("{} was not changed: {why}", path.display()));
    let after = edit::with(before, setting, value).map_err(cannot)?;
    trust::replace(&path, &after, 0o644).map_err(|error| cannot(error.to_string()))?;
    if which.project && is_own {
        add_trust(context, &path, &after)?;
    }
    let done = value.map_or("removed".to_owned(), |value| format!("set to {}", one_line(&value.to_string())));
    tell(&format!("{} is {done} in {}", setting.key, path.display()));
    if which.project && !is_own {
        tell("you have not trusted the rest of that file: agent-cli config trust");
    }
    Ok(ExitStatus::Ok)
}

fn read(path: &Path, which: Which) -> Result<Option<Source>, CliError> {
    let read = if which.project { sources::project_file(&current_dir()?) } else { sources::user_file(path) };
    read.map_err(|error| CliError::failed(error.to_string()).hint(error.hint))
}

fn is_trusted(context: &Context, source: &Source) -> bool {
    context.trust().is_ok_and(|trust| trust.includes(&source.path, &source.text))
}

fn add_trust(context: &Context, path: &Path, text: &str) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("{} is not trusted: {error}", path.display()));
    // It makes the state directory, which is private.
    context.store()?;
    context.trust()?.add(path, text).map_err(failed)
}

fn edited(context: &Context, which: Which) -> Result<ExitStatus, CliError> {
    let path = target(which)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| CliError::failed(format!("{}: {error}", folder.display())))?;
    }
    editor::open(&path, "nothing was changed")?;
    let Some(source) = read(&path, which)? else { return Ok(ExitStatus::Ok) };
    for problem in source.problems() {
        warn(&format!("{}: {problem}", path.display()));
    }
    if which.project && !is_trusted(context, &source) {
        tell("what runs a command, or loosens a permission or a limit, counts after agent-cli config trust");
    }
    Ok(if source.problems().is_empty() { ExitStatus::Ok } else { ExitStatus::Failed })
}

fn project() -> Result<Source, CliError> {
    let cwd = current_dir()?;
    let found = sources::project_file(&cwd).map_err(|error| CliError::failed(error.to_string()).hint(error.hint))?;
    found.ok_or_else(|| {
        CliError::failed(format!("there is no {PROJECT_FILE} here, or above within a git repository"))
            .hint("agent-cli config edit --project makes one")
    })
}

fn trust_project(context: &Context) -> Result<ExitStatus, CliError> {
    let source = project()?;
    if let Some(problem) = source.problems().first() {
        return Err(CliError::usage(format!("{}: {problem}", source.path.display())).hint("fix it first"));
    }
    add_trust(context, &source.path, &source.text)?;
    tell(&format!("{} is trusted as it is now", source.path.display()));
    let found = context.configuration(&current_dir()?)?;
    for setting in SETTINGS {
        if matches!(found.settings.origin(setting), Origin::Project(_)) {
            tell(line(&found.settings, setting).split("  # ").next().unwrap_or_default());
        }
    }
    Ok(report(&found))
}

fn untrust_project(context: &Context) -> Result<ExitStatus, CliError> {
    let source = project()?;
    let failed =
        |error: std::io::Error| CliError::failed(format!("the list of trusted files was not changed: {error}"));
    let had = context.trust()?.remove(&source.path).map_err(failed)?;
    let what = if had { "is not trusted any more" } else { "was not trusted" };
    tell(&format!("{} {what}", shell_path(&source.path)));
    Ok(ExitStatus::Ok)
}
