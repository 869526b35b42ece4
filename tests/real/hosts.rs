//! Two hosts that share a PostgreSQL server. Without `AGENT_CLI_TEST_SERVER`, these tests check nothing.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::chain::{Chain, Said};
use crate::exact::{ASK, chain, only_results_are_added};
use crate::postgres;
use crate::processes::{Gate, wait_until};
use crate::support::{Conversation, Item, MessagesApi, NEWEST, ToolCall, Turn};

/// A host that has the project of a chain: its own state directory, and the same home as the other host.
struct Host<'a> {
    chain: &'a Chain,
    name: &'a str,
    url: &'a str,
}

impl Host<'_> {
    fn run(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).output().unwrap();
        Said::from(output)
    }

    /// Starts a chain that then waits.
    fn started(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        let id = said.out.trim().strip_prefix("SGN_PEND_STARTED (").and_then(|rest| rest.strip_suffix(')'));
        id.unwrap_or_else(|| panic!("{said:?}")).to_owned()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.chain.command();
        command.env("AGENT_CLI_STATE_DIR", self.chain.home.home().join(self.name)).env("AGENT_CLI_STORE", self.url);
        command.env("AGENT_CLI_LINGER", "0s").args(arguments).stdin(Stdio::null());
        command
    }

    /// The machine is gone. The other one has nothing that Claude Code has kept there.
    fn is_lost(&self) {
        fs::remove_dir_all(self.chain.home.home().join(self.name)).unwrap();
        fs::remove_dir_all(self.chain.home.home().join(".claude/projects")).unwrap();
        let other = |name: &str| self.chain.json_of(&Host { name, ..*self }, &["hosts", "--json"]);
        wait_until("its lease ends", || {
            other("two").as_array().unwrap().iter().all(|host| host["is_here"] == true || host["lease_ends"].is_null())
        });
    }
}

impl Chain {
    fn json_of(&self, host: &Host<'_>, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&host.run(arguments).out).unwrap()
    }
}

/// Both hosts, whose leases are short, and which share the project.
fn hosts<'a>(chain: &'a Chain, url: &'a str) -> [Host<'a>; 2] {
    let folder = chain.home.home().join(".config/agent-cli");
    fs::create_dir_all(&folder).unwrap();
    let project = chain.home.project().display();
    fs::write(folder.join("config.toml"), format!("lease = \"2s\"\nshared-directories = [\"{project}\"]\n")).unwrap();
    ["one", "two"].map(|name| Host { chain, name, url })
}

fn server() -> Option<String> {
    std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database())
}

#[test]
fn a_conversation_continues_to_the_byte_on_another_host() {
    let Some(url) = server() else { return };
    let chain = chain(NEWEST, vec![vec![ToolCall::bash("echo begun")], vec![ToolCall::bash(ASK)]]);
    let [one, two] = hosts(&chain, &url);
    let id = one.started(&["spawn", "ins.md"]);
    one.is_lost();
    let question = chain.json_of(&two, &["questions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    two.run(&["answer", &question, "Jan 1st"]);
    let continued = two.run(&["resume", &id]);
    assert_eq!((continued.out.as_str(), continued.code), ("over\n", Some(0)), "{continued:?}");
    let results = only_results_are_added(&chain);
    assert!(results.last().unwrap()[0].to_string().contains("Jan 1st"), "{results:?}");
}

#[test]
fn an_agent_whose_turn_was_lost_is_told_and_does_it_again() {
    let Some(url) = server() else { return };
    let gate = tempfile::tempdir().unwrap();
    let gate = Gate::new(gate.path().join("gate"));
    let waits = gate.wait_command();
    let model = move |said: &Conversation| match said.calls().count() {
        0 => Turn::bash(ASK),
        1 => Turn::bash(&waits),
        _ => Turn::text("over"),
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    let [one, two] = hosts(&chain, &url);
    let id = one.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    let question = chain.json_of(&two, &["questions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    two.run(&["answer", &question, "Jan 1st"]);
    let mut runner = one.command(&["resume", &id]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let tool = gate.reached();
    rustix::process::kill_process(rustix::process::Pid::from_child(&runner), Signal::KILL).unwrap();
    runner.wait().unwrap();
    tool.has_ended();
    one.is_lost();
    let continued = two.command(&["resume", &id]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    gate.reached();
    gate.open();
    let continued = Said::from(continued.wait_with_output().unwrap());
    assert_eq!((continued.out.as_str(), continued.code), ("over\n", Some(0)), "{continued:?}");
    let last = chain.api.requests().pop().unwrap().conversation();
    let told = last.items().iter().any(|item| matches!(item, Item::User(text) if text.contains("was lost")));
    assert!(told || format!("{last:?}").contains("on which you worked, was lost"), "{last:?}");
    assert!(format!("{last:?}").contains("Jan 1st"), "the answer is delivered again: {last:?}");
}
