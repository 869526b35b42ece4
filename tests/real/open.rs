//! A person opens a copy of an agent's conversation.

use std::fs;

use crate::chain::Chain;
use crate::support::on_every_version;

on_every_version!(what_is_said_in_an_opened_copy_changes_nothing_for_the_agent);

fn what_is_said_in_an_opened_copy_changes_nothing_for_the_agent(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "ins.md", "--name", "birthday"]);
    let transcript = chain.home.transcript(&root).unwrap();
    let before = fs::read(&transcript).unwrap();
    let requests = chain.api.count();
    let open = |more: &str| {
        let command = chain.ok(&["open", "birthday"]);
        let opened = chain.home.command("sh").args(["-c", &format!("{} {more}", command.trim())]).output().unwrap();
        assert!(opened.status.success(), "{command}: {opened:?}");
    };
    // Paused inside a call, which is not made again; then finished.
    open("-p 'reply so'");
    assert_eq!(chain.api.count(), requests + 1);
    let conversation = chain.api.requests()[requests].conversation();
    assert!(
        conversation.last_result().unwrap().starts_with("The agent is paused inside this call"),
        "{conversation:?}"
    );
    assert_eq!(fs::read(&transcript).unwrap(), before);
    assert_eq!(chain.json(&["questions", "--json"]).as_array().map(Vec::len), Some(1));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", "birthday"]), "Jan 1st\n");
    let over = fs::read(&transcript).unwrap();
    open("-p 'reply so'");
    assert_eq!(fs::read(&transcript).unwrap(), over);
    assert_eq!(chain.ok(&["resume", "birthday"]), "Jan 1st\n");
}
