//! Reads the instructions of agents, and checks their size.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::app::GivenText;
use crate::app::error::Refusal;
use crate::core::chain::frame::Task;
use crate::core::text::escape::{self, shortened};
use crate::core::text::extent::bytes;
use crate::core::text::shell::quoted;
use crate::runtime::requests::spawn_request::NamedTask;

/// The size limit of instructions, in bytes. It is far more than an agent can take in at once, so a larger file was named by
/// mistake.
const LARGEST: u64 = 1 << 20;

const GIVE_A_FILE: &str = "give the path of a file with instructions";
const FROM_STANDARD_INPUT: &str = "agent-cli spawn - reads instructions from standard input";

/// Reads the instructions of each agent. Paths are relative to `directory`.
pub(crate) fn tasks(
    directory: &Path,
    given: &[GivenText],
    standard_input: &mut dyn Read,
) -> Result<Vec<NamedTask>, Refusal> {
    if given.is_empty() {
        return Err(Refusal::new("there are no instructions"));
    }
    given.iter().map(|given| task(directory, given, standard_input)).collect()
}

/// Reads a task's instructions, and returns it with its name.
fn task(directory: &Path, given: &GivenText, standard_input: &mut dyn Read) -> Result<NamedTask, Refusal> {
    match given {
        GivenText::StandardInput => {
            Ok(NamedTask { task: Task::Prompt(from_standard_input(standard_input)?), name: "-".to_owned() })
        }
        GivenText::File(named) => {
            let path = file(directory, named)?;
            Ok(NamedTask { task: Task::File(path), name: shortened(&named.display().to_string()) })
        }
        GivenText::Text(text) if text.trim().is_empty() => {
            Err(Refusal::new("the prompt is empty").hint("say what the agent should do"))
        }
        GivenText::Text(text) => {
            // Another client can pass more text than a command line could.
            let task = Task::Prompt(checked(text.clone().into_bytes(), "the prompt", text.len() as u64)?);
            let name = format!("--prompt \"{}\"", shortened(&task.title()));
            Ok(NamedTask { task, name })
        }
    }
}

/// Resolves a file with instructions to an absolute path.
fn file(directory: &Path, named: &Path) -> Result<PathBuf, Refusal> {
    let shown = named.display();
    let text =
        named.to_str().ok_or_else(|| Refusal::new(format!("the path {shown} is not UTF-8")).hint("rename the file"))?;
    if text.chars().any(char::is_control) {
        let message = format!("the path \"{}\" contains a control character", escape::one_line(text));
        return Err(Refusal::new(message).hint("rename the file: an agent gets its path on one line"));
    }
    let unreadable = |error: &io::Error| Refusal::new(format!("cannot read {shown}: {error}"));
    let file = directory.join(named);
    let known = fs::metadata(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if text.trim().contains(char::is_whitespace) => {
            let prompt = quoted(&shortened(text.trim()));
            unreadable(&error).hint(format!("to give instructions as text: agent-cli spawn --prompt {prompt}"))
        }
        _ => unreadable(&error).hint(GIVE_A_FILE),
    })?;
    if known.is_dir() {
        return Err(Refusal::new(format!("{shown} is a directory")).hint(GIVE_A_FILE));
    }
    // Claude Code resolves `..` in a path before symbolic links, and its rules match only the real path of a folder.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(|error| unreadable(&error))?;
    // These paths name a different file in each process.
    let is_own = folder == Path::new("/dev") || folder.starts_with("/dev/fd") || folder.starts_with("/proc");
    if !known.is_file() || is_own {
        return Err(Refusal::new(format!("{shown} is not a regular file")).hint(FROM_STANDARD_INPUT));
    }
    let content = fs::File::open(&file).and_then(read).map_err(|error| unreadable(&error))?;
    checked(content, &shown.to_string(), known.len())?;
    let path = file.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(path),
        _ => Err(Refusal::new(format!("the path of {shown} is not UTF-8 or contains a control character"))
            .hint("rename its folder: an agent gets its path on one line")),
    }
}

fn from_standard_input(input: &mut dyn Read) -> Result<String, Refusal> {
    const SHOWN: &str = "standard input";
    let content = read(input).map_err(|error| Refusal::failure(format!("cannot read {SHOWN}: {error}")))?;
    let length = content.len() as u64;
    checked(content, SHOWN, length)
}

/// Reads just enough to detect that the input is too large.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn checked(content: Vec<u8>, shown: &str, length: u64) -> Result<String, Refusal> {
    if content.len() as u64 > LARGEST {
        let size = if length > LARGEST { bytes(length) } else { format!("more than {}", bytes(LARGEST)) };
        let message = format!("{shown} is too large: {size}, where instructions may have 1 MiB");
        return Err(Refusal::new(message).hint("name large files in the instructions: the agent reads them itself"));
    }
    if content.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::new(format!("{shown} is empty")).hint("write what the agent should do"));
    }
    let no_text = || Refusal::new(format!("{shown} is not text")).hint("give instructions as UTF-8 text");
    String::from_utf8(content).ok().filter(|text| !text.contains('\0')).ok_or_else(no_text)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// Builds the task from this text in a folder. Returns the error if it is refused.
    fn made(folder: &TempDir, given: &GivenText, typed: &[u8]) -> Result<NamedTask, Refusal> {
        task(&fs::canonicalize(folder.path()).unwrap(), given, &mut &*typed)
    }

    fn folder(files: &[(&str, &[u8])]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, content)| fs::write(folder.path().join(name), content).unwrap());
        folder
    }

    fn file(name: impl AsRef<OsStr>) -> GivenText {
        GivenText::File(name.as_ref().into())
    }

    #[test]
    fn a_file_is_named_by_its_real_folder() {
        let folder = folder(&[("ins.md", b"Do it.")]);
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/other.md"), "Do it.").unwrap();
        symlink(top.join("real"), top.join("link")).unwrap();
        symlink(top.join("ins.md"), top.join("linked.md")).unwrap();
        for (named, path) in [
            ("ins.md", "ins.md"),
            ("link/other.md", "real/other.md"),
            ("linked.md", "linked.md"),
            ("link/../ins.md", "ins.md"),
        ] {
            let NamedTask { task, name } = made(&folder, &file(named), b"").unwrap();
            assert_eq!((task, name.as_str()), (Task::File(top.join(path)), named));
        }
    }

    #[test]
    fn instructions_are_given_as_text_or_typed() {
        let folder = folder(&[]);
        let prompt = made(&folder, &GivenText::Text("Do it.\nNow.".into()), b"").unwrap();
        assert_eq!((prompt.task, prompt.name.as_str()), (Task::Prompt("Do it.\nNow.".into()), "--prompt \"Do it.\""));
        let typed = made(&folder, &GivenText::StandardInput, b"Do it.\n").unwrap();
        assert_eq!((typed.task, typed.name.as_str()), (Task::Prompt("Do it.\n".into()), "-"));
        let refused = |given: &GivenText, typed: &[u8]| made(&folder, given, typed).unwrap_err().message;
        assert_eq!(refused(&GivenText::Text(" \n".into()), b""), "the prompt is empty");
        assert_eq!(refused(&GivenText::StandardInput, b" \n"), "standard input is empty");
    }

    #[test]
    fn what_no_agent_reads_is_refused() {
        let folder = folder(&[("empty", b"\n "), ("bytes", b"\xff"), ("zero", b"a\0b"), ("tab\tbed", b"Do it.")]);
        fs::create_dir(folder.path().join("line\nbreak")).unwrap();
        fs::write(folder.path().join("line\nbreak/ins.md"), "Do it.").unwrap();
        symlink("line\nbreak", folder.path().join("plain")).unwrap();
        let refused = |given: &GivenText| made(&folder, given, b"").unwrap_err();
        for (name, why) in [
            ("empty", "empty is empty"),
            ("bytes", "bytes is not text"),
            ("zero", "zero is not text"),
            (".", ". is a directory"),
            ("/dev/null", "/dev/null is not a regular file"),
            ("/proc/self/status", "/proc/self/status is not a regular file"),
            ("tab\tbed", "the path \"tab\\tbed\" contains a control character"),
            ("plain/ins.md", "the path of plain/ins.md is not UTF-8 or contains a control character"),
        ] {
            assert_eq!(refused(&file(name)).message, why, "{name:?}");
        }
        assert!(refused(&file(OsStr::from_bytes(b"\xff"))).message.ends_with("is not UTF-8"));
        let gone = refused(&file("gone.md"));
        assert!(gone.message.starts_with("cannot read gone.md: "), "{gone}");
        assert_eq!(gone.hints, [GIVE_A_FILE]);
        let sentence = refused(&file("Do it now"));
        assert_eq!(sentence.hints, ["to give instructions as text: agent-cli spawn --prompt 'Do it now'"]);
    }

    #[test]
    fn instructions_have_at_most_a_mebibyte() {
        let folder = folder(&[]);
        let text = vec![b'x'; LARGEST as usize + 1];
        let refused = made(&folder, &GivenText::StandardInput, &text).unwrap_err().message;
        assert_eq!(refused, "standard input is too large: 1.0 MB, where instructions may have 1 MiB");
        assert!(made(&folder, &GivenText::StandardInput, &text[1..]).is_ok());
        let prompt = GivenText::Text("x".repeat(LARGEST as usize + 1));
        let refused = made(&folder, &prompt, b"").unwrap_err().message;
        assert_eq!(refused, "the prompt is too large: 1.0 MB, where instructions may have 1 MiB");
        let checked = |length| checked(text.clone(), "it", length).unwrap_err().message;
        assert_eq!(checked(2_000_000), "it is too large: 2.0 MB, where instructions may have 1 MiB");
        assert_eq!(checked(LARGEST), "it is too large: more than 1.0 MB, where instructions may have 1 MiB");
    }
}
