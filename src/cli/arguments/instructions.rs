//! Instructions for agents: text of a size that an agent reads.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::cli::error::CliError;
use crate::cli::output::format::bytes;
use crate::cli::output::tell;
use crate::core::text::escape::{self, shortened};
use crate::core::text::shell::quoted;

/// Far more than an agent can take in at once. A larger file is not meant for it.
const MOST: u64 = 1 << 20;

const GIVE_A_FILE: &str = "give the path of a file with instructions";
const FROM_STANDARD_INPUT: &str = "agent-cli spawn - reads instructions from standard input";

/// The absolute path of a file with instructions.
pub(crate) fn file(file: &Path) -> Result<PathBuf, CliError> {
    let shown = file.display();
    let text = file
        .to_str()
        .ok_or_else(|| CliError::usage(format!("the path {shown} is not UTF-8")).hint("rename the file"))?;
    if text.chars().any(char::is_control) {
        let message = format!("the path \"{}\" contains a control character", escape::one_line(text));
        return Err(CliError::usage(message).hint("rename the file: an agent gets its path on one line"));
    }
    let unreadable = |error: &io::Error| CliError::usage(format!("cannot read {shown}: {error}"));
    let known = fs::metadata(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if text.trim().contains(char::is_whitespace) => {
            let prompt = quoted(&shortened(text.trim()));
            unreadable(&error).hint(format!("to give instructions as text: agent-cli spawn --prompt {prompt}"))
        }
        _ => unreadable(&error).hint(GIVE_A_FILE),
    })?;
    if known.is_dir() {
        return Err(CliError::usage(format!("{shown} is a directory")).hint(GIVE_A_FILE));
    }
    // Claude Code resolves `..` in a path before symbolic links, and its rules match only a folder's real path.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(|error| unreadable(&error))?;
    // These name a different file for each process.
    let is_own = folder == Path::new("/dev") || folder.starts_with("/dev/fd") || folder.starts_with("/proc");
    if !known.is_file() || is_own {
        return Err(CliError::usage(format!("{shown} is not a regular file")).hint(FROM_STANDARD_INPUT));
    }
    let content = fs::File::open(file).and_then(read).map_err(|error| unreadable(&error))?;
    checked(content, &shown.to_string(), known.len())?;
    let path = file.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(path),
        _ => Err(CliError::usage(format!("the path of {shown} is not UTF-8 or contains a control character"))
            .hint("rename its folder: an agent gets its path on one line")),
    }
}

/// Instructions that are read instead of a file.
pub(crate) fn from_standard_input() -> Result<String, CliError> {
    const SHOWN: &str = "standard input";
    let input = io::stdin().lock();
    if input.is_terminal() {
        tell("type the instructions, then press Ctrl-D on an empty line");
    }
    let content = read(input).map_err(|error| CliError::failed(format!("cannot read {SHOWN}: {error}")))?;
    let length = content.len() as u64;
    checked(content, SHOWN, length)
}

/// Just enough to detect that the input is too large.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(MOST + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn checked(content: Vec<u8>, shown: &str, length: u64) -> Result<String, CliError> {
    if content.len() as u64 > MOST {
        let size = if length > MOST { bytes(length) } else { format!("more than {}", bytes(MOST)) };
        let message = format!("{shown} is too large: {size}, where instructions may have 1 MiB");
        return Err(CliError::usage(message).hint("name large files in the instructions: the agent reads them itself"));
    }
    if content.iter().all(u8::is_ascii_whitespace) {
        return Err(CliError::usage(format!("{shown} is empty")).hint("write what the agent should do"));
    }
    let no_text = || CliError::usage(format!("{shown} is not text")).hint("give instructions as UTF-8 text");
    String::from_utf8(content).ok().filter(|text| !text.contains('\0')).ok_or_else(no_text)
}
