//! Where Claude Code keeps its transcripts, and other files of a session that an agent may need again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::core::agent::session_file_names::{FileSelection, SessionFolder};
use crate::core::id::SessionId;
use crate::failpoint::{self, Moment, Step};

/// The transcript of a session, if there is one.
///
/// Claude Code derives the folder's name from the working directory, in a way that has changed between versions. The folder
/// according to the current rule is tried first, then all others.
pub(crate) fn find(config_dir: &Path, cwd: &Path, session: SessionId) -> Option<PathBuf> {
    let likely = expected(config_dir, cwd, session);
    if likely.is_file() {
        return Some(likely);
    }
    find_anywhere(config_dir, session)
}

/// The transcript of a session whose working directory is not known.
pub(crate) fn find_anywhere(config_dir: &Path, session: SessionId) -> Option<PathBuf> {
    let folders = fs::read_dir(config_dir.join(PROJECTS)).ok()?;
    folders.flatten().map(|folder| folder.path().join(file_name(session))).find(|path| path.is_file())
}

/// Finds the transcripts of many sessions: each of Claude Code's directories is listed once instead of once per session.
#[derive(Debug, Default)]
pub(crate) struct SessionLocations {
    listed: HashMap<PathBuf, HashMap<SessionId, PathBuf>>,
}

impl SessionLocations {
    /// Like [`find`], as of the time when the directory was listed.
    pub(crate) fn find(&mut self, config_dir: &Path, cwd: &Path, session: SessionId) -> Option<PathBuf> {
        let likely = expected(config_dir, cwd, session);
        if likely.is_file() {
            return Some(likely);
        }
        let listed = self.listed.entry(config_dir.to_owned()).or_insert_with(|| list(config_dir));
        listed.get(&session).filter(|path| path.is_file()).cloned()
    }
}

fn list(config_dir: &Path) -> HashMap<SessionId, PathBuf> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries(config_dir.join(PROJECTS)).flat_map(entries);
    let session = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok();
    files.filter_map(|path| Some((session(&path)?, path))).collect()
}

/// Where Claude Code looks for the transcript of a session that worked in `cwd`.
pub(crate) fn expected(config_dir: &Path, cwd: &Path, session: SessionId) -> PathBuf {
    config_dir.join(PROJECTS).join(folder_name(cwd)).join(file_name(session))
}

/// Whether `path` is a place where Claude Code keeps the transcript of a session.
pub(crate) fn is_place(path: &Path, config_dir: &Path, session: SessionId) -> bool {
    let folder = path.parent().filter(|folder| folder.file_name().is_some());
    path.file_name().is_some_and(|name| name == file_name(session).as_str())
        && folder.and_then(Path::parent) == Some(config_dir.join(PROJECTS).as_path())
}

/// Deletes a transcript, the folder of the same name that Claude Code keeps for some sessions, and its tasks.
pub(crate) fn delete(transcript: &Path) -> io::Result<()> {
    let gone_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    failpoint::around(Step::DeleteTranscript, || {
        gone_is_fine(fs::remove_file(transcript))?;
        failpoint::at(Step::DeleteTranscript, Moment::Within);
        gone_is_fine(fs::remove_dir_all(transcript.with_extension("")))?;
        let config = transcript.ancestors().nth(3).map(|config| config.join(TASKS));
        let tasks = config.zip(transcript.file_stem()).map(|(tasks, session)| tasks.join(session));
        tasks.map_or(Ok(()), |tasks| gone_is_fine(fs::remove_dir_all(tasks)))
    })
}

/// Large tool results have the same name in every copy of a session, and are stored once.
const RESULTS: &str = "tool-results";

/// The folders of a session. `plans`: the names of its plans.
pub(crate) fn folders(
    config_dir: &Path,
    transcript: &Path,
    session: SessionId,
    plans: BTreeSet<String>,
) -> Vec<SessionFolder> {
    let all = || FileSelection::All { but: RESULTS };
    vec![
        SessionFolder { name: "session", path: transcript.with_extension(""), files: all() },
        SessionFolder { name: "tasks", path: config_dir.join(TASKS).join(session.to_string()), files: all() },
        SessionFolder {
            name: "plans",
            path: config_dir.join("plans"),
            files: FileSelection::Named(plans.into_iter().collect()),
        },
    ]
}

const PROJECTS: &str = "projects";
/// The directory that holds a directory of tasks for each session.
const TASKS: &str = "tasks";
/// Longer names are truncated.
const LONGEST_NAME: usize = 200;

fn file_name(session: SessionId) -> String {
    format!("{session}.jsonl")
}

/// Claude Code counts UTF-16 units, as JavaScript does. Names that it truncates get a hash of the whole path.
pub(super) fn folder_name(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let plain = |unit| match char::from_u32(u32::from(unit)) {
        Some(c) if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let name: String = cwd.encode_utf16().map(plain).take(LONGEST_NAME).collect();
    if cwd.encode_utf16().count() <= LONGEST_NAME {
        return name;
    }
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{name}-{}", base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_a_folder_of_projects() {
        let session = SessionId::random();
        let is = |path: &str| {
            is_place(Path::new(&path.replace("ID", &session.to_string())), Path::new("/home/a/.claude"), session)
        };
        assert!(is("/home/a/.claude/projects/-srv/ID.jsonl"));
        for other in ["/home/b/.claude/projects/-srv/ID.jsonl", "/home/a/.claude/projects/-srv/x.jsonl"] {
            assert!(!is(other), "{other}");
        }
        for leads_out in ["/home/a/.claude/projects/../ID.jsonl", "/home/a/.claude/projects/x/../../ID.jsonl"] {
            assert!(!is(leads_out), "{leads_out}");
        }
    }

    fn session() -> SessionId {
        "0193e7b0-1c2d-4abc-8def-0123456789ff".parse().unwrap()
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_folder_is_named_after_the_working_directory() {
        let path = expected(Path::new("/c"), Path::new("/home/dev/my project_1.é"), session());
        let name = "/c/projects/-home-dev-my-project-1--/0193e7b0-1c2d-4abc-8def-0123456789ff.jsonl";
        assert_eq!(path, Path::new(name));
    }

    #[test]
    fn a_long_name_is_cut_and_gets_a_hash() {
        let name = folder_name(Path::new(&format!("/{}", "a".repeat(250))));
        assert_eq!(name.split_at(200), (format!("-{}", "a".repeat(199)).as_str(), "-feo44x"));
    }

    #[test]
    fn a_transcript_is_found_in_another_folder_too() {
        let config = tempfile::tempdir().unwrap();
        assert_eq!(find(config.path(), Path::new("/a"), session()), None);
        let elsewhere = config.path().join("projects/other").join(file_name(session()));
        write(&elsewhere, "{}\n");
        assert_eq!(find(config.path(), Path::new("/a"), session()), Some(elsewhere.clone()));
        let mut places = SessionLocations::default();
        assert_eq!(places.find(config.path(), Path::new("/a"), session()), Some(elsewhere));
        assert_eq!(places.find(config.path(), Path::new("/a"), SessionId::random()), None);
        let likely = expected(config.path(), Path::new("/a"), session());
        write(&likely, "{}\n");
        assert_eq!(find(config.path(), Path::new("/a"), session()), Some(likely.clone()));
        assert_eq!(places.find(config.path(), Path::new("/a"), session()), Some(likely));
    }

    #[test]
    fn deleting_takes_what_lies_beside_it_and_nothing_else() {
        let config = tempfile::tempdir().unwrap();
        let transcript = expected(config.path(), Path::new("/a"), session());
        write(&transcript, "{}\n");
        write(&transcript.with_extension("").join("tool-results/1.txt"), "x");
        let other = transcript.with_file_name("other.jsonl");
        write(&other, "{}\n");
        let tasks = config.path().join(TASKS).join(session().to_string());
        write(&tasks.join("1.json"), "{}");
        write(&config.path().join("tasks/other/1.json"), "{}");
        delete(&transcript).unwrap();
        assert!(!tasks.exists() && config.path().join("tasks/other").exists());
        assert!(!transcript.exists() && !transcript.with_extension("").exists() && other.exists());
        delete(&transcript).unwrap();
    }
}
