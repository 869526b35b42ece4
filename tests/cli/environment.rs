//! A chain that is started in one environment continues in another.

use std::fs;

use crate::executable::write_executable;
use crate::world::{World, files_below};

const SEEN: &str = "run echo \"$LANG|$TZ|$VIRTUAL_ENV|$ANTHROPIC_BASE_URL|$MAX_THINKING_TOKENS|$EDITOR|$SHELL\"";

/// A shell with many variables, and instructions that print them after a pause, on two levels.
fn world() -> World {
    let world = [
        ("LANG", "de_DE.UTF-8"),
        ("TZ", "Asia/Tokyo"),
        ("VIRTUAL_ENV", "/venv"),
        ("ANTHROPIC_BASE_URL", "http://gateway.example"),
        ("MAX_THINKING_TOKENS", "1000"),
        ("EDITOR", "vi"),
        ("SHELL", "/bin/zsh"),
        ("ANTHROPIC_API_KEY", "hunter2"),
        ("HTTPS_PROXY", "http://ann:hunter2@proxy"),
        ("ANTHROPIC_VERTEX_BASE_URL", "https://ann:hunter2@gateway.example"),
    ]
    .into_iter()
    .fold(World::new(), |world, (name, value)| world.with(name, value));
    world.file("child.md", format!("ask When?\n{SEEN}\nreply {{result}}\n"));
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world
}

/// The environment of cron.
fn under_cron(world: World) -> World {
    let names = ["LANG", "TZ", "VIRTUAL_ENV", "ANTHROPIC_BASE_URL", "MAX_THINKING_TOKENS", "EDITOR"];
    let secrets = ["ANTHROPIC_API_KEY", "HTTPS_PROXY", "ANTHROPIC_VERTEX_BASE_URL"];
    let world = names.into_iter().chain(secrets).fold(world, World::without);
    world.with("SHELL", "/bin/sh")
}

const RECORDED: &str = "de_DE.UTF-8|Asia/Tokyo|/venv|http://gateway.example|1000";

#[test]
fn what_matters_is_as_it_was_and_all_else_as_it_is() {
    let world = world();
    let id = world.spawn_paused("root.md");
    let world = under_cron(world);
    world.answer("now");
    world.run(&["resume", &id]).prints(&format!("{RECORDED}||/bin/zsh"));
    let launch = world.run(&["show", &id, "--json"]).json()["launch"].clone();
    assert_eq!(launch["environment"]["TZ"], "Asia/Tokyo");
}

#[test]
fn what_is_set_where_it_goes_on_counts() {
    let world = world();
    let id = world.spawn_paused("root.md");
    let world = under_cron(world).with("TZ", "UTC").with("VIRTUAL_ENV", "").with("EDITOR", "nano");
    world.answer("now");
    let expected = "de_DE.UTF-8|UTC||http://gateway.example|1000|nano|/bin/zsh";
    world.run(&["resume", &id]).prints(expected);
}

#[test]
fn no_secret_is_recorded() {
    let world = world();
    let id = world.spawn_paused("root.md");
    for file in files_below(&world.state()) {
        let found = fs::read(&file).expect("own file").windows(7).any(|part| part == b"hunter2");
        assert!(!found, "{}", file.display());
    }
    assert!(!world.run(&["export", &id]).stdout.contains("hunter2"));
}

#[test]
fn a_command_that_is_waited_for_has_it_too() {
    let world = world();
    let folder = world.home().join("bin");
    fs::create_dir(&folder).expect("writable");
    let script = folder.join("in-tokyo");
    write_executable(&script, "#!/bin/sh\n[ \"$TZ\" = Asia/Tokyo ]\n");
    world.file("root.md", "wait --command 'test -e sign && in-tokyo'\nreply over\n");
    let path = std::env::join_paths([folder, crate::programs::folder(), "/usr/bin".into(), "/bin".into()]);
    let path = path.expect("no colon").into_string().expect("UTF-8");
    let id = world.command(["spawn", "root.md"]).with("PATH", &path).run().started();
    world.file("sign", "");
    under_cron(world).run(&["resume", &id]).prints("over");
}

#[test]
fn an_imported_chain_has_that_of_the_shell_that_imports_it() {
    let (there, here) = (world(), World::new().with("TZ", "UTC"));
    there.file("root.md", "ask When?\nreply {result}\n");
    let id = there.spawn_paused("root.md");
    let archive = here.file("chain", there.run(&["export", &id]).stdout.clone());
    let project = here.project().display().to_string();
    here.run(&[
        "import",
        &archive.display().to_string(),
        "--trust",
        "--cwd",
        &format!("{}={project}", there.project().display()),
    ])
    .succeeds();
    let launch = here.run(&["show", &id, "--json"]).json()["launch"].clone();
    assert_eq!(launch["environment"], serde_json::json!({"TZ": "UTC"}));
}

#[test]
fn what_restricts_claude_code_reaches_agents_and_what_is_dropped_is_named() {
    let restricts = [("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "0"), ("CLAUDE_CODE_DISABLE_WORKFLOWS", "1")];
    let world = restricts.into_iter().fold(World::new(), |world, (name, value)| world.with(name, value));
    let world = world.with("CLAUDE_CODE_SIMPLE", "1");
    world.file(
        "root.md",
        "run echo \"$CLAUDE_CODE_SUBPROCESS_ENV_SCRUB|$CLAUDE_CODE_DISABLE_WORKFLOWS|$CLAUDE_CODE_SIMPLE|\"\nreply {result}\n",
    );
    let spawned = world.run(&["spawn", "root.md"]);
    spawned.prints("0|1||");
    assert_eq!(spawned.stderr.matches("CLAUDE_CODE_SIMPLE").count(), 1, "{}", spawned.stderr);
    assert!(!spawned.stderr.contains("SCRUB") && !spawned.stderr.contains("WORKFLOWS"), "{}", spawned.stderr);
}
