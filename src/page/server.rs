//! Accepts connections, and gives up those that hold something up.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::fs::Mode;
use rustix::process::umask;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use crate::core::steering::origin::FromPage;
use crate::page::routes::router;
use crate::page::state::{Page, Visitor};
use crate::page::{Connection, Host, Listen};
use crate::runtime::run::signals;

pub(super) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// How many connections may be open.
const MOST: usize = 256;
/// How long a request's headers may take, and the next request of an open connection.
const HEADERS: Duration = Duration::from_secs(15);
/// How long a browser may read nothing of what was sent.
const READS: Duration = Duration::from_secs(30);
/// The largest headers.
const LARGEST: usize = 32 << 10;
const MOST_HEADERS: usize = 64;

impl Listener {
    pub(super) async fn bind(listen: &Listen) -> Result<Self, String> {
        match listen {
            Listen::Tcp(address) => {
                let bound = TcpListener::bind(address).await;
                let listener = bound.map_err(|error| format!("cannot listen on {address}: {error}"))?;
                let own = listener.local_addr().map_err(|error| error.to_string())?;
                Ok(Self::Tcp(listener, own))
            }
            Listen::Unix(path) => {
                let cannot = |error: std::io::Error| format!("cannot listen on {}: {error}", path.display());
                // A socket that nobody listens on any more is in the way. Other files refuse connections, too.
                let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
                let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
                if is_socket && StdUnixStream::connect(path).is_err_and(refused) {
                    fs::remove_file(path).map_err(cannot)?;
                }
                // Nobody else can connect, not even before the permissions could be changed.
                let before = umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
                let listener = UnixListener::bind(path);
                umask(before);
                Ok(Self::Unix(listener.map_err(cannot)?, path.clone()))
            }
        }
    }

    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(_, own) => Some(own.port()),
            Self::Unix(..) => None,
        }
    }

    /// Where a browser finds it.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Tcp(_, own) if own.ip().is_unspecified() => format!("http://localhost:{}", own.port()),
            Self::Tcp(_, own) => format!("http://{own}"),
            Self::Unix(..) => "http://localhost".to_owned(),
        }
    }

    /// The names under which browsers know it, without the port.
    pub(super) fn names(&self) -> Vec<String> {
        let local = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        match self {
            Self::Tcp(_, own) if own.ip().is_loopback() || own.ip().is_unspecified() => local.to_vec(),
            Self::Tcp(_, SocketAddr::V6(own)) => vec![format!("[{}]", own.ip())],
            Self::Tcp(_, own) => vec![own.ip().to_string()],
            Self::Unix(..) => vec!["localhost".to_owned()],
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
                // There may be too many open files.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // A browser that gets no connection tries again.
            let Ok(permit) = Arc::clone(&open).try_acquire_owned() else { continue };
            let (app, host) = (app.clone(), page.host.clone());
            tokio::spawn(async move {
                let known = tokio::task::spawn_blocking(move || host.is_of_agent(connection)).await;
                let address = match connection {
                    Connection::Tcp { peer, .. } => peer.ip().to_canonical().to_string(),
                    Connection::Unix(_) => "a Unix socket".to_owned(),
                };
                let browser = FromPage { address, browser: None };
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
                // A connection that breaks is the browser's.
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
        remove(path);
    }
    Ok(())
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

fn remove(path: &Path) {
    // It may have been removed.
    let _ = fs::remove_file(path);
}
