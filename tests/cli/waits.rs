//! Waits for something outside of the chain.

use rustix::process::Signal;

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
    [ID1:8] waits for the time [TIME]
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
      <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>>

    Usage: agent-cli wait <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>>

    For more information, try '--help'.
    --- exit status: 0
    ");
    insta::assert_snapshot!(refused("--file a --for 1s"), @r"
    Exit code 2
    error: the argument '--file <PATH>' cannot be used with '--for <DURATION>'

    Usage: agent-cli wait <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>>

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
