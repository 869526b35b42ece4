//! Standard input in place of that which this process was started with.

use std::io::{self, Seek, Write};

/// Makes `text` the standard input of this process, which must have read all of the earlier one.
pub(crate) fn replace(text: &str) -> io::Result<()> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(rustix::stdio::dup2_stdin(file)?)
}
