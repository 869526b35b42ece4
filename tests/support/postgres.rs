//! A PostgreSQL server for tests, with its own cluster in a temporary directory. It stops when the test process ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// Creates a cluster in a temporary directory and prints the path. Stops and removes the cluster when the input is closed.
/// PostgreSQL refuses to run as root.
const RUN: &str = r#"
set -eu
PATH="$PATH:$(pg_config --bindir 2>/dev/null || true)"
for bin in /usr/lib/postgresql/*/bin; do PATH="$PATH:$bin"; done
command -v initdb >/dev/null || { echo "initdb is missing: install PostgreSQL (Debian: apt install postgresql)"; exit 1; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/agent-cli-pg.XXXXXX")
as=
if [ "$(id -u)" = 0 ]; then chown nobody "$dir"; as="setpriv --reuid=nobody --clear-groups"; fi
trap 'rm -rf "$dir"' EXIT
cd "$dir"
$as initdb -D data -A trust -U agent -E UTF8 --locale=C.UTF-8 --no-sync >log 2>&1 || { cat log; exit 1; }
$as postgres -D data -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=300 >>log 2>&1 &
server=$!
trap 'kill -QUIT $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$dir"' EXIT
until $as psql -h "$dir" -U agent -d postgres -c 'SELECT 1' >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || { cat log; exit 1; }
    sleep 0.05
done
echo "ready $dir"
cat >/dev/null
"#;

/// The running server.
struct Server {
    dir: String,
    /// The server stops when this is closed.
    _input: ChildStdin,
    _child: Child,
}

#[expect(clippy::zombie_processes, reason = "it ends with this process, which its input tells it")]
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let mut child = Command::new("sh")
            .args(["-c", RUN])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh can be started");
        let mut said = Vec::new();
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.expect("it writes text");
            if let Some(dir) = line.strip_prefix("ready ") {
                return Server { dir: dir.to_owned(), _input: child.stdin.take().expect("it is piped"), _child: child };
            }
            said.push(line);
        }
        panic!("no PostgreSQL server: {}", said.join("\n"))
    })
}

/// Executes statements as the owner of a database.
pub(crate) fn execute(url: &str, sql: &str) {
    let name = database(url);
    run(name, sql);
}

/// Executes statements as another user of a database. Returns what the server prints, or its errors.
pub(crate) fn execute_as(url: &str, user: &str, sql: &str) -> Result<String, String> {
    let name = database(url);
    let done = psql(user, name, sql);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

/// Ends all connections to a database.
pub(crate) fn end_connections(url: &str) {
    let name = database(url);
    let ends = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    // The server may recover from a crash.
    while !psql("agent", "postgres", &ends).status.success() {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a process of the server, which then ends all others and recovers, as after a crash. Returns when it accepts connections again.
pub(crate) fn crash() {
    psql("agent", "postgres", "COPY (SELECT pg_backend_pid()) TO PROGRAM 'xargs kill -KILL'");
    while !psql("agent", "postgres", "SELECT 1").status.success() {
        thread::sleep(Duration::from_millis(20));
    }
}

/// The name of the database at an address.
fn database(url: &str) -> &str {
    let (_, name) = url.rsplit_once('/').expect("an address has a database");
    name.split_once('?').map_or(name, |(name, _)| name)
}

fn run(database: &str, sql: &str) {
    let done = psql("agent", database, sql);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn psql(user: &str, database: &str, sql: &str) -> Output {
    let Server { dir, .. } = server();
    let options = ["-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", dir, "-U", user, "-d", database, "-c", sql];
    Command::new("psql").args(options).output().expect("psql can be started")
}

/// The address of a new database.
pub(crate) fn new_database() -> String {
    static COUNT: Mutex<u32> = Mutex::new(0);
    let Server { dir, .. } = server();
    let mut count = COUNT.lock().expect("no test holds it");
    *count += 1;
    let name = format!("t{count}");
    // PostgreSQL refuses to copy the template twice at the same time.
    run("postgres", &format!("CREATE DATABASE {name}"));
    format!("postgres://agent@{}/{name}", dir.replace('/', "%2F"))
}
