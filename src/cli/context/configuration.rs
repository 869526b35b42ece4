//! Reads the settings files, and says what is wrong with them.

use std::env;
use std::path::Path;

use crate::app::config::setting::Setting;
use crate::app::config::sources::{self, Configuration, Problem, Source};
use crate::app::config::trust::Trust;
use crate::app::config::value::SettingValue;
use crate::app::error::{AppError, Refusal};
use crate::cli::context::Context;
use crate::cli::context::environment::{config_path, home};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::runtime::notifications::config_file::{BadConfig, to_edit};
use crate::store::StateDir;

impl Context {
    /// A setting of the user's config file.
    pub(super) fn configured(&self, setting: &Setting) -> Option<SettingValue> {
        let configuration = Configuration::resolve(self.user_file().ok()?, None, None, home().as_deref(), |_| None);
        configuration.ok()?.settings.given(setting).cloned()
    }

    /// The user's config file. `None` if the file does not exist. Agents never get one, because they could name any file.
    fn user_file(&self) -> Result<Option<&Source>, &BadConfig> {
        let read =
            || config_path().filter(|_| self.caller.is_none()).map_or(Ok(None), |path| sources::user_file(&path));
        self.user_file.get_or_init(read).as_ref().map(Option::as_ref)
    }

    pub(super) fn warn_of(&self, error: &BadConfig) {
        if self.told_of.borrow_mut().insert(error.path.clone()) {
            output::warn(&error.to_string());
            output::hint(&error.hint);
        }
    }

    /// Warns of what was ignored in the config file, unless a warning or the command's error has said so.
    pub(crate) fn warn_of_config(&self, error: Option<&CliError>) {
        let path = match self.user_file.get() {
            Some(Err(bad)) => &bad.path,
            Some(Ok(Some(source))) => &source.path,
            Some(Ok(None)) | None => return,
        };
        if error.is_some_and(|error| error.to_string().starts_with(&path.display().to_string())) {
            self.tells_of(path);
        }
        match self.user_file() {
            Err(bad) => self.warn_of(bad),
            Ok(source) => source.into_iter().for_each(|source| self.warn_of_each(path, source.problems())),
        }
    }

    /// Does not warn about this file, because the command itself reports what is wrong with it.
    pub(crate) fn tells_of(&self, path: &Path) {
        self.told_of.borrow_mut().insert(path.to_owned());
    }

    /// Warns of everything in the settings files that has no effect.
    pub(crate) fn warn_of_problems(&self, found: &Configuration) {
        found.unusable.iter().for_each(|error| self.warn_of(error));
        for of_file in found.problems.chunk_by(|one, next| one.path == next.path) {
            let what: Vec<_> = of_file.iter().map(|problem| problem.what.clone()).collect();
            of_file.first().into_iter().for_each(|Problem { path, .. }| self.warn_of_each(path, &what));
        }
    }

    /// Warns of the problems of a file, once.
    fn warn_of_each(&self, path: &Path, problems: &[String]) {
        if self.told_of.borrow_mut().insert(path.to_owned()) {
            problems.iter().for_each(|what| output::warn(&format!("{}: {what}", path.display())));
        }
    }

    /// The settings for work in `cwd`.
    pub(crate) fn configuration(&self, cwd: &Path) -> Result<Configuration, AppError> {
        let bad = |error: &BadConfig| Refusal::new(error.to_string()).hint(error.hint.clone());
        let project = self.project_file(cwd).map_err(|error| bad(&error))?;
        let found = self.resolve(self.user_file().map_err(bad)?, project.as_ref())?;
        match found.problems.first() {
            None => Ok(found),
            Some(Problem { path, what }) => Err(Refusal::new(format!("{}: {what}", path.display()))
                .hint(format!("fix the file by hand, or with {}; agent-cli config lists the keys", to_edit(path)))
                .into()),
        }
    }

    /// The settings for the current directory. Ignores files that cannot be used, so that existing chains continue even if
    /// the files are broken.
    pub(crate) fn usable_configuration(&self) -> Result<Configuration, AppError> {
        let user = self.user_file();
        let project = env::current_dir().map_or(Ok(None), |cwd| self.project_file(&cwd));
        let unusable = user.as_ref().err().copied().into_iter().chain(project.as_ref().err());
        let unusable = unusable.cloned().collect();
        let mut found = self.resolve(user.ok().flatten(), project.ok().flatten().as_ref())?;
        found.unusable = unusable;
        Ok(found)
    }

    fn project_file(&self, cwd: &Path) -> Result<Option<Source>, BadConfig> {
        if self.caller.is_some() { Ok(None) } else { sources::project_file(cwd) }
    }

    /// The project files that the user trusts.
    pub(crate) fn trust(&self) -> Result<Trust, AppError> {
        Ok(Trust::new(StateDir::new(&self.place()?)?.trusted_configs()))
    }

    fn resolve(&self, user: Option<&Source>, project: Option<&Source>) -> Result<Configuration, AppError> {
        let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let found = Configuration::resolve(user, project, Some(&self.trust()?), home().as_deref(), variable);
        found.map_err(|(name, wanted)| {
            let value = variable(name).unwrap_or_default();
            Refusal::new(format!("{name}={value} is not {wanted}")).hint(format!("change it, or unset {name}")).into()
        })
    }
}
