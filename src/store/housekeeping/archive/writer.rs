//! Writes an archive. The same content always yields the same bytes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::core::housekeeping::archive::{ArchiveMember, MANIFEST, Manifest, SUMS};
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::housekeeping::archive::hashed::{Hashed, Sums};

pub(crate) struct Writer<'a> {
    tar: tar::Builder<&'a mut dyn Write>,
    sums: Sums,
}

/// The time of every entry. Programs warn about years before 1980.
const WRITTEN: u64 = 315_532_800;

/// The version of the rows. An archive of a newer one is refused.
pub(crate) const SCHEMA: u32 = 1;

/// The placeholder for the path of an entry whose own path is too long.
pub(super) const LONG_NAME: &str = "long-name";

impl<'a> Writer<'a> {
    pub(crate) fn new(to: &'a mut dyn Write, manifest: &Manifest) -> Result<Self> {
        let mut writer = Self { tar: tar::Builder::new(to), sums: Sums::default() };
        let content = serde_json::to_vec(manifest).map_err(|error| ArchiveError::Write(error.into()))?;
        writer.add(MANIFEST, content.len() as u64, &*content)?;
        Ok(writer)
    }

    pub(crate) fn rows(&mut self, table: &str, rows: &[u8]) -> Result<()> {
        let (member, bytes) = (ArchiveMember::Rows(table.to_owned()), rows.len() as u64);
        fits(&member, bytes)?;
        Ok(self.add(&member.path(), bytes, rows)?)
    }

    pub(crate) fn file(&mut self, member: &ArchiveMember, path: &Path) -> Result<()> {
        let broken = |error| StoreError::io(path, error);
        let file = File::open(path).map_err(broken)?;
        let bytes = file.metadata().map_err(broken)?.len();
        fits(member, bytes)?;
        self.add(&member.path(), bytes, file).map_err(|error| match error {
            ArchiveError::Read(error) => broken(error),
            error => error.into(),
        })
    }

    /// Writes the end of the archive.
    pub(crate) fn finish(mut self) -> Result<()> {
        let sums = std::mem::take(&mut self.sums.0);
        self.add(SUMS, sums.len() as u64, sums.as_bytes())?;
        Ok(self.tar.into_inner().and_then(Write::flush).map_err(ArchiveError::Write)?)
    }

    fn add(&mut self, path: &str, bytes: u64, content: impl Read) -> std::result::Result<(), ArchiveError> {
        let mut header = tar::Header::new_ustar();
        if header.set_path(path).is_err() {
            // A path that does not fit precedes the entry, as POSIX specifies.
            self.tar.append_pax_extensions([("path", path.as_bytes())]).map_err(ArchiveError::Write)?;
            // The header may already contain a part of the path.
            header = tar::Header::new_ustar();
            header.set_path(LONG_NAME).map_err(ArchiveError::Write)?;
        }
        header.set_size(bytes);
        header.set_mode(0o600);
        header.set_mtime(WRITTEN);
        header.set_cksum();
        let mut content = Hashed::new(content.take(bytes));
        match self.tar.append(&header, &mut content) {
            Err(error) if content.is_broken => Err(ArchiveError::Read(error)),
            Err(error) => Err(ArchiveError::Write(error)),
            Ok(()) if content.bytes < bytes => Err(ArchiveError::Read(io::ErrorKind::UnexpectedEof.into())),
            Ok(()) => {
                self.sums.add(path, content);
                Ok(())
            }
        }
    }
}

/// Import would refuse such a member, so it is not written.
fn fits(member: &ArchiveMember, bytes: u64) -> Result<()> {
    if bytes > member.limit() { Err(ArchiveError::TooLarge(member.path()).into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::housekeeping::archive::FORMAT;
    use crate::store::housekeeping::archive::reader;

    #[test]
    fn a_file_that_has_become_shorter_is_not_half_written() {
        let mut written = Vec::new();
        let mut writer = Writer { tar: tar::Builder::new(&mut written), sums: Sums::default() };
        writer.add("whole", 5, b"12345".as_slice()).unwrap();
        writer.add("longer", 5, b"123456".as_slice()).unwrap();
        assert!(matches!(writer.add("shorter", 5, b"1234".as_slice()), Err(ArchiveError::Read(_))));
    }

    #[test]
    fn a_name_of_any_length_is_read_as_it_was_written() {
        let id = uuid::Uuid::nil();
        let root = crate::core::id::FrameId::random();
        let manifest = Manifest { program: "0.1.0".into(), format: FORMAT, schema: SCHEMA, root };
        let name = |length: usize| format!("frames/{id}/{id}/tool-results/{}", "é".repeat(length / 2));
        let names = [name(20), name(100), name(250), name(254)];
        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, &manifest).unwrap();
        names.iter().for_each(|name| writer.add(name, 2, b"ok".as_slice()).unwrap());
        writer.finish().unwrap();
        let mut read = Vec::new();
        reader::read(&mut &*written, |member, content| {
            read.push((member.path(), io::read_to_string(content).unwrap()));
            Ok(())
        })
        .unwrap();
        assert_eq!(read, names.clone().map(|name| (name, "ok".to_owned())));
        // A name that fits is in no other place.
        let mut twice = Vec::new();
        let mut writer = Writer::new(&mut twice, &manifest).unwrap();
        writer.tar.append_pax_extensions([("path", names[0].as_bytes())]).unwrap();
        writer.add(LONG_NAME, 2, b"ok".as_slice()).unwrap();
        writer.finish().unwrap();
        assert!(reader::read(&mut &*twice, |_, _| Ok(())).is_err());
    }

    #[test]
    fn what_is_as_large_as_import_takes_fits() {
        let id = uuid::Uuid::nil();
        for path in ["rows/frames.ndjson".to_owned(), format!("frames/{id}/{id}.jsonl")] {
            let member = ArchiveMember::parse(&path).unwrap();
            assert!(fits(&member, member.limit()).is_ok());
            assert!(fits(&member, member.limit() + 1).is_err());
        }
    }
}
