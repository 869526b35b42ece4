//! Hosts that share a PostgreSQL server, and are lost. Without `AGENT_CLI_TEST_SERVER`, these tests check nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::gate::wait_until;
use crate::network::Network;
use crate::postgres;
use crate::skewed_clock::off_by;
use crate::world::{World, write_config};

/// Two hosts with a short lease. The projects are in directories that both have.
fn hosts() -> Option<[World; 2]> {
    std::env::var_os("AGENT_CLI_TEST_SERVER")?;
    let url = postgres::new_database();
    let hosts = [(); 2].map(|()| World::with_hooks().with("AGENT_CLI_STORE", &url));
    hosts.iter().for_each(|host| drop(write_config(host, "lease = \"2s\"\n")));
    Some(hosts)
}

/// Declares the projects as shared.
fn share(hosts: &[World; 2]) {
    let [one, other] = hosts.each_ref().map(|host| host.project().display().to_string());
    for host in hosts {
        write_config(host, &format!("lease = \"2s\"\nshared-directories = [\"{one}\", \"{other}\"]\n"));
    }
}

fn name(host: &World) -> String {
    fs::read_to_string(host.state().join("host")).expect("it has a name").trim().to_owned()
}

/// What `seen_by` knows about a host.
fn seen(seen_by: &World, host: &str) -> Value {
    let listed = seen_by.run(&["hosts", "--json"]).succeeds().json();
    let hosts = listed.as_array().expect("a list").clone();
    hosts.into_iter().find(|it| it["host"] == host).unwrap_or_default()
}

fn lease_ends(seen_by: &World, host: &str) {
    wait_until("its lease ends", || seen(seen_by, host)["lease_ends"].is_null());
}

/// The machine is gone, with everything on it but the project.
fn is_lost(host: &World) {
    fs::remove_dir_all(host.state()).expect("it can be removed");
    fs::remove_dir_all(host.home().join(".claude")).expect("it can be removed");
}

fn state(world: &World) -> String {
    let listed = world.run(&["ls", "--all", "--all-projects", "--json"]).json();
    listed[0]["state"].as_str().expect("a word").to_owned()
}

#[test]
fn a_chain_in_a_shared_directory_continues_when_its_host_is_lost() {
    let Some(hosts) = hosts() else { return };
    share(&hosts);
    let [one, other] = hosts;
    one.file("root.md", "run echo begun >> marks\nask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    let lost = name(&one);
    is_lost(&one);
    other.answer("tomorrow");
    lease_ends(&other, &lost);
    assert_eq!(state(&other), "can_continue");
    // It may only have had nothing to run, until it was not seen for long.
    wait_until("it is done", || {
        other.run(&["resume", "--all"]).succeeds();
        state(&other) == "done"
    });
    assert_eq!((seen(&other, &lost)["chains"].clone(), other.starts()), (0.into(), 1));
    other.run(&["fsck"]).succeeds();
    assert_eq!(one.marks(), "begun\n", "it has continued its conversation");
    assert!(other.kept(&id).is_file());
}

#[test]
fn a_chain_elsewhere_continues_when_a_person_forgets_its_host() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    other.answer("tomorrow");
    let lost = name(&one);
    let refused = other.run(&["hosts", "forget", &lost, "--yes"]);
    if seen(&other, &lost)["lease_ends"].is_string() {
        assert!(refused.exits_with(1).stderr.contains("is in use"), "{refused}");
    }
    lease_ends(&other, &lost);
    assert!(other.run(&["resume", "--all"]).succeeds().stdout.is_empty());
    let refused = other.run(&["resume", &id]);
    assert!(refused.exits_with(1).stderr.contains(&format!("agent-cli hosts forget {lost}")), "{refused}");
    let asked = other.run(&["hosts", "forget", &lost]);
    assert!(asked.exits_with(2).stderr.contains("--yes"), "{asked}");
    let forgotten = other.run(&["hosts", "forget", &lost, "--yes", "--json"]).json();
    assert_eq!(forgotten["chains"], 1);
    is_lost(&one);
    other.run(&["resume", &id]).prints("tomorrow");
    assert!(other.run(&["hosts", "forget", &lost, "--yes"]).exits_with(2).stderr.contains("there is no host"));
}

#[test]
fn an_answer_for_a_chain_elsewhere_says_where_it_continues() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    let question = other.question();
    for options in [&[][..], &["--replace", "--resume"]] {
        let answered = other.run(&[&["answer", &question, "tomorrow"], options].concat());
        assert_eq!((answered.code(), answered.stdout.as_str()), (Some(0), ""), "{answered}");
        assert!(answered.stderr.contains(&format!("run on the host {}, where it continues", name(&one))), "{answered}");
    }
    one.run(&["resume", &id]).prints("tomorrow");
}

#[test]
fn a_host_whose_clock_is_years_off_starts_nothing() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    let wrong = off_by("+1100d").into_iter().fold(other, |world, (name, value)| world.with(name, value));
    wrong.file("root.md", "reply ok\n");
    let refused = wrong.run(&["spawn", "root.md"]);
    assert!(
        refused.exits_with(1).stderr.contains("the clock of this host is 1100 d ahead of the server's"),
        "{refused}"
    );
    assert!(refused.stderr.contains("timedatectl"), "{refused}");
    assert_eq!(wrong.starts(), 0);
    wrong.answer("tomorrow");
    one.run(&["resume", &id]).prints("tomorrow");
    // The chain starts when the clock has been set.
    let right = off_by("+0").into_iter().fold(wrong, |world, (name, value)| world.with(name, value));
    right.run(&["resume", "--all"]).succeeds();
    assert_eq!(right.starts(), 1);
}

#[test]
fn nothing_expires_on_a_host_whose_clock_is_off() {
    let Some(hosts) = hosts() else { return };
    share(&hosts);
    let [one, other] = hosts;
    one.file("root.md", "run agent-cli ask 'When?' --default never --expires 3d ++ wait --for 5d\nreply {results}\n");
    let id = one.spawn_paused("root.md");
    let wrong = off_by("+30d").into_iter().fold(one, |world, (name, value)| world.with(name, value));
    for command in [&["resume", &id][..], &["resume", "--all"], &["questions"], &["ls"], &["gc"], &["fsck"]] {
        wrong.run(command);
    }
    let open = other.run(&["questions", "--all-projects", "--json"]).succeeds().json();
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    assert!(open[0]["expired"].is_null() && open[0]["answer"].is_null(), "{open}");
    other.answer("tomorrow");
    assert_eq!(state(&other), "waits");
}

#[test]
fn an_agent_is_told_that_its_host_was_lost() {
    let Some(hosts) = hosts() else { return };
    share(&hosts);
    let [one, other] = hosts;
    let gate = one.gate("gate");
    one.file("root.md", "ask When?\nrun echo {result} >> marks\nhold gate\nreply ok\n");
    let id = one.spawn_paused("root.md");
    one.answer("tomorrow");
    let resume = one.command(["resume", &id]).start();
    gate.reached_by(1);
    let lost = name(&one);
    let claude = one.log().starts.last().expect("it runs").pid;
    resume.signal(Signal::KILL);
    resume.ends();
    // Nobody else could end it.
    wait_until("claude ends with its runner", || !Path::new(&format!("/proc/{claude}/stat")).exists());
    assert_eq!(seen(&other, &lost)["agents"], 1);
    lease_ends(&other, &lost);
    assert_eq!(seen(&other, &lost)["state"], "lost");
    is_lost(&one);
    gate.open_for_one();
    let done = other.run(&["resume", &id]);
    assert!(done.succeeds().stdout.ends_with("ok\n"), "{done}");
    assert_eq!(one.marks(), "tomorrow\ntomorrow\n", "its turn is done again");
    let prompt = other.log().starts[0].prompt.clone();
    assert!(prompt.contains(&format!("the host {lost}, on which you worked, was lost")), "{prompt}");
    other.run(&["fsck"]).succeeds();
}

#[test]
fn an_agent_ends_although_its_guard_was_killed_with_its_runner() {
    let Some([one, _]) = hosts() else { return };
    let gate = one.gate("gate");
    one.file("root.md", "hold gate\nreply ok\n");
    let spawn = one.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let claude = one.log().starts[0].pid;
    let stat = fs::read_to_string(format!("/proc/{claude}/stat")).expect("it runs");
    let above = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).expect("it has a parent");
    let guard = rustix::process::Pid::from_raw(above.parse().expect("a number")).expect("its guard");
    let send = |signal| rustix::process::kill_process(guard, signal).expect("it runs");
    send(Signal::STOP);
    spawn.signal(Signal::KILL);
    spawn.ends();
    send(Signal::KILL);
    wait_until("claude ends", || !Path::new(&format!("/proc/{claude}/exe")).exists());
    gate.open_for_one();
}

#[test]
fn a_paused_chain_of_a_lost_host_continues_when_it_is_resumed() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    one.run(&["pause", &id]).succeeds();
    let lost = name(&one);
    lease_ends(&other, &lost);
    let refused = other.run(&["resume", &id]);
    assert!(refused.exits_with(1).stderr.contains(&format!("agent-cli hosts forget {lost}")), "{refused}");
    other.run(&["hosts", "forget", &lost, "--yes"]).succeeds();
    other.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(state(&other), "asks");
    other.answer("tomorrow");
    other.run(&["resume", &id]).prints("tomorrow");
}

#[test]
fn a_chain_whose_host_was_lost_while_its_agent_worked_is_not_shown_as_working_when_it_is_resumed() {
    let Some([one, other]) = hosts() else { return };
    let gate = one.gate("gate");
    one.file("root.md", "hold gate\nreply ok\n");
    let spawn = one.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let (lost, id) = (name(&one), one.session(0));
    spawn.signal(Signal::KILL);
    spawn.ends();
    lease_ends(&other, &lost);
    let refused = other.run(&["resume", &id]);
    assert!(refused.exits_with(1).stderr.contains(&format!("agent-cli hosts forget {lost}")), "{refused}");
}

#[test]
fn what_needs_files_of_another_host_says_where_they_are() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    other.file("fork.md", "reply ok\n");
    let id = one.spawn_paused("root.md");
    let host = name(&one);
    for words in [&["export", &id][..], &["open", &id], &["spawn", "fork.md", "--fork-from", &id]] {
        let refused = other.run(words);
        refused.exits_with(1);
        assert!(refused.stdout.is_empty() && refused.stderr.contains(&format!("run on the host {host}")), "{refused}");
    }
    assert_eq!(other.run(&["ls", "--all", "--all-projects", "--json"]).json().as_array().expect("a list").len(), 1);
    let wrong = other.run(&["spawn", "fork.md", "--on", "any,gpu"]);
    assert!(wrong.exits_with(2).stderr.contains("`any` stands alone"), "{wrong}");
}

#[test]
fn labels_choose_the_host_of_a_chain_that_nobody_runs_yet() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "reply ok\n");
    let id = one.run(&["spawn", "root.md", "--on", "gpu"]).succeeds().stdout.trim().to_owned();
    one.run(&["resume", "--all"]).succeeds();
    assert_eq!((state(&one), one.starts()), ("can_continue".to_owned(), 0));
    let refused = one.run(&["resume", &id]);
    assert!(refused.exits_with(1).stderr.contains("does not have the label gpu"), "{refused}");
    let work = other.command(["work", "--labels", "big,gpu"]).start();
    wait_until("it is done", || state(&one) == "done");
    assert_eq!(seen(&one, &name(&other))["labels"], serde_json::json!(["big", "gpu"]));
    work.signal(Signal::TERM);
    assert!(work.ends().succeeds().stdout.contains("done: ok"));
    assert_eq!((one.starts(), other.starts()), (0, 1));
    let wrong = one.run(&["spawn", "root.md", "--on", "a/b"]);
    assert!(wrong.exits_with(2).stderr.contains("is not a label"), "{wrong}");
}

#[test]
fn a_worker_that_is_asked_to_end_lets_its_agents_end_their_turns() {
    let Some([one, other]) = hosts() else { return };
    let gate = one.gate("gate");
    one.file("root.md", "hold gate\nrun echo worked >> marks\nask When?\nreply {result}\n");
    one.run(&["spawn", "root.md", "--on", "any"]).succeeds();
    let work = other.command(["work"]).start();
    gate.reached_by(1);
    work.signal(Signal::TERM);
    one.run(&["spawn", "root.md", "--on", "any"]).succeeds();
    gate.open_for_one();
    work.ends().succeeds();
    assert_eq!((one.marks(), other.starts()), ("worked\n".to_owned(), 1), "it took no other");
    assert_eq!(one.questions().len(), 1);
}

#[test]
fn a_chain_for_any_host_is_run_by_the_first_poll() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "reply ok\n");
    one.run(&["spawn", "root.md", "--on", "any"]).succeeds();
    assert!(other.run(&["resume", "--all"]).succeeds().stdout.contains("done: ok"));
    assert_eq!((one.starts(), other.starts()), (0, 1));
}

#[test]
fn a_drained_host_starts_nothing() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    let host = name(&one);
    other.run(&["hosts", "drain", &host]).succeeds();
    assert_eq!(seen(&other, &host)["state"], "draining");
    other.answer("tomorrow");
    let refused = one.run(&["resume", &id]);
    assert!(refused.stderr.contains("is being drained"), "{refused}");
    assert_eq!((state(&other), one.starts()), ("can_continue".to_owned(), 1));
    one.run(&["hosts", "undrain", &host[..host.len() - 2]]).succeeds();
    one.run(&["resume", &id]).prints("tomorrow");
    let unknown = one.run(&["hosts", "drain", "nobody"]);
    assert!(unknown.exits_with(2).stderr.contains("there is no host nobody"), "{unknown}");
}

#[test]
fn a_host_that_cannot_reach_the_server_ends_its_agents_before_others_continue_them() {
    let Some(url) = std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database()) else { return };
    let network = Network::of_a_host(&url);
    let one = World::with_hooks().within(network.enter()).with("AGENT_CLI_STORE", &network.url);
    let other = World::with_hooks().with("AGENT_CLI_STORE", &url);
    let hosts = [one, other];
    share(&hosts);
    let [one, other] = hosts;
    let gate = one.gate("gate");
    one.file("root.md", "ask When?\nhold gate\nrun echo worked >> marks\nreply ok\n");
    let id = one.spawn_paused("root.md");
    other.answer("tomorrow");
    let resume = one.command(["resume", &id]).start();
    gate.reached_by(1);
    let lost = name(&one);
    let claude = one.log().starts.last().expect("it runs").pid;
    network.is_down(true);
    let refused = other.run(&["resume", &id]);
    assert_eq!(other.starts(), 0, "its lease holds: {refused}");
    lease_ends(&other, &lost);
    assert!(!Path::new(&format!("/proc/{claude}/exe")).exists(), "claude was ended before");
    let second = other.command(["resume", &id]).start();
    gate.reached_by(2);
    gate.open_for_one();
    second.ends().prints("ok");
    assert!(other.log().starts[0].prompt.contains("tomorrow"), "the answer is delivered again");
    network.is_down(false);
    // It finds the chain as the other host has left it.
    resume.ends().prints("ok");
    assert_eq!(one.marks(), "worked\n", "nothing was done twice");
    let shown = other.run(&["show", &id, "--json"]).json();
    assert_eq!((&shown["state"], &shown["reply"]), (&"done".into(), &"ok".into()));
    one.run(&["fsck"]).succeeds();
    other.run(&["fsck"]).succeeds();
}

#[test]
fn an_agent_whose_start_is_confirmed_after_the_lease_does_not_run() {
    let Some(url) = std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database()) else { return };
    let network = Network::new(&url);
    let hosts = [&network.url, &url].map(|url| World::with_hooks().with("AGENT_CLI_STORE", url));
    share(&hosts);
    let [one, other] = hosts;
    let gate = one.gate("gate");
    one.file("root.md", "ask When?\nhold gate\nrun echo worked >> marks\nreply ok\n");
    let id = one.spawn_paused("root.md");
    let lost = name(&one);
    other.answer("tomorrow");
    let commit = Commit::of_attempts(&url);
    let resume = one.command(["resume", &id]).start();
    commit.is_reached();
    network.has_no_replies(true);
    commit.goes_on();
    lease_ends(&other, &lost);
    let second = other.command(["resume", &id]).start();
    gate.reached_by(1);
    // Another process of the same host gets a new lease.
    network.holds_replies_of_now(true);
    network.has_no_replies(false);
    let mut work = one.command(["work"]).start();
    wait_until("it has a lease again", || !seen(&other, &lost)["lease_ends"].is_null());
    network.holds_replies_of_now(false);
    gate.open_for_one();
    second.ends().prints("ok");
    resume.ends();
    work.signal(Signal::TERM);
    wait_until("it ends", || work.has_ended());
    assert_eq!((one.starts(), other.starts(), one.marks().as_str()), (1, 1, "worked\n"));
    one.run(&["fsck"]).succeeds();
}

/// Holds the commits that begin attempts.
struct Commit(tempfile::TempDir);

impl Commit {
    fn of_attempts(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        // The server runs as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        let at = folder.path().display();
        let held = format!(
            "CREATE FUNCTION public.held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               COPY (SELECT 1) TO '{at}/reached';
               WHILE pg_stat_file('{at}/open', true) IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP;
               RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER held AFTER INSERT ON agent_cli.attempts DEFERRABLE INITIALLY DEFERRED
               FOR EACH ROW EXECUTE FUNCTION public.held()"
        );
        postgres::execute(url, &held);
        Self(folder)
    }

    fn is_reached(&self) {
        wait_until("an attempt begins", || self.0.path().join("reached").exists());
    }

    fn goes_on(&self) {
        fs::write(self.0.path().join("open"), "").expect("it is writable");
    }
}

#[test]
fn an_agent_outlives_a_server_that_is_gone_for_less_than_its_lease() {
    let Some(url) = std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database()) else { return };
    let network = Network::new(&url);
    let world = World::with_hooks().with("AGENT_CLI_STORE", &network.url);
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply ok\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    network.refuses(true);
    postgres::end_connections(&url);
    spawn.says("retrying: ", 1);
    network.refuses(false);
    gate.open_for_one();
    assert!(spawn.ends().succeeds().stdout.ends_with("ok\n"));
    assert_eq!(world.starts(), 1, "it was not disturbed");
}

#[test]
fn whatever_step_a_host_dies_in_its_chain_goes_on() {
    for step in ["renew_lease", "keep_copies", "drain_host", "forget_host", "take_chain"] {
        for moment in ["before", "within", "after"] {
            let Some([one, other]) = hosts() else { return };
            let point = format!("{step}.{moment}");
            let killed = |host: &World, arguments: &[&str]| {
                let killed = host.command(arguments).with("AGENT_CLI_CRASH", &point).run();
                assert_ne!(killed.code(), Some(0), "{point}: {killed}");
            };
            one.file("root.md", "ask When?\nreply {result}\n");
            let is_of_agents = ["renew_lease", "keep_copies"].contains(&step);
            if is_of_agents {
                killed(&one, &["spawn", "root.md"]);
                wait_until("it asks", || {
                    one.run(&["resume", "--all"]);
                    !one.questions().is_empty()
                });
            } else {
                one.spawn_paused("root.md");
            }
            one.answer("tomorrow");
            let (id, host) = (one.session(0), name(&one));
            match step {
                "drain_host" => {
                    killed(&other, &["hosts", "drain", &host]);
                    other.run(&["hosts", "undrain", &host]).succeeds();
                }
                "forget_host" | "take_chain" => {
                    lease_ends(&other, &host);
                    let forget = ["hosts", "forget", &host, "--yes"];
                    if step == "forget_host" {
                        killed(&other, &forget);
                    }
                    other.run(&forget);
                    if step == "take_chain" {
                        killed(&other, &["resume", &id]);
                    }
                }
                _ => {}
            }
            let host = if ["forget_host", "take_chain"].contains(&step) { &other } else { &one };
            let done = host.run(&["resume", &id]);
            assert_eq!(done.stdout, "tomorrow\n", "{point}: {done}");
            host.run(&["fsck"]).succeeds();
        }
    }
}
