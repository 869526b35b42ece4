//! Agents that work in git worktrees of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::chain::{Chain, TEMPLATE};
use crate::support::{Conversation, MessagesApi, Turn, follow, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(siblings_commit_apart_and_their_parent_merges, a_lost_worktree_is_fetched_from_its_remote,);

on_every_version_of_a_whole_run!(a_conversation_goes_on_in_a_worktree,);

/// Follows the instructions; where they say `BRANCHES`, it takes those that the last result has named.
fn model(conversation: &Conversation) -> Turn {
    let turn = follow(conversation);
    let command = turn.tool_calls().first().and_then(|call| call.input["command"].as_str()).unwrap_or_default();
    if !command.contains("BRANCHES") {
        return turn;
    }
    let named = conversation.last_result().unwrap_or_default().split("on the branch ").skip(1);
    let branches: Vec<_> = named.filter_map(|rest| rest.split_once(',')).map(|(branch, _)| branch).collect();
    Turn::bash(&command.replace("BRANCHES", &branches.join(" ")))
}

/// A chain whose project is a repository with the convention committed, and nothing else.
fn chain(version: &str) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("CLAUDE.md", TEMPLATE);
    let user = "[user]\n\tname = somebody\n\temail = somebody@localhost\n";
    fs::write(chain.home.home().join(".gitconfig"), user).unwrap();
    for arguments in ["init -q -b main", "add CLAUDE.md", "commit -q -m begin"] {
        git(&chain, arguments);
    }
    chain
}

fn git(chain: &Chain, arguments: &str) -> String {
    let mut command: Command = chain.home.command("git");
    let output = command.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "git {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Only these commands are allowed: children can read their instructions, which lie outside of their worktrees, because
/// agent-cli lets them.
const ALLOWED: [&str; 3] = ["--", "--allowedTools=Bash(git:*)", "--allowedTools=Bash(touch:*)"];

fn siblings_commit_apart_and_their_parent_merges(version: &str) {
    let chain = chain(version);
    let steps = "run agent-cli spawn a.md b.md --worktree\nrun git merge -q -m merge BRANCHES\nend merged\n";
    chain.home.write("ins.md", steps);
    for name in ["a", "b"] {
        let commit = format!("touch {name}.txt && git add {name}.txt && git commit -q -m {name}");
        let steps = format!("run {commit}\nask {name}?\nreply {{result}}\n");
        chain.home.write(&format!("{name}.md"), &steps);
    }
    let root = chain.started(&[["spawn", "ins.md"].as_slice(), &ALLOWED].concat());
    chain.answer_to("a?", "A");
    chain.answer_to("b?", "B");
    assert!(!chain.home.project().join("a.txt").exists() && !chain.home.project().join("b.txt").exists());
    assert_eq!(chain.ok(&["resume", &root]), "merged\n");
    assert!(chain.home.project().join("a.txt").is_file() && chain.home.project().join("b.txt").is_file());
    let merged = git(&chain, "branch --merged main --format=%(refname:short)");
    assert_eq!(merged.lines().filter(|branch| branch.starts_with("agent-cli/")).count(), 2, "{merged}");

    let requests = chain.api.requests();
    let last = requests.last().unwrap().conversation();
    let fan_out = last.results().find(|(text, is_error)| !is_error && text.starts_with("2 agents: all done."));
    assert!(fan_out.unwrap().0.contains("): done\nA\n\n(its work is on the branch agent-cli/a-"), "{fan_out:?}");
}

fn a_lost_worktree_is_fetched_from_its_remote(version: &str) {
    let chain = chain(version);
    let (bare, again) = (chain.home.home().join("bare.git"), chain.home.home().join("again"));
    git(&chain, &format!("clone -q --bare . {}", bare.display()));
    git(&chain, &format!("remote add origin {}", bare.display()));
    let steps = "run touch made.txt\nask When?\nrun git add made.txt\nrun git commit -q -m made\nend over\n";
    chain.home.write("ins.md", steps);
    let spawn = ["spawn", "ins.md", "--worktree", "--remote", "origin"];
    let root = chain.started(&[spawn.as_slice(), &ALLOWED].concat());
    chain.answer_to("When?", "now");
    // What another machine has instead: a clone.
    fs::remove_dir_all(chain.state().join("worktrees")).unwrap();
    git(&chain, &format!("clone -q --no-checkout {} {}", bare.display(), again.display()));
    fs::remove_dir_all(chain.home.project().join(".git")).unwrap();
    fs::rename(again.join(".git"), chain.home.project().join(".git")).unwrap();
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let branch = git(&chain, "for-each-ref --format=%(refname:short) refs/heads/agent-cli");
    let on_remote = git(&chain, &format!("--git-dir {} log -1 --format=%s --name-only {branch}", bare.display()));
    assert_eq!(on_remote, "made\n\nmade.txt");
    let last = chain.api.last_conversation();
    assert!(format!("{last:?}").contains("was fetched from origin"), "{last:?}");
}

fn a_conversation_goes_on_in_a_worktree(version: &str) {
    let chain = chain(version);
    chain.home.write("base.md", "ask Base?\nreply {result}\n");
    chain.home.write("fork.md", "run touch forked.txt\nask Fork?\nreply {result}\n");
    let base = chain.started(&[["spawn", "base.md"].as_slice(), &ALLOWED].concat());
    let fork = [["spawn", "fork.md", "--worktree", "--fork-from", &base].as_slice(), &ALLOWED].concat();
    // Once with a suspended call, which needs a copy of the transcript, and once as it is.
    let suspended = chain.started(&fork);
    chain.answer_to("Base?", "base");
    assert_eq!(chain.ok(&["resume", &base]), "base\n");
    chain.answer_to("Fork?", "one");
    assert_eq!(chain.ok(&["resume", &suspended]), "one\n");
    let before = fs::read(chain.home.transcript(&base).unwrap()).unwrap();

    let whole = chain.started(&fork);
    chain.answer_to("Fork?", "two");
    assert_eq!(chain.ok(&["resume", &whole]), "two\n");
    assert_eq!(fs::read(chain.home.transcript(&base).unwrap()).unwrap(), before, "the source was written to");
    for id in [&suspended, &whole] {
        let shown = chain.json(&["show", id, "--json"]);
        let worktree = Path::new(shown["cwd"].as_str().unwrap()).to_owned();
        assert!(worktree.join("forked.txt").is_file() && worktree.starts_with(chain.state().join("worktrees")));
    }
    assert!(!chain.home.project().join("forked.txt").exists());
    let last = chain.api.last_conversation();
    let heard = |begin: &str| last.user_texts().any(|text| text.contains(begin));
    assert!(heard("base.md and follow") && heard("You work in a git worktree of your own from now on"));
}
