//! The page: chains, conversations and questions in a browser.
//!
//! It is a front like the command line, without rules of its own. What a browser has seen is a view ([`views`]), whose live
//! parts are sent again when they change ([`live`]). Nobody gets in who was not let in by a person ([`guard`]).

mod actions;
mod guard;
mod live;
mod routes;
mod server;
mod state;
mod views;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::page_addresses::{Addresses, Connection};
use crate::app::spawn::in_background::Surroundings;
use crate::core::steering::origin::FromPage;
use crate::store::Store;

pub(crate) use guard::is_name_of_host;

/// The process that serves the page.
pub(crate) trait Host: Clone + Send + Sync + 'static {
    type Surroundings: Surroundings;

    /// Whether a process at the other end belongs to an agent, as far as the system can tell.
    fn is_of_agent(&self, connection: Connection) -> bool;

    /// Runs `work`, which only reads.
    fn look<T>(&self, work: impl FnOnce(&App<'_>, &Self::Surroundings) -> Result<T, AppError>) -> Result<T, Problem>;

    /// Runs `work` for a browser, whose decisions are recorded.
    fn decide<T>(
        &self,
        browser: FromPage,
        connection: Connection,
        work: impl FnOnce(&App<'_>, &Self::Surroundings) -> Result<T, AppError>,
    ) -> Result<T, Problem>;

    /// Tells the person who serves the page a link with which one browser can log in.
    fn show_link(&self, link: &str, is_first: bool);

    /// The same where browsers enter a token.
    fn show_address(&self, address: &str);
}

/// Why something was not done, in words for people.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// What it names does not exist.
    Unknown,
    /// It is wrong or not allowed, or something has changed in the meantime.
    Refused,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: Listen,
    /// Whether nothing can be done from the page.
    pub(crate) read_only: bool,
    /// What a browser must present to log in. Otherwise it needs a link.
    pub(crate) token: Option<String>,
    /// Other names under which browsers know this server.
    pub(crate) allowed_hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The threads that look at the records.
const THREADS: usize = 4;

/// Serves the page until a signal arrives.
///
/// # Errors
///
/// It cannot listen, or use the state directory.
pub(crate) fn serve(host: impl Host, store: Store, options: Options) -> Result<(), String> {
    // Each thread keeps memory to itself, and a person waits for few answers at once.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(THREADS).enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let listener = server::Listener::bind(&options.listen).await?;
        let addresses = Addresses::new(listener.address(), &options.allowed_hosts);
        let page = state::Page::new(host, store, addresses, options)?;
        server::run(Arc::new(page), listener).await
    });
    // Browsers that are still connected.
    runtime.shutdown_background();
    served
}
