//! A checksum of what passes by.

use std::fmt::Write;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Reads on, and sums up what it has read.
pub(super) struct Hashed<R> {
    from: R,
    hash: Sha256,
    /// How much was read.
    pub(super) bytes: u64,
    /// Reading has failed, not what was done with it.
    pub(super) is_broken: bool,
}

/// The sums of entries, as the last entry has them.
#[derive(Default)]
pub(super) struct Sums(pub(super) String);

impl<R: Read> Hashed<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, hash: Sha256::new(), bytes: 0, is_broken: false }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer).inspect_err(|_| self.is_broken = true)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

impl Sums {
    pub(super) fn add<R>(&mut self, path: &str, content: Hashed<R>) {
        let digits = content.hash.finalize().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        self.0.push_str(&format!("{digits}  {path}\n"));
    }
}
