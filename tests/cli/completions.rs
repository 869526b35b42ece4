//! Shell completions.

use crate::world::World;

/// The completions of bash for a command line whose last word is incomplete.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let script = r#"eval "$(agent-cli completions bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        complete=$(complete -p agent-cli) && function=${complete#*-F } && function=${function%% *}
        "$function" agent-cli "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let args = [&["-c", script, "bash"], words].concat();
    let outcome = world.program("bash", args).run();
    outcome.succeeds().stdout.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn asking() -> (World, String) {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md", "--name", "release"]).started();
    (world, id[..8].to_owned())
}

#[test]
fn commands_and_options_are_offered() {
    let world = World::new();
    assert_eq!(offered(&world, &["agent-cli", "quest"]), ["questions"]);
    assert_eq!(offered(&world, &["agent-cli", "ls", "--all-p"]), ["--all-projects"]);
    assert!(!world.state().exists(), "looking for ids creates nothing");
}

#[test]
fn ids_and_names_are_offered_where_they_belong() {
    let (world, root) = asking();
    let resume = offered(&world, &["agent-cli", "resume", ""]);
    assert!(["release", root.as_str(), "last"].iter().all(|id| resume.iter().any(|word| word == id)), "{resume:?}");
    assert_eq!(offered(&world, &["agent-cli", "resume", "rel"]), ["release"]);
    let question = world.question()[..8].to_owned();
    assert!(offered(&world, &["agent-cli", "answer", ""]).contains(&question));
    let child = world.run(&["tree", &root, "--json"]).json()[1]["id"].as_str().expect("an id")[..8].to_owned();
    assert!(offered(&world, &["agent-cli", "logs", ""]).contains(&child));
    assert_eq!(offered(&world, &["agent-cli", "ls", "--status", "wait"]), ["waiting", "waits"]);
}

#[test]
fn the_values_of_some_options_and_answers_are_offered() {
    let world = World::with_hooks();
    assert_eq!(offered(&world, &["agent-cli", "spawn", "--permission-mode", "acc"]), ["acceptEdits"]);
    assert_eq!(offered(&world, &["agent-cli", "resume", "--permission-mode", "byp"]), ["bypassPermissions"]);
    world.file("root.md", "run agent-cli ask 'Which?' --option red --option 'blue=as the sky'\nreply {result}\n");
    world.run(&["spawn", "root.md"]).started();
    let question = world.question();
    assert_eq!(offered(&world, &["agent-cli", "answer", &question[..8], ""]), ["red", "blue"]);
    assert_eq!(offered(&world, &["agent-cli", "answer", &question[..8], "b"]), ["blue"]);
    let kind = serde_json::json!({"permission": {"tool": "Bash", "input": {"command": "ls"}}}).to_string();
    world.database().execute("UPDATE requests SET detail = ?1 WHERE id = ?2", [&kind, &question]).expect("recorded");
    assert_eq!(offered(&world, &["agent-cli", "answer", &question[..8], ""]), ["allow", "deny"]);
}

#[test]
fn the_shell_of_the_user_is_the_default() {
    let world = World::new().with("SHELL", "/usr/bin/zsh");
    assert_eq!(world.run(&["completions"]).succeeds().stdout, world.run(&["completions", "zsh"]).stdout);
    for unknown in ["/bin/dash", ""] {
        let refused = world.command(["completions"]).with("SHELL", unknown).run();
        assert!(refused.exits_with(2).stderr.contains("hint: agent-cli completions bash"), "{refused}");
    }
}

#[test]
fn every_shell_has_a_script() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = world.run(&["completions", shell]);
        assert!(outcome.succeeds().stdout.contains("AGENT_CLI_COMPLETE"), "{shell}");
    }
    world.run(&["completions", "cmd.exe"]).exits_with(2);
}

#[test]
fn nothing_is_offered_where_there_is_no_id_and_everything_where_it_is_over() {
    let world = World::new();
    assert_eq!(
        offered(&world, &["agent-cli", "resume", ""]),
        Vec::<String>::new(),
        "not even the beginning of options"
    );
    assert!(offered(&world, &["agent-cli", "resume", "--pro"]).contains(&"--prompt".to_owned()));
    world.file("ins.md", "reply done\n");
    world.run(&["spawn", "ins.md", "--name", "release"]).prints("done");
    for command in ["show", "logs", "tree", "open", "rm"] {
        assert!(offered(&world, &["agent-cli", command, ""]).contains(&"release".to_owned()), "{command}");
    }
    assert_eq!(offered(&world, &["agent-cli", "stop", ""]), Vec::<String>::new());
}

#[test]
fn the_name_of_a_file_is_no_command_of_the_shell() {
    let world = World::new();
    for name in ["zz$(touch pwned).md", "xx*$(touch pwned).md", "yy;touch pwned.md", "with space.md", "it's `x`.md"] {
        world.file(name, "reply done\n");
        let typed = &name[..2];
        let inserted = offered(&world, &["agent-cli", "spawn", typed]).remove(0);
        let line = world.program("bash", ["-c", &format!("printf %s {inserted}")]).run();
        assert_eq!(line.succeeds().stdout, name, "{inserted}");
    }
    assert!(!world.project().join("pwned").exists());
    assert_eq!(offered(&world, &["agent-cli", "spawn", "with\\ sp"]), ["with\\ space.md"]);
}
