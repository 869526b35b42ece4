//! Lets a person write a text in their own editor.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::error::CliError;
use crate::runtime::block_on;

/// Returns the text that the person has saved, without its final line break. `None` if it is blank.
///
/// The editor opens a file with the content `initial`. The file never contains anything from the agent, because an editor may
/// obey commands in it.
pub(super) fn write(initial: &str) -> Result<Option<String>, CliError> {
    // The folder is private, because editors put copies next to the file.
    let folder = tempfile::Builder::new().prefix("agent-cli-").tempdir().map_err(|error| cannot(&error))?;
    let path = folder.path().join("answer.md");
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    new.and_then(|mut file| file.write_all(initial.as_bytes())).map_err(|error| cannot(&error))?;
    open(&path, "nothing was answered")?;
    // Read it by name: many editors save by renaming another file.
    let saved = match fs::read(&path) {
        Ok(saved) => saved,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(&error)),
    };
    let text = String::from_utf8(saved).map_err(|_| CliError::usage("what the editor has saved is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()).filter(|text| !text.trim().is_empty()))
}

/// The editor that the person has chosen.
fn chosen() -> Option<String> {
    let named = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// The editor of git and crontab, unless the person has chosen one.
const USUAL: &str = "vi";

/// Refuses to edit a file where the usual editor would not work. As with git, a chosen editor may need no terminal.
/// `instead`: a hint.
pub(crate) fn refuse_without_a_terminal(path: &Path, instead: &str) -> Result<(), CliError> {
    if chosen().is_some() || io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    let path = path.display();
    Err(CliError::usage(format!(
        "cannot edit {path}: {USUAL} needs a terminal, and VISUAL and EDITOR name no other editor"
    ))
    .hint(instead))
}

/// Opens a file in the editor and waits until the editor ends. `otherwise` says what the editor's failure means.
pub(crate) fn open(path: &Path, otherwise: &str) -> Result<(), CliError> {
    let editor = chosen().unwrap_or_else(|| USUAL.to_owned());
    let mut command = tokio::process::Command::new("sh");
    // As with git, the editor may have arguments.
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(path);
    let ended = block_on(async {
        // Ignore Ctrl-C, which is meant for the editor.
        let _interrupts = signal(SignalKind::interrupt())?;
        command.status().await
    });
    let ended = ended.flatten().map_err(|error| cannot(&error))?;
    if ended.success() {
        return Ok(());
    }
    let how = match ended.code() {
        None => "was killed".to_owned(),
        // That of the shell.
        Some(127) => "was not found".to_owned(),
        Some(code) => format!("ended with exit status {code}"),
    };
    Err(CliError::failed(format!("the editor ({editor}) {how}, so {otherwise}"))
        .hint("set VISUAL or EDITOR to another editor"))
}

fn cannot(error: &io::Error) -> CliError {
    CliError::failed(format!("cannot start an editor: {error}"))
}
