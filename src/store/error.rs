//! The errors of the store, grouped by what a person can do about them.

mod archive_error;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame_state::IllegalEvent;
use crate::core::chain::limits::LimitReached;
use crate::core::housekeeping::archive::BadArchive;
use crate::core::housekeeping::file_ownership::Exposed;
use crate::core::housekeeping::hosting::{Elsewhere, NotTaken};
use crate::core::housekeeping::rights::Right;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request_state::IllegalRequestEvent;
use crate::core::text::time::{on_clock, time_since, time_until};
use crate::local_zone::local_zone;

pub(crate) use crate::store::error::archive_error::ArchiveError;

/// The result of the store's functions.
pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// Why the store refused an operation. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The state directory is not a directory.
    #[error("the state directory {0} is not a directory")]
    NotADirectory(PathBuf),
    /// Other users could have written to the state directory, whose contents decide which commands run.
    #[error("the state directory {dir} is not used: {}", exposed.in_words())]
    Exposed {
        /// The state directory.
        dir: PathBuf,
        /// Where they can write, and how.
        exposed: Exposed,
    },
    /// Only another user can read the state directory.
    #[error("the state directory {0} belongs to another user")]
    OfAnotherUser(PathBuf),
    /// The state directory, or a file in it, cannot be written.
    #[error("{0} cannot be written")]
    ReadOnly(PathBuf),
    /// The state directory was replaced or removed after it was opened.
    #[error("the state directory {0} was removed or replaced while it was in use")]
    Gone(PathBuf),
    /// The disk is full.
    #[error("the disk of {0} is full")]
    Full(PathBuf),
    /// The file at the database's path is not a database of agent-cli.
    #[error("{0} is not a database of agent-cli")]
    NotADatabase(PathBuf),
    /// The database was written by a newer version of this program.
    #[error("{path} has version {found}, but this agent-cli supports versions only up to {known}")]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The database was made by a version of this program from before its first release.
    #[error("{0} was made by a version of agent-cli from before its first release, and can no longer be read")]
    Unreleased(PathBuf),
    /// Other processes kept the database locked for too long.
    #[error("{0} is locked by another process")]
    Busy(PathBuf),
    /// The database contains something that this program does not write.
    #[error("{path} is damaged")]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another error of the database.
    #[error("cannot use {path}")]
    Database {
        /// The database.
        path: PathBuf,
        /// The error of the database.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server with the database cannot be used.
    #[error("cannot use the database {place}: {why}")]
    Server {
        /// The server, without a password.
        place: String,
        /// What the server, or the connection to it, has reported.
        why: String,
    },
    /// The user of the database lacks a right. The owner of the database gives rights.
    #[error("{user} may not {}{}", right.action(), if directory.is_empty() { String::new() } else { format!(" in {directory}") })]
    NoRight {
        /// The user.
        user: String,
        /// The right.
        right: Right,
        /// Where the chain was started. Empty: nowhere in particular.
        directory: String,
    },
    /// Another user of the database runs chains on a host.
    #[error("the host {host} belongs to another user of the database than {user}")]
    OthersHost {
        /// The host.
        host: String,
        /// The user.
        user: String,
    },
    /// The user of the database has no right at all.
    #[error("{user} has no access to the chains in {place}")]
    NoAccess {
        /// The user.
        user: String,
        /// The server, without a password.
        place: String,
    },
    /// Only the owner of the database may do this.
    #[error("only {owner}, who owns the database, can {action}")]
    NotOwner {
        /// The owner's name on the server.
        owner: String,
        /// What was refused, after "can".
        action: &'static str,
    },
    /// The server has no such user.
    #[error("the server has no user {0}")]
    UnknownUser(String),
    /// The address of the server with the database is not valid.
    #[error("the address of the database is not valid: {why}")]
    BadStore {
        /// What is wrong with the address.
        why: String,
    },
    /// The object storage cannot be used.
    #[error("cannot use the object storage {place}: {why}")]
    ObjectStorage {
        /// Its address.
        place: String,
        /// What the service, or the connection to it, has reported.
        why: String,
    },
    /// The files of a chain are in object storage that the address of the database does not name.
    #[error("files of the chain are in the object storage {0}, which this host does not use")]
    OtherObjectStorage(String),
    /// The state directory was copied, and the agents of its chains may run in the original, too.
    #[error("the state directory {0} is a copy of another one, where its agents may run")]
    CopiedDirectory(PathBuf),
    /// The state directory uses another database.
    #[error("the state directory {dir} records its chains in {used}")]
    OtherStore {
        /// The state directory.
        dir: PathBuf,
        /// Its database: a file, or a server without a password.
        used: String,
    },
    /// A chain has continued after an interrupted move: on the server, and in the file.
    #[error("an interrupted move has brought {} to {place}, and it has continued both there and here", .root.short())]
    MovedBefore {
        /// The root of the chain.
        root: FrameId,
        /// The server, without a password.
        place: String,
    },
    /// This host does not run the agents of a chain.
    #[error("the agents of {} {elsewhere}", .root.short())]
    OtherHost {
        /// The root of the chain.
        root: FrameId,
        /// Where they run.
        elsewhere: Elsewhere,
    },
    /// This host may not run the agents of a chain.
    #[error("{} cannot continue on this host: {why}", .root.short())]
    NotTaken {
        /// The root of the chain.
        root: FrameId,
        /// Why.
        why: NotTaken,
    },
    /// This host cannot start agents, because it may not be able to end them before other hosts take their chains.
    #[error("cannot start agents: the lease of the host {0} has ended")]
    LeaseEnded(String),
    /// The clock of this host is far off, so it cannot tell what is due.
    #[error("cannot start agents: the clock of this host is {} the server's", apart(*.0))]
    ClockOff(SignedDuration),
    /// The host starts no agents.
    #[error("cannot start agents: the host {0} is being drained")]
    Draining(String),
    /// No host has this identifier.
    #[error("there is no host {0}")]
    UnknownHost(String),
    /// Agents may be running on the host.
    #[error("cannot forget the host {host}, because it is in use: its lease ends in {} s", .left.as_secs() + 1)]
    HostInUse {
        /// Its identifier.
        host: String,
        /// The rest of its lease.
        left: Duration,
    },
    /// A file of the state directory cannot be used.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Paths are stored as text.
    #[error("{0:?} is not valid UTF-8")]
    NotUtf8(PathBuf),
    /// The frame does not exist.
    #[error("there is no agent {0}")]
    UnknownFrame(FrameId),
    /// The request does not exist.
    #[error("there is no request {0}")]
    UnknownRequest(RequestId),
    /// No id begins like this.
    #[error("no agent or question matches `{0}`")]
    Unknown(String),
    /// An unfinished chain already has this name.
    #[error("another chain, {}, is already named {name}", by.short())]
    NameTaken {
        /// The name.
        name: String,
        /// The chain.
        by: FrameId,
    },
    /// Several ids begin like this. At most ten are named.
    #[error("several ids begin with {prefix}: {}", list(candidates))]
    Ambiguous {
        /// The beginning.
        prefix: String,
        /// What it can mean.
        candidates: Vec<Candidate>,
    },
    /// The attempt has ended, or never belonged to the frame, so nothing may be done in its name.
    #[error("{attempt} is not the running attempt of agent {frame}")]
    StaleCaller {
        /// The frame.
        frame: FrameId,
        /// The attempt.
        attempt: AttemptId,
    },
    /// The agent will not continue, so it cannot receive a message.
    #[error("{} has finished", .0.short())]
    IsOver(FrameId),
    /// The agent has no conversation to summarise.
    #[error("{} has no conversation yet", .0.short())]
    NoConversation(FrameId),
    /// The agent was asked to stop or was sent a message after its end had been decided on.
    #[error("{} has been stopped or sent a message", .0.short())]
    Steered(FrameId),
    /// The chain has asked this many questions within an hour, and none was answered.
    #[error("this chain has asked {0} questions within an hour, and none has been answered")]
    TooManyQuestions(u64),
    /// A limit keeps the tree from growing.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The frame may not start now.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// The frame's state does not allow it.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The request's state does not allow it.
    #[error(transparent)]
    IllegalRequest(#[from] IllegalRequestEvent),
    /// The question was answered already. The first answer counts.
    #[error("question {} was already answered, at {}{}", .question.short(), clock(*answered), if *replaceable { "" } else { ", and its agent has the answer" })]
    AlreadyAnswered {
        /// The question.
        question: RequestId,
        /// When it was answered.
        answered: Timestamp,
        /// The answer.
        answer: String,
        /// Whether another answer can replace it.
        replaceable: bool,
    },
    /// The question expired without an answer.
    #[error("question {} expired at {} without an answer", .question.short(), clock(*expired))]
    QuestionExpired {
        /// The question.
        question: RequestId,
        /// When that was recorded.
        expired: Timestamp,
    },
    /// The question has no answer that could be replaced.
    #[error("question {} has no answer yet", .0.short())]
    NotAnswered(RequestId),
    /// The answer was delivered to an attempt.
    #[error("the answer to question {} was delivered", .0.short())]
    Delivered(RequestId),
    /// A result for an attempt has changed since it was read: an answer was replaced, or a child is retried.
    #[error("the result of request {} has changed", .0.short())]
    ResultChanged(RequestId),
    /// The parent was told of the failure, or is being told.
    #[error("the agent that started {} gets its failure as the result", .0.short())]
    FailureDelivered(FrameId),
    /// The request is not a question.
    #[error("request {0} is not a question")]
    NotAQuestion(RequestId),
    /// The request does not wait for something outside the chain.
    #[error("request {0} does not wait for something outside")]
    NotAWait(RequestId),
    /// A tree cannot be moved to another machine.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The agent to change is running.
    #[error("{} is running and cannot be changed", .0.short())]
    Running(FrameId),
    /// The attempt that asked the question was discarded.
    #[error("question {} was withdrawn: its agent no longer waits for an answer", .0.short())]
    QuestionWithdrawn(RequestId),
}

impl From<BadArchive> for StoreError {
    fn from(why: BadArchive) -> Self {
        ArchiveError::from(why).into()
    }
}

fn list(candidates: &[Candidate]) -> String {
    candidates.iter().map(Candidate::to_string).collect::<Vec<_>>().join(", ")
}

impl StoreError {
    /// The archive is damaged.
    pub(crate) fn damaged_archive(why: &str) -> Self {
        BadArchive::Damaged(why.to_owned()).into()
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotADirectory => Self::NotADirectory(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            _ => Self::Io { path, source },
        }
    }
}

/// A time in the past for messages, with its age.
fn clock(at: Timestamp) -> String {
    let now = Timestamp::now();
    format!("{} ({} ago)", on_clock(at, now, &local_zone()), time_since(at, now))
}

/// How far a clock is ahead of another one, or behind it.
fn apart(ahead: SignedDuration) -> String {
    let now = Timestamp::now();
    let other = now.checked_add(ahead.abs()).unwrap_or(Timestamp::MAX);
    format!("{} {}", time_until(other, now), if ahead.is_negative() { "behind" } else { "ahead of" })
}

/// One of several things that an id may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// As much of its id as distinguishes it from the others.
    pub id: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its title.
    pub title: String,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.id, self.kind, self.title)
    }
}
