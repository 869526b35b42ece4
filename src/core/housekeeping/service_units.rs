//! The files with which systemd or launchd runs `agent-cli resume --all` every minute.

use std::path::{Path, PathBuf};

/// What the service runs, and its environment.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSpec<'a> {
    pub(crate) program: &'a Path,
    /// Variables with paths: the state directory, and others that the service would not find otherwise.
    pub(crate) paths: &'a [(&'a str, PathBuf)],
    /// The file with login variables.
    pub(crate) environment: &'a Path,
    pub(crate) max_parallel_total: Option<u32>,
}

impl ServiceSpec<'_> {
    fn arguments(&self) -> String {
        self.max_parallel_total.map_or_else(String::new, |most| format!(" --max-parallel-total {most}"))
    }
}

/// The unit that systemd starts. If the machine shuts down, only agent-cli is notified: it stops its agents.
pub(crate) fn systemd_service(spec: &ServiceSpec<'_>) -> String {
    let program = quoted_for_systemd(&spec.program.display().to_string()).replace('$', "$$");
    let variable = |(name, path): &(&str, PathBuf)| {
        format!("Environment={}\n", quoted_for_systemd(&format!("{name}={}", path.display())))
    };
    let variables: String = spec.paths.iter().map(variable).collect();
    // This setting uses the rest of its line literally.
    let environment = spec.environment.display().to_string().replace('%', "%%");
    format!(
        "# Written by `agent-cli service install`.
[Unit]
Description=Continue the chains of agent-cli

[Service]
Type=oneshot
{variables}EnvironmentFile=-{environment}
ExecStart={program} resume --all{}
KillMode=mixed
TimeoutStopSec=90
",
        spec.arguments()
    )
}

/// The timer that starts the unit every minute, and after the machine was off or asleep.
pub(crate) fn systemd_timer() -> String {
    "# Written by `agent-cli service install`.
[Unit]
Description=Continue the chains of agent-cli every minute

[Timer]
OnCalendar=minutely
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
"
    .to_owned()
}

/// The property list of a launchd agent. launchd does not read files with variables, so a shell does.
pub(crate) fn launchd_agent(label: &str, spec: &ServiceSpec<'_>) -> String {
    let script = format!("set -a; if [ -r \"$1\" ]; then . \"$1\"; fi; exec \"$2\" resume --all{}", spec.arguments());
    let words =
        ["/bin/sh", "-c", &script, "sh", &spec.environment.display().to_string(), &spec.program.display().to_string()]
            .map(|word| format!("    <string>{}</string>\n", escaped_for_xml(word)))
            .concat();
    let variable = |(name, path): &(&str, PathBuf)| {
        let (name, path) = (escaped_for_xml(name), escaped_for_xml(&path.display().to_string()));
        format!("    <key>{name}</key>\n    <string>{path}</string>\n")
    };
    let variables: String = spec.paths.iter().map(variable).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<!-- Written by `agent-cli service install`. -->
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>StartInterval</key>
  <integer>60</integer>
  <key>RunAtLoad</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>90</integer>
  <key>ProcessType</key>
  <string>Background</string>
</dict>
</plist>
",
        escaped_for_xml(label),
    )
}

/// The file with login variables. A shell and systemd read it in the same way.
///
/// The error is the name of a variable whose value has several lines.
pub(crate) fn environment_file(variables: &[(String, String)]) -> Result<String, String> {
    let mut text = "# Read by the service of agent-cli. Only you can read this file.\n# One variable a line, for example:\n# CLAUDE_CODE_OAUTH_TOKEN=\"…\"\n".to_owned();
    for (name, value) in variables {
        if value.contains(['\n', '\r', '\0']) {
            return Err(name.clone());
        }
        let mut escaped = String::new();
        for character in value.chars() {
            if matches!(character, '"' | '\\' | '`' | '$') {
                escaped.push('\\');
            }
            escaped.push(character);
        }
        text.push_str(&format!("{name}=\"{escaped}\"\n"));
    }
    Ok(text)
}

/// Whether the service of this unit or property list has this value of a variable.
pub(crate) fn has_variable(unit: &str, name: &str, value: &Path) -> bool {
    let value = value.display().to_string();
    let for_launchd = format!("<key>{}</key>\n    <string>{}</string>", escaped_for_xml(name), escaped_for_xml(&value));
    unit.contains(&quoted_for_systemd(&format!("{name}={value}"))) || unit.contains(&for_launchd)
}

fn quoted_for_systemd(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

fn escaped_for_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'a>(max_parallel_total: Option<u32>, paths: &'a [(&'a str, PathBuf)]) -> ServiceSpec<'a> {
        ServiceSpec {
            program: Path::new("/opt/a $b/agent-cli"),
            paths,
            environment: Path::new("/home/me/.config/agent-cli/service.env"),
            max_parallel_total,
        }
    }

    fn paths() -> [(&'static str, PathBuf); 2] {
        [("AGENT_CLI_STATE_DIR", "/home/me/100% \"mine\"".into()), ("AGENT_CLI_CONFIG", "/home/me/config.toml".into())]
    }

    #[test]
    fn paths_are_quoted_for_systemd() {
        let unit = systemd_service(&spec(Some(2), &paths()));
        assert!(unit.contains("\nEnvironment=\"AGENT_CLI_CONFIG=/home/me/config.toml\"\nEnvironmentFile="), "{unit}");
        assert!(unit.contains("ExecStart=\"/opt/a $$b/agent-cli\" resume --all --max-parallel-total 2\n"), "{unit}");
        assert!(unit.contains("Environment=\"AGENT_CLI_STATE_DIR=/home/me/100%% \\\"mine\\\"\"\n"), "{unit}");
        assert!(systemd_service(&spec(None, &[])).contains("resume --all\n"));
    }

    #[test]
    fn paths_are_escaped_for_launchd() {
        let agent = launchd_agent("agent-cli", &spec(None, &paths()));
        assert!(agent.contains("<string>/home/me/100% &quot;mine&quot;</string>"), "{agent}");
        assert!(agent.contains("<string>/opt/a $b/agent-cli</string>"), "{agent}");
    }
}
