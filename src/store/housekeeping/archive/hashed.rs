//! Computes a checksum while reading.

use std::fmt::Write;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Passes data through and adds it to the checksum.
pub(super) struct Hashed<R> {
    from: R,
    hash: Sha256,
    /// How much was read.
    pub(super) bytes: u64,
    /// Whether reading itself failed, as opposed to processing.
    pub(super) is_broken: bool,
}

/// The checksums of all entries, as the last entry contains them.
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
