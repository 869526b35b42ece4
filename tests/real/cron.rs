//! Chains that are started in a shell and resumed by cron, without the shell's environment.

use std::fs;
use std::process::Command;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(an_answered_chain_ends_under_cron_with_the_login_of_the_settings);

/// The environment that the settings bring, with the login or without.
fn set_settings(chain: &Chain, key: Option<&str>) {
    let mut env = json!({
        "ANTHROPIC_BASE_URL": chain.api.url(),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    });
    if let Some(key) = key {
        env["ANTHROPIC_API_KEY"] = json!(key);
    }
    let folder = chain.home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), json!({"env": env}).to_string()).unwrap();
}

/// What `doctor --cron` reports in the shell.
fn report(chain: &Chain) -> Value {
    let said = chain.run(&["doctor", "--cron", "--json"]);
    assert_eq!(said.code, Some(1), "the state directory is in the environment only: {said:?}");
    serde_json::from_str(&said.out).unwrap()
}

fn status_of_login(report: &Value) -> &Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    &checks.find(|check| check["name"] == "login").unwrap()["status"]
}

/// Runs the line of the crontab as cron does, and returns its log.
fn run_by_cron(chain: &Chain, line: &str) -> String {
    let log = chain.home.home().join("chain.log");
    let _ = fs::remove_file(&log);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line.strip_prefix("*/5 * * * * ").unwrap()]).current_dir(chain.home.home()).env_clear();
    shell.env("HOME", chain.home.home());
    shell.envs([("LOGNAME", "ann"), ("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")]);
    shell.output().unwrap();
    fs::read_to_string(log).unwrap()
}

fn an_answered_chain_ends_under_cron_with_the_login_of_the_settings(version: &str) {
    let model = |said: &Conversation| match said.last_result() {
        None => Turn::bash("agent-cli ask 'When?'"),
        Some(result) => Turn::text(format!("it is {result}")),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    set_settings(&chain, None);
    let said = chain.run(&["spawn", "ins.md"]);
    assert!(said.err.contains("the login exists only in this shell's environment (ANTHROPIC_API_KEY)"), "{said:?}");
    let root = chain.only_root();
    let found = report(&chain);
    assert_eq!(status_of_login(&found), "problem", "{found}");
    let every = found["cron"]["line"].as_str().unwrap();
    let line = every.replace("resume --all", &format!("resume {root}"));
    assert_ne!(line, every);
    chain.answer("Jan 1st");

    let log = run_by_cron(&chain, &line);
    let error = log.lines().find(|line| line.contains("error: Not logged in")).unwrap_or_else(|| panic!("{log}"));
    assert!(error.split_once(' ').unwrap().0.parse::<Timestamp>().is_ok(), "{log}");
    assert_eq!(chain.api.count(), 1, "{log}");

    set_settings(&chain, Some("dummy"));
    assert_eq!(status_of_login(&report(&chain)), "ok");
    let log = run_by_cron(&chain, &line);
    assert!(log.lines().any(|line| line == "it is Jan 1st"), "{log}");
    assert_eq!(chain.api.count(), 2, "{log}");

    chain.started(&["spawn", "ins.md"]);
    chain.answer("Feb 2nd");
    let log = run_by_cron(&chain, every);
    assert!(log.contains("it is Feb 2nd"), "{log}");
}
