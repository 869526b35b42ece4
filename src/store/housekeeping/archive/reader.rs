//! Reads an archive, entry by entry, and refuses anything that the writer would not have written.

use std::collections::HashSet;
use std::io::{self, Read};

use tar::{Archive, Entry, EntryType};

use crate::core::housekeeping::archive::{
    ArchiveMember, BadArchive, LARGEST_ARCHIVE, LARGEST_MANIFEST, MANIFEST, MOST_ENTRIES, Manifest, SUMS,
};
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::housekeeping::archive::hashed::{Hashed, Sums};
use crate::store::housekeeping::archive::writer::{LONG_NAME, SCHEMA};

/// The state of reading an archive.
#[derive(Default)]
struct Reading {
    manifest: Option<Manifest>,
    paths: HashSet<String>,
    bytes: u64,
    sums: Sums,
    is_over: bool,
    /// The name of the next entry if it is too long for the entry's header.
    name: Option<String>,
}

/// The longest record with a name, in bytes.
const LONGEST_NAME: u64 = 8 << 10;

/// Passes every member and its content to `take`. The archive is known to be intact only once this has returned.
pub(super) fn read(
    from: &mut dyn Read,
    mut take: impl FnMut(ArchiveMember, &mut dyn Read) -> Result<()>,
) -> Result<Manifest> {
    let mut archive = Archive::new(from);
    let mut reading = Reading::default();
    // Raw: only the header itself determines an entry's name and size.
    for entry in archive.entries().map_err(ArchiveError::Read)?.raw(true) {
        reading.entry(entry.map_err(|error| reading.unreadable(error))?, &mut take)?;
    }
    match reading.manifest {
        Some(manifest) if reading.is_over => Ok(manifest),
        Some(_) => Err(BadArchive::Short.into()),
        None => Err(BadArchive::Foreign.into()),
    }
}

impl Reading {
    fn entry(
        &mut self,
        mut entry: Entry<'_, impl Read>,
        take: &mut impl FnMut(ArchiveMember, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let header = entry.header();
        let path = str::from_utf8(&header.path_bytes()).unwrap_or_default().to_owned();
        let bytes = header.entry_size().map_err(|error| self.unreadable(error))?;
        if header.entry_type() == EntryType::XHeader && self.manifest.is_some() && self.name.is_none() {
            let record = whole(&mut entry.take(LONGEST_NAME))?;
            self.name = Some(
                long_name(&record).ok_or_else(|| StoreError::damaged_archive(&format!("{path:?} cannot be in it")))?,
            );
            return Ok(());
        }
        let is_long = self.name.is_some();
        if is_long != (path == LONG_NAME) {
            return Err(StoreError::damaged_archive(&format!("{path:?} cannot be in it")));
        }
        let path = self.name.take().unwrap_or(path);
        let is_file = header.entry_type() == EntryType::Regular;
        if self.manifest.is_none() && !(is_file && path == MANIFEST && bytes <= LARGEST_MANIFEST) {
            return Err(BadArchive::Foreign.into());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.is_over || !is_file || self.bytes > LARGEST_ARCHIVE || self.paths.len() >= MOST_ENTRIES {
            return Err(StoreError::damaged_archive(&format!("{path:?} cannot be in it")));
        }
        if !self.paths.insert(path.clone()) {
            return Err(StoreError::damaged_archive(&format!("{path:?} is in it twice")));
        }
        let mut content = Hashed::new(&mut entry);
        match (path.as_str(), &self.manifest) {
            (_, None) => {
                let text = whole(&mut content)?;
                // Truncated text may not be valid JSON.
                if text.len() as u64 == bytes {
                    self.manifest = Some(Manifest::parse(&text, SCHEMA)?);
                }
            }
            (SUMS, Some(_)) => {
                let expected = self.sums.0.as_bytes();
                let is_complete = bytes == expected.len() as u64;
                let sums = whole(&mut (&mut content).take(expected.len() as u64))?;
                if !is_complete || (sums.len() == expected.len() && sums != expected) {
                    return Err(StoreError::damaged_archive("the checksums are other ones"));
                }
                self.is_over = true;
            }
            (_, Some(_)) => {
                let member = ArchiveMember::parse(&path).filter(|member| bytes <= member.limit());
                take(
                    member.ok_or_else(|| StoreError::damaged_archive(&format!("{path:?} cannot be in it")))?,
                    &mut content,
                )?;
            }
        }
        if content.bytes < bytes {
            return Err(BadArchive::Short.into());
        }
        self.sums.add(&path, content);
        Ok(())
    }

    /// System errors have a number; the library's errors about invalid entries do not.
    fn unreadable(&self, error: io::Error) -> StoreError {
        match (error.raw_os_error(), &self.manifest) {
            (Some(_), _) => ArchiveError::Read(error).into(),
            (None, None) => BadArchive::Foreign.into(),
            (None, Some(_)) => StoreError::damaged_archive(&error.to_string()),
        }
    }
}

/// The name in a record `LENGTH path=NAME`, if the record has no other content and the name needs it.
fn long_name(record: &[u8]) -> Option<String> {
    let text = str::from_utf8(record).ok()?;
    let (length, name) = text.strip_suffix('\n')?.split_once(" path=")?;
    let fits = tar::Header::new_ustar().set_path(name).is_ok();
    (length.parse() == Ok(record.len()) && !fits).then(|| name.to_owned())
}

fn whole(content: &mut dyn Read) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    content.read_to_end(&mut text).map_err(ArchiveError::Read)?;
    Ok(text)
}
