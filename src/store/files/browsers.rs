//! Browsers that have logged in to the page. The state directory contains only digests of their cookies, which let no
//! browser in.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::store::error::{Result, StoreError};
use crate::store::files::durable::make_private;
use crate::store::files::state_dir::StateDir;

/// How many browsers are remembered. One more login ends the oldest one.
const MOST: usize = 100;

/// Records a file whose token browsers are asked for. Agents must not read that file.
///
/// # Errors
///
/// The record cannot be written.
pub(crate) fn note_token_file(dir: &StateDir, file: &Path) -> Result<()> {
    let (list, mut known) = (dir.page().join(TOKEN_FILES), token_files(dir));
    if known.iter().any(|known| known == file) {
        return Ok(());
    }
    known.push(file.to_owned());
    let text: String = known.iter().map(|file| format!("{}\n", file.display())).collect();
    let written = make_private(&dir.page()).and_then(|()| write_private(&list, &text));
    written.map_err(|error| StoreError::io(&list, error))
}

/// All files whose tokens browsers have been asked for.
pub(crate) fn token_files(dir: &StateDir) -> Vec<PathBuf> {
    let text = fs::read_to_string(dir.page().join(TOKEN_FILES)).unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

const TOKEN_FILES: &str = "token-files";

#[derive(Debug)]
pub(crate) struct Browsers {
    /// The file with one line per session: the digest, and when the session began.
    file: PathBuf,
    token: Option<String>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The link with which the next browser can log in.
    link: Option<String>,
    sessions: Vec<(String, Timestamp)>,
}

impl Browsers {
    /// How long a browser stays logged in.
    pub(crate) const LASTS: SignedDuration = SignedDuration::from_hours(30 * 24);

    /// Loads the sessions of browsers that have logged in before. With a token, no link lets a browser in.
    pub(crate) fn new(file: PathBuf, token: Option<String>) -> Self {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let sessions = text.lines().filter_map(|line| {
            let (digest, began) = line.split_once(' ')?;
            Some((digest.to_owned(), began.parse().ok()?))
        });
        let known = Known { link: None, sessions: sessions.collect() };
        Self { file, token, known: Mutex::new(known) }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// A new link, which replaces the previous one.
    pub(crate) fn new_link(&self) -> String {
        let link = secret();
        self.known().link = Some(link.clone());
        link
    }

    /// Logs in a browser that has followed the link. Returns its cookie.
    pub(crate) fn by_link(&self, link: &str) -> Option<String> {
        let mut known = self.known();
        // Digests take the same time to compare, wherever they differ.
        known.link.take_if(|valid| digest(valid) == digest(link))?;
        Some(self.begin(&mut known))
    }

    /// Logs in a browser whose user knows the token. Returns its cookie.
    pub(crate) fn by_token(&self, token: &str) -> Option<String> {
        let valid = self.token.as_ref()?;
        (digest(valid) == digest(token.trim())).then(|| self.begin(&mut self.known()))
    }

    pub(crate) fn contains(&self, cookie: &str) -> bool {
        let digest = self.digest(cookie);
        self.known().sessions.iter().any(|(known, began)| *known == digest && is_valid(*began))
    }

    pub(crate) fn end(&self, cookie: &str) {
        let (digest, mut known) = (self.digest(cookie), self.known());
        known.sessions.retain(|(known, _)| *known != digest);
        self.keep(&known);
    }

    fn begin(&self, known: &mut Known) -> String {
        let cookie = secret();
        known.sessions.retain(|(_, began)| is_valid(*began));
        let superfluous = (known.sessions.len() + 1).saturating_sub(MOST);
        known.sessions.drain(..superfluous);
        known.sessions.push((self.digest(&cookie), Timestamp::now()));
        self.keep(known);
        cookie
    }

    /// If the file cannot be written, browsers must log in again after a restart.
    fn keep(&self, known: &Known) {
        let text: String = known.sessions.iter().map(|(digest, began)| format!("{digest} {began}\n")).collect();
        if let Err(error) = write_private(&self.file, &text) {
            tracing::warn!("{} cannot be written: {error}", self.file.display());
        }
    }

    /// The digest includes the token: a new token ends all sessions that began with the old one.
    fn digest(&self, cookie: &str) -> String {
        digest(&format!("{cookie} {}", self.token.as_deref().unwrap_or_default()))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a file that only its owner can read.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut new = NamedTempFile::new_in(file.parent().unwrap_or(file))?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

fn is_valid(began: Timestamp) -> bool {
    Timestamp::now().duration_since(began) < Browsers::LASTS
}

fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_lets_one_browser_in_which_stays_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sessions");
        let sessions = Browsers::new(file.clone(), None);
        assert_eq!(sessions.by_link(""), None, "there is no link yet");
        let link = sessions.new_link();
        assert_eq!(sessions.by_link("wrong"), None);
        let cookie = sessions.by_link(&link).expect("it is the link");
        assert_eq!(sessions.by_link(&link), None, "it was used");
        assert!(sessions.contains(&cookie) && !sessions.contains("other") && !sessions.contains(""));
        let kept = fs::read_to_string(&file).unwrap();
        assert!(!kept.contains(&cookie) && !kept.contains(&link), "{kept}");
        let later = Browsers::new(file.clone(), None);
        assert!(later.contains(&cookie));
        assert!(!later.contains(kept.split(' ').next().unwrap()), "what is kept lets nobody in");
        later.end(&cookie);
        assert!(!Browsers::new(file, None).contains(&cookie));
    }

    #[test]
    fn a_token_lets_in_and_another_one_ends_what_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sessions");
        let sessions = Browsers::new(file.clone(), Some("first".into()));
        assert_eq!(sessions.by_token("other"), None);
        let cookie = sessions.by_token("first\n").expect("a line break does not matter");
        assert!(Browsers::new(file.clone(), Some("first".into())).contains(&cookie));
        assert!(!Browsers::new(file.clone(), Some("second".into())).contains(&cookie));
        assert_eq!(Browsers::new(file, None).by_token(""), None);
    }

    #[test]
    fn old_sessions_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sessions");
        fs::write(&file, format!("{} 2020-01-01T00:00:00Z\nnonsense\n", digest("x "))).unwrap();
        let sessions = Browsers::new(file, None);
        assert!(!sessions.contains("x"));
        assert_eq!(sessions.known().sessions.len(), 1);
    }
}
