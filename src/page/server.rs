//! Accepts connections, and closes those that take too long.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use crate::app::fronts::page_addresses::Connection;
use crate::core::steering::origin::FromPage;
use crate::page::routes::router;
use crate::page::state::{Page, Visitor};
use crate::page::{Host, Listen};
use crate::runtime::run::signals;
use crate::store::private_socket;

pub(super) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// How many connections may be open at once.
const MOST: usize = 256;
/// How long a request's headers may take to arrive, and how long an idle connection stays open.
const HEADERS: Duration = Duration::from_secs(15);
/// How long a browser may stop reading a response.
const READS: Duration = Duration::from_secs(30);
/// The size limit of a request's headers, in bytes.
const LARGEST: usize = 32 << 10;
const MOST_HEADERS: usize = 64;

impl Listener {
    pub(super) async fn bind(listen: &Listen) -> Result<Self, String> {
        match listen {
            Listen::Tcp(address) => {
                let cannot = |error: std::io::Error| format!("cannot listen on {address}: {error}");
                let listener = TcpListener::bind(address).await.map_err(cannot)?;
                let own = listener.local_addr().map_err(cannot)?;
                Ok(Self::Tcp(listener, own))
            }
            Listen::Unix(path) => {
                let cannot = |error: std::io::Error| format!("cannot listen on {}: {error}", path.display());
                let listener = private_socket(path).map_err(cannot)?;
                listener.set_nonblocking(true).map_err(cannot)?;
                Ok(Self::Unix(UnixListener::from_std(listener).map_err(cannot)?, path.clone()))
            }
        }
    }

    /// `None` if the listener is a Unix socket.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(_, own) => Some(*own),
            Self::Unix(..) => None,
        }
    }
}

/// Serves the page until a signal arrives.
pub(super) async fn run<H: Host>(page: Arc<Page<H>>, listener: Listener) -> Result<(), String> {
    let mut stop = signals::listen().map_err(|error| error.to_string())?;
    let serving = async {
        let open = Arc::new(Semaphore::new(MOST));
        let app = router(Arc::clone(&page));
        loop {
            let accepted = match &listener {
                Listener::Tcp(listener, own) => listener.accept().await.map(|(stream, peer)| {
                    let _ = stream.set_nodelay(true);
                    let own = stream.local_addr().unwrap_or(*own);
                    (Box::new(stream) as Box<dyn Stream>, Connection::Tcp { peer, own })
                }),
                Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
                    (Box::new(stream) as Box<dyn Stream>, Connection::Unix(process))
                }),
            };
            let Ok((stream, connection)) = accepted else {
                // The process may have too many open files.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // A browser without a connection tries again.
            let Ok(permit) = Arc::clone(&open).try_acquire_owned() else { continue };
            let (app, host) = (app.clone(), page.host.clone());
            tokio::spawn(async move {
                let known = tokio::task::spawn_blocking(move || host.is_of_agent(connection)).await;
                let browser = FromPage { address: connection.address(), browser: None };
                let is_of_agent = known.unwrap_or(true);
                let visitor = Visitor { connection, is_of_agent, browser, cookie: None };
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(READS));
                let served = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADERS)
                    .max_buf_size(LARGEST)
                    .max_headers(MOST_HEADERS)
                    .serve_connection(
                        TokioIo::new(Box::pin(stream)),
                        TowerToHyperService::new(app.layer(Extension(visitor))),
                    );
                // A broken connection is the browser's problem.
                let _ = served.await;
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = serving => {}
        _ = stop.changed() => {}
    }
    if let Listener::Unix(_, path) = &listener {
        // The socket may have been removed already.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
