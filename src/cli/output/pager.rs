//! Shows a long result in the person's pager, as git does.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output::size::{can_move_cursor, columns_and_lines};
use crate::core::text::wrap::columns;

/// The pager of this process.
static PAGER: Mutex<Option<Pager>> = Mutex::new(None);

/// The output of a command that may be paged.
#[derive(Debug)]
struct Pager {
    /// Output that was printed before the pager runs.
    held: Vec<u8>,
    /// The columns and lines of the terminal.
    size: (usize, usize),
    /// The running pager, once there is more output than fits on the terminal.
    program: Option<Child>,
    /// Messages to show after the pager has ended.
    messages: Vec<u8>,
}

/// Ends the pager when dropped, and waits until the person has left it.
#[derive(Debug)]
pub(crate) struct Paged(());

/// From now on, shows results in a pager if they do not fit on the terminal.
pub(crate) fn begin() -> Paged {
    let is_usable = io::stdout().is_terminal() && can_move_cursor() && command().is_some();
    if is_usable {
        let size = columns_and_lines(io::stdout());
        *pager() = Some(Pager { held: Vec::new(), size, program: None, messages: Vec::new() });
    }
    Paged(())
}

impl Drop for Paged {
    fn drop(&mut self) {
        let Some(Pager { held, program, messages, .. }) = pager().take() else { return };
        if let Some(mut program) = program {
            drop(program.stdin.take());
            let _ = program.wait();
        }
        // If the terminal is closed, the output is lost.
        let _ = io::stdout().write_all(&held).and_then(|()| io::stdout().flush());
        let _ = io::stderr().write_all(&messages);
    }
}

/// Takes a result, if the command is paged.
pub(super) fn take(text: &str) -> Option<io::Result<()>> {
    pager().as_mut().map(|pager| pager.write(text.as_bytes()))
}

/// Takes a message, because the pager uses the terminal. Returns whether the command is paged.
pub(super) fn take_message(text: &str) -> bool {
    let mut pager = pager();
    let taken = pager.as_mut().map(|pager| pager.messages.extend_from_slice(text.as_bytes()));
    taken.is_some()
}

fn pager() -> MutexGuard<'static, Option<Pager>> {
    PAGER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pager {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if let Some(stdin) = self.program.as_mut().and_then(|program| program.stdin.as_mut()) {
            return stdin.write_all(text);
        }
        self.held.extend_from_slice(text);
        if self.fits() {
            return Ok(());
        }
        match start() {
            Ok(program) => {
                self.program = Some(program);
                let held = std::mem::take(&mut self.held);
                self.write(&held)
            }
            // Without a pager, the output is shown directly.
            Err(_) => {
                self.size.1 = usize::MAX;
                Ok(())
            }
        }
    }

    /// Whether a terminal shows all of the output, with the next prompt.
    fn fits(&self) -> bool {
        let (width, height) = self.size;
        let text = String::from_utf8_lossy(&self.held);
        let lines = text.lines().map(|line| columns(line).div_ceil(width.max(1)).max(1));
        lines.fold(0, usize::saturating_add) < height
    }
}

/// The pager that the person has chosen. `None` if they want none.
fn command() -> Option<String> {
    let chosen = ["AGENT_CLI_PAGER", "PAGER"].iter().find_map(|name| env::var(name).ok());
    let chosen = chosen.unwrap_or_else(|| "less".to_owned());
    Some(chosen).filter(|chosen| !["", "cat"].contains(&chosen.trim()))
}

/// Starts the pager without a shell if possible. A missing program then fails to start, whereas a shell would start.
fn start() -> io::Result<Child> {
    const OF_A_SHELL: &str = "|&;<>()$`\\\"'*?[#~=%";
    let chosen = command().ok_or(ErrorKind::NotFound)?;
    let mut words = chosen.split_whitespace();
    let mut command = match words.next().filter(|_| !chosen.contains(|c| OF_A_SHELL.contains(c))) {
        Some(program) => Command::new(program),
        None => Command::new("sh"),
    };
    match command.get_program() == "sh" {
        true => command.arg("-c").arg(&chosen),
        false => command.args(words),
    };
    // Show colours, leave the text on the terminal, and exit at once if the text is short.
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let program = command.stdin(Stdio::piped()).spawn()?;
    outlive_interrupts();
    Ok(program)
}

/// Lets the pager handle Ctrl-C.
fn outlive_interrupts() {
    let listen = || -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let _entered = runtime.enter();
        signal(SignalKind::from_raw(Signal::INT.as_raw())).map(drop)
    };
    // If this fails, Ctrl-C ends both programs.
    let _ = listen();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_needs_no_pager() {
        let fits = |text: &str, size| {
            Pager { held: text.as_bytes().to_vec(), size, program: None, messages: Vec::new() }.fits()
        };
        assert!(fits("a\nb\n", (80, 3)) && !fits("a\nb\nc\n", (80, 3)));
        assert!(!fits(&"x".repeat(161), (80, 3)), "it is wider than two lines");
    }
}
