//! Points at which a test can make this program die, meet a full disk, or wait until something else has happened.
//!
//! Every durable step of the program has a name here and passes its points: `end_attempt.before`, `end_attempt.within`
//! (everything is written, nothing is final), `end_attempt.after`, and `end_attempt.full`, where the disk is full. In a release
//! build all of this compiles to nothing.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `AGENT_CLI_CRASH` | `POINT` or `POINT:N`: what happens when a point is passed for the first or the `N`th time |
//! | `AGENT_CLI_HOLD` | `POINT GATE` or `POINT:N GATE`: when the process passes the point for the first or the `N`th time, it adds a line to `GATE.held`, and continues when it can read a line from the fifo `GATE` |
//! | `AGENT_CLI_DISK` | a directory that gets what the disk is sure to hold: the content of each file and the names in each directory, as they were when it was last synced |
//! | `AGENT_CLI_PANIC` | `PLACE`: the process panics there. A place is named where it calls [`panic_at`] |
//! | `AGENT_CLI_CRASH_LOG` | a file that gets a line for each point that is passed: the point, the command, the process. With it, all processes that share the file count together |

use std::io;
#[cfg(debug_assertions)]
use std::os::unix::fs::MetadataExt;
use std::path::Path;
#[cfg(debug_assertions)]
use std::time::SystemTime;

/// A moment in a durable step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing was done. The process dies.
    Before,
    /// Everything is written, but no other process can see it. The process dies.
    Within,
    /// It is done. The process dies.
    After,
    /// The disk is full. The process continues with that error.
    Full,
}

/// Panics if a test wants that at this place.
#[cfg(debug_assertions)]
pub(crate) fn panic_at(place: &str) {
    assert!(!std::env::var("AGENT_CLI_PANIC").is_ok_and(|wanted| wanted == place), "a test wants this");
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(crate) fn panic_at(_: &str) {}

/// The moments that the kinds of steps have.
#[cfg(debug_assertions)]
mod kinds {
    use super::Moment::{self, After, Before, Full, Within};

    /// Nothing is written, or not by agent-cli.
    pub(super) const ACTION: &[Moment] = &[Before, After];
    /// A file is opened, or created if it does not exist.
    pub(super) const FILE: &[Moment] = &[Before, After, Full];
    /// Something is deleted in two parts.
    pub(super) const DELETION: &[Moment] = &[Before, Within, After];
    /// A transaction, or a file that is written under another name and then renamed.
    pub(super) const WRITE: &[Moment] = &[Before, Within, After, Full];
}

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident: $name:literal, $moments:ident;)*) => {
        /// A durable step: its effect survives the end of the process.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Step {
            $($(#[$doc])* $step,)*
        }

        /// All steps, by name, and the moments of each.
        #[cfg(debug_assertions)]
        pub const STEPS: &[(Step, &str, &[Moment])] = &[$((Step::$step, $name, kinds::$moments),)*];
    };
}

steps! {
    /// The state directory is told which server has its database.
    SetServer: "set_server", WRITE;
    /// This host's lease on a shared database is renewed.
    Renew: "renew_lease", WRITE;
    /// A host is told to start no more agents, or to start agents again.
    Drain: "drain_host", WRITE;
    /// The chains of a lost host are released.
    Forget: "forget_host", WRITE;
    /// The rights of a user of a shared database are changed.
    ChangeRights: "change_rights", WRITE;
    /// A chain that no host runs is taken, with its files.
    Take: "take_chain", WRITE;
    /// The files that an agent needs on another host are copied to a shared database.
    KeepCopies: "keep_copies", WRITE;
    /// The database is created.
    MakeDatabase: "make_database", WRITE;
    /// The tables are migrated to the newest version.
    Migrate: "migrate", WRITE;
    /// A root is recorded.
    CreateRoot: "create_root", WRITE;
    /// A session that agent-cli did not start is recorded.
    Adopt: "adopt", WRITE;
    /// A request for a child is recorded together with the child.
    RequestChild: "request_child", WRITE;
    /// Another request is recorded.
    Request: "request", WRITE;
    /// A tree becomes part of another one.
    Join: "join", WRITE;
    /// An attempt is recorded.
    Begin: "begin", WRITE;
    /// The outcome of an attempt is recorded.
    EndAttempt: "end_attempt", WRITE;
    /// A stop of agents is recorded.
    OrderStop: "order_stop", WRITE;
    /// A message to an agent is recorded, or that it is given.
    Tell: "tell", WRITE;
    /// A new instruction for a finished agent is recorded.
    Instruct: "instruct", WRITE;
    /// A frame whose attempt could not begin is put off.
    PutOff: "put_off", WRITE;
    /// A failed frame is made ready again.
    TryAgain: "try_again", WRITE;
    /// The limits of a tree are changed, or how its agents are started.
    ChangeChain: "change_chain", WRITE;
    /// It is recorded that an agent starts afresh.
    StartAfresh: "start_afresh", WRITE;
    /// The progress of an external wait, or its end, is recorded.
    Looked: "looked", WRITE;
    /// The current form of a posted question is recorded.
    Reword: "reword", WRITE;
    /// The answer to a posted question is written into its folder.
    AnswerFile: "answer_file", ACTION;
    /// It is recorded that the answer was written there.
    Filed: "filed", WRITE;
    /// The file of a question is written.
    QuestionFile: "question_file", ACTION;
    /// An answer is recorded.
    Answer: "answer", WRITE;
    /// A question is recorded as expired.
    Expire: "expire", WRITE;
    /// Requests are withdrawn whose calls were not suspended.
    WithdrawCalls: "withdraw_calls", WRITE;
    /// A suspended call is recorded as returned.
    Returned: "returned", WRITE;
    /// The version of a `claude` is cached.
    RememberVersion: "remember_version", WRITE;
    /// A checkpoint is copied.
    KeepCopy: "keep_copy", WRITE;
    /// A transcript is restored.
    PutBack: "put_back", WRITE;
    /// A transcript makes room for the next one of its session.
    MakeRoom: "make_room", ACTION;
    /// An older copy is deleted.
    RemoveCopy: "remove_copy", ACTION;
    /// The record of files that an agent has seen is written.
    Seen: "seen", WRITE;
    /// A prompt is written.
    Prompt: "prompt", WRITE;
    /// A settings file is written.
    Settings: "settings", WRITE;
    /// A copy of a transcript with results is written.
    Answered: "answered", WRITE;
    /// A copy of a conversation is written for a person to open.
    Opened: "opened", WRITE;
    /// The result that a call returns is written.
    Result: "result", WRITE;
    /// The error log is opened.
    ErrorLog: "error_log", FILE;
    /// A git worktree is created.
    MakeWorktree: "make_worktree", ACTION;
    /// A git worktree is removed, and then its branch.
    RemoveWorktree: "remove_worktree", DELETION;
    /// The worktree of an agent is pushed to its remote.
    PushWorktree: "push_worktree", ACTION;
    /// The worktree of an agent is fetched from its remote.
    FetchWorktree: "fetch_worktree", ACTION;
    /// A lease is taken.
    Lease: "lease", FILE;
    /// A torn line is terminated.
    Seal: "seal", FILE;
    /// Orphaned processes are ended.
    Sweep: "sweep", ACTION;
    /// A process is started.
    Start: "start", ACTION;
    /// A process is asked to stop.
    Stop: "stop", ACTION;
    /// An attempt without a runner is concluded.
    Harvest: "harvest", ACTION;
    /// A discarded transcript is deleted.
    DeleteTranscript: "delete_transcript", DELETION;
    /// A finished chain is removed, or a directory without a frame.
    Remove: "remove", WRITE;
    /// A chain is imported.
    Import: "import", WRITE;
    /// The events that a person subscribes to are recorded.
    Subscribe: "subscribe", WRITE;
    /// It is recorded that an agent is silent.
    NoteStall: "note_stall", WRITE;
    /// A process claims a notification in order to send it.
    ClaimNotification: "claim_notification", WRITE;
    /// The command of a notification runs.
    RunNotification: "run_notification", ACTION;
    /// The outcome of a notification is recorded.
    EndNotification: "end_notification", WRITE;
    /// A result is printed.
    Print: "print", ACTION;
}

/// The name of a point, as in `AGENT_CLI_CRASH`.
#[cfg(debug_assertions)]
#[must_use]
pub fn name(step: Step, moment: Moment) -> String {
    let name = STEPS.iter().find(|(known, ..)| *known == step).map_or("", |(_, name, _)| name);
    format!("{name}.{moment:?}").to_lowercase()
}

/// Passes a moment, and dies there if a test requests that.
#[inline]
pub fn at(step: Step, moment: Moment) {
    #[cfg(debug_assertions)]
    {
        if armed::is_due(step, moment) {
            armed::die();
        }
        armed::hold(step, moment);
    }
    let _ = (step, moment);
}

/// Runs a step between its first and its last moment.
#[inline]
pub fn around<T>(step: Step, work: impl FnOnce() -> T) -> T {
    at(step, Moment::Before);
    let done = work();
    at(step, Moment::After);
    done
}

/// Records that the file or directory at `path` is on the disk.
#[inline]
pub fn synced(path: &Path) {
    #[cfg(debug_assertions)]
    armed::note_synced(path);
    let _ = path;
}

/// A file or directory, independent of its name, as in `AGENT_CLI_DISK`. The number alone can be reused.
///
/// # Errors
///
/// Nothing exists at `path`.
#[cfg(debug_assertions)]
pub fn identity(path: &Path) -> io::Result<String> {
    let found = path.symlink_metadata()?;
    let made = found.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(format!("{}-{}", found.ino(), made.unwrap_or_default().as_nanos()))
}

/// Whether the step must meet a full disk.
#[inline]
#[must_use]
pub fn is_full(step: Step) -> bool {
    #[cfg(debug_assertions)]
    return armed::is_due(step, Moment::Full);
    #[cfg(not(debug_assertions))]
    {
        let _ = step;
        false
    }
}

/// Passes the moment at which a file is written.
///
/// # Errors
///
/// A full disk, if a test requests one.
#[inline]
pub fn room(step: Step) -> io::Result<()> {
    if is_full(step) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

#[cfg(debug_assertions)]
mod armed {
    use std::env;
    use std::fs::{self, File, OpenOptions};
    use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::{Moment, Step};

    struct Plan {
        point: Option<String>,
        number: usize,
        log: Option<PathBuf>,
    }

    static PLAN: LazyLock<Plan> = LazyLock::new(|| {
        let wanted = env::var("AGENT_CLI_CRASH").ok();
        let (point, number) = match wanted.as_deref().map(|wanted| wanted.split_once(':').unwrap_or((wanted, "1"))) {
            Some((point, number)) => (Some(point.to_owned()), number.parse().unwrap_or(1)),
            None => (None, 0),
        };
        Plan { point, number, log: env::var_os("AGENT_CLI_CRASH_LOG").map(PathBuf::from) }
    });

    /// How often this process has passed the point.
    static PASSED: AtomicUsize = AtomicUsize::new(0);

    /// Whether the point acts this time.
    pub(super) fn is_due(step: Step, moment: Moment) -> bool {
        let plan = &*PLAN;
        if plan.point.is_none() && plan.log.is_none() {
            return false;
        }
        let point = super::name(step, moment);
        let logged = plan.log.as_ref().and_then(|_| logged(&point).ok());
        plan.point.as_ref() == Some(&point)
            && logged.unwrap_or_else(|| PASSED.fetch_add(1, Ordering::Relaxed) + 1) == plan.number
    }

    /// Logs that a point is passed, and returns how often it was.
    fn logged(point: &str) -> io::Result<usize> {
        let path = PLAN.log.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut log = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        log.lock()?;
        let command = env::args().nth(1).unwrap_or_default();
        writeln!(log, "{point} {command} {}", std::process::id())?;
        log.seek(SeekFrom::Start(0))?;
        let mut text = String::new();
        log.read_to_string(&mut text)?;
        Ok(text.lines().filter(|line| line.split(' ').next() == Some(point)).count())
    }

    /// For a directory: a line for each name in it, with the file it refers to. Names of directories end with `/`.
    pub(super) fn note_synced(path: &Path) {
        static DISK: LazyLock<Option<PathBuf>> = LazyLock::new(|| env::var_os("AGENT_CLI_DISK").map(PathBuf::from));
        let Some(disk) = DISK.as_ref() else { return };
        let note = || {
            let content = if path.is_dir() {
                // It may have been removed at this moment.
                let names = fs::read_dir(path)?.filter_map(|entry| {
                    let path = entry.ok()?.path();
                    let (name, end) = (path.file_name()?.display(), if path.is_dir() { "/" } else { "" });
                    Some(format!("{} {name}{end}\n", super::identity(&path).ok()?))
                });
                names.collect::<String>().into_bytes()
            } else {
                fs::read(path)?
            };
            fs::create_dir_all(disk)?;
            fs::write(disk.join(super::identity(path)?), content)
        };
        let _: io::Result<()> = note();
    }

    /// Waits at a gate, if a test requests it from this process.
    pub(super) fn hold(step: Step, moment: Moment) {
        static GATE: LazyLock<Option<(String, String)>> = LazyLock::new(|| {
            let wanted = env::var("AGENT_CLI_HOLD").ok()?;
            wanted.split_once(' ').map(|(point, gate)| (point.to_owned(), gate.to_owned()))
        });
        static HELD: AtomicUsize = AtomicUsize::new(0);
        let Some((point, gate)) = GATE.as_ref() else { return };
        let (point, number) = point.split_once(':').unwrap_or((point, "1"));
        if *point != super::name(step, moment) || (HELD.fetch_add(1, Ordering::Relaxed) + 1).to_string() != number {
            return;
        }
        let wait = || {
            let mut held = OpenOptions::new().append(true).create(true).open(format!("{gate}.held"))?;
            writeln!(held, "{point}")?;
            BufReader::new(File::open(gate)?).read_line(&mut String::new())
        };
        let _: io::Result<usize> = wait();
    }

    /// Skips everything that a process may do when it exits.
    pub(super) fn die() -> ! {
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort();
    }
}
