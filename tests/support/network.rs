//! The network between a host and a PostgreSQL server on this machine.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const SOCKET: &str = ".s.PGSQL.5432";

/// A connection to the server that a test can interrupt without closing it.
pub(crate) struct Network {
    is_down: Arc<AtomicBool>,
    /// How long each message takes, in milliseconds.
    delay: Arc<AtomicU64>,
    /// The address of the same database.
    pub(crate) url: String,
    folder: tempfile::TempDir,
}

impl Network {
    pub(crate) fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (rest, database) = url.rsplit_once('/').expect("an address has a database");
        let server = PathBuf::from(rest.rsplit_once('@').expect("a user").1.replace("%2F", "/")).join(SOCKET);
        let own = folder.path().display().to_string().replace('/', "%2F");
        let (is_down, delay) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let url = format!("postgres://agent@{own}/{database}");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a free name");
        let (down, late) = (Arc::clone(&is_down), Arc::clone(&delay));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&server) else { return };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                    let (down, late) = (Arc::clone(&down), Arc::clone(&late));
                    thread::spawn(move || forward(from, to, &down, &late));
                }
            }
        });
        Self { is_down, delay, url, folder }
    }

    pub(crate) fn is_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Release);
    }

    /// Makes each message take this long.
    pub(crate) fn is_slow(&self, delay: Duration) {
        self.delay.store(u64::try_from(delay.as_millis()).expect("it is short"), Ordering::Release);
    }

    /// As if the server did not run: nothing can connect to it.
    pub(crate) fn refuses(&self, refuses: bool) {
        let socket = self.folder.path().join(SOCKET);
        let hidden = socket.with_extension("hidden");
        let (from, to) = if refuses { (&socket, &hidden) } else { (&hidden, &socket) };
        std::fs::rename(from, to).expect("it is ours");
    }
}

fn forward(mut from: UnixStream, mut to: UnixStream, is_down: &AtomicBool, delay: &AtomicU64) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(delay.load(Ordering::Acquire)));
        while is_down.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
