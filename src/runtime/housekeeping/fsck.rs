//! `fsck`: gathers the facts, applies the rules, and repairs what can be repaired without loss.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, ScopedJoinHandle};

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::locate::SessionLocations;
use crate::core::chain::frame::{Frame, KeptConversation};
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::consistency::{FrameFacts, Known, UsableLines, judge_frame, judge_requests};
use crate::core::housekeeping::fsck_finding::{FindingKind, FsckFinding};
use crate::core::id::{FrameId, SessionId};
use crate::runtime::recovery::restore;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::checkpoint::{self, Compared};
use crate::store::files::privacy;
use crate::store::{FactsOf, Lease, Orphan, Store, size};

/// Finds problems. Other processes may be working: a difference between two checks is work in progress, not an error.
/// `tell` is called with the number of agents checked and their total.
pub(crate) fn check(store: &Store, tell: &mut dyn FnMut(&str, usize, usize)) -> Result<Vec<FsckFinding>, RuntimeError> {
    let mut found = look(store, FactsOf::All, tell)?;
    if !found.iter().all(FsckFinding::is_certain) {
        let frames = found.iter().filter_map(|finding| finding.frame).collect();
        let again: HashSet<FsckFinding> = look(store, FactsOf::Again(&frames), tell)?.into_iter().collect();
        found.retain(|finding| finding.is_certain() || again.contains(finding));
    }
    Ok(found)
}

/// Repairs one finding, if the repair loses nothing. Returns what was done; `None`: a person must act.
pub(crate) fn repair(store: &Store, finding: &FsckFinding) -> Result<Option<String>, RuntimeError> {
    match (&finding.kind, finding.frame) {
        (FindingKind::Orphan { path }, frame) => {
            let removed =
                store.housekeeping().remove_orphan_file(&Orphan { path: path.clone(), frame, bytes: size(path) })?;
            Ok(removed.then(|| format!("removed {}", path.display())))
        }
        (FindingKind::MissingIndex { name }, _) => {
            Ok(store.housekeeping().make_index(name)?.then(|| format!("made the index {name}")))
        }
        (FindingKind::Open { path, .. }, _) => {
            privacy::make_private(path)?;
            Ok(Some(format!("made {} private", path.display())))
        }
        (FindingKind::NoCopy { session } | FindingKind::TornCopy { session }, Some(frame)) => {
            keep_again(store, frame, *session)
        }
        _ => Ok(None),
    }
}

fn look(
    store: &Store,
    of: FactsOf<'_>,
    tell: &mut dyn FnMut(&str, usize, usize),
) -> Result<Vec<FsckFinding>, RuntimeError> {
    let facts = store.housekeeping().facts(of)?;
    let dir = store.dir().path();
    // Checking the database, the files that it names, and the files of the state directory takes about equally long.
    thread::scope(|scope| {
        let orphans = scope.spawn(|| Store::open(dir)?.housekeeping().orphan_files());
        let (send, pages) = mpsc::sync_channel(PAGES_AHEAD);
        let judging = scope.spawn(|| judged(&Store::open(dir)?, pages, &facts.known));
        let (mut found, mut next, mut at) = (Vec::new(), Some(0), 0);
        while let Some(after) = next {
            let page = store.housekeeping().frame_facts(of, after)?;
            for _ in &page.frames {
                tell("agents checked", at, facts.known.len());
                at += 1;
            }
            found.extend(page.findings);
            let is_sent = send.send(page.frames).is_ok();
            next = page.next.filter(|_| is_sent);
        }
        drop(send);
        let judged = joined(judging)?.into_iter().chain(judge_requests(&facts.requests, &facts.known));
        let orphans = joined(orphans)?.into_iter().filter(|orphan| !orphan.is_routine());
        let orphans =
            orphans.map(|left| FsckFinding { frame: left.frame, kind: FindingKind::Orphan { path: left.path } });
        let open = store.dir().not_private()?.into_iter();
        let open = open.map(|(path, mode)| FsckFinding { frame: None, kind: FindingKind::Open { path, mode } });
        Ok(facts.findings.iter().cloned().chain(found).chain(judged).chain(orphans).chain(open).collect())
    })
}

/// How many pages of frames are read before they are judged.
const PAGES_AHEAD: usize = 2;

/// The findings about frames.
fn judged(store: &Store, pages: Receiver<Vec<FrameFacts>>, known: &Known) -> Result<Vec<FsckFinding>, RuntimeError> {
    let (mut places, mut found) = (SessionLocations::default(), Vec::new());
    for mut frame in pages.into_iter().flatten() {
        look_at_transcript(store, &mut frame, &mut places)?;
        found.extend(judge_frame(&frame, known));
    }
    Ok(found)
}

fn joined<T>(running: ScopedJoinHandle<'_, T>) -> T {
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Adds the facts about a frame's files in Claude Code's folder.
fn look_at_transcript(
    store: &Store,
    facts: &mut FrameFacts,
    places: &mut SessionLocations,
) -> Result<(), RuntimeError> {
    let FrameFacts { frame, files, .. } = facts;
    // A finished frame no longer needs a session.
    let Some(kept) = kept_of(frame).filter(|_| !files.held && frame.state != FrameState::Done) else { return Ok(()) };
    let transcript = found(frame, kept.session, places);
    let lines = transcript.as_ref().map(|path| checkpoint::lines(path)).transpose();
    files.transcript = lines.map_err(while_trying("read a transcript"))?.unwrap_or_default();
    (files.broken, files.went_on) = conversation(store, frame, kept, transcript.as_deref())?;
    Ok(())
}

/// Whether a checkpoint's conversation is missing its beginning, and whether it was continued outside agent-cli.
fn conversation(
    store: &Store,
    frame: &Frame,
    kept: KeptConversation,
    transcript: Option<&Path>,
) -> Result<(bool, bool), RuntimeError> {
    let is_whole = |path: &Path| Ok::<_, RuntimeError>(!path.is_file() || restore::check(path)?.is_ok());
    let copy = store.dir().checkpoint(frame.id, kept.copy);
    let compared = transcript.map(|path| checkpoint::compare(store.dir(), frame.id, kept.copy, path));
    let compared = compared.transpose().map_err(while_trying("compare a transcript with its copy"))?;
    let is_other = compared == Some(Compared::Other);
    let went_on = transcript.map_or(Ok(false), |path| restore::went_on(store, frame, path))?;
    let whole = match transcript {
        Some(path) if is_other || compared == Some(Compared::NoCopy) => {
            (copy.is_file() && is_whole(&copy)?) || is_whole(path)?
        }
        _ => is_whole(&copy)?,
    };
    Ok((!whole, went_on))
}

/// Claude Code's transcript is at least as long as a copy of it: a checkpoint is never written to.
fn keep_again(store: &Store, id: FrameId, session: SessionId) -> Result<Option<String>, RuntimeError> {
    let Some(_lease) = Lease::try_take(store.dir(), id)? else { return Ok(None) };
    let Some(frame) = store.frame(id)? else { return Ok(None) };
    let Some(kept) = kept_of(&frame).filter(|kept| kept.session == session) else { return Ok(None) };
    let copy = store.dir().checkpoint(id, kept.copy);
    let transcript = found(&frame, session, &mut SessionLocations::default())
        .filter(|path| matches!(checkpoint::lines(path), Ok(UsableLines::Whole)));
    let (from, done) = match transcript {
        Some(path) => (path, "copied the transcript of"),
        None => (copy, "removed the torn end of the copy of"),
    };
    match checkpoint::keep(store.dir(), id, kept.copy, &from) {
        Ok(()) => Ok(Some(format!("{} {done} session {}", id.short(), session.short()))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
    }
}

fn kept_of(frame: &Frame) -> Option<KeptConversation> {
    frame.continues().filter(|_| frame.checkpoint.is_some())
}

fn found(frame: &Frame, session: SessionId, places: &mut SessionLocations) -> Option<PathBuf> {
    config_dir(&frame.launch).and_then(|config| places.find(&config, &frame.cwd, session))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::store::NewFrame;
    use crate::store::testing::{self, new};

    #[test]
    fn what_is_no_longer_so_at_a_second_look_was_work_in_progress() {
        let (_temp, store) = testing::store();
        let root = store.root();
        let folder = store.dir().frame_dir(root).unwrap();
        let set = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let open = |mode| FsckFinding { frame: None, kind: FindingKind::Open { path: folder.clone(), mode } };
        // An agent without findings is not checked again.
        let path = folder.join("left.tmp");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let left = FsckFinding { frame: Some(root), kind: FindingKind::Orphan { path } };
        set(0o755);
        let mut looks = 0;
        assert_eq!(check(&store, &mut |_, _, _| looks += 1).unwrap(), [left.clone(), open(0o755)]);
        assert_eq!(looks, 2);
        let mut looks = 0;
        let closing = &mut |_: &str, _, _| {
            looks += 1;
            set(if looks == 1 { 0o755 } else { 0o700 });
        };
        assert_eq!(check(&store, closing).unwrap(), [left]);
    }

    #[test]
    fn a_conversation_is_whole_if_the_copy_or_the_transcript_that_went_on_is() {
        let (temp, store) = testing::store();
        let launch = Launch { config_dir: Some(temp.path().join("config")), ..Launch::default() };
        let caller = store.start(store.create_root(&NewFrame { launch, ..new("a task") }).unwrap());
        store.dir().frame_dir(caller.frame).unwrap();
        store.end(caller, &testing::reply("SGN_PEND_STARTED"));
        let frame = store.frame(caller.frame).unwrap().unwrap();
        let kept = kept_of(&frame).expect("its session was kept");
        let line = |id: &str, parent: &str| {
            format!(r#"{{"type":"assistant","uuid":"{id}","parentUuid":{parent},"message":{{}}}}"#) + "\n"
        };
        let whole = line("a", "null");
        let torn = line("a", "null") + &line("c", "\"b\"");
        let copy = store.dir().checkpoint(kept.frame, kept.copy);
        let transcript = temp.path().join("transcript.jsonl");
        let is_broken = |copied: Option<&str>, found: Option<&str>| {
            for (path, text) in [(&copy, copied), (&transcript, found)] {
                match text {
                    Some(text) => fs::write(path, text).unwrap(),
                    None => drop(fs::remove_file(path)),
                }
            }
            let found = found.map(|_| transcript.as_path());
            conversation(&store, &frame, kept, found).unwrap().0
        };
        assert!(!is_broken(Some(&whole), None));
        assert!(is_broken(Some(&torn), None));
        assert!(is_broken(Some(&torn), Some(&torn)));
        assert!(!is_broken(Some(&torn), Some(&whole.repeat(2))), "the transcript replaces it");
        assert!(!is_broken(Some(&whole), Some(&torn)), "the copy is what is continued");
        assert!(!is_broken(None, Some(&whole)));
        assert!(is_broken(None, Some(&torn)));
    }
}
