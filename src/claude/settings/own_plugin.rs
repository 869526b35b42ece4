//! agent-cli's own plugin, which is for people's sessions: it would add to every request of an agent.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude::settings::user_hooks::{files, plugin_folders, read};
use crate::core::agent::launch::Launch;

/// Its name, in whatever marketplace.
const PLUGIN: &str = "agent-cli@";

/// Switches it off in the settings of an agent that works in `cwd`.
pub(crate) fn switch_off(settings: &mut Value, cwd: &Path, launch: &Launch) {
    let installed = plugin_folders(launch).into_iter().map(|folder| (folder.join("installed_plugins.json"), "plugins"));
    let enabled = files(cwd, launch).into_iter().map(|file| (file, ENABLED));
    let read_names = |(file, field): (PathBuf, &str)| names(&read(&file).unwrap_or_default()[field]);
    let mut known: Vec<String> = installed.chain(enabled).flat_map(read_names).collect();
    known.extend(names(&settings[ENABLED]));
    if known.is_empty() {
        return;
    }
    let Some(fields) = settings.as_object_mut() else { return };
    if let Some(plugins) = fields.entry(ENABLED).or_insert_with(|| json!({})).as_object_mut() {
        plugins.extend(known.into_iter().map(|name| (name, Value::Bool(false))));
    }
}

const ENABLED: &str = "enabledPlugins";

fn names(plugins: &Value) -> Vec<String> {
    let all = plugins.as_object().into_iter().flat_map(|plugins| plugins.keys());
    all.filter(|name| name.starts_with(PLUGIN)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_switched_off_by_name_wherever_it_comes_from() {
        let home = tempfile::tempdir().unwrap();
        let (config, project) = (home.path().join("config"), home.path().join("project"));
        let launch = Launch { config_dir: Some(config.clone()), ..Launch::default() };
        let write = |file: PathBuf, content: Value| {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content.to_string()).unwrap();
        };
        let switched = |mut settings: Value| {
            switch_off(&mut settings, &project, &launch);
            settings
        };
        let user = json!({ "enabledPlugins": { "agent-cli-extras@x": true, "other@agent-cli": true } });
        assert_eq!(switched(user.clone()), user, "others stay as they are");
        write(
            config.join("plugins/installed_plugins.json"),
            json!({ "plugins": { "agent-cli@mine": [], "other@y": [] } }),
        );
        write(project.join(".claude/settings.json"), json!({ "enabledPlugins": { "agent-cli@team": true } }));
        let off = switched(json!({ "enabledPlugins": { "agent-cli@given": true, "other@y": true } }));
        let expected =
            json!({ "agent-cli@given": false, "agent-cli@mine": false, "agent-cli@team": false, "other@y": true });
        assert_eq!(off["enabledPlugins"], expected);
        assert_eq!(switched(json!([])), json!([]));
    }
}
