//! Archives that `export` did not write: taken apart, changed, and put together again.

use std::fmt::Write;
use std::io::Read;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

/// The paths and contents of the entries.
pub(crate) type Entries = Vec<(String, Vec<u8>)>;

/// The last entry.
const SUMS: &str = "SHA256SUMS";

/// The content of an archive, without its checksums.
pub(crate) fn entries(archive: &[u8]) -> Entries {
    let mut entries = Entries::new();
    for entry in Archive::new(archive).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").to_str().expect("UTF-8").to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("content");
        entries.push((path, content));
    }
    assert_eq!(entries.pop().expect("checksums").0, SUMS);
    entries
}

/// The archive of these entries, with checksums that fit.
pub(crate) fn archive_of(entries: &Entries) -> Vec<u8> {
    let plain =
        |(path, content): &(String, Vec<u8>)| (header(path, content.len() as u64, EntryType::Regular), content.clone());
    sealed(entries.iter().map(plain).collect())
}

/// The archive with another entry, whose header is as it is given.
pub(crate) fn with_entry(archive: &[u8], hostile: Header, content: &[u8]) -> Vec<u8> {
    let plain = |(path, content): (String, Vec<u8>)| (header(&path, content.len() as u64, EntryType::Regular), content);
    sealed(entries(archive).into_iter().map(plain).chain([(hostile, content.to_vec())]).collect())
}

fn sealed(entries: Vec<(Header, Vec<u8>)>) -> Vec<u8> {
    let (mut archive, mut sums) = (Builder::new(Vec::new()), String::new());
    for (header, content) in entries {
        Sha256::digest(&content).iter().for_each(|byte| write!(sums, "{byte:02x}").expect("room"));
        writeln!(sums, "  {}", String::from_utf8_lossy(&header.path_bytes())).expect("room");
        archive.append(&header, &*content).expect("room");
    }
    archive.append(&header(SUMS, sums.len() as u64, EntryType::Regular), sums.as_bytes()).expect("room");
    archive.into_inner().expect("room")
}

/// A header with any path, which the library would not write.
pub(crate) fn header(path: &str, size: u64, kind: EntryType) -> Header {
    let mut header = Header::new_ustar();
    let ustar = header.as_ustar_mut().expect("it is one");
    let (prefix, name) = match path.len() > 100 {
        true => path.split_at(path.len() - 100 + path[path.len() - 100..].find('/').expect("a folder")),
        false => ("", path),
    };
    let name = if prefix.is_empty() { name } else { &name[1..] };
    ustar.prefix[..prefix.len()].copy_from_slice(prefix.as_bytes());
    ustar.name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_cksum();
    header
}

/// The archive with the manifest and all rows changed.
pub(crate) fn forged(archive: &[u8], change: impl Fn(&str, &mut Value)) -> Vec<u8> {
    let mut entries = entries(archive);
    for (path, content) in entries.iter_mut().filter(|(path, _)| !path.starts_with("frames/")) {
        let values = serde_json::Deserializer::from_slice(content).into_iter();
        let text = values.map(|value| {
            let mut value = value.expect("JSON");
            change(path, &mut value);
            format!("{value}\n")
        });
        *content = text.collect::<String>().into_bytes();
    }
    archive_of(&entries)
}

/// The archive with all rows of a table changed.
pub(crate) fn forged_rows(archive: &[u8], table: &str, change: impl Fn(&mut Value)) -> Vec<u8> {
    let rows = format!("rows/{table}.ndjson");
    forged(archive, |path, value| {
        if path == rows {
            change(value);
        }
    })
}

/// The archive with one column of a table changed.
pub(crate) fn forged_column(archive: &[u8], table: &str, column: &str, value: &Value) -> Vec<u8> {
    forged_rows(archive, table, |row| row[column] = value.clone())
}

/// The archive with other paths.
pub(crate) fn renamed(archive: &[u8], name: impl Fn(&str) -> String) -> Vec<u8> {
    let renamed = entries(archive).into_iter().map(|(path, content)| (name(&path), content));
    archive_of(&renamed.collect())
}
