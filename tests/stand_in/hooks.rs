//! Hooks before a tool call, and after all calls of a message: which ones run, and what their answers do.
//!
//! Those of `--settings` run concurrently with the user's own, unless the user's settings disable all hooks.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::version;

/// The timeout of a hook that sets none.
const SECONDS: u64 = 60;

/// The hooks around tool calls.
pub(crate) struct Hooks {
    before: Vec<Hook>,
    /// Those that run after all calls of a message.
    after: Vec<Hook>,
}

/// What happens to a call.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It is run, perhaps with another input.
    Run { input: Value },
    /// It is deferred, and the process ends.
    Defer,
    /// It is not run, for this reason.
    Deny { reason: String },
}

/// What the hooks after all calls of a message did.
#[derive(Default)]
pub(crate) struct After {
    /// One of them stops the agent.
    pub(crate) stops: bool,
    /// What they tell it.
    pub(crate) texts: Vec<Value>,
    /// SIGINT ended one of them. It goes to the whole process group, so this process gets it, too.
    pub(crate) interrupted: bool,
}

#[derive(Clone)]
struct Hook {
    /// The tools it is asked about; `*` or nothing: all.
    matcher: String,
    /// What a command has to contain, or end with.
    word: Option<Word>,
    command: String,
    timeout: Duration,
}

#[derive(Clone)]
enum Word {
    Any(String),
    Last(String),
}

impl Hooks {
    /// Those of `--settings`, a file or JSON, and of the user's settings.
    pub(crate) fn load(given: Option<&str>) -> Result<Self> {
        let user = fs::read_to_string(config_dir()?.join("settings.json")).ok();
        let given = match given {
            Some(text) if text.trim_start().starts_with('{') => Some(text.to_owned()),
            Some(file) => Some(fs::read_to_string(file).with_context(|| format!("Settings file not found: {file}"))?),
            None => None,
        };
        let mut hooks = Self { before: Vec::new(), after: Vec::new() };
        for settings in [user, given].into_iter().flatten() {
            let settings: Value = serde_json::from_str(&settings).context("Invalid JSON in settings")?;
            if settings["disableAllHooks"] == true {
                return Ok(Self { before: Vec::new(), after: Vec::new() });
            }
            for (event, list) in [("PreToolUse", &mut hooks.before), ("PostToolBatch", &mut hooks.after)] {
                for entry in settings["hooks"][event].as_array().into_iter().flatten() {
                    for hook in entry["hooks"].as_array().into_iter().flatten() {
                        list.push(Hook::read(entry, hook)?);
                    }
                }
            }
        }
        Ok(hooks)
    }

    /// What hooks do when all calls of a message are done.
    pub(crate) async fn after(&self, told: &Value) -> Result<After> {
        let mut after = After::default();
        for hook in &self.after {
            let (answer, interrupted) = hook.run(&told.to_string()).await?;
            after.interrupted |= interrupted;
            if answer["continue"] == false {
                return Ok(After { stops: true, ..after });
            }
            let text = answer["hookSpecificOutput"]["additionalContext"].clone();
            after.texts.extend(Some(text).filter(Value::is_string));
        }
        Ok(after)
    }

    /// Asks all hooks that a call concerns. `call` is their input.
    pub(crate) async fn ask(&self, call: &Value) -> Result<Decision> {
        let mut asked = JoinSet::new();
        for hook in self.before.iter().filter(|hook| hook.concerns(call)) {
            let (hook, call) = (hook.clone(), call.to_string());
            asked.spawn(async move { hook.ask(&call).await });
        }
        let mut input = call["tool_input"].clone();
        let mut strongest = (0, Decision::Run { input: Value::Null });
        while let Some(said) = asked.join_next().await {
            let said = said??["hookSpecificOutput"].clone();
            // If there are several, the one that ends last wins.
            if said["permissionDecision"] == "allow" && said["updatedInput"].is_object() {
                input = said["updatedInput"].clone();
            }
            let reason = || said["permissionDecisionReason"].as_str().unwrap_or_default().to_owned();
            let (strength, decision) = match said["permissionDecision"].as_str() {
                Some("deny") => (3, Decision::Deny { reason: reason() }),
                Some("defer") if version::defers() => (2, Decision::Defer),
                // Nobody can be asked.
                Some("ask") => (1, Decision::Deny { reason: reason() }),
                _ => continue,
            };
            if strength > strongest.0 {
                strongest = (strength, decision);
            }
        }
        Ok(match strongest.1 {
            Decision::Run { .. } => Decision::Run { input },
            other => other,
        })
    }
}

impl Hook {
    fn read(entry: &Value, hook: &Value) -> Result<Self> {
        let word = match hook["if"].as_str() {
            None => None,
            Some(rule) => match rule.strip_prefix("Bash(*").and_then(|rest| rest.strip_suffix(')')) {
                Some(word) => Some(
                    word.strip_suffix('*')
                        .map_or_else(|| Word::Last(word.to_owned()), |word| Word::Any(word.to_owned())),
                ),
                None => bail!("the stand-in does not know the rule {rule}"),
            },
        };
        Ok(Self {
            matcher: entry["matcher"].as_str().unwrap_or_default().to_owned(),
            word,
            command: hook["command"].as_str().context("a hook has a command")?.to_owned(),
            timeout: Duration::from_secs(hook["timeout"].as_u64().unwrap_or(SECONDS)),
        })
    }

    fn concerns(&self, call: &Value) -> bool {
        let tool =
            ["", "*"].contains(&self.matcher.as_str()) || self.matcher.split('|').any(|tool| call["tool_name"] == tool);
        let command = call["tool_input"]["command"].as_str().unwrap_or_default();
        // A condition does not see the text of a here-document.
        let seen = command.split("<<").next().unwrap_or_default().trim_end();
        tool && self.word.as_ref().is_none_or(|word| match word {
            Word::Any(word) => seen.contains(word),
            Word::Last(word) => seen.ends_with(word),
        })
    }

    /// The hook's answer; `Null` if it prints nothing, fails, or takes too long.
    async fn ask(&self, call: &str) -> Result<Value> {
        Ok(self.run(call).await?.0)
    }

    /// The hook's answer, and whether SIGINT ended it.
    async fn run(&self, call: &str) -> Result<(Value, bool)> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.command]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut hook = command.kill_on_drop(true).spawn()?;
        let mut stdin = hook.stdin.take().context("a pipe")?;
        // It may end without reading.
        let _ = stdin.write_all(call.as_bytes()).await;
        drop(stdin);
        let Ok(output) = tokio::time::timeout(self.timeout, hook.wait_with_output()).await else {
            return Ok((Value::Null, false));
        };
        let output = output?;
        let interrupted = output.status.signal() == Some(Signal::INT.as_raw());
        Ok((serde_json::from_slice(&output.stdout).unwrap_or_default(), interrupted))
    }
}

/// Where Claude Code keeps settings and sessions.
pub(crate) fn config_dir() -> Result<PathBuf> {
    match env::var_os("CLAUDE_CONFIG_DIR") {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(Path::new(&env::var_os("HOME").context("HOME is not set")?).join(".claude")),
    }
}
