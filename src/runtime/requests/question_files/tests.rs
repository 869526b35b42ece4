//! Which answers in files count.

use std::os::unix::fs::symlink;

use super::*;
use crate::runtime::requests::file_content::LARGEST;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(temp.path()).unwrap();
    (temp, path)
}

fn why(found: FoundAnswer) -> String {
    match found {
        FoundAnswer::None(why) | FoundAnswer::Refused(why) | FoundAnswer::Invalid(why) => why,
        FoundAnswer::Soon(time) => format!("counts from {time}"),
        FoundAnswer::ToNote(seen) => format!("to note: {seen:?}"),
        FoundAnswer::Answer(text, _) => format!("an answer: {text}"),
    }
}

fn asked(until: Option<Timestamp>) -> AskedUntil {
    AskedUntil { until, seen: WaitProgress::default() }
}

#[test]
fn a_question_is_of_the_file_that_it_was_asked_with() {
    let reach = Reach { below: None, may_write: true };
    let path = PathBuf::from("/p/q.md");
    let file = QuestionFile { name: "q.md".into(), path, reach, new: false, refused: None };
    let with = |file: Option<&str>| Form { file: file.map(Into::into), ..Form::text("When?") };
    assert!(file.is_of(&with(Some("/p/q.md"))));
    assert!(!file.is_of(&with(Some("/p/other.md"))) && !file.is_of(&with(None)));
}

#[test]
fn whatever_is_there_it_is_said_why_it_is_no_answer() {
    let (_temp, folder) = folder();
    let at = |name: &str| folder.join(name);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::write(at("whole"), "When?\nA: now\n---\n").unwrap();
    symlink(at("whole"), at("link")).unwrap();
    symlink(&folder, at("way")).unwrap();
    fs::write(at("binary"), b"When?\nA: \xff").unwrap();
    File::create(at("large")).unwrap().set_len(LARGEST + 1).unwrap();
    fs::write(at("empty"), "").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let now = Timestamp::now();
    let look = |name: &str| why(find_answer(&at(name), &Form::text("When?"), &asked(Some(Timestamp::UNIX_EPOCH)), now));
    for (name, expected) in [
        ("missing", "does not exist"),
        ("whole/below", "does not exist"),
        ("dangling", "is a link"),
        ("link", "is a link"),
        ("way/whole", "is in a directory that was replaced by a link"),
        ("folder", "is a directory"),
        ("fifo", "is not a regular file"),
        ("large", "is larger than 1 MiB"),
        ("binary", "is not UTF-8"),
        ("empty", "no longer has the question that was asked, so nothing in it is an answer"),
    ] {
        assert_eq!(look(name), expected);
    }
    assert_eq!(look("whole"), "an answer: now");
}

#[test]
fn an_answer_is_younger_than_the_attempt_that_asked_and_complete() {
    let (_temp, folder) = folder();
    let path = folder.join("q.md");
    fs::write(&path, "\u{feff}When?\nA: now\n").unwrap();
    // No program can set the relevant time.
    let far = std::time::SystemTime::now() + std::time::Duration::from_secs(86_400);
    File::options().write(true).open(&path).unwrap().set_modified(far).unwrap();
    let changed = read(&path).unwrap().changed;
    let later = |seconds| changed + jiff::SignedDuration::from_secs(seconds);
    let look = |asked: &AskedUntil, now| why(find_answer(&path, &Form::text("When?"), asked, now));
    let begun = asked(Some(later(-100)));
    assert_eq!(look(&begun, later(1)), format!("counts from {}", later(10)));
    assert_eq!(look(&begun, later(10)), "an answer: now");
    for until in [None, Some(later(1))] {
        let early = look(&asked(until), later(20));
        assert_eq!(early, EARLY);
    }
    // Its permissions were changed after the turn: that is not an answer, but a line at its end is.
    let earlier = earlier_in(&path, &Form::text("When?")).unwrap();
    assert_eq!(earlier.changed, changed);
    let earlier = AskedUntil { seen: begun.seen.with_earlier(&earlier.what), ..asked(Some(later(-100))) };
    assert_eq!(look(&earlier, later(20)), EARLY);
    fs::write(&path, "When?\nA: now\n---\n").unwrap();
    assert_eq!(look(&earlier, later(20)), "an answer: now");
    fs::write(&path, "\u{feff}When?\nA: now\n").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(far).unwrap();
    let changed = read(&path).unwrap().changed;
    let later = |seconds| changed + jiff::SignedDuration::from_secs(seconds);
    // The clock was set back after it was saved.
    let noted = WaitProgress::default().with_changed_ahead(changed, later(-50));
    assert_eq!(look(&begun, later(-50)), format!("to note: {noted:?}"));
    let begun = AskedUntil { seen: noted, ..begun };
    assert_eq!(look(&begun, later(-45)), format!("counts from {}", later(-40)));
    assert_eq!(look(&begun, later(-40)), "an answer: now");
}

#[test]
fn a_new_file_replaces_none() {
    let (_temp, folder) = folder();
    let path = folder.join("q.md");
    create(&path, "one").unwrap();
    assert_eq!(create(&path, "two").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
