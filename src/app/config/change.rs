//! Changes settings files, and the list of trusted project files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::config::changed_text::with;
use crate::app::config::setting::{InProject, STORE, Setting};
use crate::app::config::sources::{self, PROJECT_FILE, Source};
use crate::app::config::trust::{self, Trust};
use crate::app::config::value::{Kind, SettingValue};
use crate::app::error::{AppError, Refusal};
use crate::runtime::notifications::config_file::BadConfig;
use crate::store::{StateDir, Store};

/// The locations of settings.
#[derive(Debug)]
pub(crate) struct Files {
    /// The user's file, whether or not it exists. `None` if there is no home directory.
    pub(crate) user: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    /// The asker's working directory.
    pub(crate) directory: io::Result<PathBuf>,
    pub(crate) state_dir: PathBuf,
}

/// The file to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhichFile {
    User,
    Project,
}

/// A settings file after a change.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) path: PathBuf,
    /// Whether its values take effect without restrictions.
    pub(crate) is_trusted: bool,
    pub(crate) problems: Vec<String>,
}

impl Files {
    /// The path of a file, whether or not it exists.
    pub(crate) fn path(&self, which: WhichFile) -> Result<PathBuf, Refusal> {
        match which {
            WhichFile::User => self.user.clone().ok_or_else(|| {
                Refusal::failure("no home directory to keep a config file in").hint("set AGENT_CLI_CONFIG to its path")
            }),
            WhichFile::Project => {
                let cwd = self.directory()?;
                Ok(sources::project_path(cwd).unwrap_or_else(|| sources::project_folder(cwd).join(PROJECT_FILE)))
            }
        }
    }

    /// Parses the words of the command line as a value of `setting`.
    pub(crate) fn value(&self, setting: &Setting, words: &[String], which: WhichFile) -> Result<SettingValue, Refusal> {
        let value = match (setting.kind, words) {
            (kind @ (Kind::Words | Kind::Labels | Kind::Directories), words) => {
                SettingValue::from_arguments(kind, words).map_err(|wanted| {
                    Refusal::new(format!("{:?} is not {wanted}", words.join(" ")))
                        .hint(format!("{} is {}", setting.key, setting.help))
                })?
            }
            (kind, [word]) => SettingValue::from_text(kind, word).map_err(|wanted| {
                Refusal::new(format!("{word:?} is not {wanted}")).hint(format!("{} is {}", setting.key, setting.help))
            })?,
            (_, _) => {
                let refusal = Refusal::new(format!("{} is not a list", setting.key));
                return Err(refusal.hint("put a value of several words into quotes"));
            }
        };
        if setting.key == STORE.key
            && let Some(address) = value.text()
        {
            // A wrong one would keep every command from its chains.
            Store::place_of(address)
                .map_err(|error| Refusal::new(error.to_string()).hint("postgres://USER@HOST/DATABASE is an address"))?;
        }
        if which == WhichFile::Project && setting.in_project == InProject::Never {
            return Err(Refusal::new(format!("{} cannot be set for a project", setting.key))
                .hint("leave --project out: it is about all of your chains"));
        }
        // A relative path is relative to the directory in which it is typed.
        Ok(match setting.kind {
            Kind::Path => value.in_folder(Kind::Path, self.directory()?, self.home.as_deref()),
            _ => value,
        })
    }

    /// Sets a setting in a file, or removes it if the value is `None`. Returns `None` if there was nothing to remove. If the
    /// project's file is new or was trusted before, it is trusted after the change, because the user made it.
    pub(crate) fn change(
        &self,
        asker: &Asker,
        setting: &Setting,
        value: Option<&SettingValue>,
        which: WhichFile,
    ) -> Result<Option<Changed>, AppError> {
        asker.may(PersonsTask::ChangeSettings)?;
        let path = self.path(which)?;
        let source = self.read(which)?;
        let before = source.as_ref().map_or("", |source| source.text.as_str());
        let is_own = which == WhichFile::User || source.as_ref().is_none_or(|source| self.is_trusted(source));
        if which == WhichFile::Project {
            self.within_project(&path)?;
        }
        // That of the user may have passwords and tokens.
        let mode = if which == WhichFile::User { 0o600 } else { 0o644 };
        let cannot = |why: String| Refusal::failure(format!("{} was not changed: {why}", path.display()));
        let changed = with(before, setting, value).map_err(|why| cannot(why).hint("agent-cli config edit opens it"))?;
        let Some(after) = changed else { return Ok(None) };
        trust::replace(&path, &after, mode).map_err(|error| {
            cannot(error.to_string()).hint("make the file and its folder writable for this user, then try again")
        })?;
        if which == WhichFile::Project && is_own {
            self.add_trust(&path, &after)?;
        }
        Ok(Some(Changed { path, is_trusted: is_own, problems: Vec::new() }))
    }

    /// Checks a file that a person has edited. `None` if the file does not exist.
    pub(crate) fn edited(&self, which: WhichFile) -> Result<Option<Changed>, AppError> {
        let Some(source) = self.read(which)? else { return Ok(None) };
        let is_trusted = which == WhichFile::User || self.is_trusted(&source);
        let problems = source.problems().to_vec();
        Ok(Some(Changed { path: self.path(which)?, is_trusted, problems }))
    }

    /// The project's file as it is now, for a person who may trust it.
    pub(crate) fn project_to_trust(&self, asker: &Asker) -> Result<Source, AppError> {
        asker.may(PersonsTask::ChangeSettings)?;
        let source = self.project()?;
        match source.problems().first() {
            Some(problem) => {
                Err(Refusal::new(format!("{}: {problem}", source.path.display())).hint("fix it first").into())
            }
            None => Ok(source),
        }
    }

    /// Trusts this content of the project's file, whatever the file contains by now.
    pub(crate) fn trust_project(&self, asker: &Asker, source: &Source) -> Result<(), AppError> {
        asker.may(PersonsTask::ChangeSettings)?;
        self.add_trust(&source.path, &source.text)
    }

    /// Stops trusting the project's file. Returns its path, and whether it was trusted.
    pub(crate) fn untrust_project(&self, asker: &Asker) -> Result<(PathBuf, bool), AppError> {
        asker.may(PersonsTask::ChangeSettings)?;
        let source = self.project()?;
        let was_trusted = self
            .trust()?
            .remove(&source.path)
            .map_err(|error| Refusal::failure(format!("the list of trusted files was not changed: {error}")))?;
        Ok((source.path, was_trusted))
    }

    /// A repository may come from another person, so a link in it must not lead to other files of the user.
    fn within_project(&self, path: &Path) -> Result<(), Refusal> {
        let Ok(target) = fs::canonicalize(path) else { return Ok(()) };
        let project = sources::project_folder(self.directory()?);
        let project = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
        if target.starts_with(project) && target.file_name() == path.file_name() {
            return Ok(());
        }
        Err(Refusal::new(format!("{} is a link to {}", path.display(), target.display()))
            .hint("replace the link by a file, or change the other file yourself"))
    }

    fn directory(&self) -> Result<&Path, Refusal> {
        let cannot = |error| Refusal::failure(format!("the current directory cannot be used: {error}"));
        self.directory.as_deref().map_err(cannot)
    }

    fn read(&self, which: WhichFile) -> Result<Option<Source>, Refusal> {
        let read = match which {
            WhichFile::User => sources::user_file(&self.path(which)?),
            WhichFile::Project => sources::project_file(self.directory()?),
        };
        read.map_err(unusable)
    }

    fn project(&self) -> Result<Source, Refusal> {
        self.read(WhichFile::Project)?.ok_or_else(|| {
            Refusal::failure(format!("there is no {PROJECT_FILE} here, or above within a git repository"))
                .hint("agent-cli config edit --project makes one")
        })
    }

    fn trust(&self) -> Result<Trust, AppError> {
        Ok(Trust::new(StateDir::new(&self.state_dir)?.trusted_configs()))
    }

    fn is_trusted(&self, source: &Source) -> bool {
        self.trust().is_ok_and(|trust| trust.includes(&source.path, &source.text))
    }

    fn add_trust(&self, path: &Path, text: &str) -> Result<(), AppError> {
        // This creates the state directory, which is private.
        Store::open(&self.state_dir)?;
        let failed = |error| Refusal::failure(format!("{} is not trusted: {error}", path.display()));
        Ok(self.trust()?.add(path, text).map_err(failed)?)
    }
}

fn unusable(error: BadConfig) -> Refusal {
    Refusal::failure(error.to_string()).hint(error.hint)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::app::config::setting::{MAX_AGENTS, MODEL};
    use crate::core::id::{AttemptId, FrameId};
    use crate::store::Caller;

    fn files() -> (TempDir, Files) {
        let temp = tempfile::tempdir().unwrap();
        let project = temp.path().join("project");
        fs::create_dir(&project).unwrap();
        let files = Files {
            user: Some(temp.path().join("config.toml")),
            home: None,
            directory: Ok(project),
            state_dir: temp.path().join("state"),
        };
        (temp, files)
    }

    fn setting(key: &str) -> &'static Setting {
        Setting::named(key).unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_value_is_one_of_its_kind_and_of_its_file() {
        let (_temp, files) = files();
        let value = |key, given: &[&str], which| files.value(setting(key), &words(given), which);
        let model = value("spawn.model", &["sonnet"], WhichFile::Project).unwrap();
        assert_eq!(model.to_string(), "sonnet");
        let several = value("spawn.model", &["a", "b"], WhichFile::User).unwrap_err();
        assert_eq!(several.to_string(), "spawn.model is not a list");
        value("spawn.claude-args", &["--a", "--b"], WhichFile::User).unwrap();
        let wrong = value("limits.max-agents", &["many"], WhichFile::User).unwrap_err().to_string();
        assert!(wrong.starts_with("\"many\" is not "), "{wrong}");
        value("state-dir", &["x"], WhichFile::User).unwrap();
        let refused = value("state-dir", &["x"], WhichFile::Project).unwrap_err();
        assert_eq!(refused.to_string(), "state-dir cannot be set for a project");
        let here = files.directory.as_ref().unwrap().join("x");
        assert_eq!(value("state-dir", &["x"], WhichFile::User).unwrap().to_string(), here.display().to_string());
    }

    #[test]
    fn a_change_of_a_project_is_trusted_if_the_rest_was() {
        let (_temp, files) = files();
        let (person, model) = (Asker::default(), setting("spawn.model"));
        let set = |files: &Files, value: &str, which| {
            let value = files.value(model, &words(&[value]), which).unwrap();
            files.change(&person, model, Some(&value), which).unwrap().unwrap()
        };
        let changed = set(&files, "sonnet", WhichFile::User);
        assert!(changed.is_trusted && fs::read_to_string(&changed.path).unwrap().contains("sonnet"));
        assert!(!files.state_dir.exists());
        let project = set(&files, "sonnet", WhichFile::Project);
        assert!(project.is_trusted && files.edited(WhichFile::Project).unwrap().unwrap().is_trusted);
        assert!(set(&files, "opus", WhichFile::Project).is_trusted, "it was trusted");
        fs::write(&project.path, "[spawn]\nmodel = \"haiku\"\n").unwrap();
        assert!(!files.edited(WhichFile::Project).unwrap().unwrap().is_trusted);
        assert!(!set(&files, "opus", WhichFile::Project).is_trusted, "others have changed it");
        let trust = |files: &Files| files.trust_project(&person, &files.project_to_trust(&person).unwrap()).unwrap();
        trust(&files);
        assert!(files.edited(WhichFile::Project).unwrap().unwrap().is_trusted);
        assert_eq!(files.untrust_project(&person).unwrap(), (project.path.clone(), true));
        assert_eq!(files.untrust_project(&person).unwrap(), (project.path.clone(), false));
        trust(&files);
        let removed = files.change(&person, model, None, WhichFile::Project).unwrap().unwrap();
        assert!(removed.is_trusted && !fs::read_to_string(&project.path).unwrap().contains("opus"));
        assert!(files.change(&person, model, None, WhichFile::Project).unwrap().is_none(), "it was removed already");
    }

    #[test]
    fn what_was_shown_is_trusted_and_not_what_the_file_has_become() {
        let (_temp, files) = files();
        let person = Asker::default();
        let path = files.path(WhichFile::Project).unwrap();
        let write = |model: &str| fs::write(&path, format!("[spawn]\nmodel = \"{model}\"\n")).unwrap();
        let is_trusted = || files.edited(WhichFile::Project).unwrap().unwrap().is_trusted;
        write("sonnet");
        let shown = files.project_to_trust(&person).unwrap();
        write("opus");
        files.trust_project(&person, &shown).unwrap();
        assert!(!is_trusted());
        write("sonnet");
        assert!(is_trusted());
    }

    #[test]
    fn a_file_with_problems_is_not_trusted() {
        let (_temp, files) = files();
        let person = Asker::default();
        let none = files.project_to_trust(&person).unwrap_err().to_string();
        assert!(none.starts_with("there is no .agent-cli.toml here"), "{none}");
        assert!(files.edited(WhichFile::Project).unwrap().is_none());
        fs::write(files.path(WhichFile::Project).unwrap(), "colour = 1\n").unwrap();
        let wrong = files.project_to_trust(&person).unwrap_err().to_string();
        assert!(wrong.contains("colour"), "{wrong}");
        assert_eq!(files.edited(WhichFile::Project).unwrap().unwrap().problems.len(), 1);
    }

    #[test]
    fn agents_change_nothing() {
        let (_temp, files) = files();
        let agent = Some(Caller { frame: FrameId::random(), attempt: AttemptId::random() });
        let agent = Asker { agent, ..Asker::default() };
        let model = setting("spawn.model");
        for refused in [
            files.change(&agent, model, None, WhichFile::User).map(drop),
            files.project_to_trust(&agent).map(drop),
            files.untrust_project(&agent).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), "agents cannot change settings");
        }
    }

    #[test]
    fn a_missing_place_is_an_error_of_what_needs_it() {
        let (_temp, files) = files();
        let files = Files { user: None, directory: Err(io::Error::from(io::ErrorKind::NotFound)), ..files };
        let error = files.path(WhichFile::User).unwrap_err();
        assert_eq!(error.to_string(), "no home directory to keep a config file in");
        let error = files.path(WhichFile::Project).unwrap_err().to_string();
        assert!(error.starts_with("the current directory cannot be used: "), "{error}");
        files.value(setting("spawn.model"), &words(&["sonnet"]), WhichFile::User).unwrap();
    }

    #[test]
    fn the_rest_of_a_file_stays_as_it_is() {
        let text = "# mine\ncolor = 'never' # dark\n\n[spawn]\nmodel = 'a' # cheap\n";
        let with = |text: &str, setting: &Setting, value: Option<&SettingValue>| {
            with(text, setting, value).map(Option::unwrap)
        };
        let changed = with(text, &MODEL, Some(&SettingValue::Text("b".into()))).unwrap();
        assert_eq!(changed, text.replace("'a'", "\"b\""));
        let changed = with(text, &MAX_AGENTS, Some(&SettingValue::Count(3))).unwrap();
        assert_eq!(changed, format!("{text}\n[limits]\nmax-agents = 3\n"));
        assert_eq!(with(&changed, &MODEL, None).unwrap(), changed.replace("model = 'a' # cheap\n", ""));
        for text in ["", "[spawn]\n", "[spawn]\nworktree = true\n"] {
            assert_eq!(super::with(text, &MODEL, None), Ok(None), "{text}");
        }
        assert!(with("spawn = 3\n", &MODEL, None).is_err());
        assert!(with("[", &MODEL, None).is_err());
    }

    #[test]
    fn a_link_of_a_project_changes_no_other_file() {
        let (temp, files) = files();
        let (link, other) = (temp.path().join("project/.agent-cli.toml"), temp.path().join("other.toml"));
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let one = SettingValue::from_text(MAX_AGENTS.kind, "1").unwrap();
        for value in [Some(&one), None] {
            assert!(files.change(&Asker::default(), setting("limits.max-agents"), value, WhichFile::Project).is_err());
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "");
    }
}
