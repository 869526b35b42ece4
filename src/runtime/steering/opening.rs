//! How a person opens the conversation of an agent in an interactive `claude`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::insert_results;
use crate::claude::transcript::locate;
use crate::claude::transcript::rewrite::Entries;
use crate::core::chain::frame::Frame;
use crate::core::id::SessionId;
use crate::core::text::shell::quoted;
use crate::failpoint::Step;
use crate::runtime::requests::fork::BadSource;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;

/// A `claude` that continues a copy of a conversation. It writes to a separate session, so the agent's does not change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    /// The `claude` of the agent.
    pub program: PathBuf,
    /// What it must copy: a session, or the file of a kept copy if Claude Code no longer has that session.
    pub source: OpenedFrom,
    /// Where the agent works: Claude Code looks for the session there.
    pub cwd: PathBuf,
    /// The agent's configuration directory, if it is not the default.
    pub config_dir: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpenedFrom {
    Session(SessionId),
    Copy(PathBuf),
}

/// The result, in the copy, of the calls at which the agent is paused.
const PAUSED: &str =
    "The agent is paused inside this call. It continues in the agent's own conversation, not in this copy of it.";

impl Opening {
    /// The current conversation of a frame's agent, even while the agent works.
    pub(crate) fn new(store: &Store, frame: &Frame) -> Result<Self, RuntimeError> {
        Ok(Self::found(store, frame)?.0)
    }

    /// Like [`Self::new`], with suspended calls closed in a copy: Claude Code would run them again when it opens the
    /// conversation.
    pub(crate) fn prepared(store: &Store, frame: &Frame) -> Result<Self, RuntimeError> {
        let (mut opening, transcript) = Self::found(store, frame)?;
        let close = || {
            let conversation = Entries::read(BufReader::new(File::open(&transcript)?))?;
            let closed = insert_results::closed(&conversation, |_| PAUSED);
            let closed = closed.map_err(|broken| io::Error::new(io::ErrorKind::InvalidData, broken))?;
            let Some(text) = closed else { return Ok(None) };
            let copy = store.dir().opened(frame.id);
            store.dir().write(Step::Opened, &copy, &text)?;
            Ok(Some(copy))
        };
        if let Some(copy) = close().map_err(while_trying("copy the conversation"))? {
            opening.source = OpenedFrom::Copy(copy);
        }
        Ok(opening)
    }

    /// How it is opened, and where its transcript is.
    fn found(store: &Store, frame: &Frame) -> Result<(Self, PathBuf), RuntimeError> {
        if frame.task.is_group() {
            return Err(BadSource::Group(frame.id).into());
        }
        let located = |session| {
            Some((OpenedFrom::Session(session), locate::find(&config_dir(&frame.launch)?, &frame.cwd, session)?))
        };
        let kept = frame.continues();
        let copy = || {
            kept.map(|kept| store.dir().checkpoint(kept.frame, kept.copy))
                .map(|copy| (OpenedFrom::Copy(copy.clone()), copy))
        };
        let found = located(frame.session).or_else(|| located(kept?.session)).or_else(copy);
        let (source, transcript) = found.ok_or_else(|| BadSource::empty(frame))?;
        let (program, cwd) = (frame.launch.claude.clone(), frame.cwd.clone());
        Ok((Self { program, source, cwd, config_dir: frame.launch.config_dir.clone() }, transcript))
    }

    /// The arguments of `claude`.
    pub(crate) fn arguments(&self) -> [OsString; 3] {
        let source = match &self.source {
            OpenedFrom::Session(session) => session.to_string().into(),
            OpenedFrom::Copy(path) => path.into(),
        };
        ["--resume".into(), source, "--fork-session".into()]
    }

    /// The same as a shell command.
    pub(crate) fn command(&self) -> String {
        let word = |text: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { quoted(text) }
        };
        let config_dir =
            self.config_dir.iter().map(|dir| format!("CLAUDE_CONFIG_DIR={}", word(&dir.to_string_lossy())));
        let program = [self.program.to_string_lossy().into_owned()];
        let arguments = self.arguments().map(|argument| argument.to_string_lossy().into_owned());
        let words = program.iter().chain(&arguments).map(|text| word(text));
        let claude = config_dir.chain(words).collect::<Vec<_>>().join(" ");
        format!("cd {} && {claude}", word(&self.cwd.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_one_that_a_shell_understands() {
        let session = "0193e7b0-1c2d-4abc-8def-0123456789ff".parse().unwrap();
        let opening = Opening {
            program: "/bin/claude".into(),
            source: OpenedFrom::Session(session),
            cwd: "/srv/it's here".into(),
            config_dir: Some("/home/me/other claude".into()),
        };
        assert_eq!(
            opening.command(),
            r"cd '/srv/it'\''s here' && CLAUDE_CONFIG_DIR='/home/me/other claude' /bin/claude --resume 0193e7b0-1c2d-4abc-8def-0123456789ff --fork-session"
        );
        let copy =
            Opening { source: OpenedFrom::Copy("/s/a.jsonl".into()), config_dir: None, cwd: "/srv".into(), ..opening };
        assert_eq!(copy.command(), "cd /srv && /bin/claude --resume /s/a.jsonl --fork-session");
    }
}
