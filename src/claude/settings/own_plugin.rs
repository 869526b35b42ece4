//! agent-cli's own plugin, which is for people's sessions: it would add to every request of an agent.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude::settings::of_project;
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

/// The plugin, as a marketplace offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Its name and that of its marketplace.
    pub(crate) id: String,
    /// Its version; `None`: unknown.
    pub(crate) version: Option<String>,
}

/// The installed plugins with its name.
pub(crate) fn installed(launch: &Launch) -> Vec<Installed> {
    let mut found = Vec::new();
    for folder in plugin_folders(launch) {
        let all = read(&folder.join("installed_plugins.json")).unwrap_or_default();
        let marketplaces = read(&folder.join("known_marketplaces.json")).unwrap_or_default();
        for id in names(&all["plugins"]) {
            // A marketplace that is a folder is read anew by each session.
            let source = &marketplaces[&id[PLUGIN.len()..]]["source"];
            let in_place = source["path"].as_str().filter(|_| source["source"] == "directory");
            let version = match in_place {
                Some(path) => read(&Path::new(path).join(MANIFEST)).unwrap_or_default()["version"].clone(),
                None => all["plugins"][&id][0]["version"].clone(),
            };
            found.push(Installed { version: version.as_str().map(str::to_owned), id });
        }
    }
    found
}

/// Its manifest, in this repository or a copy.
const MANIFEST: &str = "plugins/agent-cli/.claude-plugin/plugin.json";

/// The names of the MCP servers of sessions in `cwd` that are agent-cli.
pub(crate) fn servers(cwd: &Path, launch: &Launch) -> Vec<String> {
    let own = of_project::state_of_claude(launch);
    let here = cwd.to_str().map(|cwd| &own["projects"][cwd]["mcpServers"]);
    let of_project = read(&cwd.join(".mcp.json")).unwrap_or_default();
    let all = [Some(&own["mcpServers"]), here, Some(&of_project["mcpServers"])].into_iter().flatten();
    let servers = all.filter_map(Value::as_object).flatten();
    let is_own = |server: &Value| {
        let program = server["command"].as_str().and_then(|command| Path::new(command).file_name());
        program.is_some_and(|program| program == "agent-cli") && server["args"][0] == "mcp"
    };
    servers.filter(|(_, server)| is_own(server)).map(|(name, _)| name.clone()).collect()
}

fn names(plugins: &Value) -> Vec<String> {
    let all = plugins.as_object().into_iter().flat_map(|plugins| plugins.keys());
    all.filter(|name| name.starts_with(PLUGIN)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn its_version_is_that_of_the_folder_that_sessions_read() {
        let home = tempfile::tempdir().unwrap();
        let launch = Launch { config_dir: Some(home.path().into()), ..Launch::default() };
        let write = |name: &str, content: Value| {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content.to_string()).unwrap();
        };
        let entry = json!([{"scope": "user", "version": "0.0.9"}]);
        let plugins = json!({"plugins": {"agent-cli@here": entry, "agent-cli@there": entry, "other@x": entry}});
        write("plugins/installed_plugins.json", plugins);
        let source = json!({"source": "directory", "path": home.path().join("market")});
        write("plugins/known_marketplaces.json", json!({"here": {"source": source}}));
        write(&format!("market/{MANIFEST}"), json!({"version": "0.1.0"}));
        let found: Vec<_> = installed(&launch).into_iter().map(|it| (it.id, it.version.unwrap())).collect();
        let expected = [("agent-cli@here", "0.1.0"), ("agent-cli@there", "0.0.9")];
        assert_eq!(found, expected.map(|(id, version)| (id.to_owned(), version.to_owned())));
        fs::remove_dir_all(home.path().join("market")).unwrap();
        assert_eq!(installed(&launch)[0].version, None);
    }

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
