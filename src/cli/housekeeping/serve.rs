//! `agent-cli serve`: serves the page.

use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use rustix::process::Pid;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::fronts::page_addresses::Connection;
use crate::claude::processes::{marks, peer};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, print_line, tell};
use crate::core::steering::origin::FromPage;
use crate::core::text::shell::quoted;
use crate::page::{self, Host, Listen, Options, Problem, ProblemKind};
use crate::store::{StateDir, Store, note_token_file};

/// Serve a page that shows and answers chains in a browser
///
/// The page shows all chains live: trees, conversations, questions and costs. Questions are answered there, calls and plans
/// allowed or denied, and chains started, resumed and stopped. It needs no chain to run, and costs chains nothing.
///
/// Prints a link with which one browser logs in. Each link works once; then the next one is printed. A browser stays logged in
/// for 30 days, even after a restart. Agents cannot use the page.
///
/// The page has no TLS. To reach it from another machine, let `ssh -L` or a proxy that speaks TLS forward to it: whoever can
/// read the network could otherwise read everything, and act as you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli serve --open
  agent-cli serve --listen 127.0.0.1:0 --read-only
  agent-cli serve --listen unix:/run/user/1000/agent-cli.sock")]
pub(crate) struct Serve {
    /// Address and port, or unix:PATH [default: 127.0.0.1:7878]
    ///
    /// An address that other machines can reach needs --token-file and --allowed-host.
    #[arg(long, value_name = "ADDRESS", value_parser = listen, default_value = "127.0.0.1:7878", hide_default_value = true)]
    listen: Listen,

    /// Open the page in a browser
    #[arg(long)]
    open: bool,

    /// Only show: nothing can be answered, started or stopped
    #[arg(long)]
    read_only: bool,

    /// A file with a token that browsers must enter, instead of a link
    ///
    /// No other user may read it, and agents may not. The token has at least 22 characters.
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    token_file: Option<PathBuf>,

    /// Another name by which browsers reach the page, such as that of a proxy, with its port unless it is the usual one
    #[arg(long, value_name = "HOST", value_parser = host)]
    allowed_host: Vec<String>,
}

/// A shorter token could be guessed.
const SHORTEST: usize = 22;

fn listen(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("the path is missing".to_owned()),
        Some(path) => Ok(Listen::Unix(path.into())),
        None => text.parse().map(Listen::Tcp).map_err(|_| "it is not IP:PORT or unix:PATH".to_owned()),
    }
}

fn host(text: &str) -> Result<String, String> {
    if page::is_name_of_host(text) { Ok(text.to_owned()) } else { Err("it is not HOST or HOST:PORT".to_owned()) }
}

impl Serve {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Self { listen, open, read_only, token_file, allowed_host: allowed_hosts } = self;
        let store = context.store()?;
        context.warn_of_config(None);
        context.app_to_decide(&store).asker.may(PersonsTask::Serve)?;
        if let Listen::Tcp(address) = listen
            && !address.ip().is_loopback()
        {
            if token_file.is_none() || allowed_hosts.is_empty() {
                let error =
                    format!("{address} can be reached from other machines: that needs --token-file and --allowed-host");
                return Err(CliError::usage(error).hint(format!(
                    "or keep 127.0.0.1, and let ssh -L {0}:127.0.0.1:{0} or a proxy forward to it",
                    address.port()
                )));
            }
            output::warn("the page has no TLS: whoever can read this network can read everything, and act as you");
            output::hint("let a proxy that speaks TLS forward to a loopback address");
        }
        let token = token_file.as_deref().map(token).transpose()?;
        if let Some(file) = &token_file {
            let places = [Ok(context.app(&store).path(file)), file.canonicalize()];
            places.into_iter().flatten().try_for_each(|file| note_token_file(store.dir(), &file))?;
        }
        let opened = open.then(|| store.dir().page().join("open.html"));
        let host = OwnProcess { opened, idle: Arc::default() };
        let other = match &listen {
            Listen::Tcp(_) => "agent-cli serve --listen 127.0.0.1:0 takes a free port",
            Listen::Unix(_) => "name a file that does not exist yet, in a directory of yours",
        };
        page::serve(host.clone(), store, Options { listen, read_only, token, allowed_hosts })
            .map_err(|error| CliError::failed(error).hint(other))?;
        host.forget_opened();
        Ok(ExitStatus::Ok)
    }
}

/// Reads the token from a file that only its owner can read.
fn token(file: &Path) -> Result<String, CliError> {
    let cannot = |error| {
        let hint = format!("(umask 077; openssl rand -hex 32 > {}) makes one", quoted(&file.to_string_lossy()));
        CliError::usage(format!("{} cannot be read: {error}", file.display())).hint(hint)
    };
    let found = fs::metadata(file).map_err(cannot)?;
    if found.is_dir() {
        return Err(cannot(std::io::ErrorKind::IsADirectory.into()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(CliError::usage(format!("other users can read or change {}", file.display()))
            .hint(format!("chmod 600 {}", file.display())));
    }
    let token = fs::read_to_string(file).map_err(cannot)?.trim().to_owned();
    if token.len() < SHORTEST {
        return Err(CliError::usage(format!("the token in {} is shorter than {SHORTEST} characters", file.display()))
            .hint("openssl rand -hex 32 makes one"));
    }
    Ok(token)
}

/// This process. It reads the configuration again for each request, because files change.
#[derive(Clone)]
struct OwnProcess {
    /// The file that opens the browser, if one was written.
    opened: Option<PathBuf>,
    /// Stores that no request uses now. Opening one takes as long as building a view.
    idle: Arc<Mutex<Vec<Store>>>,
}

/// Each store needs memory.
const MOST_IDLE: usize = 2;

impl Host for OwnProcess {
    type Surroundings = Context;

    fn is_of_agent(&self, connection: Connection) -> bool {
        let Ok(state_dir) = Context::from_environment(false).and_then(|context| Ok(context.state_dir()?)) else {
            return true;
        };
        let of_agent = || {
            processes(connection)
                .into_iter()
                .any(|pid| marks::is_of_agent(pid, &state_dir, StateDir::is_lock_of_runner))
        };
        // A process that the sender is just starting, perhaps to run agents, holds its connections for a moment.
        of_agent() && of_agent()
    }

    fn look<T>(&self, work: impl FnOnce(&App<'_>, &Context) -> Result<T, AppError>) -> Result<T, Problem> {
        // A person has started this process, so no ancestor is an agent.
        self.within(|| Ok(Context::of_person()), |context, store| work(&context.app(store), context))
    }

    fn decide<T>(
        &self,
        browser: FromPage,
        connection: Connection,
        work: impl FnOnce(&App<'_>, &Context) -> Result<T, AppError>,
    ) -> Result<T, Problem> {
        let context = || Context::from_environment(false);
        self.within(context, |context, store| {
            let mut app = context.app_to_decide(store);
            let above = processes(connection);
            app.asker.sessions = above.iter().flat_map(|pid| marks::sessions_of(*pid)).collect();
            app.asker.origin.page = Some(browser);
            work(&app, context)
        })
    }

    fn show_address(&self, address: &str) {
        if let Err(error) = print_line(address) {
            output::warn(&error.to_string());
        }
        tell("browsers enter the token there. Ctrl-C ends the page");
    }

    fn show_link(&self, link: &str, is_first: bool) {
        if let Err(error) = print_line(link) {
            output::warn(&format!("no browser can log in: {error}"));
        }
        if !is_first {
            self.forget_opened();
            tell("a browser has logged in; the link above is for another one");
            return;
        }
        tell("open this link in a browser; it works once. Ctrl-C ends the page");
        if let Some(file) = &self.opened
            && let Err(error) = open(file, link)
        {
            output::warn(&format!("no browser was opened: {error}"));
        }
    }
}

impl OwnProcess {
    fn within<T>(
        &self,
        context: impl FnOnce() -> Result<Context, CliError>,
        work: impl FnOnce(&Context, &Store) -> Result<T, AppError>,
    ) -> Result<T, Problem> {
        let work = || {
            let context = context()?;
            let dir = StateDir::new(&context.place()?)?;
            if !Store::exists(&dir) {
                // Opening the store would create another state directory.
                return Err(CliError::failed(format!("there are no records in {} any more", dir.path().display())));
            }
            let store = self.idle_store(&dir).map_or_else(|| context.store(), Ok)?;
            let done = work(&context, &store)?;
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MOST_IDLE {
                idle.push(store);
            }
            Ok::<T, CliError>(done)
        };
        work().map_err(|error| Problem {
            kind: match error.exit() {
                ExitStatus::NoSuchFrame => ProblemKind::Unknown,
                ExitStatus::Usage => ProblemKind::Refused,
                _ => ProblemKind::Failed,
            },
            words: error.in_words(),
        })
    }

    /// An idle store whose database has not been replaced.
    fn idle_store(&self, dir: &StateDir) -> Option<Store> {
        let store = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        (store.dir().path() == dir.path() && store.changes().version_of_others().is_ok()).then_some(store)
    }

    fn forget_opened(&self) {
        // The file may have been removed already.
        let _ = self.opened.as_ref().map(fs::remove_file);
    }
}

/// The processes at the other end, if they run on this machine and the system shows them.
fn processes(connection: Connection) -> Vec<Pid> {
    match connection {
        Connection::Tcp { peer, own } => peer::of_connection(peer, own),
        Connection::Unix(process) => process.and_then(Pid::from_raw).into_iter().collect(),
    }
}

/// Opens a browser with a file that leads to the link. The link must not be an argument, because all users can see the
/// arguments of processes.
fn open(file: &Path, link: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let _ = fs::remove_file(file);
    let mut page = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    write!(page, "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\">")?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command.spawn()?;
    // Otherwise the browser process would stay a zombie as long as this process runs.
    std::thread::spawn(move || started.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_tcp_or_a_path() {
        assert!(matches!(listen("127.0.0.1:0"), Ok(Listen::Tcp(address)) if address.ip().is_loopback()));
        assert!(matches!(listen("unix:/a b"), Ok(Listen::Unix(path)) if path == Path::new("/a b")));
        for bad in ["", "7878", "localhost:7878", "unix:", "127.0.0.1"] {
            listen(bad).unwrap_err();
        }
    }
}
