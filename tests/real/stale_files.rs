//! What an agent is told about changes during its wait.

use std::process::Command;

use crate::chain::Chain;
use crate::support::{NEWEST, on_every_version, on_the_newest_version};

const ASK: &str = "ask When?\nreply {result}\n";

/// The prompt that woke the agent last, if it was woken by one.
fn waking_prompt(chain: &Chain) -> Option<String> {
    let last = chain.api.last_conversation();
    last.last_user_text().filter(|text| text.starts_with("SGN_RESUME")).map(str::to_owned)
}

/// The answer, as the result of the call that asked for it.
fn is_answered(chain: &Chain, answer: &str) -> bool {
    chain.last_results().contains(&(answer.to_owned(), false))
}

/// A chain that pauses, and continues after `change`.
fn resumed_after(chain: &Chain, arguments: &[&str], change: impl FnOnce()) -> Option<String> {
    chain.home.write("ins.md", ASK);
    let root = chain.started(arguments);
    change();
    chain.answer("Jan 1st");
    let before = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count() - before, 1);
    assert!(is_answered(chain, "Jan 1st"));
    waking_prompt(chain)
}

fn git(chain: &Chain, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.env_clear().envs([("PATH", std::env::var_os("PATH").unwrap()), ("HOME", chain.home.home().into())]);
    git.args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]).args(arguments);
    assert!(git.current_dir(chain.home.project()).output().unwrap().status.success(), "{arguments:?}");
}

on_every_version!(what_changed_is_named_beside_the_answer);

on_the_newest_version!(
    what_is_gone_is_named, nothing_is_said_when_only_the_time_changed, nothing_is_said_to_who_wants_to_hear_nothing,
);

fn what_changed_is_named_beside_the_answer(version: &str) {
    let chain = Chain::new(version);
    git(&chain, &["init"]);
    git(&chain, &["commit", "--allow-empty", "-m", "one"]);
    let prompt = resumed_after(&chain, &["spawn", "ins.md"], || {
        chain.home.write("ins.md", &format!("{ASK}\n"));
        git(&chain, &["commit", "--allow-empty", "-m", "two"]);
    });
    let prompt = prompt.expect("it is told");
    assert!(prompt.contains("have changed: ins.md."), "{prompt}");
    assert!(prompt.contains("the git head moved from "), "{prompt}");
}

fn what_is_gone_is_named() {
    let chain = Chain::new(NEWEST);
    let file = chain.home.project().join("ins.md");
    let prompt = resumed_after(&chain, &["spawn", "ins.md"], || std::fs::remove_file(&file).unwrap());
    let prompt = prompt.expect("it is told");
    assert!(prompt.contains("are gone: ins.md."), "{prompt}");
}

fn nothing_is_said_when_only_the_time_changed() {
    let chain = Chain::new(NEWEST);
    let rewrite = || drop(chain.home.write("ins.md", ASK));
    assert_eq!(resumed_after(&chain, &["spawn", "ins.md"], rewrite), None);
}

fn nothing_is_said_to_who_wants_to_hear_nothing() {
    let chain = Chain::new(NEWEST);
    let change = || drop(chain.home.write("ins.md", "other\n"));
    assert_eq!(resumed_after(&chain, &["spawn", "ins.md", "--no-stale-check"], change), None);
}
