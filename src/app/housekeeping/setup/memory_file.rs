//! Reads a person's CLAUDE.md, and decides whether it may be changed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::app::config::sources;
use crate::app::error::Refusal;
use crate::app::housekeeping::setup::Place;
use crate::core::text::extent::bytes;
use crate::core::text::section::Section;
use crate::core::text::shell::shell_path;

/// The size limit in bytes. It is far more than an agent can take in at once, so a larger file is not CLAUDE.md.
const LARGEST: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) path: PathBuf,
    /// The target, if `path` is a link.
    pub(super) leads_to: Option<PathBuf>,
    /// `None` if the file does not exist.
    text: Option<String>,
    is_read_only: bool,
}

impl MemoryFile {
    pub(super) fn read(place: &Place) -> Result<Self, Refusal> {
        let path = place.file();
        let cannot = |error: io::Error| Refusal::failure(format!("cannot read {}: {error}", path.display()));
        let is_link = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, leads_to: None, text: None, is_read_only: false });
            }
            found => found.map_err(cannot)?.is_symlink(),
        };
        let leads_to = if is_link { Some(target(&path, place)?) } else { None };
        let known = fs::metadata(&path).map_err(cannot)?;
        let text = Some(text(&path)?);
        Ok(Self { path, leads_to, text, is_read_only: known.permissions().readonly() })
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(super) fn before(&self) -> &str {
        self.text().unwrap_or_default()
    }

    /// Finds agent-cli's section in the file.
    pub(super) fn section(&self) -> Result<Option<Section<'_>>, Refusal> {
        Section::find(self.before()).map_err(|error| {
            Refusal::new(format!("{}: {error}", self.path.display()))
                .hint("remove the lines that begin with `<!-- begin agent-cli` or `<!-- end agent-cli`, and what belongs to them")
        })
    }

    /// Refuses to change a file that its owner has protected.
    pub(super) fn refuse_if_read_only(&self) -> Result<(), Refusal> {
        if !self.is_read_only {
            return Ok(());
        }
        let path = self.leads_to.as_deref().unwrap_or(&self.path);
        Err(Refusal::failure(format!("{} is read-only", path.display()))
            .hint(format!("chmod u+w {} allows changes", shell_path(path))))
    }

    /// Refuses to overwrite changes since the file was read.
    pub(super) fn refuse_if_changed(&self) -> Result<(), Refusal> {
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink());
        let leads_to = is_link.then(|| fs::canonicalize(&self.path).ok()).flatten();
        let text = match text(&self.path) {
            Ok(text) => Some(text),
            Err(_) if !self.path.exists() => None,
            Err(refusal) => return Err(refusal),
        };
        if text == self.text && is_link == self.leads_to.is_some() && leads_to == self.leads_to {
            return Ok(());
        }
        Err(Refusal::failure(format!("{} was changed in the meantime: nothing was written", self.path.display()))
            .hint("run the command again"))
    }
}

/// Resolves a link. A project may come from another person, so its link may only lead to another Markdown file of the
/// project.
fn target(path: &Path, place: &Place) -> Result<PathBuf, Refusal> {
    let shown = path.display();
    let Ok(target) = fs::canonicalize(path) else {
        return Err(Refusal::new(format!("{shown} is a link to a file that does not exist")).hint("remove the link"));
    };
    let Place::Project { directory, .. } = place else { return Ok(target) };
    let project = sources::project_folder(directory);
    let project = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    let led = |what: &str| {
        Refusal::new(format!("{shown} is a link to {}, {what}", target.display()))
            .hint("replace the link by a file, or append the text yourself: agent-cli init --print")
    };
    if !target.starts_with(project) {
        return Err(led("outside of the project"));
    }
    if target.extension().is_none_or(|extension| extension != "md") {
        return Err(led("which is not a .md file"));
    }
    Ok(target)
}

fn text(path: &Path) -> Result<String, Refusal> {
    let shown = path.display();
    let cannot = |error: io::Error| Refusal::failure(format!("cannot read {shown}: {error}"));
    let known = fs::metadata(path).map_err(cannot)?;
    if known.is_dir() {
        return Err(Refusal::new(format!("{shown} is a directory")).hint("remove or rename it"));
    }
    if !known.is_file() {
        return Err(Refusal::new(format!("{shown} is not a regular file")).hint("remove or rename it"));
    }
    if known.len() > LARGEST {
        let message = format!("{shown} is too large: {}, where it may have 1 MiB", bytes(known.len()));
        return Err(Refusal::new(message).hint("agents read all of it: move what they rarely need to other files"));
    }
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).map_err(cannot)?;
    String::from_utf8(text)
        .map_err(|_| Refusal::new(format!("{shown} is not UTF-8 text")).hint("convert it, for example with iconv"))
}
