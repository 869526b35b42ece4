//! Commands of a person that run when something happens.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::world::{World, write_config};

/// Adds a line to a file in the home directory: the event, then the object. Commands run in parallel, so it is written at once.
const RECORD: &str = r#"object=$(cat); printf '%s %s\n' \"$AGENT_CLI_EVENT\" \"$object\" >> \"$HOME/told\""#;

fn config_path(world: &World) -> PathBuf {
    world.home().join(".config/agent-cli/config.toml")
}

fn configure(world: &World, on: &str) {
    write_config(world, &format!("[on]\n{on}"));
}

/// The input of the commands: events and objects, in order.
fn notified(world: &World) -> Vec<(String, Value)> {
    let text = fs::read_to_string(world.home().join("told")).unwrap_or_default();
    let line = |line: &str| {
        let (event, object) = line.split_once(' ').expect("an event and an object");
        (event.to_owned(), serde_json::from_str(object).expect("JSON"))
    };
    text.lines().map(line).collect()
}

fn events(world: &World) -> Vec<String> {
    notified(world).into_iter().map(|(event, _)| event).collect()
}

fn statuses(world: &World) -> Vec<String> {
    let listed = world.run(&["notifications", "--json"]).json();
    let status = |it: &Value| format!("{} {}", it["event"].as_str().unwrap(), it["status"].as_str().unwrap());
    listed.as_array().expect("a list").iter().map(status).collect()
}

/// Ends the pause after a failure.
fn pause_is_over(world: &World) {
    world
        .database()
        .execute("UPDATE notifications SET due = 0 WHERE status = 'pending'", [])
        .expect("it can be written");
}

/// Whether any process of a group is running. An ended one may remain if orphans are not reaped.
fn is_there(group: &str) -> bool {
    let listed = Command::new("ps").args(["-A", "-o", "pgid=,stat="]).output().expect("ps runs");
    let listed = String::from_utf8(listed.stdout).expect("it is text");
    listed
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .any(|(of, state)| of == group && !state.trim().starts_with('Z'))
}

fn asking() -> World {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    world
}

#[test]
fn a_question_and_the_end_are_reported_once() {
    let world = asking();
    configure(&world, &format!("question = \"{RECORD}\"\ndone = \"{RECORD}\"\n"));
    let root = world.spawn_paused("root.md");
    let question = world.question();
    let (event, object) = notified(&world).remove(0);
    assert_eq!((event.as_str(), &object["version"], &object["failures"]), ("question", &1.into(), &0.into()));
    assert_eq!((&object["message"], &object["question"]["ask"]["question"]), (&"When?".into(), &"When?".into()));
    assert_eq!((&object["question"]["id"], &object["chain"]["id"]), (&question.clone().into(), &root.clone().into()));
    assert_eq!(object["chain"]["cwd"], world.project().to_str().unwrap());
    world.run(&["resume", &root]).prints("SGN_PEND_ONGOING");
    world.answer("now");
    world.run(&["resume", "--all"]).succeeds();
    world.run(&["resume", &root]).prints("now");
    assert_eq!(events(&world), ["question", "done"]);
    assert_eq!(notified(&world)[1].1["reply"], "now");
    insta::assert_snapshot!(world.run(&["notifications"]), @"
    EVENT     CHAIN     WHEN
    question  [ID1:8]  [AGE] ago  sent
    done      [ID1:8]  [AGE] ago  sent
    --- exit status: 0
    ");
    world.command(["notifications"]).on_terminal(40).succeeds();
}

#[test]
fn an_approval_a_limit_a_budget_and_a_failure_are_reported() {
    let world = World::with_hooks();
    let all = ["question", "approval", "done", "failed", "limit", "budget"];
    configure(&world, &all.map(|event| format!("{event} = \"{RECORD}\"\n")).concat());
    world.file("plan.md", "call ExitPlanMode {\"plan\": \"# The plan\"}\nend done\n");
    world.run(&["spawn", "plan.md", "--permission-mode", "plan"]).started();
    assert_eq!(notified(&world)[0].1["message"], "ExitPlanMode: # The plan");
    world.file("limit.md", "limit 4102444800\nreply ok\n");
    world.run(&["spawn", "limit.md"]).started();
    world.file("fail.md", "run true\nfail max turns\n");
    world.run(&["spawn", "fail.md"]).exits_with(1);
    assert!(notified(&world)[2].1["why"].as_str().unwrap().contains("max turns"));
    world.file("dear.md", "reply ok\n");
    world.run(&["spawn", "dear.md", "--max-budget-usd", "0.01"]).succeeds();
    let mut last = events(&world);
    assert_eq!(last.drain(..3).collect::<Vec<_>>(), ["approval", "limit", "failed"]);
    // Commands run side by side.
    last.sort();
    assert_eq!(last, ["budget", "done"]);
}

#[test]
fn a_silent_agent_is_reported_while_it_is_silent() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    configure(&world, &format!("stalled = \"{RECORD}\"\n"));
    let spawn = world.command(["spawn", "root.md", "--stall-after", "1s"]).start();
    gate.reached_by(1);
    crate::gate::wait_until("somebody is told", || events(&world) == ["stalled"]);
    let (_, object) = notified(&world).remove(0);
    assert!(object["message"].as_str().unwrap().starts_with("no event since "), "{object}");
    gate.open_for_one();
    spawn.ends().prints("done");
    assert_eq!(events(&world), ["stalled"], "once for one silence");
}

#[test]
fn watch_tells_at_once_what_others_record() {
    let world = asking();
    configure(&world, &format!("question = \"{RECORD}\"\n"));
    let elsewhere = world.project().join("nobody");
    // The database exists, and contains a subscription.
    world.spawn_paused("root.md");
    let watch = world.command(["watch"]).start();
    world.command(["spawn", "root.md"]).with("HOME", elsewhere.to_str().unwrap()).run().started();
    crate::gate::wait_until("somebody is told", || events(&world).len() == 2);
    watch.signal(rustix::process::Signal::INT);
    watch.ends().succeeds();
    assert_eq!(statuses(&world), ["question sent", "question sent"]);
}

#[test]
fn watch_does_what_the_config_file_says_now() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let watch = world.command(["watch"]).start();
    crate::gate::wait_until("it watches", || world.state().join("agent-cli.db").exists());
    let subscribed = || {
        let sql = "SELECT coalesce(group_concat(event), '') FROM subscription";
        world.database().query_row(sql, [], |row| row.get::<_, String>(0)).expect("it can be read")
    };
    configure(&world, &format!("done = \"{RECORD}\"\n"));
    crate::gate::wait_until("it has read the file", || subscribed() == "done");
    world.file("ask.md", "ask When?\nreply ok\n");
    world.spawn_paused("ask.md");
    configure(&world, "done = \n");
    world.answer("now");
    crate::gate::wait_until("the former command counts", || events(&world) == ["done"]);
    configure(&world, &format!("failed = \"{RECORD}\"\n"));
    crate::gate::wait_until("it has read it again", || subscribed() == "failed");
    fs::remove_file(config_path(&world)).expect("it is there");
    crate::gate::wait_until("it has noticed that it is gone", || subscribed().is_empty());
    watch.signal(rustix::process::Signal::TERM);
    let ended = watch.ends();
    assert!(ended.stderr.matches("is not TOML").count() <= 1, "{ended}");
}

#[test]
fn hostile_text_is_data() {
    let world = World::new();
    let hostile = "$(touch pwned) `touch pwned`; touch pwned \u{1b}]0;x\u{7} -- --help '\" && touch pwned";
    world.file("root.md", format!("ask {hostile}\n"));
    let record = r#"printf '%s\n' \"$AGENT_CLI_MESSAGE\" > said; cat > object"#;
    configure(&world, &format!("question = \"{record}\"\n"));
    world.spawn_paused("root.md");
    let folder = config_path(&world).with_file_name("");
    let said = fs::read_to_string(folder.join("said")).expect("the command ran beside the config file");
    assert!(said.starts_with("$(touch pwned) `touch pwned`; touch pwned \\u{1b}]0;x\\u{7} --"), "{said}");
    let object: Value = serde_json::from_str(&fs::read_to_string(folder.join("object")).unwrap()).expect("JSON");
    assert_eq!(object["question"]["ask"]["question"], hostile);
    assert!(!folder.join("pwned").exists() && !world.project().join("pwned").exists());
}

#[test]
fn what_commands_are_told_has_no_character_that_hides_or_moves_others() {
    let world = World::new();
    let hidden = "a\u{9b}2J\u{85}b\u{202e}c\u{200b}d\u{feff}e\u{2066}f";
    world.file("root.md", format!("ask {hidden}\n"));
    configure(&world, "question = \"cat > object\"\n");
    world.spawn_paused("root.md");
    let object = fs::read_to_string(config_path(&world).with_file_name("object")).expect("the command ran");
    let raw: Vec<_> = object.chars().filter(|c| !c.is_ascii()).collect();
    assert!(raw.is_empty(), "{raw:?} in {object:?}");
    let object: Value = serde_json::from_str(&object).expect("JSON");
    assert_eq!(object["question"]["ask"]["question"], hidden);
}

#[test]
fn a_command_that_fails_is_run_again_and_stops_nothing() {
    let world = asking();
    configure(&world, "question = \"echo no such phone >&2; exit 3\"\n");
    let root = world.spawn_paused("root.md");
    assert_eq!(statuses(&world), ["question pending"]);
    let listed = world.run(&["notifications"]).stdout;
    assert!(listed.contains("failed, next try in ") && listed.contains(": exit status 3: no such phone"), "{listed}");
    let doctor = world.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("warning  notifications: 1 of the newest 1 could not be sent; the last, of question:"),
        "{doctor}"
    );
    world.run(&["resume", &root]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.run(&["notifications", "--json"]).json()[0]["failures"], 1, "its pause is not over");
    configure(&world, &format!("question = \"{RECORD}\"\n"));
    pause_is_over(&world);
    world.run(&["resume", &root]).prints("SGN_PEND_ONGOING");
    assert_eq!((events(&world), statuses(&world)), (vec!["question".to_owned()], vec!["question sent".to_owned()]));
    assert_eq!(notified(&world)[0].1["failures"], 1);
    let doctor = world.run(&["doctor"]).stdout;
    assert!(!doctor.contains("could not be sent"), "it was sent in the end: {doctor}");
}

#[test]
fn what_has_been_answered_by_then_is_not_reported() {
    let world = asking();
    configure(&world, "question = \"exit 1\"\n");
    let root = world.spawn_paused("root.md");
    configure(&world, &format!("question = \"{RECORD}\"\n"));
    world.answer("now");
    pause_is_over(&world);
    world.run(&["resume", &root]).prints("now");
    assert_eq!((events(&world), statuses(&world)), (vec![], vec!["question outdated".to_owned()]));
}

#[test]
fn a_command_that_hangs_floods_forks_or_does_not_exist_is_ended() {
    for (command, why) in [
        ("sleep 600 & echo $$ > pid; sleep 600", "killed after 1 s"),
        ("echo $$ > pid; trap '' TERM; yes; sleep 600", "killed after 1 s"),
        ("echo $$ > pid; yes >&2", "killed after 1 s: y"),
        ("echo $$ > pid; no-such-program", "exit status 127: "),
        ("echo $$ > pid; kill -9 $$", "killed by signal 9"),
    ] {
        let world = asking();
        configure(&world, &format!("question = \"{command}\"\ntimeout = \"1s\"\n"));
        world.spawn_paused("root.md");
        let listed = world.run(&["notifications", "--json"]).json();
        assert!(listed[0]["why"].as_str().unwrap().starts_with(why), "{command}: {listed}");
        let pid = fs::read_to_string(config_path(&world).with_file_name("pid")).expect("it ran");
        crate::gate::wait_until("its whole group is gone", || !is_there(pid.trim()));
        world.run(&["ls"]).succeeds();
    }
}

#[test]
fn what_a_command_leaves_running_on_purpose_is_not_waited_for() {
    let world = asking();
    configure(&world, &format!("question = \"sleep 5 & {RECORD}\"\n"));
    world.spawn_paused("root.md");
    assert_eq!(statuses(&world), ["question sent"]);
}

#[test]
fn nothing_is_recorded_without_a_config_file_and_nothing_any_more_once_it_is_gone() {
    let world = asking();
    world.spawn_paused("root.md");
    assert_eq!(statuses(&world), Vec::<String>::new());
    configure(&world, "question = \"exit 1\"\n");
    world.spawn_paused("root.md");
    assert_eq!(statuses(&world), ["question pending"]);
    fs::remove_file(config_path(&world)).expect("it is there");
    world.spawn_paused("root.md");
    assert_eq!(statuses(&world), ["question outdated"]);
}

#[test]
fn a_process_that_cannot_see_the_config_file_leaves_it_all_to_others() {
    let world = asking();
    configure(&world, &format!("question = \"exit 1\"\ndone = \"{RECORD}\"\n"));
    let root = world.spawn_paused("root.md");
    world.answer("now");
    let elsewhere = world.project().join("nobody");
    world.command(["resume", &root]).with("HOME", elsewhere.to_str().unwrap()).run().prints("now");
    assert_eq!(statuses(&world), ["question pending", "done pending"]);
    world.run(&["resume", &root]).prints("now");
    assert_eq!(events(&world), ["done"]);
}

#[test]
fn no_process_of_an_agent_runs_a_command_or_takes_a_notification_away() {
    let world = asking();
    configure(&world, &format!("question = \"exit 1\"\ndone = \"{RECORD}\"\n"));
    let first = world.spawn_paused("root.md");
    pause_is_over(&world);
    let evil = world.file("evil.toml", "[on]\nquestion = \"touch pwned\"\ndone = \"touch pwned\"\n");
    fs::set_permissions(&evil, Permissions::from_mode(0o600)).expect("it is ours");
    fs::set_permissions(world.project(), Permissions::from_mode(0o700)).expect("it is ours");
    let (state, evil) = (world.state().display().to_string(), evil.display().to_string());
    let own = env!("CARGO_BIN_EXE_agent-cli");
    let agent = format!(
        "run AGENT_CLI_CONFIG={evil} agent-cli resume {first}\n\
         run AGENT_CLI_CONFIG={evil} agent-cli resume --all\n\
         run env -i PATH=$PATH HOME=/ AGENT_CLI_CONFIG={evil} AGENT_CLI_STATE_DIR={state} {own} resume {first}\n\
         run env -i PATH=$PATH HOME=/ AGENT_CLI_CONFIG={evil} AGENT_CLI_STATE_DIR={state} {own} notifications --test done\n\
         run AGENT_CLI_CONFIG={evil} agent-cli watch\nreply over\n"
    );
    world.file("agent.md", agent);
    // Its runner has no config file, so due notifications remain for another process.
    let elsewhere = world.home().join("nobody");
    world.command(["spawn", "agent.md"]).with("HOME", elsewhere.to_str().unwrap()).run().prints("over");
    for folder in [world.project(), config_path(&world).with_file_name("")] {
        assert!(!folder.join("pwned").exists(), "an agent has run a command");
    }
    assert_eq!(statuses(&world), ["question pending", "done pending"]);
    assert_eq!(world.run(&["notifications", "--json"]).json()[0]["failures"], 1);
    configure(&world, &format!("question = \"{RECORD}\"\ndone = \"{RECORD}\"\n"));
    world.run(&["resume", &first]).prints("SGN_PEND_ONGOING");
    let mut told = events(&world);
    told.sort();
    assert_eq!(told, ["done", "question"], "nothing was lost");
}

#[test]
fn a_config_file_that_cannot_be_used_starts_no_chain_and_stops_none() {
    let world = asking();
    let root = world.spawn_paused("root.md");
    configure(&world, &format!("done = \"{RECORD}\"\n"));
    let others_can_write = |world: &World| {
        fs::set_permissions(config_path(world), Permissions::from_mode(0o666)).expect("it is ours");
    };
    others_can_write(&world);
    let refused = world.run(&["spawn", "root.md"]);
    refused.exits_with(2);
    let why = "can be written by others, so it is not used\nhint: chmod go-w ";
    assert!(refused.stderr.contains(why), "{refused}");
    assert!(world.run(&["doctor"]).stdout.contains("config.toml can be written by others"));
    world.answer("now");
    let resumed = world.run(&["resume", &root]);
    resumed.prints("now");
    assert!(resumed.stderr.contains(why), "{resumed}");
    assert_eq!(events(&world), Vec::<String>::new());
    write_config(&world, "[on]\nquesiton = 'x'\n");
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains("unknown key `quesiton` in [on]"), "{doctor}");
    for (text, why) in [("[on]\nquesiton = 'x'\n", "unknown key `quesiton`"), ("[on\n", "is not TOML: line 1")] {
        write_config(&world, text);
        let refused = world.run(&["spawn", "root.md"]);
        refused.exits_with(2);
        assert!(refused.stderr.contains(why), "{refused}");
        let resumed = world.run(&["resume", &root]);
        resumed.prints("now");
    }
}

#[test]
fn a_command_can_be_tried() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["notifications", "--test", "done"]), @"
    --- stderr
    error: there is no config file
    hint: write [HOME]/.config/agent-cli/config.toml; agent-cli notifications --help has an example
    --- exit status: 1
    ");
    configure(&world, &format!("done = \"{RECORD}\"\nfailed = \"exit 7\"\n"));
    world.run(&["notifications", "--test", "done"]).prints("the command for done succeeded");
    assert_eq!(notified(&world)[0].1["reply"], "this is only an example");
    insta::assert_snapshot!(world.run(&["notifications", "--test", "failed"]), @"
    --- stderr
    error: the command for failed failed: exit status 7
    hint: [HOME]/.config/agent-cli/config.toml has it
    --- exit status: 1
    ");
    configure(&world, "done = 5\nfailed = \"printf 'one\\n\\ntwo\\n' >&2; exit 7\"\n");
    let tried = world.run(&["notifications", "--test", "done"]);
    assert!(tried.stderr.contains("config.toml: `done` in [on] is not a string\nerror: "), "{tried}");
    let tried = world.run(&["notifications", "--test", "failed"]);
    assert!(tried.stderr.contains("the command for failed failed: exit status 7: one; two\n"), "{tried}");
    configure(&world, "failed = \"exit 7\"\n");
    let tried = world.run(&["notifications", "--test", "failed", "--json"]);
    assert_eq!((tried.code(), &tried.json()["why"]), (Some(1), &"exit status 7".into()));
    assert_eq!(world.run(&["notifications", "--test", "limit"]).code(), Some(1));
    insta::assert_snapshot!(world.run(&["notifications"]), @"
    --- stderr
    no notifications
    --- exit status: 0
    ");
}
