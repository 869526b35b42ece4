//! The page: chains, conversations and questions in a browser.
//!
//! It is a front like the command line, without rules of its own. A browser shows a view ([`views`]) and gets the view's live
//! parts again when they change ([`live`]). Only browsers that a person has let in can use the page ([`guard`]).

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

    /// Whether an agent's process is at the other end, as far as the system can tell.
    fn is_of_agent(&self, connection: Connection) -> bool;

    /// Runs `work`, which must only read.
    fn look<T>(&self, work: impl FnOnce(&App<'_>, &Self::Surroundings) -> Result<T, AppError>) -> Result<T, Problem>;

    /// Runs `work` for a browser, and records the browser with its decisions.
    fn decide<T>(
        &self,
        browser: FromPage,
        connection: Connection,
        work: impl FnOnce(&App<'_>, &Self::Surroundings) -> Result<T, AppError>,
    ) -> Result<T, Problem>;

    /// Shows the person who serves the page a link that logs in one browser.
    fn show_link(&self, link: &str, is_first: bool);

    /// Shows the page's address instead, if browsers must enter a token.
    fn show_address(&self, address: &str);
}

/// A refusal or failure, in words for people.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// The request names something that does not exist.
    Unknown,
    /// The request is wrong or not allowed, or something has changed in the meantime.
    Refused,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: Listen,
    /// Whether the page only shows chains, and refuses all actions.
    pub(crate) read_only: bool,
    /// The token that a browser must enter to log in. Without a token, it needs a link.
    pub(crate) token: Option<String>,
    /// Other names by which browsers reach this server.
    pub(crate) allowed_hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The number of threads that read the records.
const THREADS: usize = 4;

/// Serves the page until a signal arrives.
///
/// # Errors
///
/// Fails if the server cannot listen, or cannot use the state directory.
pub(crate) fn serve(host: impl Host, store: Store, options: Options) -> Result<(), String> {
    // Few threads suffice, because a person waits for few answers at once. Each thread keeps its own memory.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(THREADS).enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let listener = server::Listener::bind(&options.listen).await?;
        let addresses = Addresses::new(listener.address(), &options.allowed_hosts);
        let page = state::Page::new(host, store, addresses, options)?;
        server::run(Arc::new(page), listener).await
    });
    // Closes the connections of browsers that are still there.
    runtime.shutdown_background();
    served
}
