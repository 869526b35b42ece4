//! The files with which systemd or launchd runs `agent-cli resume --all` every minute, or keeps `agent-cli work` running.

use std::path::{Path, PathBuf};

use crate::core::housekeeping::hosting::Labels;

/// What the service does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It runs `resume --all` every minute.
    Resume,
    /// It keeps `work` running. `labels`: those of this host, instead of the setting.
    Work { labels: Option<Labels> },
}

/// What the service runs, and its environment.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSpec<'a> {
    pub(crate) program: &'a Path,
    /// Variables with paths: the state directory, and others that the service would not find otherwise.
    pub(crate) paths: &'a [(&'a str, PathBuf)],
    /// The file with login variables.
    pub(crate) environment: &'a Path,
    pub(crate) duty: Duty,
    /// How many agents may run at once.
    pub(crate) max_parallel: Option<u32>,
}

impl ServiceSpec<'_> {
    fn arguments(&self) -> String {
        let most = |option: &str| self.max_parallel.map_or_else(String::new, |most| format!(" {option} {most}"));
        match &self.duty {
            Duty::Resume => format!("resume --all{}", most("--max-parallel-total")),
            Duty::Work { labels } => {
                let names = |labels: &Labels| labels.names().collect::<Vec<_>>().join(",");
                let labels = labels.as_ref().map_or_else(String::new, |labels| format!(" --labels={}", names(labels)));
                format!("work{labels}{}", most("--max-parallel"))
            }
        }
    }
}

/// The unit that systemd starts. If the machine shuts down, only agent-cli is notified: it stops its agents, and `work` lets them finish
/// their turns first. systemd ends the services of a user after two minutes.
pub(crate) fn systemd_service(spec: &ServiceSpec<'_>) -> String {
    let program = quoted_for_systemd(&spec.program.display().to_string()).replace('$', "$$");
    let variable = |(name, path): &(&str, PathBuf)| {
        format!("Environment={}\n", quoted_for_systemd(&format!("{name}={}", path.display())))
    };
    let variables: String = spec.paths.iter().map(variable).collect();
    // This setting uses the rest of its line literally.
    let environment = spec.environment.display().to_string().replace('%', "%%");
    let (kind, install) = match spec.duty {
        Duty::Resume => ("Type=oneshot\n", ""),
        Duty::Work { .. } => ("Type=simple\nRestart=always\nRestartSec=10\n", "\n[Install]\nWantedBy=default.target\n"),
    };
    format!(
        "# Written by `agent-cli service install`.
[Unit]
Description=Continue the chains of agent-cli

[Service]
{kind}{variables}EnvironmentFile=-{environment}
ExecStart={program} {}
KillMode=mixed
TimeoutStopSec=90
{install}",
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
    let script = format!("set -a; if [ -r \"$1\" ]; then . \"$1\"; fi; exec \"$2\" {}", spec.arguments());
    let words =
        ["/bin/sh", "-c", &script, "sh", &spec.environment.display().to_string(), &spec.program.display().to_string()]
            .map(|word| format!("    <string>{}</string>\n", escaped_for_xml(word)))
            .concat();
    let variable = |(name, path): &(&str, PathBuf)| {
        let (name, path) = (escaped_for_xml(name), escaped_for_xml(&path.display().to_string()));
        format!("    <key>{name}</key>\n    <string>{path}</string>\n")
    };
    let variables: String = spec.paths.iter().map(variable).collect();
    let starts = match spec.duty {
        Duty::Resume => "<key>StartInterval</key>\n  <integer>60</integer>",
        Duty::Work { .. } => "<key>KeepAlive</key>\n  <true/>",
    };
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
  {starts}
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

/// The file with login variables. A shell and systemd read it in the same way. Other variables that a person has written into the file
/// `before` remain.
///
/// The error is the name of a variable whose value has several lines.
pub(crate) fn environment_file(variables: &[(String, String)], before: &str) -> Result<String, String> {
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
    let is_other = |line: &&str| {
        let name = line.trim_start().split('=').next().unwrap_or_default();
        !name.is_empty() && !name.starts_with('#') && variables.iter().all(|(saved, _)| saved != name)
    };
    before.lines().filter(is_other).for_each(|line| text.push_str(&format!("{line}\n")));
    Ok(text)
}

/// Whether the service of this unit or property list keeps `work` running.
pub(crate) fn keeps_working(unit: &str) -> bool {
    unit.contains("\nRestart=always\n") || unit.contains("<key>KeepAlive</key>")
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

    fn spec<'a>(max_parallel: Option<u32>, paths: &'a [(&'a str, PathBuf)]) -> ServiceSpec<'a> {
        ServiceSpec {
            program: Path::new("/opt/a $b/agent-cli"),
            paths,
            environment: Path::new("/home/me/.config/agent-cli/service.env"),
            duty: Duty::Resume,
            max_parallel,
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
    fn work_is_kept_running() {
        let spec = |labels: &str| ServiceSpec {
            duty: Duty::Work { labels: Some(labels.parse().unwrap()).filter(|_| !labels.is_empty()) },
            ..spec(Some(2), &[])
        };
        let unit = systemd_service(&spec("gpu big"));
        assert!(unit.contains(" work --labels=big,gpu --max-parallel 2\n"), "{unit}");
        assert!(unit.contains("Restart=always") && unit.ends_with("\n[Install]\nWantedBy=default.target\n"), "{unit}");
        assert!(systemd_service(&spec("")).contains(" work --max-parallel 2\n"));
        let agent = launchd_agent("agent-cli", &spec("gpu"));
        assert!(!agent.contains("StartInterval"), "{agent}");
        assert!(keeps_working(&unit) && keeps_working(&agent));
        let timed = ServiceSpec { duty: Duty::Resume, ..spec("") };
        assert!(!keeps_working(&systemd_service(&timed)) && !keeps_working(&launchd_agent("agent-cli", &timed)));
    }

    #[test]
    fn paths_are_escaped_for_launchd() {
        let agent = launchd_agent("agent-cli", &spec(None, &paths()));
        assert!(agent.contains("<string>/home/me/100% &quot;mine&quot;</string>"), "{agent}");
        assert!(agent.contains("<string>/opt/a $b/agent-cli</string>"), "{agent}");
    }
}
