use super::*;
use crate::core::agent::launch::Launch;
use crate::core::attempt::decision::decide;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::facts::Facts;
use crate::store::testing::{self, attempt, attempt_end, new, refused};
use crate::store::{AttemptEnd, Caller, NewAttempt, NewFrame};

/// A paused agent whose transcript is where Claude Code keeps it, and was copied.
struct Paused {
    temp: tempfile::TempDir,
    store: Store,
    caller: Caller,
    place: PathBuf,
}

fn line(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let message = r#"{"role":"assistant","content":[{"type":"text","text":"so"}]}"#;
    format!(r#"{{"type":"assistant","uuid":"{id}","parentUuid":{parent},"message":{message}}}"#) + "\n"
}

impl Paused {
    fn new() -> Self {
        let (temp, store) = testing::store();
        let launch = Launch { config_dir: Some(temp.path().join("config")), ..Launch::default() };
        let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
        let frame = store.frame(root).unwrap().unwrap();
        let place = locate::expected(&temp.path().join("config"), &frame.cwd, frame.session);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        store.dir().frame_dir(root).unwrap();
        let begun = NewAttempt { session: frame.session, ..attempt(Vec::new()) };
        store.begin(root, &begun).unwrap();
        let caller = Caller { frame: root, attempt: begun.id };
        store.request(caller, None, &[testing::ask("When?")]).unwrap();
        fs::write(&place, line("a", "")).unwrap();
        checkpoint::keep(store.dir(), root, begun.id, &place).unwrap();
        store.end(caller, &Ending::Suspended);
        Self { temp, store, caller, place }
    }

    fn frame(&self) -> Frame {
        self.store.frame(self.caller.frame).unwrap().unwrap()
    }

    fn config(&self) -> PathBuf {
        self.temp.path().join("config")
    }

    fn copy(&self) -> PathBuf {
        self.store.dir().checkpoint(self.caller.frame, self.caller.attempt)
    }

    fn prepared(&self) -> Option<PathBuf> {
        prepare(&self.store, &self.frame()).unwrap()
    }

    fn set_aside(&self) -> usize {
        self.store.events(self.caller.frame, 0).unwrap().iter().filter_map(|record| record.entry.set_aside()).count()
    }
}

#[test]
fn an_agent_continues_from_its_copy_whatever_happened_to_the_original() {
    let paused = Paused::new();
    assert_eq!(paused.prepared(), Some(paused.copy()));
    fs::remove_file(&paused.place).unwrap();
    assert_eq!(paused.prepared(), Some(paused.copy()));
    assert_eq!(paused.set_aside(), 0);
}

#[test]
fn a_copy_that_somebody_removed_is_made_again() {
    let paused = Paused::new();
    fs::remove_file(paused.copy()).unwrap();
    assert_eq!(paused.prepared(), Some(paused.copy()));
    // Without both there is nothing to continue from.
    fs::remove_file(paused.copy()).unwrap();
    fs::remove_file(&paused.place).unwrap();
    assert_eq!(paused.prepared(), None);
    // Claude Code has created a transcript but written nothing.
    fs::write(&paused.place, "").unwrap();
    assert_eq!(paused.prepared(), Some(paused.place.clone()));
    assert!(!paused.copy().exists());
}

#[test]
fn what_the_agent_has_besides_its_conversation_is_kept_once_and_restored_from_then_on() {
    let paused = Paused::new();
    let task = paused.config().join("tasks").join(paused.frame().session.to_string()).join("1.json");
    fs::create_dir_all(task.parent().unwrap()).unwrap();
    fs::write(&task, "{}").unwrap();
    paused.prepared();
    fs::remove_file(&task).unwrap();
    paused.prepared();
    assert_eq!(fs::read_to_string(&task).unwrap(), "{}");
}

#[test]
fn what_a_person_said_in_the_session_is_set_aside_and_the_agent_continues_where_it_was() {
    let paused = Paused::new();
    let went_on = || went_on(&paused.store, &paused.frame(), &paused.place).unwrap();
    assert!(!went_on());
    let words = r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":"Go on."}}"#;
    fs::write(&paused.place, format!("{}{words}\n", line("a", ""))).unwrap();
    let tasks = paused.config().join("tasks");
    let own_tasks = tasks.join(paused.frame().session.to_string());
    fs::create_dir_all(&own_tasks).unwrap();
    fs::write(own_tasks.join("1.json"), "{}").unwrap();
    assert!(went_on());
    assert_eq!(paused.prepared(), Some(paused.copy()));
    assert!(!went_on());
    let other_tasks = fs::read_dir(tasks).unwrap().map(|found| found.unwrap().path()).find(|found| *found != own_tasks);
    assert!(other_tasks.is_some_and(|tasks| tasks.join("1.json").is_file()), "the person goes on with the tasks");
    assert_eq!(paused.set_aside(), 1);
    assert_eq!(fs::read_to_string(&paused.place).unwrap(), line("a", ""));
}

#[test]
fn the_better_of_two_conversations_is_kept() {
    let paused = Paused::new();
    let (torn, whole) = (line("a", "") + &line("c", "b"), line("a", "") + &line("b", "a") + &line("c", "b"));
    fs::write(paused.copy(), &torn).unwrap();
    fs::write(&paused.place, &whole).unwrap();
    assert_eq!(paused.prepared(), Some(paused.copy()));
    assert_eq!(fs::read_to_string(paused.copy()).unwrap(), whole);
    // Both conversations are torn.
    for file in [paused.copy(), paused.place.clone()] {
        fs::write(file, &torn).unwrap();
    }
    assert!(matches!(prepare(&paused.store, &paused.frame()), Err(RuntimeError::BrokenConversation { .. })));
}

#[test]
fn the_transcript_of_an_attempt_that_was_not_kept_is_removed_and_is_nobodys_words() {
    let (temp, store) = testing::store();
    let launch = Launch { config_dir: Some(temp.path().to_owned()), ..Launch::default() };
    let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
    store.dir().frame_dir(root).unwrap();
    let session = store.frame(root).unwrap().unwrap().session;
    let place = locate::expected(temp.path(), Path::new("/srv"), session);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let begun = NewAttempt { session, ..attempt(Vec::new()) };
    store.begin(root, &begun).unwrap();
    fs::write(&place, line("a", "")).unwrap();
    let decision = decide(&Facts::from_ending(refused("no such model")));
    let end = attempt_end(Caller { frame: root, attempt: begun.id }, &decision);
    store.end_attempt(&AttemptEnd { leaves: digest(&place).unwrap(), ..end }).unwrap();
    let frame = store.frame(root).unwrap().unwrap();
    assert!(is_of_discarded_attempt(&store, &frame, &place).unwrap());
    assert_eq!(prepare(&store, &frame).unwrap(), None);
    assert!(!place.exists());
    // Later content of that file belongs to the person.
    fs::write(&place, line("b", "")).unwrap();
    assert!(!is_of_discarded_attempt(&store, &frame, &place).unwrap());
}

#[test]
fn a_fork_finds_its_place_empty_and_a_session_in_place_its_copy() {
    let paused = Paused::new();
    let frame = paused.frame();
    make_room(&paused.store, &frame, false, Some(&paused.copy())).unwrap();
    assert!(!paused.place.exists());
    make_room(&paused.store, &frame, true, Some(&paused.copy())).unwrap();
    assert_eq!(fs::read_to_string(&paused.place).unwrap(), line("a", ""));
    make_room(&paused.store, &frame, false, None).unwrap();
    assert!(!paused.place.exists());
    assert_eq!(digest(&paused.place).unwrap(), None);
}

#[test]
fn a_discarded_attempt_leaves_the_transcript_as_it_was() {
    let paused = Paused::new();
    fs::write(&paused.place, line("z", "")).unwrap();
    undo(&paused.store, &paused.frame(), Some(&paused.place)).unwrap();
    assert_eq!(fs::read_to_string(&paused.place).unwrap(), line("a", ""));
}
