//! Reads settings from their sources: two files, and variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::app::config::file::{self, Parsed};
use crate::app::config::layers::{Layer, Settings, ValueSource};
use crate::app::config::setting::SETTINGS;
use crate::app::config::trust::Trust;
use crate::app::config::value::SettingValue;
use crate::runtime::notifications::config_file::{self, BadConfig, ConfigFile, LARGEST};

/// The name of the project's settings file.
pub(crate) use crate::runtime::notifications::config_file::PROJECT_FILE;

/// A settings file, as it was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub path: PathBuf,
    pub text: String,
    parsed: Parsed,
}

/// A problem in a settings file.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub path: PathBuf,
    pub what: String,
}

/// The settings that apply to a directory, and their sources.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub settings: Settings,
    /// The project's file, if any.
    pub project: Option<PathBuf>,
    /// Whether the user trusts it.
    pub is_project_trusted: bool,
    /// Files that are ignored as a whole.
    pub unusable: Vec<BadConfig>,
    pub problems: Vec<Problem>,
}

/// Reads the user's file at `path`. `None` if it does not exist.
pub(crate) fn user_file(path: &Path) -> Result<Option<Source>, BadConfig> {
    config_file::text(path)?.map(|text| Source::new(path.to_owned(), text)).transpose()
}

/// Reads the project's file for work in `cwd`. The file is in that folder or above it, within the git repository.
/// Reads the commands in the user's file, with all problems of the file.
pub(crate) fn commands_in(path: &Path) -> Result<Option<ConfigFile>, BadConfig> {
    let Some(config) = config_file::read(path)? else { return Ok(None) };
    let problems = user_file(path)?.map(|source| source.problems().to_vec());
    Ok(Some(ConfigFile { problems: problems.unwrap_or_default(), ..config }))
}

pub(crate) fn project_file(cwd: &Path) -> Result<Option<Source>, BadConfig> {
    let Some(path) = project_path(cwd) else { return Ok(None) };
    let bad = |why: String| BadConfig {
        path: path.clone(),
        why,
        hint: "make it a readable file with settings, or remove it".to_owned(),
    };
    let unreadable = |error: &io::Error| bad(format!("cannot be read: {error}"));
    let found = fs::metadata(&path).map_err(|error| unreadable(&error))?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(bad("is not a file with settings".to_owned()));
    }
    let text = fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
    Source::new(path, text).map(Some)
}

/// The path of the project's file for work in `cwd`, if it exists. The search goes above `cwd` only within a repository,
/// because a file in a folder that every user can write to belongs to no project.
pub(crate) fn project_path(cwd: &Path) -> Option<PathBuf> {
    let top = project_folder(cwd);
    let folders = cwd.ancestors().take_while(|folder| folder.starts_with(top));
    folders.map(|folder| folder.join(PROJECT_FILE)).find(|path| path.symlink_metadata().is_ok())
}

/// The top of the repository of `cwd`, or `cwd`.
pub(crate) fn project_folder(cwd: &Path) -> &Path {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

impl Source {
    fn new(path: PathBuf, text: String) -> Result<Self, BadConfig> {
        let parsed = file::parse(&text).map_err(|why| config_file::not_toml(&path, &why))?;
        Ok(Self { path, text, parsed })
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.parsed.problems
    }

    fn layer(&self, origin: &ValueSource, home: Option<&Path>, is_trusted: bool) -> Layer {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let values = SETTINGS.iter().filter_map(|setting| {
            let value = self.parsed.values.get(setting.key)?.clone().in_folder(setting.kind, folder, home);
            Some((setting.key, (value, origin.clone())))
        });
        Layer { values: values.collect(), is_trusted }
    }
}

impl Source {
    /// What this project's file sets once it is trusted, whatever takes precedence over it.
    pub(crate) fn if_trusted(&self, home: Option<&Path>) -> Settings {
        Settings::resolve(vec![self.layer(&ValueSource::Project(self.path.clone()), home, true)])
    }
}

impl Configuration {
    /// Resolves the settings for a directory from the user's file, the project's file and the environment. `variable` looks
    /// up a variable.
    pub(crate) fn resolve(
        user: Option<&Source>,
        project: Option<&Source>,
        trust: Option<&Trust>,
        home: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, (&'static str, String)> {
        let is_trusted = |source: &&Source| trust.is_some_and(|trust| trust.includes(&source.path, &source.text));
        let is_project_trusted = project.as_ref().is_some_and(is_trusted);
        let own = user.map(|source| source.layer(&ValueSource::User(source.path.clone()), home, true));
        let shared =
            project.map(|source| source.layer(&ValueSource::Project(source.path.clone()), home, is_project_trusted));
        let layers = own.into_iter().chain(shared).chain([of_variables(variable)?]).collect();
        let problems = user.into_iter().chain(project).flat_map(|source| {
            source.problems().iter().map(|what| Problem { path: source.path.clone(), what: what.clone() })
        });
        Ok(Self {
            settings: Settings::resolve(layers),
            project: project.map(|source| source.path.clone()),
            is_project_trusted,
            unusable: Vec::new(),
            problems: problems.collect(),
        })
    }
}

/// Reads the settings in environment variables. An empty variable counts as unset.
fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Layer, (&'static str, String)> {
    let mut values = BTreeMap::new();
    for setting in SETTINGS {
        let Some(name) = setting.variable else { continue };
        let Some(text) = variable(name).filter(|text| !text.is_empty()) else { continue };
        let value = SettingValue::from_text(setting.kind, &text).map_err(|wanted| (name, wanted))?;
        values.insert(setting.key, (value, ValueSource::Variable(name)));
    }
    Ok(Layer { values, is_trusted: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_file_is_found_within_its_repository() {
        let temp = tempfile::tempdir().unwrap();
        let (top, below) = (temp.path().join("repo"), temp.path().join("repo/a/b"));
        fs::create_dir_all(&below).unwrap();
        fs::write(temp.path().join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_path(&below), None, "it is outside of any repository");
        fs::create_dir(top.join(".git")).unwrap();
        assert_eq!(project_path(&below), None, "it is above the repository");
        fs::write(top.join(PROJECT_FILE), "[spawn]\nmodel = 'a'\n").unwrap();
        assert_eq!(project_path(&below), Some(top.join(PROJECT_FILE)));
        fs::write(top.join("a").join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_path(&below), Some(top.join("a").join(PROJECT_FILE)), "the nearest counts");
        fs::create_dir(below.join(PROJECT_FILE)).unwrap();
        assert!(project_file(&below).unwrap_err().why.contains("not a file"));
    }

    #[test]
    fn a_variable_that_is_no_value_is_named() {
        let resolved = |text: &str| {
            let variable = |name: &str| (name == "AGENT_CLI_STOP_GRACE").then(|| text.to_owned());
            Configuration::resolve(None, None, None, None, variable)
        };
        assert_eq!(resolved("soon").unwrap_err().0, "AGENT_CLI_STOP_GRACE");
        assert!(resolved("").is_ok() && resolved("3s").is_ok());
    }
}
