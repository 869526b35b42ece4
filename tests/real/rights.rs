//! No argument, file name or folder gives an agent more than a person gave it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::chain::Chain;
use crate::support::extent::some_of;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(
    an_agent_without_permissions_gives_its_child_none,
    every_option_is_read_the_same_when_its_value_is_joined_to_it
);

on_every_version_of_a_whole_run!(
    a_path_is_a_rule_for_one_file_whatever_it_is_named,
    no_tool_for_files_changes_the_records_or_the_commands_of_notifications
);

/// The instruction file that an agent was given.
fn own_file(said: &Conversation) -> &str {
    said.task().split("Read ").nth(1).and_then(|rest| rest.split(" and follow").next()).unwrap_or_default()
}

fn an_agent_without_permissions_gives_its_child_none(version: &str) {
    let hook = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch pwned"}]}]}});
    let calls = [
        r#"-- --disallowedTools '--settings={"permissions":{"allow":["Bash"]}}' --disallowedTools=Foo"#.to_owned(),
        format!("-- --disallowedTools '--settings={hook}' --disallowedTools=Foo"),
        "-- --append-system-prompt --dangerously-skip-permissions".to_owned(),
        "-- --append-system-prompt=--dangerously-skip-permissions".to_owned(),
        "-- --effort low --settings=x.json".to_owned(),
        "--cwd / -- --append-system-prompt --dangerously-skip-permissions".to_owned(),
        "--model=--dangerously-skip-permissions".to_owned(),
        "--permission-mode acceptEdits".to_owned(),
    ];
    let count = calls.len();
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| {
            let results = said.results_by_call();
            if said.user_texts().any(|text| text.contains("child.md")) {
                return if results.is_empty() { Turn::bash("touch pwned") } else { Turn::text("over") };
            }
            match calls.get(results.len()) {
                Some(call) => Turn::bash(&format!("agent-cli spawn child.md {call}")),
                None => Turn::text(json!(results.iter().map(|(text, _)| text).collect::<Vec<_>>()).to_string()),
            }
        }),
    );
    chain.home.write("ins.md", "Try this and that.");
    chain.home.write("child.md", "Do what the model does.");
    let reply: Vec<String> = serde_json::from_str(&chain.ok(&["spawn", "ins.md"])).unwrap();
    assert_eq!(reply.len(), count);
    let is_refused = |text: &str| text.contains("error: ");
    // This program does not check the model's name: the child gets it, but no rights.
    let refused: Vec<bool> = reply.iter().map(|text| is_refused(text)).collect();
    assert_eq!(refused, [true, true, true, true, true, true, false, true], "{reply:#?}");
    assert!(!chain.home.project().join("pwned").exists());
}

fn a_path_is_a_rule_for_one_file_whatever_it_is_named(version: &str) {
    let names = [
        "a.md) Bash(*", "b.md),Bash(*", "c.md) Bash(touch:*", "!x.md", "#x.md", "*", "with blanks, ü and 日本.md",
        "a(1) [2] {3,4}.md", "back\\slash.md",
    ];
    let folders = ["*", "**", "[a-z]", "{p,q}", "~"];
    let others = ["private", "p", "x"];
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| {
            let own = own_file(said);
            let results = said.results_by_call();
            if results.is_empty() {
                let out = Path::new(own).parent().and_then(Path::parent).unwrap_or(Path::new("/"));
                let files = others.iter().map(|other| out.join(other).join("ins.md").display().to_string());
                let read = |turn: Turn, file: String| turn.and_call("Read", json!({"file_path": file}));
                let reads = std::iter::once(own.to_owned()).chain(files).fold(Turn::default(), read);
                return reads.and_bash("touch pwned");
            }
            Turn::text(json!(results.iter().map(|(_, denied)| denied).collect::<Vec<_>>()).to_string())
        }),
    );
    let out = chain.home.home().join("out");
    let write = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "Do what the model does.").unwrap();
    };
    others.iter().for_each(|other| write(&out.join(other).join("ins.md")));
    let files = names.iter().map(|name| out.join("files").join(name));
    let files = files.chain(folders.iter().map(|folder| out.join(folder).join("ins.md")));
    for file in some_of(files, 3) {
        write(&file);
        let reply = chain.ok(&["spawn", file.to_str().unwrap()]);
        assert_eq!(reply, "[false,true,true,true,true]\n", "{}", file.display());
    }
    assert!(!chain.home.project().join("pwned").exists());
}

fn every_option_is_read_the_same_when_its_value_is_joined_to_it(version: &str) {
    let commands = &["touch made", "mkdir made.d"];
    let model = move |said: &Conversation| {
        let results = said.results_by_call();
        match commands.get(results.len()) {
            Some(command) => Turn::bash(command),
            None => Turn::text(json!(results.iter().map(|(_, denied)| denied).collect::<Vec<_>>()).to_string()),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Try this and that.");
    let mcp = r#"{"mcpServers":{}}"#;
    let all = [
        "--allowedTools", "Bash(touch:*)", "--allowed-tools=Bash(mkdir:*)", "--add-dir", "/usr", "--add-dir=/tmp",
        "--mcp-config", mcp, "--mcp-config", mcp, "--disallowed-tools", "WebFetch", "--append-system-prompt",
        "--dangerously-skip-permissions", "--setting-sources", "", "-n", "a name",
    ];
    let arguments: Vec<&str> = ["spawn", "ins.md", "--"].into_iter().chain(all).collect();
    assert_eq!(chain.ok(&arguments), "[false,false]\n");
    let request = chain.api.requests().remove(0);
    assert!(request.system().to_string().contains("--dangerously-skip-permissions"), "{}", request.system());
    assert!(!request.tools().to_string().contains("\"WebFetch\""));
}

/// An agent that works in the person's home may edit everything there but these.
fn no_tool_for_files_changes_the_records_or_the_commands_of_notifications(version: &str) {
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| {
            let results = said.results_by_call();
            if !results.is_empty() {
                let text: Vec<_> = results.iter().map(|(text, denied)| format!("{denied} {text}")).collect();
                return Turn::text(json!(text).to_string());
            }
            let own = own_file(said);
            let home = Path::new(own).parent().unwrap_or(Path::new("/"));
            let write = |turn: Turn, file: &str| {
                let path = Path::new(file);
                let file = if path.is_absolute() { path.to_owned() } else { home.join(path) };
                turn.and_call("Write", json!({"file_path": file, "content": "[on]\ndone = 'touch pwned'\n"}))
            };
            let turn = FILES.into_iter().fold(Turn::default(), write);
            COMMANDS.into_iter().fold(turn, Turn::and_bash)
        }),
    );
    const FILES: [&str; 10] = [
        "fine.txt", ".config/agent-cli/config.toml", "link.toml", "linked/config.toml", "state/agent-cli.db-wal",
        "state/frames/x/settings.json", "state/leases/x.ndjson", "state/lease", "state/plugin/hooks.json", "state/new",
    ];
    const COMMANDS: [&str; 5] = [
        "mv fine.txt moved.txt", "mv state elsewhere", "mv .config/agent-cli elsewhere", "rm -rf state",
        "cat .config/agent-cli/config.toml",
    ];
    const CONFIG: &str = "linger = \"1s\"\n";
    let home = chain.home.home();
    chain.home.write("ins.md", "Do what the model does.");
    let config = home.join(".config/agent-cli");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), CONFIG).unwrap();
    std::os::unix::fs::symlink(config.join("config.toml"), home.join("link.toml")).unwrap();
    std::os::unix::fs::symlink(&config, home.join("linked")).unwrap();
    let state = home.join("state");
    for mode in ["acceptEdits", "bypassPermissions"] {
        let _ = fs::remove_file(home.join("moved.txt"));
        let task = home.join("task.md");
        fs::write(&task, "Do what the model does.").unwrap();
        let mut command = chain.command();
        command.env("AGENT_CLI_STATE_DIR", &state).env_remove("AGENT_CLI_CONFIG").env_remove("XDG_CONFIG_HOME");
        command.args(["spawn", task.to_str().unwrap(), "--cwd", home.to_str().unwrap(), "--permission-mode", mode]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let results: Vec<String> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{output:?}"));
        let denied: Vec<bool> = results.iter().map(|result| result.starts_with("true ")).collect();
        let expected: Vec<bool> = FILES.iter().chain(&COMMANDS).map(|call| !call.contains("fine.txt")).collect();
        assert_eq!(denied, expected, "{mode}: {results:#?}");
        assert!(home.join("moved.txt").exists() && !home.join("elsewhere").exists());
        assert_eq!(fs::read_to_string(config.join("config.toml")).unwrap(), CONFIG);
        assert!(!["frames/x", "plugin", "new"].iter().any(|name| state.join(name).exists()));
    }
}
