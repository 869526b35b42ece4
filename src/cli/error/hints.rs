//! Hints for a failed chain, by cause of the failure.

use std::path::Path;

use crate::claude::attempt_ending;
use crate::claude::installation::start_refusal::StartRefusal;
use crate::cli::error::CliError;
use crate::core::agent::child_worktree::{Held, Remedy, Worktree};
use crate::core::housekeeping::hosting::{Elsewhere, NotTaken};
use crate::core::id::{FrameId, RequestId};
use crate::core::text::shell::{shell_path, shell_word};
use crate::runtime::recovery::room;
use crate::runtime::run::frame_error::{FrameError, FrameErrorKind, RaisedLimit};
use crate::runtime::worktrees::worktree::WorktreeError;
use crate::store::StoreError;

/// How to get the repository of a worktree.
pub(crate) fn clone(repository: &Path, url: &str) -> String {
    let place = repository.parent().filter(|_| repository.ends_with(".git")).unwrap_or(repository);
    let bare = if repository.ends_with(".git") { "" } else { "--bare " };
    format!("git clone {bare}{} {}", shell_word(url), shell_path(place))
}

pub(super) fn of_worktree(message: String, error: &WorktreeError) -> CliError {
    let (usage, failed) = (CliError::usage(message.clone()), CliError::failed(message));
    match error {
        WorktreeError::NoRepository(_) => {
            usage.hint("commit something to a git repository there, or leave --worktree out")
        }
        WorktreeError::OtherRepository { .. } => {
            usage.hint("leave --worktree out, or --cwd: a person starts an agent for another repository")
        }
        WorktreeError::NoRemote(_) => usage.hint("git remote -v lists them"),
        WorktreeError::PasswordInAddress(_) => {
            usage.hint("remove it with git remote set-url, and let a credential helper of git know it")
        }
        WorktreeError::NotCloned { repository, url } => failed.hint(clone(repository, url)),
        WorktreeError::NotPushed { remote, .. } => {
            failed.hint(format!("to test access: git push {} HEAD:refs/agent-cli/test", shell_word(remote)))
        }
        WorktreeError::Replaced(_)
        | WorktreeError::Nested(_)
        | WorktreeError::Elsewhere(_)
        | WorktreeError::Git { .. }
        | WorktreeError::Io { .. } => failed,
    }
}

/// Lists what a person can do about the failure of an agent in the chain `top`, in order.
pub(crate) fn of(error: &FrameError, top: FrameId) -> Vec<String> {
    let FrameError { frame, kind: why } = error;
    let top = top.short();
    let resume = format!("agent-cli resume {top}");
    let then = |first: &str| format!("{first}; then {resume}");
    match why {
        FrameErrorKind::Program(_) => {
            vec![then(&install()), format!("{resume} --claude PATH uses another one from now on")]
        }
        FrameErrorKind::Refused(said) => match StartRefusal::from_message(said) {
            StartRefusal::Login => vec![then("run claude and log in with /login, or set ANTHROPIC_API_KEY")],
            StartRefusal::Model => vec![format!("{resume} --model MODEL uses another model")],
            StartRefusal::Mode => vec![format!("{resume} --permission-mode MODE uses another mode"), remove(&top)],
            StartRefusal::Superuser => {
                vec![format!(
                    "{resume} --permission-mode acceptEdits uses another mode; or run it as a user without those rights"
                )]
            }
            StartRefusal::Arguments => vec![format!("{resume} -- ARGS replaces the arguments"), remove(&top)],
            StartRefusal::Session => {
                vec!["its transcript and the kept copy are gone: restore one of them, or start again".to_owned()]
            }
            StartRefusal::NotClaude => vec![format!("{resume} --claude PATH uses another program"), remove(&top)],
            StartRefusal::Room => vec![then("free some space")],
            StartRefusal::Other => vec![carries_on(&resume)],
        },
        FrameErrorKind::NoConversation { said, anew } => {
            let what = if attempt_ending::has_no_session(said) { "gone" } else { "not whole" };
            vec![format!(
                "its transcript and the kept copy are {what}: restore a backup of one of them, or start again: {anew}"
            )]
        }
        FrameErrorKind::NoRoom(folder) => {
            vec![then(&format!("free some space on the disk of {}", shell_path(folder)))]
        }
        FrameErrorKind::ClaudeFolder { folder, .. } => vec![then(&room::remedy(folder))],
        FrameErrorKind::Unrecorded(folder) => {
            let folder = shell_path(folder);
            vec![format!("free some space on the disk of {folder}; the next resume has it done again, with a notice")]
        }
        FrameErrorKind::NoWorkingDirectory(cwd) => {
            vec![then(&format!("restore {} or create it again", cwd.display()))]
        }
        FrameErrorKind::Moved(elsewhere) => {
            let said =
                format!("remove the link {} and restore {}", elsewhere.link.display(), elsewhere.recorded.display());
            vec![then(&said)]
        }
        FrameErrorKind::ForeignSession(transcript) => {
            let said = format!("if that session is not needed under its id, move {} away", shell_path(transcript));
            vec![then(&said), remove(&top)]
        }
        FrameErrorKind::WorktreeGone { worktree: Worktree { repository, path, branch, base, .. }, has_branch } => {
            let (repository, path, branch) = (shell_path(repository), shell_path(path), shell_word(branch));
            let add = format!("git -C {repository} worktree add -f");
            vec![match has_branch {
                true => then(&format!("{add} {path} {branch}")),
                false => then(&format!(
                    "its branch does not exist either; to start again without its changes: {add} -b {branch} {path} {base}"
                )),
            }]
        }
        FrameErrorKind::WorktreeReplaced { worktree: Worktree { repository, path, branch, .. }, has_branch } => {
            let (in_repository, at, its_branch) = (shell_path(repository), shell_path(path), shell_word(branch));
            vec![match (repository.exists(), has_branch) {
                (true, true) => {
                    then(&format!("move {at} away, then git -C {in_repository} worktree add -f {at} {its_branch}"))
                }
                (true, false) => {
                    then(&format!("restore the repository {in_repository}, which has no branch {its_branch} now"))
                }
                (false, _) => then(&format!("restore the repository {in_repository}, which does not exist")),
            }]
        }
        FrameErrorKind::Limit { raised: Some(RaisedLimit { agent, is_for_summary, args }), .. } => {
            let words: Vec<String> = args.words().iter().map(|word| shell_word(word)).collect();
            let (afresh, what) = if *is_for_summary { (" --afresh", "tries again") } else { ("", "continues") };
            let command = format!("agent-cli resume {}{afresh} -- {}", agent.short(), words.join(" "));
            vec![format!("{command} {what} with twice as much")]
        }
        FrameErrorKind::Stopped(_) => {
            // Not the chain: a group takes no instruction.
            vec![format!("agent-cli resume {} --prompt TEXT continues it with a new instruction", frame.short())]
        }
        FrameErrorKind::NoWorktree(WorktreeError::NotCloned { repository, url }) => vec![then(&clone(repository, url))],
        // Branches of worktrees have names below it.
        FrameErrorKind::NoWorktree(error) if error.to_string().contains("'refs/heads/agent-cli' exists") => {
            vec![then("give the branch agent-cli another name: git branch -m agent-cli NAME")]
        }
        FrameErrorKind::NoWorktree(_) | FrameErrorKind::Limit { .. } | FrameErrorKind::Ended(_) => {
            vec![carries_on(&resume)]
        }
    }
}

/// Says how to begin the new session of an agent that has written a summary.
pub(super) fn starts_afresh(agent: FrameId) -> String {
    format!("agent-cli resume {} begins it; agent-cli open {0} --earlier opens the one before", agent.short())
}

/// Says how to retry agents that have failed while others of the chain wait: a resume of the chain does not.
pub(crate) fn beside_others(failed: &[&FrameError]) -> Vec<String> {
    let (stopped, failed): (Vec<_>, Vec<_>) =
        failed.iter().copied().partition(|error| matches!(error.kind, FrameErrorKind::Stopped(_)));
    let again = failed.first().map(|first| {
        let which = if failed.len() == 1 { "it" } else { "the first of them" };
        format!("agent-cli resume {} retries {which}", first.frame.short())
    });
    stopped.into_iter().take(1).flat_map(|error| of(error, error.frame)).chain(again).collect()
}

/// Says how a worktree, and then its chain `root`, can be removed.
pub(crate) fn of_held(held: &Held, root: FrameId) -> String {
    let (git, path) = (format!("git -C {}", shell_path(&held.repository)), shell_path(&held.path));
    let again = format!("agent-cli rm {}", root.short());
    match held.remedy {
        Remedy::DecideAboutWork => format!(
            "merge it, or commit it to another branch; to discard it: {git} worktree remove --force {path}; {git} branch -D {}",
            shell_word(&held.branch)
        ),
        Remedy::Finish => format!("finish or abort that; then {again}"),
        Remedy::Unlock => format!("{git} worktree unlock {path}; then {again}"),
        Remedy::MoveAway => format!("if nothing in {path} is needed, remove that folder; then {again}"),
        Remedy::Wait => format!("wait until that has ended, or remove the other chain; then {again}"),
    }
}

/// Says what a person can change, if nothing was recorded.
pub(crate) fn of_new(why: &FrameErrorKind) -> Option<String> {
    match why {
        FrameErrorKind::Program(_) => Some(install()),
        FrameErrorKind::Refused(said) => Some(refused(said)),
        _ => None,
    }
}

/// Says what a person can change if `claude` rejects its arguments.
pub(crate) fn refused(said: &str) -> String {
    match StartRefusal::from_message(said) {
        StartRefusal::Mode => "nothing was recorded: give another --permission-mode, or none".to_owned(),
        StartRefusal::Superuser => {
            "nothing was recorded: give another --permission-mode, or run it as a user without those rights".to_owned()
        }
        _ => "nothing was recorded: give other arguments after --; claude --help lists them".to_owned(),
    }
}

/// The hint if no usable `claude` was found.
pub(crate) fn install() -> String {
    "install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE".to_owned()
}

/// The hint that makes a folder of Claude Code usable.
fn carries_on(resume: &str) -> String {
    format!("{resume} continues; nothing is lost")
}

fn remove(top: &str) -> String {
    format!("agent-cli rm {top} removes the chain")
}

/// Adds hints to an error about a database on a server, and the hosts that share it.
pub(super) fn of_server(message: String, error: &StoreError) -> CliError {
    let failed = CliError::failed(message.clone());
    match error {
        StoreError::OtherHost { elsewhere: Elsewhere::Waiting, root } => {
            failed.hint(format!("agent-cli resume {} runs them here", root.short()))
        }
        StoreError::NotTaken { why, .. } => not_taken(why).into_iter().fold(failed, CliError::hint),
        StoreError::LeaseEnded(_) => {
            failed.hint("when the server can be reached again, agent-cli resume --all continues")
        }
        StoreError::ClockOff(_) => {
            failed.hint("set the clock, or the server's: timedatectl shows whether it is synchronised")
        }
        StoreError::Draining(host) => failed.hint(format!("agent-cli hosts undrain {host}")),
        StoreError::Server { why, .. } if why.contains("CaUsedAsEndEntity") => failed
            .hint("the server's certificate is one of an authority: openssl req -x509 -addext basicConstraints=CA:FALSE … makes another kind"),
        StoreError::Server { why, .. } if why.contains("TLS") || why.contains("certificate") => failed
            .hint(
                "a server on another machine needs a certificate that this machine trusts (SSL_CERT_FILE names others)",
            )
            .hint("without it, the connection is not encrypted: add ?sslmode=disable to the address to allow that"),
        StoreError::Server { .. } => failed.hint("check the server with the same address: psql ADDRESS"),
        StoreError::BadStore { why } if why.starts_with("copies=") => {
            CliError::usage(message).hint("for example postgres://USER@HOST/DATABASE?copies=s3://BUCKET/PREFIX")
        }
        StoreError::BadStore { .. } => {
            CliError::usage(message).hint("psql accepts the same addresses: postgres://USER@HOST:PORT/DATABASE")
        }
        StoreError::ObjectStorage { why, .. } if why.contains("URL scheme") => {
            failed.hint("AWS_ENDPOINT_URL must begin with https://; AWS_ALLOW_HTTP=true allows http")
        }
        StoreError::ObjectStorage { why, .. } if why.starts_with("AWS_ENDPOINT") => {
            failed.hint("for example export AWS_ENDPOINT_URL=https://HOST:9000")
        }
        StoreError::ObjectStorage { place, .. } if place.starts_with("s3://") => failed
            .hint("set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION in the environment")
            .hint("for a service other than Amazon S3, also set AWS_ENDPOINT_URL"),
        StoreError::ObjectStorage { .. } => failed,
        StoreError::OtherObjectStorage(place) => failed
            .hint(format!("if it is yours, name it in the address of the database: ?copies={}", shell_word(place))),
        StoreError::CopiedDirectory(dir) => {
            failed.hint("set AGENT_CLI_STATE_DIR to another directory, so that no agent runs twice").hint(format!(
                "if the original is lost, or was moved here, remove {} and name the server again",
                dir.join("server").display()
            ))
        }
        StoreError::OtherStore { used, .. } => {
            let other = "set AGENT_CLI_STATE_DIR to another directory";
            // Chains are moved to a server, not from one.
            CliError::usage(message).hint(match used.starts_with("postgres") {
                true => format!("to use another database, {other}"),
                false => format!("agent-cli move --to ADDRESS moves them; or {other}"),
            })
        }
        StoreError::UnknownHost(_) => CliError::usage(message).hint("agent-cli hosts lists the hosts"),
        StoreError::HostInUse { host, .. } => failed
            .hint(format!("if the host works, agent-cli hosts drain {host} lets its agents finish their turns first"))
            .hint("otherwise, wait until its lease has ended, and try again"),
        StoreError::NoRight { user, right, directory } => {
            let place = if directory.is_empty() {
                "--everywhere".to_owned()
            } else {
                format!("--project {}", shell_word(directory))
            };
            CliError::usage(message).hint(format!(
                "the owner of the database can allow it: agent-cli access grant {} {right} {place}",
                shell_word(user)
            ))
        }
        StoreError::OthersHost { host, .. } => failed.hint("run the command on that host").hint(format!(
            "if it is this host, let the owner of the database run agent-cli hosts forget {host} elsewhere"
        )),
        StoreError::NoAccess { user, .. } => failed.hint(format!(
            "the owner of the database can give access: agent-cli access grant {} read --everywhere",
            shell_word(user)
        )),
        StoreError::MovedBefore { root, .. } => failed
            .hint(format!("agent-cli rm {} here lets what is on the server count", root.short()))
            .hint(format!("agent-cli rm {} on another host lets what is here count", root.short())),
        StoreError::NotOwner { owner, .. } => {
            CliError::usage(message).hint(format!("run it as {owner}, or as a member of that role"))
        }
        StoreError::UnknownUser(user) => CliError::usage(message)
            .hint(format!("in psql, CREATE ROLE \"{}\" LOGIN PASSWORD '…' creates it", user.replace('"', "\"\""))),
        _ => failed.hint("run the command on that host"),
    }
}

pub(super) fn shows_answer(question: RequestId) -> String {
    format!("agent-cli questions {} shows the answer", question.short())
}

pub(super) fn replaces_answer(question: RequestId) -> String {
    format!("agent-cli answer --replace {} ANSWER replaces it until it is delivered", question.short())
}

/// What lets this host continue a chain.
fn not_taken(why: &NotTaken) -> Vec<String> {
    match why {
        NotTaken::Alive(_) => vec!["run the command on that host".to_owned()],
        NotTaken::NotShared { host, directory } => vec![
            format!("if that host is lost, agent-cli hosts forget {host} lets other hosts continue its chains"),
            format!(
                "if {} is the same on all hosts, add it to shared-directories: agent-cli config edit",
                directory.display()
            ),
        ],
        NotTaken::NotPushed { host, .. } => vec![format!(
            "if that host is lost for good: agent-cli hosts forget {}; its agents then continue with what was pushed before",
            shell_word(host)
        )],
        NotTaken::OtherFolder { worktree, .. } => {
            let place = worktree.ancestors().nth(2).unwrap_or(worktree);
            vec![format!("a host can take it whose state directory is {}", place.display())]
        }
        NotTaken::NoRepository(repository) => {
            vec![format!("clone the repository to {}", repository.display())]
        }
        NotTaken::NoDirectory(_) => {
            vec!["copy or mount it at this path, or run the command on a host that has it".to_owned()]
        }
        NotTaken::Label(label) => {
            vec![format!("run the command on a host that has it, or add {label} to labels: agent-cli config edit")]
        }
    }
}
