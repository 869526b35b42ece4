//! Settings, and where they come from.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// All settings, as `config` lists them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ConfigView {
    pub(crate) settings: Vec<SettingView>,
    /// Values of the project's file that do not count.
    pub(crate) ignored: Vec<IgnoredView>,
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) project_file: Option<PathBuf>,
    pub(crate) is_project_trusted: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SettingView {
    pub(crate) key: &'static str,
    /// `null`: it is not set, and has no default.
    pub(crate) value: Option<Value>,
    /// `default`, `user`, `project` or `environment`.
    pub(crate) origin: &'static str,
    pub(crate) file: Option<PathBuf>,
    pub(crate) variable: Option<&'static str>,
    pub(crate) help: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct IgnoredView {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// Whether it would count if the file were trusted.
    pub(crate) needs_trust: bool,
}
