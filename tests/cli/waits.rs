//! Waits for something outside of the chain.

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

fn waiting(wait: &str) -> (World, String) {
    let world = World::new();
    world.file("root.md", format!("wait {wait}\nreply over\n"));
    let id = world.spawn_paused("root.md");
    (world, id)
}

#[test]
fn a_file_is_waited_for_without_a_start() {
    let (world, id) = waiting("--file sign");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1);
    world.file("sign", "");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_command_is_waited_for_where_the_agent_works() {
    let (world, id) = waiting("--command 'test -e sign'");
    world.command(["resume", &id]).within(&world.home()).run().prints("SGN_PEND_ONGOING");
    world.file("sign", "");
    world.command(["resume", &id]).within(&world.home()).run().prints("over");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_time_that_has_come_is_over_at_once() {
    let world = World::new();
    world.file("root.md", "wait --until 2000-01-01T00:00:00Z\nreply over\n");
    world.run(&["spawn", "root.md"]).prints("over");
}

#[test]
fn a_duration_ends() {
    let (world, id) = waiting("--for 1h");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.awaited_time_comes_sooner("59 minutes");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.awaited_time_comes_sooner("1 minute");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_time_far_away_is_waited_for() {
    let (world, id) = waiting("--until 2100-01-01T00:00:00Z");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for [TIME] (in [AGE])
    --- exit status: 0
    ");
}

#[test]
fn the_agent_is_told_what_is_over() {
    let (world, id) = waiting("--file sign");
    world.file("sign", "");
    world.run(&["resume", &id]).prints("over");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r"
    SGN_RESUME

    result of `agent-cli wait --file [PROJECT]/sign` ([ID2:8]):
    it exists: [PROJECT]/sign
    ");
}

#[test]
fn a_file_is_named_relative_to_where_the_agent_is() {
    let world = World::new();
    world.file("sub/other", "");
    world.file("root.md", "run cd sub && agent-cli wait --file sign\nreply over\n");
    let id = world.spawn_paused("root.md");
    world.file("sign", "");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("sub/sign", "");
    world.run(&["resume", &id]).prints("over");
}

#[test]
fn what_a_command_prints_is_not_what_the_program_prints() {
    let (world, id) = waiting("--command 'echo loud; echo louder >&2; test -e sign'");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    assert!(!outcome.stderr.contains("loud\n"), "{outcome}");
}

#[test]
fn ctrl_c_ends_a_command_that_takes_long() {
    let (world, id) = waiting("--command 'test -e begin && { echo held >> gate.held; read go < gate; }'");
    let gate = world.gate("gate");
    world.file("begin", "");
    let resume = world.command(["resume", &id]).start();
    gate.reached_by(1);
    resume.signal(Signal::INT);
    resume.ends().exits_with(130);
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_wait_that_makes_no_sense_is_refused() {
    let refused = |wait: &str| {
        let world = World::new();
        world.file("root.md", format!("wait {wait}\nreply {{result}}\n"));
        let outcome = world.run(&["spawn", "root.md"]);
        assert!(outcome.succeeds().stdout.starts_with("Exit code 2\n"), "{outcome}");
        outcome.to_string()
    };
    insta::assert_snapshot!(refused(""), @r"
    Exit code 2
    error: the following required arguments were not provided:
      <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>|--agent <AGENT>>

    Usage: agent-cli wait <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>|--agent <AGENT>>

    For more information, try '--help'.
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--file a --for 1s"), @r"
    Exit code 2
    error: there are several conditions
    hint: add --any to wait for the first of them, or --all to wait for all of them
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--file a --matches 'b('"), @r"
    Exit code 2
    error: `b(` is not a valid regular expression: unclosed group, at character 2
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--matches b --file a"), @r"
    Exit code 2
    error: --matches comes before the --file that it is about
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--file /etc/passwd --matches root"), @r"
    Exit code 2
    error: only files in [PROJECT] can be matched, and /etc/passwd is elsewhere
    hint: wait for the file without --matches, or with --command, which needs a permission
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--file a --any --command 'touch made'"), @r"
    Exit code 2
    error: --command is not the first option
    hint: agent-cli wait --command COMMAND …: commands need a permission of their own
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--command true --timeout-per-run 1h"), @r"
    Exit code 2
    error: --timeout-per-run is longer than 10 minutes
    hint: run longer commands in the background, and wait for a file that they write
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--until '2026-10-25T02:30[Europe/Berlin]'"), @r"
    Exit code 2
    error: invalid value '2026-10-25T02:30[Europe/Berlin]' for '--until <TIME>': the clocks change then: add the offset, for example 2026-10-25T02:30+01:00

    For more information, try '--help'.
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--until tomorrowish"), @"
    Exit code 2
    error: invalid value 'tomorrowish' for '--until <TIME>': give the date, the time and the zone, for example [TIME]

    For more information, try '--help'.
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--for ever"), @"
    Exit code 2
    error: invalid value 'ever' for '--for <DURATION>': give weeks, days, hours, minutes or seconds, for example 90s, 2h or 3d

    For more information, try '--help'.
    --- exit status: 0
    ");
}

/// An agent with hooks calls `agent-cli wait` and replies with its result.
fn returned(wait: &str) -> (World, String) {
    let world = World::with_hooks();
    world.file("root.md", format!("wait {wait}\nreply {{result}}\n"));
    let id = world.spawn_paused("root.md");
    (world, id)
}

fn state(world: &World, id: &str) -> String {
    let shown = world.run(&["show", id, "--json"]).json();
    let of = |condition: &serde_json::Value| condition["state"].as_str().expect("a text").to_owned();
    let conditions = shown["waiting_on"][0]["conditions"].as_array().expect("conditions");
    conditions.iter().map(of).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_content_of_a_file_is_waited_for() {
    let (world, id) = returned("--file status --matches '(?m)^done$'");
    assert_eq!(state(&world, &id), "does not exist yet");
    world.file("status", "do");
    let outcome = world.run(&["resume", &id]);
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for the file [PROJECT]/status to match `(?m)^done$` (exists, does not match yet)
    --- exit status: 0
    ");
    world.file("status", b"\xff\ndone\n");
    world.run(&["resume", &id]).prints(&format!("it matches: {}/status", world.project().display()));
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_link_that_is_put_there_later_shows_nothing_from_elsewhere() {
    let (world, id) = returned("--file status --matches secret");
    std::fs::write(world.home().join("keys"), "secret").expect("it can be written");
    std::os::unix::fs::symlink(world.home().join("keys"), world.project().join("status")).expect("it can be made");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(state(&world, &id), "is outside of the directory of its agent");
}

#[test]
fn the_first_of_several_conditions_is_named() {
    let (world, id) = returned("--file a --file b --for 1h --any");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("b", "");
    let b = world.project().join("b");
    world.run(&["resume", &id]).prints(&format!(
        "1 of 3 conditions is met:\n- `--file {}`: it exists: {}",
        b.display(),
        b.display()
    ));
}

#[test]
fn what_was_met_once_counts_for_all() {
    let (world, id) = returned("--all --file a --file b");
    world.file("a", "");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    std::fs::remove_file(world.project().join("a")).expect("it is there");
    assert!(state(&world, &id).starts_with("met "));
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("b", "");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains("all 2 conditions have been met"));
}

#[test]
fn a_command_is_run_at_its_interval_and_its_output_is_the_result() {
    let world = World::new();
    world.file("root.md", "wait --command 'echo >> tries; cat sign' --every 1h\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    let tries = || std::fs::read_to_string(world.project().join("tries")).expect("it was tried").lines().count();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("sign", "merged\nby dev\n");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    assert_eq!(tries(), 1);
    assert!(state(&world, &id).starts_with("exit status 1: cat: "), "{}", state(&world, &id));
    world.last_try_was_earlier("1 hour");
    let outcome = world.run(&["resume", &id]);
    assert!(outcome.succeeds().stdout.contains("merged\nby dev"), "{outcome}");
    assert_eq!(tries(), 2);
}

/// A parent that waits for its child with both of its commands.
fn waits_for_its_child(child: &str) -> World {
    let world = World::new();
    let id = "$(agent-cli tree | grep child.md | grep -o '[0-9a-f]\\{8\\}' | tail -1)";
    world.file("root.md", format!("spawn child.md &\nrun agent-cli wait --agent {id}\nreply {{results}}\n"));
    world.file("child.md", child);
    world
}

#[test]
fn the_end_of_an_agent_is_waited_for_and_its_reply_is_the_result() {
    let world = waits_for_its_child("ask When?\nreply at {result}\n");
    let id = world.spawn_paused("root.md");
    let outcome = world.run(&["tree", &id]);
    assert!(outcome.succeeds().stdout.contains("waits for its child, and for the end of "), "{outcome}");
    assert!(outcome.stdout.contains(", child.md (waiting)"), "{outcome}");
    world.answer("noon");
    let outcome = world.run(&["resume", &id]);
    assert!(outcome.succeeds().stdout.contains(" is done:\n\nat noon"), "{outcome}");
}

#[test]
fn an_agent_below_is_named_by_its_task() {
    let world = World::new();
    world.file("root.md", "spawn child.md &\nrun agent-cli wait --agent child.md\nreply {results}\n");
    world.file("child.md", "ask When?\nreply at {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("noon");
    let outcome = world.run(&["resume", &id]);
    assert!(outcome.succeeds().stdout.contains(" is done:\n\nat noon"), "{outcome}");
    world.file("two.md", "spawn child.md &\nspawn child.md &\nrun agent-cli wait --agent child.md 2> said\nreply ok\n");
    world.run(&["spawn", "two.md"]);
    let said = std::fs::read_to_string(world.project().join("said")).expect("it has run");
    assert!(said.starts_with("error: 2 agents have the task `child.md`: "), "{said}");
    assert!(said.contains("hint: name one of them by its id"), "{said}");
}

#[test]
fn the_end_of_an_agent_that_fails_is_its_end() {
    let world = waits_for_its_child("fail max turns\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains(" has failed:\n\nmax turns"), "{outcome}");
}

#[test]
fn an_agent_that_was_removed_has_ended() {
    let world = waits_for_its_child("ask When?\nreply at {result}\n");
    let id = world.spawn_paused("root.md");
    let database = world.database();
    let sql =
        "UPDATE requests SET detail = json_replace(detail, '$.wait.agent.id', '00000000-0000-4000-8000-000000000000')
               WHERE json_extract(detail, '$.wait.agent.id') IS NOT NULL";
    assert_eq!(database.execute(sql, []).expect("it can be written"), 1);
    world.answer("noon");
    let outcome = world.run(&["resume", &id]);
    assert!(outcome.succeeds().stdout.contains("00000000 was removed: it has no result"), "{outcome}");
}

#[test]
fn an_agent_does_not_wait_for_itself_or_for_those_above_it() {
    let refused = |wait: &str| {
        let world = World::new();
        world.file("root.md", "run printenv AGENT_CLI_AGENT_ID > parent\nspawn child.md\nreply {result}\n");
        world.file("child.md", format!("run agent-cli wait --agent {wait}\nreply {{result}}\n"));
        let outcome = world.run(&["spawn", "root.md"]);
        assert!(outcome.succeeds().stdout.starts_with("Exit code "), "{outcome}");
        world.named(&outcome.stdout)
    };
    insta::assert_snapshot!(refused("$AGENT_CLI_AGENT_ID"), @r"
    Exit code 2
    error: waiting for [ID1:8] would never end: it is the agent that waits, or one that waits for it
    hint: end your turn: that agent then gets your reply
    ");
    insta::assert_snapshot!(refused("$(cat parent)"), @r"
    Exit code 2
    error: waiting for [ID1:8] would never end: it is the agent that waits, or one that waits for it
    hint: end your turn: that agent then gets your reply
    ");
    insta::assert_snapshot!(refused("00000000"), @r"
    Exit code 3
    error: no agent or question matches `[ID1:8]`
    hint: an agent can reach only what it started: agent-cli tree shows it
    hint: for a chain that this session started before agent-cli took it over, give the full id
    ");
}

#[test]
fn who_looks_for_questions_is_told_what_else_is_waited_for() {
    let (world, id) = waiting("--file sign");
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    --- stderr
    no open questions
    hint: agent-cli ls shows what else chains wait for: times, files, commands, agents
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions", &id]), @r"
    --- stderr
    no open questions
    [ID1:8] waits for the file [PROJECT]/sign (does not exist yet)
    --- exit status: 0
    ");
}

#[test]
fn the_ids_of_other_chains_are_unknown_to_an_agent_that_waits() {
    let world = World::new();
    world.file("other.md", "ask When?\nreply x\n");
    let other = world.spawn_paused("other.md");
    world.file("root.md", format!("wait --agent {other}\nreply {{result}}\n"));
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains("no agent or question matches"), "{outcome}");
}

#[test]
fn watch_tries_a_command_at_its_interval_and_sees_a_file_that_begins_to_match() {
    let world = World::new();
    world.file("command.md", "wait --command 'test -e sign' --every 1s\nreply over\n");
    world.file("file.md", "wait --file status --matches done\nreply over\n");
    world.file("status", "not yet");
    let ids = ["command.md", "file.md"].map(|file| world.spawn_paused(file));
    let watch = world.command(["watch"]).start();
    world.file("sign", "");
    world.file("status", "done");
    for id in ids {
        wait_until("it is done", || world.run(&["show", &id, "--json"]).json()["status"] == "done");
    }
    watch.signal(Signal::TERM);
    watch.ends().succeeds();
}

#[test]
fn a_run_that_only_tries_commands_tries_each_once_however_long_it_takes() {
    let world = World::new();
    world.file("root.md", "wait --command 'echo x >> marks; sleep 2; exit 1' --every 1s\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    let tries = || world.marks().lines().count();
    assert_eq!(tries(), 1);
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(tries(), 2);
    world.run(&["resume", "--all"]).succeeds();
    assert_eq!(tries(), 3);
}

#[test]
fn what_a_killed_run_was_trying_does_not_run_beside_the_next_try() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file(
        "root.md",
        "wait --command 'test -e begin || exit 1; trap \"\" TERM INT HUP; echo $$ >> pids; read x < gate; echo done'\nreply {results}\n",
    );
    let id = world.spawn_paused("root.md");
    world.file("begin", "");
    let begun = || std::fs::read_to_string(world.project().join("pids")).unwrap_or_default();
    let resume = |tries: usize| {
        let resume = world.command(["resume", &id]).start();
        wait_until("the command runs", || begun().lines().count() == tries);
        resume
    };
    let killed = resume(1);
    killed.kill();
    killed.ends();
    let next = resume(2);
    let runs = |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    let pids = begun();
    let alive: Vec<&str> = pids.lines().filter(|pid| runs(pid)).collect();
    assert_eq!(alive, [pids.lines().last().expect("a pid")], "{pids}");
    gate.open_for_one();
    next.ends().prints("done");
}
