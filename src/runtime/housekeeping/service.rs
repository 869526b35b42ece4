//! Installs a user service that runs `agent-cli resume --all` every minute, or keeps `agent-cli work` running, with systemd or launchd.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::claude::invocation::STATE_DIR;
use crate::core::housekeeping::service_units::{self, Duty, ServiceSpec};

/// The service manager of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

const UNIT: &str = "agent-cli.service";
const TIMER: &str = "agent-cli.timer";
const LABEL: &str = "com.github.agent-cli";

/// Why a service cannot be installed, checked or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} cannot be removed: {source}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("the value of {0} has several lines, which the service cannot read")]
    SeveralLines(String),
    #[error("`{command}` failed: {why}")]
    Manager { command: String, why: String },
    #[error("{} contains a line break or another control character, which the service cannot name", path.display())]
    ControlCharacter { path: PathBuf },
    #[error("{} is not valid UTF-8, so the service cannot name it", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("there is no home directory")]
    NoHome,
    #[error("the home directory {} is not an absolute path", .0.display())]
    RelativeHome(PathBuf),
}

/// The paths of the service's files.
#[derive(Debug)]
pub(crate) struct Service {
    manager: Manager,
    units: PathBuf,
    environment: PathBuf,
}

/// What an installation writes and runs.
#[derive(Debug)]
pub(crate) struct ServicePlan {
    pub(crate) files: Vec<PlannedFile>,
    /// A file of an earlier installation that is removed.
    pub(crate) removed: Option<PathBuf>,
    pub(crate) commands: Vec<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct PlannedFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) mode: u32,
    /// Whether it is already installed in this form.
    pub(crate) is_there: bool,
}

/// The result of an installation.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) files: Vec<PlannedFile>,
    pub(crate) removed: Option<PathBuf>,
    /// Why the service manager could not be informed, if it could not.
    pub(crate) failed: Option<ServiceError>,
}

/// The status of the service.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServiceStatus {
    pub(crate) installed: bool,
    /// Whether the timer is active, or with `--work` the service.
    pub(crate) active: bool,
    /// Whether it runs while its user is not logged in; `None`: the system cannot tell.
    pub(crate) lingers: Option<bool>,
    pub(crate) files: Vec<PathBuf>,
}

impl PlannedFile {
    fn new(path: PathBuf, text: String, mode: u32) -> Self {
        const RIGHTS: u32 = 0o777;
        let has_mode = || fs::symlink_metadata(&path).is_ok_and(|found| found.mode() & RIGHTS == mode);
        let is_there = fs::read(&path).is_ok_and(|there| there == text.as_bytes()) && has_mode();
        Self { path, text, mode, is_there }
    }
}

impl Service {
    /// The service of the user, in the directories of this environment.
    pub(crate) fn of_user() -> Result<Self, ServiceError> {
        let home = dirs::home_dir().ok_or(ServiceError::NoHome)?;
        let config = dirs::config_dir().ok_or(ServiceError::NoHome)?;
        if !home.is_absolute() {
            return Err(ServiceError::RelativeHome(home));
        }
        let manager = if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd };
        let units = match manager {
            Manager::Systemd => config.join("systemd/user"),
            Manager::Launchd => home.join("Library/LaunchAgents"),
        };
        Ok(Self { manager, units, environment: config.join("agent-cli/service.env") })
    }

    pub(crate) fn manager(&self) -> Manager {
        self.manager
    }

    /// The file with login variables.
    pub(crate) fn environment(&self) -> &Path {
        &self.environment
    }

    /// What [`install`](Self::install) does. An existing environment file is only replaced if there are `variables` to save.
    pub(crate) fn plan(
        &self,
        spec: &ServiceSpec<'_>,
        variables: &[(String, String)],
    ) -> Result<ServicePlan, ServiceError> {
        let paths = spec.paths.iter().map(|(_, path)| path.as_path());
        for path in [spec.program, spec.environment].into_iter().chain(paths) {
            match path.to_str() {
                None => return Err(ServiceError::NotUtf8 { path: path.to_owned() }),
                Some(text) if text.chars().any(char::is_control) => {
                    return Err(ServiceError::ControlCharacter { path: path.to_owned() });
                }
                Some(_) => {}
            }
        }
        let mut files = Vec::new();
        if !variables.is_empty() || !self.environment.exists() {
            let before = match fs::read_to_string(&self.environment) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                read => read.map_err(|source| ServiceError::Write { path: self.environment.clone(), source })?,
            };
            let text = service_units::environment_file(variables, &before).map_err(ServiceError::SeveralLines)?;
            files.push(PlannedFile::new(self.environment.clone(), text, 0o600));
        }
        let is_timed = spec.duty == Duty::Resume;
        let texts = match self.manager {
            Manager::Systemd => vec![service_units::systemd_service(spec), service_units::systemd_timer()],
            Manager::Launchd => vec![service_units::launchd_agent(LABEL, spec)],
        };
        let mut units = self.units();
        let removed = if self.manager == Manager::Systemd && !is_timed { units.pop() } else { None };
        let removed = removed.filter(|timer| timer.exists());
        files.extend(units.into_iter().zip(texts).map(|(path, text)| PlannedFile::new(path, text, 0o644)));
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let systemctl = |arguments: &[&str]| words(&[&["systemctl", "--user"], arguments].concat());
        let commands = match self.manager {
            Manager::Systemd => {
                // What an earlier installation started must not keep running.
                let other =
                    if is_timed { self.keeps_working().then_some(UNIT) } else { removed.as_ref().map(|_| TIMER) };
                let ends = other.map(|unit| systemctl(&["disable", "--now", unit]));
                let own = if is_timed { TIMER } else { UNIT };
                let has_changed = files.iter().any(|file| file.path.ends_with(UNIT) && !file.is_there);
                // A running one keeps its old arguments until it is restarted, and its agents may take long to end.
                let anew = (!is_timed && has_changed && self.keeps_working())
                    .then(|| systemctl(&["restart", "--no-block", UNIT]));
                let starts = [systemctl(&["daemon-reload"]), systemctl(&["enable", "--now", own])];
                ends.into_iter().chain(starts).chain(anew).collect()
            }
            Manager::Launchd => {
                let agent = self.units()[0].display().to_string();
                vec![words(&["launchctl", "load", "-w", &agent])]
            }
        };
        Ok(ServicePlan { files, removed, commands })
    }

    /// Writes the missing files, and makes the system start the service.
    pub(crate) fn install(
        &self,
        spec: &ServiceSpec<'_>,
        variables: &[(String, String)],
    ) -> Result<Installed, ServiceError> {
        let ServicePlan { files, removed, commands } = self.plan(spec, variables)?;
        let start = |command: &Vec<String>| run(&command.iter().map(String::as_str).collect::<Vec<_>>()).map(drop);
        // systemd can only stop a unit that it still knows.
        let (ends, starts): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|words| words.contains(&"disable".to_owned()));
        let mut failed = ends.iter().try_for_each(start).err();
        if let Some(path) = &removed {
            fs::remove_file(path).map_err(|source| ServiceError::Remove { path: path.clone(), source })?;
        }
        files.iter().filter(|file| !file.is_there).try_for_each(write)?;
        if self.manager == Manager::Launchd {
            // One that is not loaded cannot be unloaded.
            let _ = run(&["launchctl", "unload", &self.units()[0].display().to_string()]);
        }
        failed = failed.or(starts.iter().try_for_each(start).err());
        Ok(Installed { files, removed, failed })
    }

    pub(crate) fn status(&self) -> ServiceStatus {
        let files: Vec<PathBuf> = self.units().into_iter().filter(|path| path.exists()).collect();
        let lingers = match self.manager {
            Manager::Systemd => lingers(),
            Manager::Launchd => None,
        };
        let environment = Some(&self.environment).filter(|path| path.exists());
        ServiceStatus {
            installed: !files.is_empty(),
            active: self.is_active(),
            lingers,
            files: files.iter().chain(environment).cloned().collect(),
        }
    }

    /// Whether the installed service keeps `work` running.
    pub(crate) fn keeps_working(&self) -> bool {
        let unit = fs::read_to_string(&self.units()[0]).unwrap_or_default();
        service_units::keeps_working(&unit)
    }

    /// Whether the system runs the service for the chains of this state directory.
    pub(crate) fn continues(&self, state_dir: &Path) -> bool {
        let unit = fs::read_to_string(&self.units()[0]).unwrap_or_default();
        service_units::has_variable(&unit, STATE_DIR, state_dir) && self.is_active()
    }

    fn is_active(&self) -> bool {
        match self.manager {
            // This succeeds if one of them is active.
            Manager::Systemd => run(&["systemctl", "--user", "is-active", "--quiet", TIMER, UNIT]).is_ok(),
            Manager::Launchd => run(&["launchctl", "list", LABEL]).is_ok(),
        }
    }

    /// Stops the service and removes its files. Returns the removed files, and why the service manager could not be informed,
    /// if it could not.
    pub(crate) fn uninstall(&self) -> Result<(Vec<PathBuf>, Option<ServiceError>), ServiceError> {
        let ServiceStatus { installed, files, .. } = self.status();
        let stopped = match self.manager {
            _ if !installed => Ok(()),
            Manager::Systemd => {
                let unit = if self.keeps_working() { UNIT } else { TIMER };
                run(&["systemctl", "--user", "disable", "--now", unit]).map(drop)
            }
            Manager::Launchd => run(&["launchctl", "unload", "-w", &self.units()[0].display().to_string()]).map(drop),
        };
        for path in &files {
            fs::remove_file(path).map_err(|source| ServiceError::Remove { path: path.clone(), source })?;
        }
        if installed && self.manager == Manager::Systemd {
            // If it was not informed before, the link that enabled the unit still exists, and is broken.
            for link in ["timers.target.wants/agent-cli.timer", "default.target.wants/agent-cli.service"] {
                let _ = fs::remove_file(self.units.join(link));
            }
            let _ = run(&["systemctl", "--user", "daemon-reload"]);
        }
        Ok((files, stopped.err()))
    }

    fn units(&self) -> Vec<PathBuf> {
        match self.manager {
            Manager::Systemd => vec![self.units.join(UNIT), self.units.join(TIMER)],
            Manager::Launchd => vec![self.units.join(format!("{LABEL}.plist"))],
        }
    }
}

fn lingers() -> Option<bool> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let shown = run(&["loginctl", "show-user", &uid, "--property", "Linger", "--value"]).ok()?;
    match String::from_utf8_lossy(&shown.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn write(PlannedFile { path, text, mode, .. }: &PlannedFile) -> Result<(), ServiceError> {
    let put = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(*mode)).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    put().map_err(|source| ServiceError::Write { path: path.clone(), source })
}

fn run(words: &[&str]) -> Result<Output, ServiceError> {
    let failed = |why: String| ServiceError::Manager { command: words.join(" "), why };
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    Err(failed(why.unwrap_or_else(|| output.status.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_value_of_the_environment_file_as_it_is() {
        let hostile = "a$(touch /tmp/x)`y`\\\"z' %n";
        let text = service_units::environment_file(&[("KEY".into(), hostile.into())], "").unwrap();
        let script = format!("set -a; {text}\nprintf %s \"$KEY\"");
        let read = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(read.stdout).unwrap(), hostile);
        assert_eq!(service_units::environment_file(&[("KEY".into(), "a\nb".into())], ""), Err("KEY".into()));
    }
}
