//! The command line, as far as it decides anything here. The rest is kept for the log.

use anyhow::{Context, Result, bail};
use uuid::Uuid;

/// What `claude -p` is told.
pub(crate) struct Arguments {
    /// `--session-id`.
    pub(crate) session: String,
    /// `--resume`: a session, or the path of a transcript.
    pub(crate) resume: Option<String>,
    /// `--fork-session`, without which the session itself goes on.
    pub(crate) forks: bool,
    /// `--input-format=stream-json`: its standard input is a message.
    pub(crate) takes_message: bool,
    /// `--model`, or the default.
    pub(crate) model: String,
    /// `--permission-mode`, or the default.
    pub(crate) permission_mode: String,
    /// `--settings`: a file, or JSON.
    pub(crate) settings: Option<String>,
}

impl Arguments {
    /// Reads the arguments and refuses what Claude Code refuses.
    pub(crate) fn parse(args: &[String]) -> Result<Self> {
        let has = |name: &str| args.iter().any(|arg| arg == name);
        let value = |name: &str| {
            if let Some(at) = args.iter().position(|arg| arg == name) {
                return args.get(at + 1).cloned();
            }
            args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
        };
        if has("--no-such-option") {
            bail!("unknown option '--no-such-option'");
        }
        if value("--permission-mode").is_some_and(|mode| mode == "yolo") {
            bail!("option '--permission-mode <mode>' argument 'yolo' is invalid. Allowed choices are plan, default.");
        }
        if !has("-p") || value("--output-format").as_deref() != Some("stream-json") {
            bail!("the stand-in knows only -p --output-format stream-json");
        }
        if !has("--verbose") {
            bail!("When using --print, --output-format=stream-json requires --verbose");
        }
        let resume = value("--resume");
        let forks = has("--fork-session");
        if resume.is_some() && !forks && value("--session-id").is_some() {
            bail!("--session-id can only be used with --continue or --resume if --fork-session is also specified.");
        }
        let model = match value("--model").as_deref() {
            None | Some("opus") => "claude-opus-4-8".to_owned(),
            Some(model) => model.to_owned(),
        };
        let in_place = resume.clone().filter(|_| !forks);
        let session = value("--session-id").or(in_place).context("the stand-in needs --session-id")?;
        if Uuid::parse_str(&session).is_err() {
            bail!("Invalid session ID. Must be a valid UUID.");
        }
        Ok(Self {
            session,
            resume,
            forks,
            takes_message: value("--input-format").is_some_and(|format| format == "stream-json"),
            model,
            permission_mode: value("--permission-mode").unwrap_or_else(|| "default".to_owned()),
            settings: value("--settings"),
        })
    }
}
