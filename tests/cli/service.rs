//! `service`: a systemd timer of the user. Its programs are stand-ins that record how they were called.

#![cfg(not(target_os = "macos"))]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::outcome::Outcome;
use crate::world::World;

/// A world in which `systemctl` and `loginctl` are these scripts, after a line that records their arguments.
fn managed(systemctl: &str, loginctl: &str) -> World {
    let world = World::new();
    for (name, script) in [("systemctl", systemctl), ("loginctl", loginctl)] {
        let log = world.project().join("calls");
        let script = format!("#!/bin/sh\necho {name} \"$@\" >> {}\n{script}\n", log.display());
        world.executable(format!("bin/{name}"), script);
    }
    world
}

fn run(world: &World, args: &[&str]) -> Outcome {
    let path = format!("{}:/usr/bin:/bin", world.project().join("bin").display());
    world.command([&["service"], args].concat()).with("PATH", &path).run()
}

fn calls(world: &World) -> String {
    fs::read_to_string(world.project().join("calls")).unwrap_or_default()
}

#[test]
fn it_is_installed_looked_at_and_removed() {
    let world = managed("exit 0", "echo no");
    insta::assert_snapshot!(run(&world, &["install"]), @"
    wrote [HOME]/.config/agent-cli/service.env
    wrote [HOME]/.config/systemd/user/agent-cli.service
    wrote [HOME]/.config/systemd/user/agent-cli.timer
    --- stderr
    the service continues chains every minute; agent-cli service status shows whether it is active
    warning: the service only runs while you are logged in
    hint: loginctl enable-linger lets it run always
    --- exit status: 0
    ");
    insta::assert_snapshot!(run(&world, &["install", "--max-parallel-total", "2"]).stdout.replace(&world.home().display().to_string(), "[HOME]"), @"
    wrote [HOME]/.config/systemd/user/agent-cli.service
    unchanged [HOME]/.config/systemd/user/agent-cli.timer
    ");
    run(&world, &["install"]).succeeds();
    assert!(calls(&world).contains("systemctl --user daemon-reload\nsystemctl --user enable --now agent-cli.timer\n"));
    let units = world.home().join(".config/systemd/user");
    let service = fs::read_to_string(units.join("agent-cli.service")).expect("it was written");
    assert!(service.contains(&format!("Environment=\"AGENT_CLI_STATE_DIR={}\"", world.state().display())), "{service}");
    assert!(service.contains(" resume --all\n"), "{service}");
    assert!(!service.contains("AGENT_CLI_CONFIG"), "it is where the service looks: {service}");
    insta::assert_snapshot!(run(&world, &["status"]), @"
    installed, and active: the service continues chains every minute
    only runs while you are logged in
    file [HOME]/.config/systemd/user/agent-cli.service
    file [HOME]/.config/systemd/user/agent-cli.timer
    file [HOME]/.config/agent-cli/service.env
    --- stderr
    hint: loginctl enable-linger lets it run always
    --- exit status: 0
    ");
    insta::assert_snapshot!(run(&world, &["uninstall"]), @"
    removed [HOME]/.config/systemd/user/agent-cli.service
    removed [HOME]/.config/systemd/user/agent-cli.timer
    removed [HOME]/.config/agent-cli/service.env
    --- exit status: 0
    ");
    assert!(calls(&world).contains("systemctl --user disable --now agent-cli.timer\n"));
    assert!(calls(&world).ends_with("systemctl --user daemon-reload\n"), "it forgets what is gone: {}", calls(&world));
    run(&world, &["uninstall"]).succeeds();
    assert_eq!(run(&world, &["status", "--json"]).json()["installed"], false);
}

#[test]
fn work_is_kept_running_instead() {
    let world = managed("exit 0", "echo yes");
    let refused = run(&world, &["install", "--labels", "gpu"]);
    assert!(refused.exits_with(2).stderr.contains("--work"), "{refused}");
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_none() {
        let refused = run(&world, &["install", "--work"]);
        assert!(refused.exits_with(2).stderr.contains("recorded in a file"), "{refused}");
        assert_eq!((calls(&world).as_str(), world.home().join(".config").exists()), ("", false));
        return;
    }
    run(&world, &["install"]).succeeds();
    let work = ["install", "--work", "--labels", "gpu,big", "--max-parallel-total", "8"];
    let would = run(&world, &[&work[..], &["--dry-run"]].concat());
    assert!(would.succeeds().stdout.contains("would remove "), "{would}");
    let before = calls(&world).len();
    insta::assert_snapshot!(run(&world, &work), @"
    wrote [HOME]/.config/systemd/user/agent-cli.service
    removed [HOME]/.config/systemd/user/agent-cli.timer
    --- stderr
    the service keeps agent-cli work running; agent-cli service status shows whether it is active
    --- exit status: 0
    ");
    let called = ["disable --now agent-cli.timer", "daemon-reload", "enable --now agent-cli.service"];
    let called = called.map(|arguments| format!("systemctl --user {arguments}\n")).concat();
    assert!(calls(&world)[before..].starts_with(&called), "{}", calls(&world));
    let unit = fs::read_to_string(world.home().join(".config/systemd/user/agent-cli.service")).expect("it was written");
    assert!(unit.contains(" work --labels=big,gpu --max-parallel 8\n"), "{unit}");
    let before = calls(&world).len();
    run(&world, &work).succeeds();
    assert!(!calls(&world).contains("restart"), "nothing has changed");
    run(&world, &work[..4]).succeeds();
    assert!(calls(&world)[before..].contains("restart --no-block agent-cli.service\n"), "{}", calls(&world));
    insta::assert_snapshot!(run(&world, &["status"]), @"
    installed, and active: the service keeps agent-cli work running
    runs while you are logged out, too
    file [HOME]/.config/systemd/user/agent-cli.service
    file [HOME]/.config/agent-cli/service.env
    --- exit status: 0
    ");
    let before = calls(&world).len();
    run(&world, &["install"]).succeeds();
    assert!(calls(&world)[before..].starts_with("systemctl --user disable --now agent-cli.service\n"));
    run(&world, &work).succeeds();
    run(&world, &["uninstall"]).succeeds();
    assert!(
        calls(&world).contains("systemctl --user disable --now agent-cli.service\nsystemctl --user daemon-reload\n")
    );
}

#[test]
fn a_login_is_saved_only_if_that_is_wanted_and_only_the_user_can_read_it() {
    let world = managed("exit 0", "echo yes").with("ANTHROPIC_API_KEY", "sk \"quoted\" $x");
    let file = world.home().join(".config/agent-cli/service.env");
    let first = run(&world, &["install"]);
    assert!(first.stderr.contains("service install --save-login writes it to"), "{first}");
    assert!(!fs::read_to_string(&file).expect("it was written").contains("quoted"));
    assert_eq!(run(&world, &["status", "--json"]).json()["lingers"], true);
    run(&world, &["install", "--save-login"]).succeeds();
    assert!(
        fs::read_to_string(&file).expect("it was written").contains("ANTHROPIC_API_KEY=\"sk \\\"quoted\\\" \\$x\"\n")
    );
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    run(&world, &["install", "--max-parallel-total", "2"]).succeeds();
    let saved = fs::read_to_string(&file).expect("it stays");
    assert!(saved.contains("quoted"), "what was saved stays");
    fs::write(&file, format!("{saved}AWS_REGION=\"eu\"\n")).expect("writable");
    let world = world.with("ANTHROPIC_API_KEY", "new");
    run(&world, &["install", "--save-login"]).succeeds();
    let saved = fs::read_to_string(&file).expect("it stays");
    assert!(saved.ends_with("ANTHROPIC_API_KEY=\"new\"\nAWS_REGION=\"eu\"\n") && !saved.contains("quoted"), "{saved}");
}

#[test]
fn a_manager_that_fails_is_reported_with_another_way() {
    let world = managed("echo 'Failed to connect to bus' >&2; exit 1", "exit 1");
    insta::assert_snapshot!(run(&world, &["install"]), @"
    wrote [HOME]/.config/agent-cli/service.env
    wrote [HOME]/.config/systemd/user/agent-cli.service
    wrote [HOME]/.config/systemd/user/agent-cli.timer
    --- stderr
    error: `systemctl --user daemon-reload` failed: Failed to connect to bus
    hint: without a service manager of the user, use cron: * * * * * agent-cli resume --all
    hint: agent-cli service uninstall removes the files that were written
    --- exit status: 1
    ");
    let status = run(&world, &["status", "--json"]).json();
    assert_eq!((&status["installed"], &status["active"]), (&true.into(), &false.into()));
    insta::assert_snapshot!(run(&world, &["uninstall"]), @"
    removed [HOME]/.config/systemd/user/agent-cli.service
    removed [HOME]/.config/systemd/user/agent-cli.timer
    removed [HOME]/.config/agent-cli/service.env
    --- stderr
    warning: `systemctl --user disable --now agent-cli.timer` failed: Failed to connect to bus
    hint: if the service is running, it ends when you log out
    --- exit status: 0
    ");
    assert_eq!(run(&world, &["status", "--json"]).json()["files"], serde_json::json!([]));
}

#[test]
fn what_would_be_installed_is_shown_without_values() {
    let world = managed("exit 0", "echo yes").with("ANTHROPIC_API_KEY", "secret");
    let shown = run(&world, &["install", "--save-login", "--dry-run", "--max-parallel-total", "7"]);
    for what in [
        "would write ",
        "agent-cli.timer",
        "would run systemctl --user enable --now agent-cli.timer",
        "--max-parallel-total 7",
    ] {
        assert!(shown.succeeds().stdout.contains(what), "{what}: {shown}");
    }
    assert!(shown.stdout.contains("ANTHROPIC_API_KEY") && !shown.stdout.contains("secret"), "{shown}");
    assert_eq!((calls(&world).as_str(), world.home().join(".config").exists()), ("", false));
    run(&world, &["install"]).succeeds();
    let again = run(&world, &["install", "--dry-run"]);
    assert!(again.stdout.starts_with("unchanged ") && !again.stdout.contains("would write"), "{again}");
}

#[test]
fn a_path_that_the_service_could_not_name_is_refused() {
    let world = managed("exit 0", "echo yes");
    for (name, value, said) in [
        ("AGENT_CLI_STATE_DIR", "/tmp/a\nb", "contains a line break"),
        ("HOME", "relative", "the home directory relative is not an absolute path"),
    ] {
        let outcome = world.command(["service", "install", "--dry-run"]).with(name, value).run();
        outcome.exits_with(1);
        assert!(outcome.stderr.contains(said), "{outcome}");
    }
}

#[test]
fn it_uses_the_config_file_that_only_the_shell_names() {
    let world = managed("exit 0", "echo yes").with("AGENT_CLI_CONFIG", "mine.toml");
    let plan = run(&world, &["install", "--dry-run"]);
    let named = format!("  Environment=\"AGENT_CLI_CONFIG={}\"\n", world.project().join("mine.toml").display());
    assert!(plan.stdout.contains(&named), "{plan}");
}
