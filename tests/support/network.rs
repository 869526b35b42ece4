//! The network between a host and a PostgreSQL server on this machine.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::Shutdown;

use crate::namespace::Namespace;

const SOCKET: &str = ".s.PGSQL.5432";

/// A connection to the server that a test can interrupt without closing it.
pub(crate) struct Network {
    /// Whether what the host sends is held back.
    is_mute: Arc<AtomicBool>,
    /// Whether what is sent to the host is held back.
    is_deaf: Arc<AtomicBool>,
    /// How many connections there have been.
    connections: Arc<AtomicU64>,
    /// On how many of the first connections what is sent to the host is held back.
    deaf: Arc<AtomicU64>,
    /// How long each message takes, in milliseconds.
    delay: Arc<AtomicU64>,
    /// The address of the same database.
    pub(crate) url: String,
    folder: tempfile::TempDir,
    /// The host's own network, in which packets are lost instead of held back.
    namespace: Option<Namespace>,
}

impl Network {
    /// To a host that uses the network of this machine.
    pub(crate) fn new(url: &str) -> Self {
        Self::to(None, url)
    }

    /// To a host that has its own, if this user may create one.
    pub(crate) fn of_a_host(url: &str) -> Self {
        Self::to(Namespace::new(), url)
    }

    fn to(namespace: Option<Namespace>, url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (rest, database) = url.rsplit_once('/').expect("an address has a database");
        let server = PathBuf::from(rest.rsplit_once('@').expect("a user").1.replace("%2F", "/")).join(SOCKET);
        let (own, options, clients): (_, _, Box<dyn Iterator<Item = OwnedFd> + Send>) =
            if let Some(namespace) = &namespace {
                let listener = TcpListener::bind((namespace.gateway(), 0)).expect("an address of this machine");
                let own = listener.local_addr().expect("it is bound").to_string();
                (own, "?sslmode=disable", Box::new(std::iter::from_fn(move || Some(listener.accept().ok()?.0.into()))))
            } else {
                let own = folder.path().display().to_string().replace('/', "%2F");
                let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a free name");
                (own, "", Box::new(std::iter::from_fn(move || Some(listener.accept().ok()?.0.into()))))
            };
        let url = format!("postgres://agent@{own}/{database}{options}");
        let [is_mute, is_deaf] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [connections, deaf, delay] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let network = Self { is_mute, is_deaf, connections, deaf, delay, url, folder, namespace };
        let (is_mute, is_deaf) = (Arc::clone(&network.is_mute), Arc::clone(&network.is_deaf));
        let (connections, deaf) = (Arc::clone(&network.connections), Arc::clone(&network.deaf));
        let delay = Arc::clone(&network.delay);
        thread::spawn(move || {
            for client in clients {
                let Ok(server) = UnixStream::connect(&server) else { return };
                let server = OwnedFd::from(server);
                let number = connections.fetch_add(1, Ordering::AcqRel);
                let ends = || [&client, &server].map(|end| File::from(end.try_clone().expect("a socket")));
                let ([host, to_server], [to_host, server]) = (ends(), ends());
                let (is_mute, is_deaf, deaf) = (Arc::clone(&is_mute), Arc::clone(&is_deaf), Arc::clone(&deaf));
                let [delay, of_replies] = [(); 2].map(|()| Arc::clone(&delay));
                thread::spawn(move || forward(host, to_server, || is_mute.load(Ordering::Acquire), &delay));
                let is_held = move || is_deaf.load(Ordering::Acquire) || number < deaf.load(Ordering::Acquire);
                thread::spawn(move || forward(server, to_host, is_held, &of_replies));
            }
        });
        network
    }

    /// The command in which a command of the host runs, if it has a network of its own.
    pub(crate) fn enter(&self) -> Vec<String> {
        self.namespace.as_ref().map(Namespace::enter).unwrap_or_default()
    }

    pub(crate) fn is_down(&self, is_down: bool) {
        if let Some(namespace) = &self.namespace {
            return namespace.is_cut_off(is_down);
        }
        self.is_mute.store(is_down, Ordering::Release);
        self.is_deaf.store(is_down, Ordering::Release);
    }

    /// What the host sends arrives, but no reply.
    pub(crate) fn has_no_replies(&self, none: bool) {
        match &self.namespace {
            Some(namespace) => namespace.hears_nothing(none),
            None => self.is_deaf.store(none, Ordering::Release),
        }
    }

    /// No reply arrives on the connections that exist. Others are not affected. Only on the network of this machine.
    pub(crate) fn holds_replies_of_now(&self, holds: bool) {
        let connections = if holds { self.connections.load(Ordering::Acquire) } else { 0 };
        self.deaf.store(connections, Ordering::Release);
    }

    /// Makes each message take this long.
    pub(crate) fn is_slow(&self, delay: Duration) {
        self.delay.store(u64::try_from(delay.as_millis()).expect("it is short"), Ordering::Release);
    }

    /// As if the server did not run: nothing can connect to it. Only on the network of this machine.
    pub(crate) fn refuses(&self, refuses: bool) {
        let socket = self.folder.path().join(SOCKET);
        let hidden = socket.with_extension("hidden");
        let (from, to) = if refuses { (&socket, &hidden) } else { (&hidden, &socket) };
        std::fs::rename(from, to).expect("it is ours");
    }
}

fn forward(mut from: File, mut to: File, is_held: impl Fn() -> bool, delay: &AtomicU64) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(delay.load(Ordering::Acquire)));
        while is_held() {
            thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = rustix::net::shutdown(&to, Shutdown::Write);
}
