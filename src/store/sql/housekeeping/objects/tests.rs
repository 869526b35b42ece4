use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::core::attempt::ending::Ending;
use crate::core::housekeeping::hosting::{Labels, Offer};
use crate::core::housekeeping::retention::Retention;
use crate::store::handle::Store;
use crate::store::hosts::{Terms, Wanted};
use crate::store::housekeeping::removable::Decided;
use crate::store::records::{Caller, NewFrame};
use crate::store::sql::testing::end_leases;
use crate::store::testing::{another_host, ask, attempt, new, new_server, store};

/// Makes a host use object storage in a directory from now on.
fn using(store: &Store, directory: &Path) -> Store {
    let server = store.dir().server().unwrap().unwrap();
    let plain = server.url.split("?copies=").next().unwrap();
    let url = format!("{plain}?copies=file://{}", directory.display());
    Store::use_server(store.dir().path(), &url).unwrap();
    Store::open(store.dir().path()).unwrap()
}

/// Two hosts that use the same object storage; `None` without a server.
fn hosts(objects: &Path) -> Option<(TempDir, Store, TempDir, Store)> {
    new_server()?;
    let (temp, here) = store();
    let (other, there) = another_host(&here).expect("they share a server");
    let (here, there) = (using(&here, objects), using(&there, objects));
    Some((temp, here, other, there))
}

/// Ends an attempt of an agent with this session, in a question.
fn pauses(store: &Store, root: FrameId, session: &str) {
    let given = store.deliveries(root).unwrap().into_iter().map(|it| (it.request, it.result)).collect();
    let attempt = attempt(given);
    store.begin(root, &attempt).unwrap();
    let caller = Caller { frame: root, attempt: attempt.id };
    store.request(caller, None, &[ask("When?")]).unwrap();
    store.dir().frame_dir(root).unwrap();
    fs::write(store.dir().checkpoint(root, attempt.id), session).unwrap();
    store.end(caller, &Ending::Suspended);
}

fn chain(store: &Store) -> FrameId {
    let cwd = store.dir().path().to_owned();
    store.create_root(&NewFrame { cwd, ..new("task") }).unwrap()
}

/// Takes a chain of the first host.
fn take(store: &Store, root: FrameId, from: &Store) -> Result<Option<FrameId>> {
    let offer = Offer { shared: vec![from.dir().path().to_owned()], ..Offer::default() };
    store.hosts().unwrap().take(Wanted::Chain(root), &offer)
}

fn files(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn rows(store: &Store, condition: &str) -> i64 {
    let sql = format!("SELECT count(*) AS rows FROM {condition}");
    store.database().query(|connection| connection.read_one(&sql, [], |row| row.get("rows"))).unwrap()
}

/// Text that stays large when it is compressed.
fn session(lines: usize) -> String {
    (0..lines).map(|_| format!("{}\n", Uuid::new_v4())).collect()
}

#[test]
fn files_travel_through_object_storage() {
    let objects = tempfile::tempdir().unwrap();
    let Some((_temp, here, _other, there)) = hosts(objects.path()) else { return };
    let root = chain(&here);
    let text = session(100_000);
    pauses(&here, root, &text);
    assert_eq!((rows(&here, "copies WHERE content IS NOT NULL"), rows(&here, "objects")), (0, 4));
    assert_eq!(files(objects.path()).len(), 4);

    // What has not changed is not written again, and what is no longer needed is deleted.
    there.answer(here.questions(None, true).unwrap()[0].id, "now").unwrap();
    let longer = format!("{text}{}", session(10));
    here.execute("UPDATE objects SET made = made - interval '2 hours'", []);
    pauses(&here, root, &longer);
    assert_eq!((rows(&here, "objects"), files(objects.path()).len()), (4, 4));
    let is_new = "objects WHERE made > clock_timestamp() - interval '1 hour'";
    assert_eq!(rows(&here, is_new), 1);

    end_leases(&here);
    let elsewhere = tempfile::tempdir().unwrap();
    let other = using(&there, elsewhere.path());
    let take = |store: &Store| take(store, root, &here);
    let place = format!("file://{}", objects.path().display());
    assert!(matches!(take(&other), Err(StoreError::OtherObjectStorage(named)) if named == place));
    let there = using(&other, objects.path());
    let damaged = files(objects.path()).pop().unwrap();
    let content = fs::read(&damaged).unwrap();
    for wrong in [vec![0; 10], vec![0; 3 << 20]] {
        fs::write(&damaged, wrong).unwrap();
        assert!(matches!(take(&there), Err(StoreError::ObjectStorage { .. })));
    }
    fs::remove_file(&damaged).unwrap();
    assert!(matches!(take(&there), Err(StoreError::ObjectStorage { .. })));
    assert!(there.elsewhere(root).unwrap().is_some(), "nothing has changed");
    fs::write(&damaged, content).unwrap();
    assert_eq!(take(&there).unwrap(), Some(root));
    let kept = there.frame(root).unwrap().unwrap().checkpoint.unwrap();
    assert_eq!(fs::read_to_string(there.dir().checkpoint(root, kept)).unwrap(), longer);
}

#[test]
fn copies_that_were_lost_or_are_elsewhere_are_made_again() {
    let objects = tempfile::tempdir().unwrap();
    let Some((_temp, here, _other, there)) = hosts(objects.path()) else { return };
    let root = chain(&here);
    let text = session(50_000);
    let again = |store: &Store| {
        there.answer(there.questions(None, true).unwrap()[0].id, "now").unwrap();
        pauses(store, root, &text);
    };
    pauses(&here, root, &text);
    fs::remove_file(files(objects.path()).pop().unwrap()).unwrap();
    again(&here);
    assert_eq!(rows(&here, "copies AS c JOIN objects AS o ON o.id = c.object"), 2);
    assert_eq!(files(objects.path()).len(), 2, "the lost one was written again");

    let elsewhere = tempfile::tempdir().unwrap();
    let moved = using(&here, elsewhere.path());
    again(&moved);
    assert_eq!(files(elsewhere.path()).len(), 2);
    end_leases(&here);
    let there = using(&there, elsewhere.path());
    assert_eq!(take(&there, root, &here).unwrap(), Some(root));
    // Where there are objects, a directory that is missing is not mounted.
    fs::remove_dir_all(elsewhere.path().join("agent-cli-objects")).unwrap();
    let server = there.dir().server().unwrap().unwrap();
    let again = Store::use_server(there.dir().path(), &format!("{}&pooler=session", server.url));
    assert!(again.unwrap_err().to_string().contains("is its drive mounted?"));
}

#[test]
fn nothing_is_left_of_a_chain_that_was_removed() {
    let objects = tempfile::tempdir().unwrap();
    let Some((_temp, here, _other, there)) = hosts(objects.path()) else { return };
    let (root, stays) = (chain(&here), chain(&here));
    pauses(&here, root, "a session\n");
    pauses(&here, stays, "a session\n");
    // A killed process has listed this one, and perhaps written it.
    let written =
        "INSERT INTO objects (id, place, frame, digest) SELECT ?1, place, frame, digest FROM objects WHERE frame = ?2";
    let left = format!("{stays}/{}", Uuid::new_v4());
    here.execute(written, (&left, Id(stays)));
    fs::write(objects.path().join("agent-cli-objects").join(&left), "").unwrap();
    let removed = [Decided { root, attempts: 1 }];
    let everything = Retention { before: Timestamp::MAX, failed: true, open: true };
    assert_eq!(here.remove_trees(&removed, everything), [root]);
    assert_eq!(files(objects.path()).len(), 2, "it may be about to be recorded");
    here.execute("UPDATE objects SET made = made - interval '2 hours'", []);
    // With another place, it is not this host that knows what to delete.
    let elsewhere = tempfile::tempdir().unwrap();
    let there = using(&there, elsewhere.path());
    there.housekeeping().shrink().unwrap();
    assert_eq!(rows(&here, "objects"), 2);
    here.housekeeping().shrink().unwrap();
    assert_eq!((rows(&here, "objects"), files(objects.path()).len()), (1, 1));
    end_leases(&here);
    let there = using(&there, objects.path());
    assert_eq!(take(&there, stays, &here).unwrap(), Some(stays));
}

#[test]
fn without_its_object_storage_a_host_copies_to_the_database() {
    let objects = tempfile::tempdir().unwrap();
    let place = objects.path().join("objects");
    let Some((_temp, here, _other, there)) = hosts(&place) else { return };
    let (before, after) = (chain(&here), chain(&here));
    pauses(&here, before, "a session\n");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    pauses(&here, after, "another session\n");
    assert_eq!(rows(&here, "copies WHERE content IS NOT NULL"), 1);
    end_leases(&here);
    assert_eq!(take(&there, after, &here).unwrap(), Some(after));
    assert!(matches!(take(&there, before, &here), Err(StoreError::ObjectStorage { .. })));
}

/// What happens to two chains, two hosts and their object storage.
#[derive(Clone, Debug)]
enum Event {
    /// A chain pauses with a session that begins with this much of the last one, in hundredths, and has this many lines more.
    Pauses { chain: usize, keeps: usize, lines: usize },
    /// The other host takes a chain.
    IsTaken { chain: usize },
    /// Its objects cannot be reached, or can be again.
    Outage,
    /// Somebody deletes an object.
    IsLost { at: usize },
    /// All objects become old.
    HoursPass,
    /// A host deletes what nobody needs.
    Shrinks { host: usize },
    /// A chain is removed, and another one is started.
    IsRemoved { chain: usize },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..2usize, prop::sample::select(vec![(100, 0), (100, 0), (100, 1), (100, 40_000), (0, 1)]))
            .prop_map(|(chain, (keeps, lines))| Event::Pauses { chain, keeps, lines }),
        6 => (0..2usize).prop_map(|chain| Event::IsTaken { chain }),
        1 => Just(Event::Outage),
        3 => (0..3usize).prop_map(|at| Event::IsLost { at }),
        2 => Just(Event::HoursPass),
        2 => (0..2usize).prop_map(|host| Event::Shrinks { host }),
        1 => (0..2usize).prop_map(|chain| Event::IsRemoved { chain }),
    ]
}

struct Member {
    root: FrameId,
    host: usize,
    session: String,
    /// Whether an object was deleted since it paused.
    may_be_damaged: bool,
}

struct Trial {
    hosts: [Store; 2],
    folder: PathBuf,
    members: Vec<Member>,
    is_out: bool,
}

impl Trial {
    fn start(&self) -> Member {
        let root = chain(&self.hosts[0]);
        let session = session(10);
        pauses(&self.hosts[0], root, &session);
        Member { root, host: 0, session, may_be_damaged: false }
    }

    /// Makes the objects unreachable, or reachable again.
    fn switch(&mut self) {
        let away = self.folder.with_extension("away");
        if self.is_out {
            fs::remove_file(&self.folder).unwrap();
            fs::rename(&away, &self.folder).unwrap();
        } else {
            fs::rename(&self.folder, &away).unwrap();
            fs::write(&self.folder, "in the way").unwrap();
        }
        self.is_out = !self.is_out;
    }

    fn removes(&self, at: usize) {
        let member = &self.members[at];
        let removed =
            [Decided { root: member.root, attempts: rows(&self.hosts[0], &attempts(member.root)).cast_unsigned() }];
        let everything = Retention { before: Timestamp::MAX, failed: true, open: true };
        assert_eq!(self.hosts[member.host].remove_trees(&removed, everything), [member.root]);
    }

    fn happens(&mut self, event: &Event) {
        match *event {
            Event::Pauses { chain, keeps, lines } => {
                let member = &mut self.members[chain];
                let store = &self.hosts[member.host];
                let question = store.questions(Some(member.root), true).unwrap()[0].id;
                store.answer(question, "now").unwrap();
                let kept = member.session.len() * keeps / 100;
                member.session = format!("{}{}", &member.session[..kept], session(lines));
                member.may_be_damaged = false;
                pauses(store, member.root, &member.session);
            }
            Event::IsTaken { chain } => {
                end_leases(&self.hosts[0]);
                let there = &self.hosts[1 - self.members[chain].host];
                let member = &self.members[chain];
                let taken = take(there, member.root, &self.hosts[0]);
                let is_stored =
                    rows(there, &format!("copies WHERE object IS NOT NULL AND frame = '{}'", member.root)) > 0;
                match taken {
                    Ok(taken) => {
                        assert_eq!(taken, Some(member.root));
                        let kept = there.frame(member.root).unwrap().unwrap().checkpoint.unwrap();
                        let session = fs::read_to_string(there.dir().checkpoint(member.root, kept)).unwrap();
                        assert_eq!(session, member.session);
                        self.members[chain].host = 1 - member.host;
                    }
                    Err(StoreError::ObjectStorage { .. }) => {
                        assert!(is_stored && (self.is_out || member.may_be_damaged));
                    }
                    Err(error) => panic!("{error}"),
                }
                let terms = Terms { lease: Duration::from_secs(3600), labels: Labels::default(), runs_agents: false };
                self.hosts.iter().for_each(|host| drop(host.hosts().unwrap().renew(&terms)));
            }
            Event::Outage => self.switch(),
            Event::IsLost { at } => {
                let objects = files(&self.folder);
                if let Some(object) = objects.get(at).filter(|_| !self.is_out) {
                    fs::remove_file(object).unwrap();
                    self.members.iter_mut().for_each(|member| member.may_be_damaged = true);
                }
            }
            Event::HoursPass => self.hosts[0].execute("UPDATE objects SET made = made - interval '2 hours'", []),
            Event::Shrinks { host } => drop(self.hosts[host].housekeeping().shrink()),
            Event::IsRemoved { chain } => {
                self.removes(chain);
                self.members[chain] = self.start();
            }
        }
    }

    fn unlisted(&self) -> Vec<PathBuf> {
        let mut all = files(&self.folder);
        let sql = "SELECT id FROM objects";
        let listed =
            self.hosts[0].database().query(|connection| connection.read_all(sql, [], |row| row.get::<_, String>("id")));
        let listed = listed.unwrap();
        all.retain(|path| !listed.iter().any(|id| path.ends_with(id)));
        all
    }
}

fn attempts(root: FrameId) -> String {
    format!("attempts WHERE frame = '{root}'")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(10), ..ProptestConfig::default() })]

    #[test]
    fn every_pause_can_be_continued_and_nothing_is_left(events in prop::collection::vec(event(), 10..25)) {
        let objects = tempfile::tempdir().unwrap();
        let place = objects.path().join("objects");
        let Some((_temp, here, _other, there)) = hosts(&place) else { return Ok(()) };
        let mut trial = Trial { hosts: [here, there], folder: place, members: Vec::new(), is_out: false };
        trial.members = vec![trial.start(), trial.start()];
        for event in &events {
            trial.happens(event);
            prop_assert!(trial.is_out || trial.unlisted().is_empty(), "{:?}", trial.unlisted());
        }
        if trial.is_out {
            trial.switch();
        }
        trial.removes(0);
        trial.removes(1);
        trial.happens(&Event::HoursPass);
        trial.happens(&Event::Shrinks { host: 1 });
        prop_assert_eq!((rows(&trial.hosts[0], "objects"), files(&trial.folder)), (0, Vec::new()));
    }
}
