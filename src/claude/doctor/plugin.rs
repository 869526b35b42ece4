//! Whether Claude Code sessions can use agent-cli: its plugin, or an entry for its MCP server.

use std::path::Path;

use crate::claude::environment::variables::Variables;
use crate::claude::settings::of_project;
use crate::claude::settings::own_plugin::{self, Installed};
use crate::claude::settings::settings_file::SettingsFile;
use crate::core::agent::launch::Launch;
use crate::core::housekeeping::doctor_finding::Finding;

/// Switches tasks off: then a session does not hear when its chain ends.
const NO_TASKS: &str = "CLAUDE_CODE_DISABLE_MCP_TASKS";

/// The findings for sessions in `cwd`; none if nothing is installed.
pub(crate) fn findings(cwd: &Path, variables: &Variables, settings: &[SettingsFile], launch: &Launch) -> Vec<Finding> {
    let (plugins, servers) = (own_plugin::installed(launch), own_plugin::servers(cwd, launch));
    let mut found: Vec<_> = plugins.iter().map(version).collect();
    if let ([plugin, ..], [server, ..]) = (plugins.as_slice(), servers.as_slice()) {
        let message = format!("the plugin {} and the MCP server {server} offer the same tools twice", plugin.id);
        found.push(Finding::warning("mcp", message, format!("claude mcp remove {server}")));
    } else if let [server, ..] = servers.as_slice() {
        found.push(Finding::ok("mcp", format!("the MCP server {server} is agent-cli")));
    }
    if found.is_empty() {
        return found;
    }
    let of_settings = settings.iter().filter_map(|file| {
        let sets = file.content.as_ref().is_ok_and(|content| content.variables.iter().any(|name| name == NO_TASKS));
        sets.then(|| format!(" in {}", file.path.display()))
    });
    let of_shell = variables.set().any(|name| name == NO_TASKS).then(String::new);
    if let Some(place) = of_shell.into_iter().chain(of_settings).next() {
        let message = format!("{NO_TASKS} is set{place}, so sessions do not hear when a chain asks or ends");
        found.push(Finding::warning("mcp-tasks", message, "unset it"));
    }
    if !of_project::is_trusted(cwd, launch) {
        let message = format!("no person has told Claude Code to trust {}: sessions there ask first", cwd.display());
        found.push(Finding::ok("trust", message));
    }
    found
}

/// Whether the plugin is that of this program.
fn version(Installed { id, version }: &Installed) -> Finding {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    match version.as_deref() {
        Some(OWN) => Finding::ok("plugin", format!("{id} {OWN} is installed in Claude Code")),
        Some(other) => Finding::warning(
            "plugin",
            format!("{id} is version {other}, and this is agent-cli {OWN}"),
            "agent-cli init --plugin updates it",
        ),
        None => Finding::warning(
            "plugin",
            format!("{id} is installed, but its files cannot be read"),
            "agent-cli init --plugin installs it again",
        ),
    }
}
