//! Chains that are recorded on a PostgreSQL server, which several state directories share. If `AGENT_CLI_TEST_SERVER` is set,
//! these tests start a server, and the other tests use one, too. Otherwise, these tests check nothing.

use std::fs;

use serde_json::Value;

use crate::gate::wait_until;
use crate::postgres;
use crate::world::World;

/// The address of an empty database.
fn server() -> Option<String> {
    std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database())
}

/// Two hosts that share a database.
fn hosts() -> Option<[World; 2]> {
    let url = server()?;
    Some([(); 2].map(|()| World::with_hooks().with("AGENT_CLI_STORE", &url)))
}

/// The states of all chains.
fn states(world: &World) -> Vec<String> {
    let listed = world.run(&["ls", "--all", "--all-projects", "--json"]).json();
    listed.as_array().expect("a list").iter().map(|chain| chain["state"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn a_chain_is_answered_anywhere_and_runs_where_its_files_are() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    let id = one.spawn_paused("root.md");
    assert_eq!(states(&other), ["asks"]);
    let host = fs::read_to_string(one.state().join("host")).expect("it has a name");
    other.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    other.answer("tomorrow");
    let by = other.run(&["history", "--all-projects", "--json"]).json()[0]["records"][0]["by"]["host"].clone();
    let answerer = fs::read_to_string(other.state().join("host")).expect("it has a name");
    assert_eq!((&by["name"], &by["database_user"]), (&answerer.trim().into(), &"agent".into()));
    let refused = other.run(&["resume", &id]);
    assert!(refused.exits_with(1).stderr.contains(&format!("run on the host {}", host.trim())), "{refused}");
    other.run(&["resume", "--all"]).succeeds();
    let refused = other.run(&["rm", &id, "--yes"]);
    assert!(refused.exits_with(1).stderr.contains("run on the host"), "{refused}");
    other.run(&["gc", "--older-than", "0s"]).succeeds();
    other.run(&["fsck"]).succeeds();
    assert_eq!((states(&other), other.starts()), (vec!["can_continue".to_owned()], 0));
    assert!(one.run(&["resume", "--all"]).succeeds().stdout.ends_with("done: tomorrow\n"));
    assert_eq!(states(&other), ["done"]);
    assert!(other.run(&["show", &id]).succeeds().stdout.contains("tomorrow"));
}

#[test]
fn an_agent_is_steered_from_another_host() {
    let Some([one, other]) = hosts() else { return };
    let gate = one.gate("gate");
    one.file("root.md", "run echo begun >> marks\nhold gate\nrun echo after >> marks\nreply ok\n");
    let spawn = one.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = one.session(0);
    assert_eq!(states(&other), ["working"]);
    // The other host does not take its runner for dead.
    other.run(&["resume", "--all"]).succeeds();
    assert_eq!(states(&other), ["working"]);
    let stop = other.command(["stop", &id]).start();
    wait_until("its runner knows", || {
        fs::read_to_string(one.state().join("frames").join(&id).join("stop")).is_ok_and(|text| text == "noticed")
    });
    gate.open_for_one();
    stop.ends().succeeds();
    spawn.ends();
    assert_eq!((states(&one), one.marks()), (vec!["stopped".to_owned()], "begun\n".to_owned()));
}

#[test]
fn an_agent_is_told_from_another_host_while_it_works() {
    let Some([one, other]) = hosts() else { return };
    let gate = one.gate("gate");
    one.file("root.md", "hold gate\nrun true\nreply ok\n");
    let spawn = one.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = one.session(0);
    other.run(&["tell", &id, "use the test server"]).succeeds();
    wait_until("its runner announces it", || one.state().join("frames").join(&id).join("message").exists());
    assert!(!other.state().join("frames").join(&id).exists());
    gate.open_for_one();
    spawn.ends().prints("ok");
    assert_eq!(one.starts(), 1, "it was told in its turn");
    assert!(!one.state().join("frames").join(&id).join("message").exists());
}

#[test]
fn a_watch_notices_what_is_answered_on_another_host() {
    let Some([one, other]) = hosts() else { return };
    one.file("root.md", "ask When?\nreply {result}\n");
    one.spawn_paused("root.md");
    let watch = one.command(["watch"]).start();
    wait_until("it watches", || one.state().join("watching.lock").exists());
    other.answer("tomorrow");
    wait_until("it has continued", || states(&other) == ["done"]);
    watch.signal(rustix::process::Signal::TERM);
    watch.ends();
}

#[test]
fn a_connection_that_ends_is_made_again() {
    let Some(url) = server() else { return };
    let world = World::with_hooks().with("AGENT_CLI_STORE", &url);
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nask When?\nreply {result}\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    postgres::end_connections(&url);
    gate.open_for_one();
    spawn.ends().succeeds();
    let watch = world.command(["watch"]).start();
    wait_until("it watches", || world.state().join("watching.lock").exists());
    postgres::end_connections(&url);
    world.answer("tomorrow");
    wait_until("it has continued", || states(&world) == ["done"]);
    watch.signal(rustix::process::Signal::TERM);
    watch.ends().succeeds();
}

#[test]
fn a_state_directory_is_moved_with_everything_in_it() {
    let Some(url) = server() else { return };
    let world = World::with_hooks().without("AGENT_CLI_STORE");
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let before = world.run(&["show", &id, "--json"]).json();
    let refused = world.run(&["--store", &url, "ls"]);
    assert!(refused.exits_with(2).stderr.contains("agent-cli move --to"), "{refused}");
    insta::assert_snapshot!(world.run(&["move", "--to", "mysql://x/y"]), @r"
    --- stderr
    error: the address of the database is not valid: it does not begin with postgres://
    hint: psql accepts the same addresses: postgres://USER@HOST:PORT/DATABASE
    --- exit status: 2
    ");
    let moved = world.run(&["move", "--to", &url, "--json"]).json();
    assert_eq!((&moved["chains"], moved["store"].as_str().is_some()), (&Value::from(1), true));
    assert_eq!(world.run(&["move", "--to", &url, "--json"]).json()["chains"], 0);
    assert_eq!(world.run(&["show", &id, "--json"]).json(), before);
    world.answer("tomorrow");
    world.run(&["resume", &id]).prints("tomorrow");
    let elsewhere = world.run(&["--store", "postgres://ann@127.0.0.1/other", "ls"]);
    assert!(elsewhere.exits_with(2).stderr.contains("records its chains in"), "{elsewhere}");
}

#[test]
fn a_copy_of_a_state_directory_is_refused() {
    let Some([world, _]) = hosts() else { return };
    world.run(&["ls"]).succeeds();
    let file = world.state().join("server");
    let text = fs::read_to_string(&file).expect("it names the server");
    let lines: Vec<&str> = text.lines().collect();
    let refused = |world: &World| {
        let refused = world.run(&["resume", "--all"]);
        assert!(refused.exits_with(1).stderr.contains("is a copy of another one"), "{refused}");
    };
    let copy = World::with_hooks().without("AGENT_CLI_STORE");
    fs::create_dir_all(copy.state()).expect("writable");
    fs::copy(&file, copy.state().join("server")).expect("writable");
    refused(&copy);
    // Not every machine has an id.
    if !lines[2].is_empty() {
        fs::write(&file, format!("{}\n{}\nanother\n{}\n", lines[0], lines[1], lines[3])).expect("it can be written");
        refused(&world);
    }
    fs::remove_file(&file).expect("it is there");
    world.run(&["ls"]).succeeds();
    assert_eq!(fs::read_to_string(&file).expect("it was named again"), text);
    let moved = world.state().with_extension("moved");
    fs::rename(world.state(), &moved).expect("the same disk");
    fs::rename(&moved, world.state()).expect("the same disk");
    world.run(&["ls"]).succeeds();
}

#[test]
fn a_move_that_is_killed_is_repeated() {
    for step in ["set_server", "import"] {
        for moment in ["before", "within", "after"] {
            let Some(url) = server() else { return };
            let world = World::with_hooks().without("AGENT_CLI_STORE");
            world.file("root.md", "ask When?\nreply {result}\n");
            let id = world.spawn_paused("root.md");
            let killed =
                world.command(["move", "--to", &url]).with("AGENT_CLI_CRASH", &format!("{step}.{moment}")).run();
            assert_ne!(killed.code(), Some(0), "{step}.{moment}");
            assert_eq!(world.questions().len(), 1, "{step}.{moment}: it is in one place or the other");
            world.run(&["move", "--to", &url]).succeeds();
            world.answer("tomorrow");
            world.run(&["resume", &id]).prints("tomorrow");
            world.run(&["fsck"]).succeeds();
        }
    }
}

#[test]
fn a_server_that_cannot_be_used_is_named() {
    let Some(url) = server() else { return };
    let said = |url: &str| {
        let world = World::new().with("AGENT_CLI_STORE", url);
        world.run(&["ls"]).exits_with(1).stderr.lines().next().unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!(
        said("postgres://ann@127.0.0.1:9/chains"),
        @"error: cannot use the database postgres://ann@127.0.0.1:9/chains: error connecting to server: Connection refused (os error 111)"
    );
    postgres::execute(&url, "CREATE SCHEMA agent_cli");
    assert!(said(&url).contains("is not a database of agent-cli"), "{}", said(&url));
    let newer = postgres::new_database();
    World::new().with("AGENT_CLI_STORE", &newer).run(&["ls"]).succeeds();
    postgres::execute(&newer, "COMMENT ON SCHEMA agent_cli IS 'agent-cli 99'");
    assert!(said(&newer).contains("has version 99"), "{}", said(&newer));
    let read_only = postgres::new_database();
    World::new().with("AGENT_CLI_STORE", &read_only).run(&["ls"]).succeeds();
    let name = read_only.rsplit('/').next().expect("a name");
    postgres::execute(&read_only, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let world = World::new().with("AGENT_CLI_STORE", &read_only);
    world.file("root.md", "reply ok\n");
    let refused = world.run(&["spawn", "root.md"]);
    assert!(refused.exits_with(1).stderr.contains("read-only transaction"), "{refused}");
    assert!(said(&read_only.replace("postgres://agent@", "postgres://nobody@")).contains("nobody"));
}
