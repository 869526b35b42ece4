//! `spawn --worktree --remote`: worktrees that are pushed when their agents stop, and fetched where they are missing. With
//! `AGENT_CLI_TEST_SERVER`, the whole machine is lost, and another one continues the chain.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::executable::write_executable;
use crate::gate::{Gate, wait_until};
use crate::outcome::Outcome;
use crate::repository::{git, repository_in, worktrees};
use crate::world::{World, write_config};

const TASK: &str = "run echo new > made && echo changed > shared && echo x > ignored\nask When?\n\
                    run cat made shared > seen; ls ignored >> seen 2>/dev/null; git status --porcelain >> seen; echo {result}\n\
                    reply {result}\n";

/// A machine with a clone of a repository. Its other copy is the remote `origin`.
fn machine() -> World {
    let world = repository_in(World::with_hooks(), &[("root.md", TASK), ("shared", "one"), (".gitignore", "ignored")]);
    write_config(&world, "lease = \"2s\"\n");
    let (first, bare) = (world.project(), bare(&world));
    git(&first, &format!("clone -q --bare {} {}", first.display(), bare.display()));
    git(&first, &format!("remote add origin {}", bare.display()));
    world
}

fn bare(world: &World) -> PathBuf {
    world.home().join("bare.git")
}

fn on_server() -> bool {
    std::env::var_os("AGENT_CLI_TEST_SERVER").is_some()
}

/// Everything is gone that is not in the database and not on the remote. Another machine has a clone at the same place, but, unlike a local
/// clone, not the objects that clones do not fetch.
fn is_lost(world: &World) {
    if on_server() {
        fs::remove_dir_all(world.state()).expect("it can be removed");
        // Nothing has run here if a chain is for any host.
        let _ = fs::remove_dir_all(world.home().join(".claude"));
    } else {
        fs::remove_dir_all(world.state().join("worktrees")).expect("it can be removed");
    }
    fs::remove_dir_all(world.project()).expect("it can be removed");
    git(&world.home(), &format!("clone -q --no-local {} {}", bare(world).display(), world.project().display()));
}

/// Continues a chain as soon as this host may have it.
fn continued(world: &World, id: &str) -> Outcome {
    let mut outcome = None;
    wait_until("the lease of the lost host ends", || {
        let resumed = world.run(&["resume", id]);
        let is_elsewhere = resumed.stderr.contains("run on the host");
        outcome = Some(resumed);
        !is_elsewhere
    });
    outcome.expect("it was tried")
}

/// What the program that runs the chain was told to tell the agent in its last attempt.
fn last_prompt(world: &World) -> String {
    world.log().starts.last().expect("it runs").prompt.clone()
}

#[test]
fn an_agent_continues_with_its_files_where_its_machine_is_lost() {
    let world = machine();
    let id = world.run(&["spawn", "root.md", "--worktree", "--remote", "origin"]).started();
    let [worktree] = worktrees(&world).try_into().expect("one worktree");
    is_lost(&world);
    assert!(!worktree.exists());
    assert_eq!(world.run(&["ls", "--json"]).json()[0]["id"], *id, "it still belongs to the project");
    world.answer("tomorrow");
    continued(&world, &id).prints("tomorrow");
    let seen = fs::read_to_string(worktree.join("seen")).expect("it was written");
    assert_eq!(seen, "new\nchanged\n M shared\n?? made\n?? seen\n", "its own files, without the ignored one");
    assert!(last_prompt(&world).contains("was fetched from origin"), "{}", last_prompt(&world));
    world.run(&["fsck"]).succeeds();
    // The last state is there, too.
    let snapshots = git(&bare(&world), "for-each-ref --format=%(refname) refs/agent-cli");
    assert!(
        snapshots.lines().any(|name| git(&bare(&world), &format!("ls-tree -r --name-only {name}")).contains("seen"))
    );
    world.run(&["rm", &id, "--yes"]);
}

#[test]
fn a_commit_of_an_agent_is_on_the_remote_when_it_pauses() {
    let world = machine();
    world.file("root.md", "run echo a > a && git add a && git commit -q -m work\nask When?\nreply {result}\n");
    write_config(&world, "[spawn]\nworktree = true\nremote = 'origin'\n");
    let id = world.run(&["spawn", "root.md"]).started();
    let branch = git(&bare(&world), "for-each-ref --format=%(refname:short) refs/heads/agent-cli");
    assert_eq!(git(&bare(&world), &format!("log --format=%s main..{branch}")), "work");
    // Somebody else pushes to it.
    let other = world.home().join("other");
    git(&world.home(), &format!("clone -q -b {branch} {} {}", bare(&world).display(), other.display()));
    git(&other, "-c user.name=x -c user.email=x commit -q --allow-empty -m theirs");
    git(&other, &format!("push -q origin {branch}"));
    let again = "run echo b > b && git add b && git commit -q -m more\nask And?\nreply {result}\n";
    world.file("root.md", again);
    world.run(&["resume", &id]);
    world.answer("tomorrow");
    world.run(&["resume", &id]);
    assert_eq!(git(&bare(&world), &format!("log -1 --format=%s {branch}")), "theirs", "it was not replaced");
}

#[test]
fn a_remote_that_refuses_is_a_finding_for_the_agent() {
    let world = machine();
    let hook = bare(&world).join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("writable");
    write_executable(&hook, "#!/bin/sh\necho 'no pushes on Fridays' >&2\nexit 1\n");
    let spawned = world.run(&["spawn", "root.md", "--worktree", "--remote", "origin"]);
    assert!(spawned.stderr.contains("could not be pushed to origin: [remote rejected]"), "{spawned}");
    assert!(spawned.stderr.contains("no pushes on Fridays"), "{spawned}");
    let id = spawned.started();
    world.answer("tomorrow");
    world.run(&["resume", &id]).prints("tomorrow");
    let prompt = last_prompt(&world);
    assert!(
        prompt.contains("could not be pushed to origin when you stopped") && prompt.contains("Fridays"),
        "{prompt}"
    );
}

#[test]
fn a_worktree_is_made_by_the_host_that_takes_the_chain() {
    if !on_server() {
        return;
    }
    let world = machine();
    let spawned = world.run(&["spawn", "root.md", "--worktree", "--remote", "origin", "--on", "any"]);
    let id = spawned.succeeds().stdout.trim().to_owned();
    assert!(worktrees(&world).is_empty(), "nothing is made here");
    is_lost(&world);
    world.run(&["resume", &id]).started();
    let [worktree] = worktrees(&world).try_into().expect("one worktree");
    assert!(worktree.join("made").is_file());
    assert!(!last_prompt(&world).contains("fetched"), "it knows no other place: {}", last_prompt(&world));
    let branch = git(&worktree, "rev-parse --abbrev-ref HEAD");
    assert_eq!(git(&worktree, "log --format=%s"), git(&world.project(), "log --format=%s"));
    world.answer("tomorrow");
    world.run(&["resume", &id]).prints("tomorrow");
    assert!(git(&bare(&world), "for-each-ref --format=%(refname:short) refs/heads").contains(&branch));
    let snapshots = git(&bare(&world), "for-each-ref --format=%(refname) refs/agent-cli");
    assert!(!snapshots.contains("/first"), "it is superseded: {snapshots}");
    world.run(&["fsck"]).succeeds();
}

#[test]
fn a_chain_for_any_host_is_recorded_only_if_its_commit_is_pushed() {
    if !on_server() {
        return;
    }
    let world = machine();
    let hook = bare(&world).join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("writable");
    write_executable(&hook, "#!/bin/sh\necho 'no pushes on Fridays' >&2\nexit 1\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--worktree", "--remote", "origin", "--on", "any"]), @"
    --- stderr
    error: failed to push the new worktree's commit to origin: [remote rejected] (pre-receive hook declined); no pushes on Fridays
    hint: to test access: git push origin HEAD:refs/agent-cli/test
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--worktree", "--on", "any"]), @"
    --- stderr
    error: --on does not work with --worktree alone: the worktree would exist only on this host
    hint: add --remote NAME, or leave --worktree out (--worktree=false overrides the setting)
    --- exit status: 2
    ");
    assert!(world.run(&["ls", "-ap", "--json"]).json().as_array().expect("a list").is_empty());
}

#[test]
fn a_kill_while_a_worktree_is_pushed_or_fetched_loses_nothing() {
    for point in ["push_worktree.before", "push_worktree.after", "end_attempt.before", "end_attempt.after"] {
        let world = machine();
        world.command(["spawn", "root.md", "--worktree", "--remote", "origin"]).with("AGENT_CLI_CRASH", point).run();
        let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
        world.run(&["resume", &id]);
        world.answer("tomorrow");
        world.run(&["resume", &id]).prints("tomorrow");
        let [worktree] = worktrees(&world).try_into().expect("one worktree");
        let seen = fs::read_to_string(worktree.join("seen")).expect("it was written");
        assert!(seen.starts_with("new\nchanged\nignored\n"), "{point}: {seen}");
        world.run(&["fsck"]).succeeds();
    }
    for point in ["fetch_worktree.before", "fetch_worktree.after"] {
        let world = machine();
        let id = world.run(&["spawn", "root.md", "--worktree", "--remote", "origin"]).started();
        is_lost(&world);
        world.answer("tomorrow");
        wait_until("it is fetched", || {
            world.command(["resume", &id]).with("AGENT_CLI_CRASH", point).run();
            world.run(&["ls", "-ap", "--json"]).json()[0]["state"] != "waits" && world.state().join("frames").exists()
        });
        continued(&world, &id).prints("tomorrow");
        let [worktree] = worktrees(&world).try_into().expect("one worktree");
        assert!(fs::read_to_string(worktree.join("seen")).expect("it was written").starts_with("new\nchanged\n"));
    }
}

#[test]
fn a_fetch_that_hangs_is_interrupted_and_tried_again() {
    // On a server, other steps come first, which other tests cover.
    if on_server() {
        return;
    }
    let world = machine();
    let (ssh, gate) = (world.home().join("ssh"), world.home().join("hangs"));
    // Stands in for ssh: runs the command locally.
    let text = format!(
        "#!/bin/sh\nif [ -p '{0}' ]; then echo held >> '{0}.held'; read -r go < '{0}'; fi\nexec sh -c \"$2\"\n",
        gate.display()
    );
    write_executable(&ssh, text);
    let settings = format!("[core]\nsshCommand = {}\n[ssh]\nvariant = simple\n", ssh.display());
    fs::write(world.home().join(".gitconfig"), settings).expect("it can be written");
    let url = format!("ssh://host{}", bare(&world).display());
    git(&world.project(), &format!("remote set-url origin {url}"));
    let id = world.run(&["spawn", "root.md", "--worktree", "--remote", "origin"]).started();
    is_lost(&world);
    world.answer("tomorrow");
    let gate = Gate::new(gate);
    for signal in [Signal::INT, Signal::TERM] {
        let resume = world.command(["resume", &id]).start();
        gate.reached_by(1);
        fs::remove_file(world.home().join("hangs.held")).expect("it was held");
        resume.signal(signal);
        let ended = resume.ends();
        assert!(matches!(ended.code(), Some(130 | 143)), "{ended}");
    }
    fs::remove_file(world.home().join("hangs")).expect("it can be removed");
    world.run(&["resume", &id]).prints("tomorrow");
}

#[test]
fn bad_remotes_are_refused_before_anything_is_recorded() {
    let world = machine();
    let refused = |arguments: &[&str]| {
        let mut all = vec!["spawn", "root.md"];
        all.extend(arguments);
        let outcome = world.run(&all);
        assert_eq!(world.starts(), 0, "{outcome}");
        outcome.exits_with(2).stderr.clone()
    };
    insta::assert_snapshot!(refused(&["--worktree", "--remote", "upstream"]), @"
    error: the repository has no remote upstream
    hint: git remote -v lists them
    ");
    insta::assert_snapshot!(refused(&["--remote", "origin"]), @"
    error: --remote does not work without --worktree: only worktrees are pushed
    hint: add --worktree, or leave --remote out
    ");
    git(&world.project(), "remote set-url origin https://me:secret@example.com/x.git");
    insta::assert_snapshot!(refused(&["--worktree", "--remote", "origin"]), @"
    error: the address of the remote origin contains a password or a token, which would be recorded
    hint: remove it with git remote set-url, and let a credential helper of git know it
    ");
    assert!(world.run(&["ls", "-ap", "--json"]).json().as_array().expect("a list").is_empty());
}
