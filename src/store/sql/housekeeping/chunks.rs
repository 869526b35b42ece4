//! Files in compressed chunks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::store::error::{Result, StoreError};

/// The number of bytes of a file in a chunk, before compression.
const CHUNK: u64 = 1 << 20;

/// No compressed chunk has more bytes: what cannot be compressed grows a little.
pub(super) const LARGEST: usize = (CHUNK + CHUNK / 8) as usize;

pub(super) struct Chunk {
    /// Its size before compression.
    pub(super) bytes: u64,
    pub(super) content: Vec<u8>,
}

/// The chunks of a file. An empty file has one.
pub(super) struct Chunks {
    path: PathBuf,
    /// `None`: the last chunk was read.
    file: Option<File>,
    is_first: bool,
}

impl Chunks {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| StoreError::io(path, error))?;
        Ok(Self { path: path.to_owned(), file: Some(file), is_first: true })
    }

    fn read(file: &File) -> io::Result<Chunk> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let bytes = io::copy(&mut file.take(CHUNK), &mut encoder)?;
        Ok(Chunk { bytes, content: encoder.finish()? })
    }
}

impl Iterator for Chunks {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = Self::read(self.file.as_ref()?).map_err(|error| StoreError::io(&self.path, error));
        let bytes = read.as_ref().map_or(0, |chunk| chunk.bytes);
        if bytes < CHUNK {
            self.file = None;
        }
        let is_first = mem::take(&mut self.is_first);
        (bytes > 0 || is_first || read.is_err()).then_some(read)
    }
}

/// Writes the content of a chunk, which can be anything, because other programs can have written it.
pub(super) fn unpack(content: &[u8], file: &mut impl Write) -> io::Result<()> {
    io::copy(&mut ZlibDecoder::new(content).take(CHUNK), file).map(drop)
}
