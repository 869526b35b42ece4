//! Checks one condition of a wait. An agent has named the file: whatever it is, the check neither hangs nor fills the memory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags};

use crate::core::requests::request::RequestResult;
use crate::core::waits::conditions::{self, AwaitedAgent, Matching};
use crate::core::waits::wait_progress::CheckResult;
use crate::runtime::RuntimeError;
use crate::store::Store;

/// Larger files are not searched.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Whether a file, a directory or anything else exists.
pub(super) fn exists(path: &Path) -> CheckResult {
    match fs::metadata(path) {
        Ok(_) => CheckResult::Met(None),
        Err(error) => CheckResult::NotYet(why_not(path, &error)),
    }
}

/// Whether the whole current content of a file matches. The file may be incomplete.
pub(super) fn matches(matching: &Matching) -> CheckResult {
    match content(matching) {
        Err(why) => CheckResult::NotYet(why),
        Ok(content) => match conditions::compiled(&matching.pattern) {
            Ok(regex) if regex.is_match(&content) => CheckResult::Met(None),
            Ok(_) => CheckResult::NotYet("exists, does not match yet".to_owned()),
            Err(error) => CheckResult::NotYet(format!("its pattern cannot be used: {error}")),
        },
    }
}

/// Whether a file is in a directory, or would be if it existed.
pub(crate) fn is_within(file: &Path, dir: &Path) -> bool {
    let Ok(dir) = fs::canonicalize(dir) else { return false };
    // A path that does not exist leads nowhere, unless it goes up.
    let goes_up = file.components().any(|part| part == Component::ParentDir);
    let real = file.ancestors().find_map(|above| fs::canonicalize(above).ok());
    !goes_up && real.is_some_and(|real| real.starts_with(&dir))
}

fn content(Matching { file, within, .. }: &Matching) -> Result<Vec<u8>, String> {
    let why = |error: io::Error| why_not(file, &error);
    // Links are resolved each time: they may have changed since the agent asked.
    let real = fs::canonicalize(file).map_err(why)?;
    let allowed = within.as_ref().map(fs::canonicalize).transpose().map_err(|error| error.to_string())?;
    if allowed.is_some_and(|allowed| !real.starts_with(allowed)) {
        return Err("is outside of the directory of its agent".to_owned());
    }
    if fs::metadata(&real).map_err(why)?.is_dir() {
        return Err("is a directory, whose content does not match anything".to_owned());
    }
    // Opening a fifo would block until it is written to.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&real, flags, Mode::empty()).map_err(|error| why(error.into()))?;
    let opened = File::from(opened);
    let metadata = opened.metadata().map_err(why)?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut content = Vec::new();
    opened.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(why)?;
    if content.len() as u64 > MOST_BYTES {
        return Err("is larger than 8 MiB, so nothing is looked for in it".to_owned());
    }
    Ok(content)
}

fn why_not(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound if fs::symlink_metadata(path).is_ok() => "is a link to nothing".to_owned(),
        ErrorKind::NotFound | ErrorKind::NotADirectory => "does not exist yet".to_owned(),
        _ => format!("cannot be looked at: {error}"),
    }
}

/// Whether an agent has finished. The wait for one that was removed ends, too.
pub(super) fn look_at(store: &Store, agent: &AwaitedAgent) -> Result<CheckResult, RuntimeError> {
    let id = agent.id.short();
    let Some(frame) = store.frame(agent.id)? else {
        return Ok(CheckResult::Met(Some(format!("{id} was removed: it has no result"))));
    };
    Ok(match frame.result(store.replies(agent.id)?.reply) {
        None => CheckResult::NotYet(frame.state.name().to_owned()),
        Some(RequestResult::Text(reply) | RequestResult::Default(reply)) => {
            CheckResult::Met(Some(format!("{id} is done:\n\n{reply}")))
        }
        // Only a question can expire, not an agent.
        Some(
            RequestResult::Failed(why) | RequestResult::PartlyFailed(why) | RequestResult::Unanswered { said: why, .. },
        ) => CheckResult::Met(Some(format!("{id} has failed:\n\n{why}"))),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn look(file: &Path, within: Option<&Path>) -> CheckResult {
        let within = within.map(Path::to_owned);
        matches(&Matching { file: file.to_owned(), pattern: "^status: done$".into(), within })
    }

    fn why(look: CheckResult) -> String {
        match look {
            CheckResult::NotYet(why) => why,
            CheckResult::Met(_) => "met".to_owned(),
        }
    }

    #[test]
    fn whatever_is_there_it_is_said_why_it_does_not_match() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        fs::write(at("half"), "status: do").unwrap();
        fs::write(at("binary"), b"\xff\xfe\x00").unwrap();
        fs::write(at("whole"), "status: done").unwrap();
        symlink(at("whole"), at("link")).unwrap();
        File::create(at("large")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
        for (name, expected) in [
            ("missing", "does not exist yet"),
            ("half/below", "does not exist yet"),
            ("dangling", "is a link to nothing"),
            ("folder", "is a directory, whose content does not match anything"),
            ("fifo", "is not a regular file"),
            ("large", "is larger than 8 MiB, so nothing is looked for in it"),
            ("half", "exists, does not match yet"),
            ("binary", "exists, does not match yet"),
            ("whole", "met"),
            ("link", "met"),
        ] {
            assert_eq!(why(look(&at(name), None)), expected, "{name}");
        }
        assert!(why(look(&at("loop"), None)).starts_with("cannot be looked at: "));
        assert_eq!(why(exists(&at("folder"))), "met");
        assert_eq!(why(exists(&at("dangling"))), "is a link to nothing");
    }

    #[test]
    fn a_link_does_not_lead_out_of_the_directory() {
        let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("secret"), "status: done").unwrap();
        symlink(other.path().join("secret"), temp.path().join("link")).unwrap();
        fs::write(temp.path().join("own"), "status: done").unwrap();
        let look = |file: &Path| why(look(file, Some(temp.path())));
        assert_eq!(look(&temp.path().join("own")), "met");
        for file in [temp.path().join("link"), temp.path().join("../secret"), other.path().join("secret")] {
            assert_ne!(look(&file), "met", "{}", file.display());
        }
    }
}
