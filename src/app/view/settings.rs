//! The views of settings, with their origins.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::app::config::layers::{Ignored, Settings, ValueSource};
use crate::app::config::setting::{SETTINGS, Setting};
use crate::app::config::sources::Configuration;

/// All settings, as `config` lists them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ConfigView {
    settings: Vec<SettingView>,
    /// Values of the project's file that have no effect.
    ignored: Vec<IgnoredView>,
    user_file: Option<PathBuf>,
    project_file: Option<PathBuf>,
    is_project_trusted: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SettingView {
    key: &'static str,
    /// `null`: it is not set, and has no default.
    value: Option<Value>,
    origin: SettingOrigin,
    file: Option<PathBuf>,
    variable: Option<&'static str>,
    help: &'static str,
}

/// One setting, as `config get` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GetView {
    #[serde(flatten)]
    setting: SettingView,
    /// The value in the project's file, if it has no effect.
    ignored: Option<IgnoredView>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum SettingOrigin {
    Default,
    User,
    Project,
    Environment,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IgnoredView {
    key: &'static str,
    value: Value,
    /// Whether it would take effect if the file were trusted.
    needs_trust: bool,
}

impl ConfigView {
    /// `user_file` is the path of the user's file, whether or not it exists.
    pub(crate) fn new(found: &Configuration, user_file: Option<PathBuf>) -> Self {
        Self {
            settings: SETTINGS.iter().map(|setting| SettingView::new(&found.settings, setting)).collect(),
            ignored: found.settings.ignored.iter().map(IgnoredView::new).collect(),
            user_file,
            project_file: found.project.clone(),
            is_project_trusted: found.is_project_trusted,
        }
    }
}

impl GetView {
    pub(crate) fn new(settings: &Settings, setting: &'static Setting, ignored: Option<&Ignored>) -> Self {
        Self { setting: SettingView::new(settings, setting), ignored: ignored.map(IgnoredView::new) }
    }
}

impl IgnoredView {
    fn new(it: &Ignored) -> Self {
        Self { key: it.setting.key, value: it.value.to_json(), needs_trust: it.needs_trust }
    }
}

impl SettingView {
    fn new(settings: &Settings, setting: &'static Setting) -> Self {
        let (origin, file, variable) = match settings.origin(setting) {
            ValueSource::Default => (SettingOrigin::Default, None, None),
            ValueSource::User(path) => (SettingOrigin::User, Some(path.clone()), None),
            ValueSource::Project(path) => (SettingOrigin::Project, Some(path.clone()), None),
            ValueSource::Variable(name) => (SettingOrigin::Environment, None, Some(*name)),
        };
        let value = settings.shown(setting).map(|value| value.to_json());
        Self { key: setting.key, value, origin, file, variable, help: setting.help }
    }
}
