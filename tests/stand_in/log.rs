//! What tests learn about the processes: `STAND_IN_LOG` names a file that gets a JSON line for each of their starts and ends.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{mem, process};

use anyhow::Result;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

/// The log, and a lock that shows that this process is alive.
pub(crate) struct Log {
    path: Option<PathBuf>,
    alive: Option<File>,
}

impl Log {
    /// The log that the environment names, if it names one.
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { path: env::var_os("STAND_IN_LOG").map(PathBuf::from), alive: None })
    }

    /// Somebody asked for the version.
    pub(crate) fn version(&self, args: &[String]) -> Result<()> {
        self.append(&json!({"event": "version", "argv": args}))
    }

    /// An agent starts.
    pub(crate) fn start(&mut self, args: &[String], prompt: &str) -> Result<()> {
        let alive = self.path.as_deref().map(show_life).transpose()?;
        let line = json!({
            "event": "start",
            "argv": args,
            "cwd": env::current_dir()?.to_string_lossy(),
            "env": selected_environment(),
            "prompt": prompt,
            "allowed": allowed(args),
            "others": alive.as_ref().map_or(&[][..], |(_, others)| others),
        });
        self.alive = alive.map(|(file, _)| file);
        self.append(&line)
    }

    /// The agent ends normally.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.append(&json!({"event": "end"}))?;
        if let (Some(path), Some(lock)) = (&self.path, self.alive.take()) {
            // The lock ends with the process, which still holds the lease of its frame.
            mem::forget(lock);
            // Otherwise later processes would check more and more of them.
            fs::remove_file(marks(path).join(process::id().to_string()))?;
        }
        Ok(())
    }

    fn append(&self, line: &Value) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut line = line.clone();
        line["pid"] = json!(process::id());
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // A single write, so that lines of different processes do not mix.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }
}

/// The rules of `--settings` that allow something. The file no longer exists when the test could read it.
fn allowed(args: &[String]) -> Value {
    let file = args.iter().rev().find_map(|arg| arg.strip_prefix("--settings="));
    let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    serde_json::from_str::<Value>(&text).map_or(Value::Null, |settings| settings["permissions"]["allow"].clone())
}

/// Locks a file for as long as this process lives, and returns the ids of the others that live now.
///
/// A lock ends with its process, however that ends, so a killed process is not among them. A process that it was just starting may
/// hold its lock for a moment longer.
fn show_life(log: &Path) -> Result<(File, Vec<u32>)> {
    let folder = marks(log);
    fs::create_dir_all(&folder)?;
    let own = File::create(folder.join(process::id().to_string()))?;
    own.lock()?;
    let mut others = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        // It may have ended by now.
        let Ok(other) = File::open(entry.path()) else { continue };
        let pid = entry.file_name().to_string_lossy().parse()?;
        if pid != process::id() && other.try_lock().is_err() && exists(pid) {
            others.push(pid);
        }
    }
    Ok((own, others))
}

fn marks(log: &Path) -> PathBuf {
    log.with_extension("alive")
}

fn selected_environment() -> Value {
    let names = |name: &str| {
        name == "PATH" || name == "HOME" || ["AGENT_CLI_", "CLAUDE"].iter().any(|start| name.starts_with(start))
    };
    env::vars().filter(|(name, _)| names(name)).collect()
}

fn exists(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
}
