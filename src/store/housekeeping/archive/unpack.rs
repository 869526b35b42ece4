//! Unpacks an archive: reads its rows, and writes its files to a directory that belongs to no frame. Whether to import it
//! is decided later.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::Deserializer;

use crate::core::housekeeping::archive::{ArchiveMember, ArchiveRow, TABLES};
use crate::core::housekeeping::relocation::Relocation;
use crate::core::id::FrameId;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{create_private, make_private, sync, sync_dir};
use crate::store::files::state_dir::StateDir;
use crate::store::housekeeping::archive::reader;

/// Files that do not belong to a frame yet. They are deleted when this is dropped.
pub(crate) struct Stage {
    path: PathBuf,
}

/// An intact archive. Nothing is imported yet, and its files belong to no frame.
pub(crate) struct Unpacked {
    pub(crate) stage: Stage,
    pub(crate) root: FrameId,
    pub(crate) rows: Vec<ArchiveRow>,
    /// The frames that have files.
    pub(crate) frames: BTreeSet<FrameId>,
    pub(crate) relocation: Relocation,
}

/// Longer lines of transcripts are processed in pieces.
const LONGEST_LINE: u64 = 256 << 20;

impl Unpacked {
    /// Reads an archive into `dir`, for a machine where directories have other paths.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`] if it is refused, or an error writing the state directory.
    pub(crate) fn read(dir: &StateDir, from: &mut dyn Read, relocation: &Relocation) -> Result<Self> {
        let path = dir.stage().map_err(|error| StoreError::io(&dir.frames(), error))?;
        let (stage, mut rows, mut frames) = (Stage { path }, Vec::new(), BTreeSet::new());
        let manifest = reader::read(from, |member, content| match &member {
            ArchiveMember::Rows(table) if TABLES.contains(&table.as_str()) => {
                for values in Deserializer::from_reader(BufReader::new(content)).into_iter() {
                    let values =
                        values.map_err(|error| StoreError::damaged_archive(&format!("{}: {error}", member.path())))?;
                    rows.push(ArchiveRow { table: table.clone(), values });
                }
                Ok(())
            }
            ArchiveMember::Rows(_) => Err(StoreError::damaged_archive("it has rows of an unknown table")),
            ArchiveMember::File { frame, name } => {
                frames.insert(*frame);
                let path = stage.folder(*frame).join(name);
                write(&path, content, relocation).map_err(|error| StoreError::io(&path, error))
            }
        })?;
        Ok(Self { stage, root: manifest.root, rows, frames, relocation: relocation.clone() })
    }
}

/// Writes a new file. In a transcript, replaces the paths of directories by the paths of this machine.
fn write(path: &Path, content: &mut dyn Read, relocation: &Relocation) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    make_private(folder)?;
    let mut file = create_private(path)?;
    if *relocation != Relocation::default() && path.extension().is_some_and(|extension| extension == "jsonl") {
        let (mut content, mut line) = (BufReader::new(content), Vec::new());
        while (&mut content).take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
            match str::from_utf8(&line) {
                Ok(text) => file.write_all(relocation.transcript_line(text).as_bytes())?,
                Err(_) => file.write_all(&line)?,
            }
            line.clear();
        }
    } else {
        io::copy(content, &mut file)?;
    }
    sync(&file, path)?;
    sync_dir(folder)
}

impl Stage {
    pub(crate) fn folder(&self, frame: FrameId) -> PathBuf {
        self.path.join(frame.to_string())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // gc removes what cannot be deleted now.
        let _ = fs::remove_dir_all(&self.path);
    }
}
