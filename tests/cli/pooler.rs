//! Chains on a PostgreSQL server behind a pooler that assigns a connection to each transaction. Like the tests of the server, these
//! check nothing unless `AGENT_CLI_TEST_SERVER` is set.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::gate::wait_until;
use crate::postgres;
use crate::world::World;

/// A pooler with fewer connections to the server than there are clients, so that they share them.
struct Pooler {
    process: Child,
    /// The address of a database behind it.
    url: String,
    _folder: TempDir,
}

impl Pooler {
    fn start() -> Self {
        let database = postgres::new_database();
        let (server, name) = database.rsplit_once('/').expect("an address has a database");
        let socket = server.trim_start_matches("postgres://agent@").replace("%2F", "/");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let dir = folder.path().display();
        let settings = format!(
            "[databases]\n* = host={socket} user=agent\n[pgbouncer]\nunix_socket_dir = {dir}\nlisten_port = 6432\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\nlogfile = {dir}/log\n"
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).expect("the folder can be written to");
        let mut command = if rustix::process::geteuid().is_root() {
            // It refuses to run as root.
            let opened = Command::new("chown").args(["-R", "nobody"]).arg(folder.path()).status();
            assert!(opened.is_ok_and(|status| status.success()), "root may do this");
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--clear-groups", "pgbouncer"]);
            command
        } else {
            Command::new("pgbouncer")
        };
        let process = command.arg("-q").arg(file).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("pgbouncer is installed (Debian: apt install pgbouncer)");
        wait_until("the pooler listens", || PathBuf::from(format!("{dir}/.s.PGSQL.6432")).exists());
        let url = format!("postgres://agent@{}:6432/{name}", folder.path().display().to_string().replace('/', "%2F"));
        Self { process, url, _folder: folder }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pooler() -> Option<Pooler> {
    std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| Pooler::start())
}

fn states(world: &World) -> Vec<Value> {
    let listed = world.run(&["ls", "--all", "--all-projects", "--json"]).json();
    listed.as_array().expect("a list").iter().map(|chain| chain["state"].clone()).collect()
}

#[test]
fn hosts_share_chains_through_a_pooler() {
    let Some(pooler) = pooler() else { return };
    let url = format!("{}?pooler=transaction", pooler.url);
    let [one, other] = [(); 2].map(|()| World::with_hooks().with("AGENT_CLI_STORE", &url));
    one.file("root.md", "spawn child.md\nreply {result}\n");
    one.file("child.md", "ask When?\nreply {result}\n");
    for _ in 0..3 {
        one.spawn_paused("root.md");
    }
    let watch = one.command(["watch"]).start();
    wait_until("it watches", || one.state().join("watching.lock").exists());
    for (_, id) in other.questions() {
        other.run(&["answer", &id, "tomorrow"]).succeeds();
    }
    wait_until("they have continued", || states(&other) == ["done"; 3]);
    watch.signal(Signal::TERM);
    watch.ends().succeeds();
    one.file("free.md", "reply ok\n");
    one.run(&["spawn", "free.md", "--on", "any"]).succeeds();
    let work = other.command(["work"]).start();
    wait_until("it was taken", || states(&one) == ["done"; 4]);
    work.signal(Signal::TERM);
    work.ends().succeeds();
    one.run(&["fsck"]).succeeds();
}

#[test]
fn a_pooler_that_the_address_does_not_name_is_suspected() {
    let Some(pooler) = pooler() else { return };
    let world = World::with_hooks().with("AGENT_CLI_STORE", format!("{}?pooler=statement", pooler.url));
    let refused = world.run(&["ls"]);
    assert!(refused.exits_with(2).stderr.contains("pooler must be session or transaction"), "{refused}");
    // A connection of the server on which nobody has set anything.
    let through = World::with_hooks().with("AGENT_CLI_STORE", format!("{}?pooler=transaction", pooler.url));
    through.run(&["ls"]).succeeds();
    postgres::execute(&pooler.url, "ALTER TABLE agent_cli.frames RENAME TO others");
    let refused = through.run(&["ls"]);
    assert!(refused.exits_with(1).stderr.contains("?pooler=transaction"), "{refused}");
}
