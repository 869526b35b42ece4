//! Tests the maintenance of all chains, and that writes by other processes are noticed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::launch::Launch;
use crate::core::housekeeping::relocation::Relocation;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::FrameId;
use crate::store::conformance::{Open, fresh};
use crate::store::handle::Store;
use crate::store::housekeeping::archive::{Here, Unpacked};
use crate::store::housekeeping::database_facts::{Condition, FactsOf};
use crate::store::housekeeping::removable::Decided;
use crate::store::records::{KnownProgram, NewFrame, WorktreesOf};
use crate::store::testing::{new, reply};

fn everything() -> Retention {
    Retention { before: Timestamp::MAX, failed: true, open: false }
}

fn done(store: &Store) -> FrameId {
    let root = store.root();
    store.end(store.start(root), &reply("42"));
    root
}

pub(crate) fn others_are_noticed(open: Open) {
    let (temp, store) = fresh(open);
    let before = store.changes().version_of_others().unwrap();
    store.root();
    assert_eq!(store.changes().version_of_others().unwrap(), before, "its own changes are none of others");
    let other = open(&temp.path().join("state"));
    let woken_by = store.changes().woken_by();
    assert!(woken_by.iter().any(|file| file.starts_with(store.dir().path())));
    let state = || {
        woken_by
            .iter()
            .map(|file| fs::metadata(file).ok().map(|file| (file.len(), file.modified().unwrap())))
            .collect::<Vec<_>>()
    };
    let files = state();
    other.root();
    // A server sends a notification.
    let end = Instant::now() + Duration::from_secs(60);
    while store.changes().version_of_others().unwrap() == before || state() == files {
        assert!(Instant::now() < end, "nothing is noticed");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(store.changes().is_unchanged(), "it was not opened for a single look");
}

pub(crate) fn a_chain_is_removed_unless_it_has_changed(open: Open) {
    let (_temp, store) = fresh(open);
    let (root, open_chain) = (done(&store), store.root());
    let removable = store.housekeeping().removable(everything().into()).unwrap();
    assert_eq!(removable.iter().map(|tree| tree.root).collect::<Vec<_>>(), [root]);
    assert_eq!(store.housekeeping().removable(open_chain.into()).unwrap().len(), 1, "a chain that is named");
    let sessions = store.housekeeping().sessions(root).unwrap();
    let attempts = store.attempts(root).unwrap();
    let worked = |frame: &FrameId| sessions.iter().filter(|worked| worked.frame == *frame).count();
    assert_eq!(worked(&root), attempts.iter().map(|attempt| attempt.session).collect::<HashSet<_>>().len());
    assert!(sessions.iter().all(|worked| worked.ended.is_some()));
    assert_eq!(store.housekeeping().sessions(open_chain).unwrap(), [], "it has not begun");
    let [stale, decided] = [0, removable[0].attempts].map(|attempts| Decided { root, attempts });
    assert_eq!(store.remove_trees(&[stale], everything()), []);
    assert_eq!(store.remove_trees(&[decided], everything()), [root]);
    assert_eq!(store.frame(root).unwrap(), None);
    assert!(store.frame(open_chain).unwrap().is_some());
    store.housekeeping().shrink().unwrap();
}

pub(crate) fn files_without_an_agent_are_found(open: Open) {
    let (_temp, store) = fresh(open);
    fs::write(store.dir().frame_dir(store.root()).unwrap().join("out.ndjson"), "in use").unwrap();
    fs::write(store.dir().frame_dir(FrameId::random()).unwrap().join("out.ndjson"), "123").unwrap();
    let found = store.housekeeping().orphan_files().unwrap();
    assert_eq!(found.iter().map(|orphan| orphan.bytes).collect::<Vec<_>>(), [3]);
    assert!(store.housekeeping().remove_orphan_file(&found[0]).unwrap());
    assert!(!store.housekeeping().remove_orphan_file(&found[0]).unwrap(), "it is gone");
}

pub(crate) fn a_chain_is_exported_and_imported(open: Open) {
    let (_temp, store) = fresh(open);
    let root = done(&store);
    let mut archive = Vec::new();
    store.housekeeping().export(root, &mut archive).unwrap();
    let (_other, elsewhere) = fresh(open);
    let here = Here { claude: "claude".into(), path: None, environment: BTreeMap::new() };
    let read = |store: &Store| {
        let unpacked = Unpacked::read(store.dir(), &mut archive.as_slice(), &Relocation::default()).unwrap();
        unpacked.adapt(&here).unwrap()
    };
    assert_eq!(elsewhere.housekeeping().import(&read(&elsewhere)).unwrap(), root);
    assert_eq!(elsewhere.replies(root).unwrap().reply.as_deref(), Some("42"));
    assert_eq!(elsewhere.spent(root).unwrap(), store.spent(root).unwrap());
    assert!(store.housekeeping().import(&read(&store)).is_err(), "it exists");
}

pub(crate) fn the_records_are_sound(open: Open) {
    let (_temp, store) = fresh(open);
    let (root, _) = store.asking("When?");
    let housekeeping = store.housekeeping();
    let facts = housekeeping.facts(FactsOf::All).unwrap();
    let page = housekeeping.frame_facts(FactsOf::All, 0).unwrap();
    assert_eq!((facts.known.len(), facts.requests.len(), page.next), (1, 1, None));
    assert_eq!(page.frames.iter().map(|facts| facts.frame.id).collect::<Vec<_>>(), [root]);
    assert!(facts.findings.is_empty() && page.findings.is_empty());
    assert!(!matches!(housekeeping.condition().unwrap(), Condition::Damaged(_)));
    assert_eq!(housekeeping.other_schema().unwrap(), [""; 0]);
    assert!(!housekeeping.make_index("no_such_index").unwrap());
    assert_eq!(housekeeping.observed(9).unwrap().pauses.len(), 1);
}

pub(crate) fn programs_are_remembered_until_they_change(open: Open) {
    let (_temp, store) = fresh(open);
    let (program, then) = (Path::new("/bin/claude"), Timestamp::UNIX_EPOCH);
    let known = KnownProgram { version: "2.1.197".into(), refuses_forks: false };
    store.remember_program(program, then, &known).unwrap();
    assert_eq!(store.known_program(program, then).unwrap(), Some(known));
    assert_eq!(store.known_program(program, Timestamp::now()).unwrap(), None);
}

pub(crate) fn worktrees_are_known_with_who_works_in_them(open: Open) {
    let (_temp, store) = fresh(open);
    let worktree = Worktree {
        remote: None,
        repository: "/srv/.git".into(),
        path: "/w".into(),
        branch: "agent-cli/x".into(),
        base: "0123".into(),
    };
    let launch = Launch { worktree: Some(worktree.clone()), ..Launch::default() };
    let root = store.create_root(&NewFrame { launch, cwd: "/w".into(), ..new("task") }).unwrap();
    assert_eq!(store.worktrees(WorktreesOf::Chain(root)).unwrap(), [(root, worktree.clone())]);
    let workers = store.housekeeping().workers(&worktree).unwrap();
    assert_eq!(workers.iter().map(|worker| worker.frame).collect::<Vec<_>>(), [root]);
}
