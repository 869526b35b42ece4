//! Errors for people: the failure and its cause, hints, and an exit status.

pub(crate) mod hints;
pub(super) mod usage;

use std::fmt;
use std::io;

use nix::errno::Errno;

use crate::app::asker::{OnlyPeople, StartedBy};
use crate::app::error::{AppError, Cause, Refusal, RemovalError};
use crate::app::view::outcome::{ErrorDetailView, ErrorType, ErrorView};
use crate::claude::installation::program::ProgramError;
use crate::core::agent::child_worktree::{Held, Worktree};
use crate::core::housekeeping::archive::BadArchive;
use crate::core::id::{BadId, FrameId};
use crate::core::text::shell::shell_path;
use crate::runtime::RuntimeError;
use crate::runtime::recovery::room;
use crate::runtime::requests::fork::BadSource;
use crate::store::{ArchiveError, StoreError};

use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, PrintError};

/// An error for a person.
#[derive(Debug)]
pub(crate) struct CliError {
    exit: ExitStatus,
    messages: Vec<String>,
    hints: Vec<String>,
}

/// The hint for a full disk.
const FREE_SPACE: &str = "free some space, then run the command again; nothing is lost";
/// The hint if a file may not grow although the disk has free space.
const RAISE_LIMIT: &str = "raise the limit of file sizes (ulimit -f), then run the command again; nothing is lost";
/// The hint if the records are no longer where they were.
const PUT_BACK: &str = "put it back, or run the command again with what is there now";
/// The hint if the cause is unknown.
const ASK_DOCTOR: &str = "agent-cli doctor checks the state directory";

/// The hint if no more files can be opened.
const OPEN_MORE: &str = "raise the limit of open files (ulimit -n), then run the command again; nothing is lost";

pub(crate) fn of_files(message: String, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FREE_SPACE,
        io::ErrorKind::FileTooLarge => RAISE_LIMIT,
        _ if matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EMFILE | Errno::ENFILE)) => OPEN_MORE,
        _ => ASK_DOCTOR,
    };
    CliError::failed(message).hint(hint)
}

impl CliError {
    pub(crate) fn new(exit: ExitStatus, message: impl Into<String>) -> Self {
        Self { exit, messages: vec![message.into()], hints: Vec::new() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    /// A person declined a confirmation.
    pub(crate) fn declined(message: impl Into<String>) -> Self {
        Self::usage(message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
        self
    }

    pub(crate) fn hint_resume(self, top: FrameId) -> Self {
        if self.exit == ExitStatus::NoSuchFrame || self.hints.iter().any(|hint| hint == PUT_BACK) {
            return self;
        }
        self.hint(format!("agent-cli resume {} continues; nothing is lost", top.short()))
    }

    pub(crate) fn also(mut self, message: String) -> Self {
        self.messages.push(message);
        self
    }

    /// The error, as `--json` prints it.
    pub(crate) fn view(&self) -> ErrorView {
        let messages: Vec<_> = self.messages.iter().map(|message| bare(message)).collect();
        let (kind, message, exit_status) = (self.exit.kind(), messages.join("\n"), self.exit as u8);
        let error = ErrorDetailView { kind, message, hints: self.hints.clone(), exit_status };
        ErrorView { r#type: ErrorType::Error, error }
    }

    /// The error and its hints as text, for a client that shows them itself.
    pub(crate) fn in_words(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("hint: {hint}"));
        self.messages.iter().map(|message| bare(message).to_owned()).chain(hints).collect::<Vec<_>>().join("\n")
    }

    /// Drops the hints, if a person cannot run a command now.
    pub(crate) fn without_hints(self) -> Self {
        Self { hints: Vec::new(), ..self }
    }

    /// The exit status of a command with this error.
    pub(crate) fn exit(&self) -> ExitStatus {
        self.exit
    }

    /// Reports the error, and returns the exit status.
    pub(crate) fn report(self) -> ExitStatus {
        self.messages.iter().for_each(|message| output::error(bare(message)));
        self.hints.iter().for_each(|hint| output::hint_at_error(hint));
        self.exit
    }
}

/// Removes the prefix that `claude` puts in front of its own messages.
fn bare(message: &str) -> &str {
    message.trim_start_matches("error: ").trim_start_matches("Error: ")
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("; "))
    }
}

impl From<PrintError> for CliError {
    fn from(error: PrintError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<BadId> for CliError {
    fn from(error: BadId) -> Self {
        Self::new(ExitStatus::NoSuchFrame, error.to_string()).hint("agent-cli ls lists the ids")
    }
}

impl From<AppError> for CliError {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Refused(error) => error.into(),
            AppError::OnlyPeople(error) => error.into(),
            AppError::Id(error) => error.into(),
            AppError::Answer(error) => error.into(),
            AppError::Removal(error) => error.into(),
            AppError::Store(error) => error.into(),
            AppError::Service(error) => error.into(),
            AppError::Runtime(error) => error.into(),
        }
    }
}

impl From<OnlyPeople> for CliError {
    fn from(OnlyPeople { task, started_by }: OnlyPeople) -> Self {
        const OWN_SHELL: &str = "use a shell that no agent has started";
        let (message, hint) = task.refusal();
        let error = Self::usage(message);
        match started_by {
            StartedBy::Agent { found_above: None, .. } => error.hint(hint),
            StartedBy::Agent { agent, found_above: Some(process) } => error.hint(hint).hint(format!(
                "process {process}, above this one, belongs to agent {}: {OWN_SHELL}",
                agent.short()
            )),
            StartedBy::AgentOf(process) => error.hint(format!(
                "this runs below process {process}, which runs agents, and was not started by a command of [on]: {OWN_SHELL}"
            )),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(Refusal { message, hints, cause }: Refusal) -> Self {
        let exit = match cause {
            Cause::Input => ExitStatus::Usage,
            Cause::Unknown => ExitStatus::NoSuchFrame,
            Cause::Failure => ExitStatus::Failed,
        };
        hints.into_iter().fold(Self::new(exit, message), Self::hint)
    }
}

/// A chain may have many worktrees.
const MOST_HINTS: usize = 3;

impl From<RemovalError> for CliError {
    fn from(error: RemovalError) -> Self {
        let failed = Self::failed(error.to_string());
        match error {
            RemovalError::Busy(root) => {
                failed.hint(format!("agent-cli stop {} ends it; or wait for it to end", root.short()))
            }
            RemovalError::Needed(_) => failed.hint("remove that chain first; agent-cli tree shows all chains"),
            RemovalError::Held(root, held) => {
                let failed = held.iter().fold(failed, |error, Held { frame, path, branch, why, .. }| {
                    error.also(format!("{} (branch {branch}, of {}): {why}", path.display(), frame.short()))
                });
                let mut hints: Vec<_> = held.iter().map(|held| hints::of_held(held, root)).collect();
                hints.dedup();
                hints.into_iter().take(MOST_HINTS).fold(failed, Self::hint)
            }
        }
    }
}

impl From<RuntimeError> for CliError {
    fn from(error: RuntimeError) -> Self {
        let message = error.to_string();
        match error {
            RuntimeError::Store(error) => error.into(),
            RuntimeError::Program(error) => error.into(),
            RuntimeError::Launch(error) => error.into(),
            RuntimeError::Refused(said) => Self::new(ExitStatus::Claude, message).hint(hints::refused(&said)),
            RuntimeError::Fork(error) => Self::usage(message).hint(match error {
                BadSource::Running(id) => format!("agent-cli resume {} shows its status", id.short()),
                BadSource::Empty(id) => format!("agent-cli show {} shows its status", id.short()),
                BadSource::StartsAfresh(id) => hints::starts_afresh(id),
                BadSource::Group(id) => format!("agent-cli tree {} shows them", id.short()),
                BadSource::NoWorkingDirectory(_) => "leave --fork-from out".to_owned(),
                BadSource::Foreign(_) => "an agent can fork only conversations of its own chain".to_owned(),
                BadSource::Elsewhere(_) => "leave --cwd out".to_owned(),
                BadSource::NotInACall => "make it a Bash call of its own, or leave --background out".to_owned(),
                BadSource::Unwritten => {
                    "leave --background out: the fork then begins when your turn has ended".to_owned()
                }
            }),
            RuntimeError::Worktree(error) => hints::of_worktree(message, &error),
            RuntimeError::UnknownToAgent(_) => Self::new(ExitStatus::NoSuchFrame, message)
                .hint("an agent can reach only what it started: agent-cli tree shows it")
                .hint("for a chain that this session started before agent-cli took it over, give the full id"),
            RuntimeError::Deadlock { .. } => {
                Self::usage(message).hint("end your turn: that agent then gets your reply")
            }
            RuntimeError::SameTask { .. } => Self::usage(message).hint("name one of them by its id"),
            RuntimeError::NotAnAgent(_) => Self::usage(message).hint("agent-cli tree shows the agents"),
            RuntimeError::QuestionFile(_) | RuntimeError::InBackground(_) => Self::usage(message),
            RuntimeError::NoCaller(_) => Self::usage(message).hint("AGENT_CLI_STATE_DIR may name another directory"),
            RuntimeError::Io { source, .. } => of_files(message, &source),
            RuntimeError::ClaudeFolder { folder, source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => of_files(message, &source),
                _ => Self::failed(message).hint(room::remedy(&folder)),
            },
            RuntimeError::ForeignSession { transcript, .. } => {
                let place = shell_path(&transcript);
                let hint = format!("if that session is not needed under its id, move {place} away, and try again");
                Self::failed(message).hint(hint)
            }
            RuntimeError::NoWorkingDirectory { .. }
            | RuntimeError::NoRoom { .. }
            | RuntimeError::ReplacedWorktree { .. }
            | RuntimeError::Moved { .. }
            | RuntimeError::BrokenConversation { .. } => Self::failed(message),
        }
    }
}

impl From<ProgramError> for CliError {
    fn from(error: ProgramError) -> Self {
        Self::new(ExitStatus::Claude, error.to_string()).hint(hints::install())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        use std::error::Error as _;
        let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
        let message = format!("{error}{cause}");
        match error {
            StoreError::UnknownFrame(_) | StoreError::UnknownRequest(_) | StoreError::Unknown(_) => {
                Self::new(ExitStatus::NoSuchFrame, message)
                    .hint("agent-cli ls lists chains, agent-cli questions lists questions")
            }
            StoreError::Ambiguous { .. } => {
                Self::new(ExitStatus::NoSuchFrame, message).hint("give more characters of the id")
            }
            StoreError::NameTaken { by, .. } => Self::usage(message)
                .hint(format!("give another name; agent-cli resume {} continues that chain", by.short())),
            StoreError::NotADirectory(_) => Self::failed(message).hint("set AGENT_CLI_STATE_DIR to a directory"),
            StoreError::Exposed { exposed, .. } => Self::failed(message)
                .hint(exposed.remedy())
                .hint("or set AGENT_CLI_STATE_DIR to a directory that only you can write"),
            StoreError::ReadOnly(_) => Self::failed(message)
                .hint("make it writable for this user, or set AGENT_CLI_STATE_DIR to another directory"),
            StoreError::OfAnotherUser(_) => {
                Self::failed(message).hint("set AGENT_CLI_STATE_DIR to a directory of yours")
            }
            StoreError::Full(_) => Self::failed(message).hint(FREE_SPACE),
            StoreError::NotADatabase(place) if place.starts_with("postgres:") => {
                Self::failed(message).hint("name another database: its schema agent_cli belongs to another program")
            }
            StoreError::NotADatabase(_) | StoreError::Unreleased(_) | StoreError::Damaged { .. } => {
                Self::failed(message)
                    .hint("move the file away if it is not needed, or set AGENT_CLI_STATE_DIR to another directory")
            }
            StoreError::Archive(error) => archive(message, &error),
            StoreError::Gone(_) => Self::failed(message).hint(PUT_BACK),
            StoreError::Newer { .. } => Self::failed(message).hint("upgrade agent-cli"),
            StoreError::Busy(_) | StoreError::ResultChanged(_) | StoreError::Steered(_) => {
                Self::failed(message).hint("run the command again")
            }
            StoreError::NotUtf8(_) => Self::usage(message).hint("rename it"),
            StoreError::StaleCaller { .. } => Self::usage("the turn that made this call has ended")
                .hint("an agent can make requests only during its turn"),
            StoreError::Limit(_) => Self::usage(message)
                .hint("an agent does the work itself; a person raises the limits with --max-depth and --max-agents"),
            StoreError::TooManyQuestions(_) => Self::usage(message)
                .hint("end your turn: when a person has answered, you can ask again")
                .hint("AGENT_CLI_QUESTIONS_PER_HOUR, set where a person starts the chain, allows more"),
            StoreError::AlreadyAnswered { question, replaceable: false, .. } | StoreError::Delivered(question) => {
                Self::usage(message).hint(hints::shows_answer(question))
            }
            StoreError::AlreadyAnswered { question, replaceable: true, .. } => {
                Self::usage(message).hint(hints::shows_answer(question)).hint(hints::replaces_answer(question))
            }
            StoreError::QuestionExpired { question, .. } => {
                Self::usage(message).hint(format!("agent-cli questions {} shows it", question.short()))
            }
            StoreError::NotAnswered(question) => {
                Self::usage(message).hint(format!("agent-cli answer {} ANSWER", question.short()))
            }
            StoreError::NotAQuestion(_) | StoreError::NotAWait(_) => {
                Self::new(ExitStatus::NoSuchFrame, message).hint("agent-cli questions lists the questions")
            }
            StoreError::QuestionWithdrawn(_) => Self::usage(message).hint("agent-cli questions lists open questions"),
            StoreError::IsOver(id) => Self::usage(message)
                .hint(format!("agent-cli resume {} --prompt TEXT continues it with a new instruction", id.short())),
            StoreError::NoConversation(id) => {
                Self::usage(message).hint(format!("agent-cli resume {} starts it", id.short()))
            }
            StoreError::Running(id) => Self::failed(message).hint(may_have_died(id)),
            StoreError::Io { source, .. } => of_files(message, &source),
            StoreError::Database { .. } => Self::failed(message).hint(ASK_DOCTOR),
            StoreError::Server { .. }
            | StoreError::BadStore { .. }
            | StoreError::ObjectStorage { .. }
            | StoreError::OtherObjectStorage(_)
            | StoreError::CopiedDirectory(_)
            | StoreError::OtherStore { .. }
            | StoreError::MovedBefore { .. }
            | StoreError::OtherHost { .. }
            | StoreError::NotTaken { .. }
            | StoreError::LeaseEnded(_)
            | StoreError::ClockOff(_)
            | StoreError::Draining(_)
            | StoreError::UnknownHost(_)
            | StoreError::HostInUse { .. }
            | StoreError::NoRight { .. }
            | StoreError::OthersHost { .. }
            | StoreError::NoAccess { .. }
            | StoreError::NotOwner { .. }
            | StoreError::UnknownUser(_) => hints::of_server(message, &error),
            StoreError::NotAdmitted(_)
            | StoreError::Illegal(_)
            | StoreError::IllegalRequest(_)
            | StoreError::FailureDelivered(_) => Self::failed(message),
        }
    }
}

/// The hint for an agent that is recorded as running.
fn may_have_died(frame: FrameId) -> String {
    format!("agent-cli resume {} shows its status, and continues it if its runner has died", frame.short())
}

fn archive(message: String, error: &ArchiveError) -> CliError {
    let hint = match error {
        ArchiveError::Running(frame) => may_have_died(*frame),
        ArchiveError::NoCopy(_) => "agent-cli fsck --repair copies sessions that Claude Code still has".to_owned(),
        ArchiveError::NoDirectory { worktree: Some(worktree), .. } => {
            let Worktree { path, branch, .. } = worktree.as_ref();
            let here = "in a clone of its repository";
            format!("{here}, git worktree add DIR {branch}; then import with --cwd {}=DIR", shell_path(path))
        }
        ArchiveError::NoDirectory { cwd, here, .. } => {
            let name =
                if cwd == here { "create it, or name its new place" } else { "create it, or name another place" };
            format!("{name}: --cwd {}=DIR", shell_path(cwd))
        }
        ArchiveError::Exists(id) => format!("agent-cli show {id}"),
        ArchiveError::Bad(BadArchive::Newer(_)) => "upgrade agent-cli".to_owned(),
        ArchiveError::Bad(BadArchive::Foreign) => "agent-cli export ID -o FILE writes one".to_owned(),
        ArchiveError::Bad(_) | ArchiveError::Contradicts(_) => "export it again".to_owned(),
        _ => return CliError::failed(message),
    };
    CliError::failed(message).hint(hint)
}
