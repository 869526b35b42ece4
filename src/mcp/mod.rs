//! The MCP server. It offers chains as tools and tasks to an interactive session or another host.
//!
//! It is a front like the command line, without rules of its own. It keeps no state that matters: a task has the id of its
//! chain, so that the server of a later session can continue to serve it.

mod server;
mod tasks;
mod tools;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::spawn::in_background::Surroundings;

/// The process that the server runs in.
pub(crate) trait Host: Clone + Send + Sync + 'static {
    type Surroundings: Surroundings;

    /// Whether an agent of a chain started this process.
    fn is_of_agent(&self) -> bool;

    /// Runs `work` for a call of this client. Errors are explained as on the command line.
    fn run<T>(
        &self,
        client: Option<String>,
        work: impl FnOnce(&App<'_>, &Self::Surroundings) -> Result<T, AppError>,
    ) -> Result<T, String>;
}

/// Serves one client on standard input and output, until it closes them.
///
/// # Errors
///
/// Fails if the client does not speak the protocol.
pub(crate) fn serve(host: impl Host) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let server = server::Server::new(host);
        tokio::spawn(server.forget_followed());
        match server.serve(stdio()).await {
            Ok(service) => service.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
            // The client only checked whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                Err("the client did not begin with an initialize request of the Model Context Protocol".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    });
    // A read of standard input cannot be cancelled, so do not wait for it.
    runtime.shutdown_background();
    served
}
