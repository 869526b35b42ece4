//! `spawn --worktree`: agents that work in their own git worktrees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::executable::write_executable;
use crate::outcome::Outcome;
use crate::repository::{branches, git, repository, worktrees};
use crate::world::World;

const COMMITS: &str = "run pwd > $(basename {file}) && git add . && git commit -q -m work";

/// An agent that commits a file of this name and replies.
fn commits(file: &str) -> String {
    format!("{}\nreply wrote {file}\n", COMMITS.replace("{file}", file))
}

#[test]
fn an_agent_works_on_a_branch_of_its_own() {
    let world = repository(&[("a.md", &commits("a.txt")), ("shared", "one")]);
    let outcome = world.run(&["spawn", "a.md", "--worktree"]);
    insta::assert_snapshot!(outcome, @"
    wrote a.txt
    --- stderr
    its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8]
    --- exit status: 0
    ");
    let [worktree] = worktrees(&world).try_into().expect("one worktree");
    assert_eq!(fs::read_to_string(worktree.join("a.txt")).expect("committed"), format!("{}\n", worktree.display()));
    assert!(worktree.join("shared").is_file() && !world.project().join("a.txt").exists());
    let [branch] = branches(&world).try_into().expect("one branch");
    assert_eq!(git(&world.project(), &format!("log --format=%s main..{branch}")), "work");
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(branch, format!("agent-cli/a-{}", &id[..8]), "it has the id of its frame");

    let json = world.run(&["resume", &id, "--json"]).json();
    assert_eq!((json["reply"].as_str(), json["worktree"]["branch"].as_str()), (Some("wrote a.txt"), Some(&*branch)));
    let tree = world.run(&["tree", &id, "--json"]).json();
    assert_eq!(tree[0]["worktree"]["path"].as_str(), worktree.to_str());
    let shown = world.run(&["show", &id]).stdout;
    let lines: Vec<_> =
        shown.lines().filter(|line| line.contains("directory ") || line.contains("worktree ")).collect();
    insta::assert_snapshot!(world.named(&lines.join("\n")), @"
    directory  [STATE]/worktrees/a-[ID1:8]
    worktree   [STATE]/worktrees/a-[ID1:8], branch agent-cli/a-[ID1:8]
    ");
}

#[test]
fn siblings_are_kept_apart_and_their_branches_named() {
    let world = repository(&[("a.md", &commits("same.txt")), ("b.md", &commits("same.txt"))]);
    world.file("root.md", "spawn a.md b.md --worktree\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(outcome, @"
    2 agents: all done. Each reply follows a line that begins with `## N of 2: `; no reply has such a line.

    ## 1 of 2: a.md ([ID1:8]): done
    wrote same.txt

    (its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8])

    ## 2 of 2: b.md ([ID2:8]): done
    wrote same.txt

    (its work is on the branch agent-cli/b-[ID2:8], in the worktree [STATE]/worktrees/b-[ID2:8])
    --- exit status: 0
    ");
    assert_eq!((branches(&world).len(), worktrees(&world).len()), (2, 2));
    assert!(!world.project().join("same.txt").exists());
    let group = world.run(&["spawn", "a.md", "b.md", "--worktree", "--json"]).json();
    assert_eq!(group["members"][0]["reply"], "wrote same.txt");
    assert!(group["members"][1]["worktree"]["branch"].as_str().expect("a branch").starts_with("agent-cli/b-"));
    assert_eq!(group.get("worktree"), None, "the group has none");
}

#[test]
fn the_parent_is_told_where_the_work_is_in_each_way_that_it_is_told() {
    let world = repository(&[("a.md", &commits("a.txt")), ("fails.md", "fail it broke")]);
    world.file(
        "root.md",
        "spawn a.md --worktree\nrun agent-cli resume {id} > seen\nspawn fails.md --worktree\nreply {results}\n",
    );
    let outcome = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(outcome, @"
    wrote a.txt

    (its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8]); failed: it broke

    (its work is on the branch agent-cli/fails-[ID2:8], in the worktree [STATE]/worktrees/fails-[ID2:8])
    --- exit status: 0
    ");
    let seen = fs::read_to_string(world.project().join("seen")).expect("written");
    insta::assert_snapshot!(world.named(&seen), @"
    wrote a.txt

    (its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8])
    ");
    let log = world.log();
    let woken: Vec<_> = log.starts.iter().filter(|start| start.prompt.starts_with("SGN_RESUME")).collect();
    insta::assert_snapshot!(world.named(&woken[0].prompt.replace(world.project().to_str().expect("text"), "[PROJECT]")), @"
    SGN_RESUME

    Each result below ends at the line `--- end of result ---`; none has such a line.

    result of `agent-cli spawn [PROJECT]/a.md` ([ID1:8]):
    wrote a.txt

    (its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8])
    --- end of result ---
    ");
}

#[test]
fn a_child_works_in_the_worktree_of_its_parent_or_in_one_that_begins_there() {
    let inner = "spawn c.md\nspawn c.md --worktree\nreply {results}\n";
    let world = repository(&[
        ("b.md", &format!("run echo b > b.txt && git add . && git commit -q -m b\n{inner}")),
        ("c.md", "run pwd; ls\nreply {result}\n"),
    ]);
    world.file("a.md", "spawn b.md --worktree\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "a.md"]), @"
    [STATE]/worktrees/b-[ID1:8]
    b.md
    b.txt
    c.md; [STATE]/worktrees/c-[ID2:8]
    b.md
    b.txt
    c.md

    (its work is on the branch agent-cli/c-[ID2:8], in the worktree [STATE]/worktrees/c-[ID2:8])

    (its work is on the branch agent-cli/b-[ID1:8], in the worktree [STATE]/worktrees/b-[ID1:8])
    --- exit status: 0
    ");
}

#[test]
fn an_agent_works_in_the_same_part_of_its_worktree() {
    let world = repository(&[("sub/kept", "kept"), ("a.md", "run pwd\nreply {result}\n")]);
    fs::create_dir(world.project().join("empty")).expect("writable");
    for part in ["sub", "empty"] {
        let outcome = world.run(&["spawn", "a.md", "--worktree", "--cwd", part]);
        outcome.succeeds();
        assert!(outcome.stdout.trim_end().ends_with(&format!("/{part}")), "{outcome}");
        assert!(outcome.stdout.starts_with(world.state().join("worktrees").to_str().expect("text")), "{outcome}");
    }
}

#[test]
fn uncommitted_changes_are_reported() {
    let world = repository(&[("a.md", "run ls\nreply {result}\n")]);
    world.file("new.txt", "new");
    insta::assert_snapshot!(world.run(&["spawn", "a.md", "--worktree"]), @"
    a.md
    --- stderr
    the worktree starts from the last commit, without the uncommitted changes in [PROJECT]
    its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8]
    --- exit status: 0
    ");
}

#[test]
fn a_directory_without_a_commit_is_refused() {
    let world = World::new();
    world.file("a.md", "reply A");
    insta::assert_snapshot!(world.run(&["spawn", "a.md", "--worktree"]), @"
    --- stderr
    error: [PROJECT] is not in a git repository that has a commit
    hint: commit something to a git repository there, or leave --worktree out
    --- exit status: 2
    ");
    git(&world.project(), "init -q");
    world.run(&["spawn", "a.md", "--worktree"]).exits_with(2);
    world.file("root.md", "run agent-cli spawn a.md --worktree 2>&1\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: [PROJECT] is not in a git repository that has a commit
    hint: commit something to a git repository there, or leave --worktree out
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 1);
    assert_eq!(worktrees(&world).len(), 0);
}

#[test]
fn a_worktree_that_git_cannot_make_is_an_error_that_is_tried_again() {
    let world = repository(&[("a.md", "reply A")]);
    // Its name would be a folder and a file.
    git(&world.project(), "branch agent-cli");
    let refused = world.run(&["spawn", "a.md", "--worktree"]);
    refused.exits_with(1);
    assert!(refused.stderr.starts_with("error: git worktree failed: fatal: cannot lock ref"), "{refused}");
    assert!(refused.stderr.contains("git branch -m agent-cli NAME; then agent-cli resume "), "{refused}");
    assert_eq!(world.starts(), 0);
    git(&world.project(), "branch -m agent-cli other");
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    world.run(&["resume", &id]).prints("A");
}

#[test]
fn what_an_agent_has_begun_is_never_made_anew() {
    let world = repository(&[("a.md", "run echo half > half.txt\nask Go on?\nreply {result}\n")]);
    let id = world.run(&["spawn", "a.md", "--worktree"]).started();
    let [worktree] = worktrees(&world).try_into().expect("one worktree");
    let aside = world.project().join("aside");
    fs::rename(&worktree, &aside).expect("the same disk");
    world.answer("yes");
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    --- stderr
    error: its worktree does not exist: [STATE]/worktrees/a-[ID1:8] ([ID1:8])
    hint: git -C [PROJECT]/.git worktree add -f [STATE]/worktrees/a-[ID1:8] agent-cli/a-[ID1:8]; then agent-cli resume [ID1:8]
    --- exit status: 1
    ");
    let branch = format!("agent-cli/a-{}", &id[..8]);
    git(&world.project(), &format!("branch -m {branch} other"));
    let refused = world.run(&["resume", &id]).stderr;
    let (why, hint) = refused.split_once(": git -C ").expect("a command");
    assert!(why.ends_with("hint: its branch does not exist either; to start again without its changes"), "{refused}");
    let hint = hint.split_once("; then agent-cli resume ").expect("two commands").0;
    let (_, command) = hint.split_once(' ').expect("a folder and a command");
    git(&world.project(), command);
    world.run(&["resume", &id]).prints("yes");
    assert!(!worktree.join("half.txt").exists(), "as the hint said");
}

#[test]
fn what_is_in_the_place_of_a_worktree_is_not_worked_in() {
    let clone = |world: &World, to: &Path| {
        git(&world.project(), &format!("clone -q . {}", to.display()));
    };
    // What happens to the worktree at a path, and what the hint begins with.
    type Change<'a> = &'a dyn Fn(&World, &Path);
    let changes: [(Change<'_>, &str); 4] = [
        (&|_, path| fs::create_dir(path).expect("writable"), "hint: move "),
        (&|world, path| clone(world, path), "hint: move "),
        (
            &|world, path| {
                let (project, aside) = (world.project(), world.home().join("aside"));
                fs::create_dir(path).expect("writable");
                fs::rename(project.join(".git"), &aside).expect("the same disk");
            },
            "hint: restore the repository ",
        ),
        (
            &|world, path| {
                fs::create_dir(path).expect("writable");
                let other = world.home().join("other");
                git(&world.home(), &format!("clone -q --single-branch {} other", world.project().display()));
                fs::rename(world.project().join(".git"), world.home().join("aside")).expect("the same disk");
                fs::rename(other.join(".git"), world.project().join(".git")).expect("the same disk");
            },
            "hint: restore the repository ",
        ),
    ];
    for (change, hint) in changes {
        let world =
            repository(&[("a.md", "run echo half > half.txt\nask Go on?\nrun echo more > more.txt\nreply done\n")]);
        let id = world.run(&["spawn", "a.md", "--worktree"]).started();
        let [worktree] = worktrees(&world).try_into().expect("one worktree");
        let aside = world.home().join("worktree");
        fs::rename(&worktree, &aside).expect("the same disk");
        change(&world, &worktree);
        world.answer("yes");
        let refused = world.run(&["resume", &id]);
        refused.exits_with(1);
        assert!(refused.stderr.contains(" is no longer a worktree of "), "{refused}");
        assert!(refused.stderr.contains(hint), "{refused}");
        assert!(!worktree.join("more.txt").exists(), "the agent did not run");
        assert_eq!(world.run(&["questions", "--json"]).json(), serde_json::json!([]), "it is still found here");
        assert_eq!(world.run(&["ls", "--json"]).json()[0]["id"], id.as_str());
        fs::remove_dir_all(&worktree).expect("it is there");
        fs::rename(&aside, &worktree).expect("the same disk");
        let git_dir = world.home().join("aside");
        if git_dir.exists() {
            let _ = fs::remove_dir_all(world.project().join(".git"));
            fs::rename(&git_dir, world.project().join(".git")).expect("the same disk");
        }
        world.run(&["resume", &id]).prints("done");
        assert!(worktree.join("half.txt").exists() && worktree.join("more.txt").exists());
    }
}

/// A `git` that does what the real one does, but once kills its caller: after it has added a worktree, or before that is
/// complete.
fn deadly_git(world: &World, when: &str) -> PathBuf {
    let folder = world.home().join("deadly");
    fs::create_dir(&folder).expect("writable");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'worktree add'*)\n  if mkdir '{once}' 2>/dev/null; then\n    /usr/bin/git \"$@\" || exit\n    \
         {when}\n    kill -9 $PPID\n    exit 1\n  fi ;;\nesac\nexec /usr/bin/git \"$@\"\n",
        once = world.home().join("once").display()
    );
    write_executable(&folder.join("git"), script);
    folder
}

#[test]
fn a_kill_between_the_worktree_and_the_attempt_loses_nothing() {
    let half = "rm \"$(git -C \"$2\" worktree list --porcelain | sed -n 's/^worktree //p' | tail -1)/.git\"";
    for when in ["true", half] {
        let world = repository(&[("a.md", &commits("a.txt"))]);
        let deadly = deadly_git(&world, when);
        let path = format!("{}:{}", deadly.display(), std::env::var("PATH").expect("a PATH"));
        let killed = world.command(["spawn", "a.md", "--worktree"]).with("PATH", &path).run();
        assert_eq!((killed.code(), world.starts()), (None, 0), "{killed}");
        let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
        world.run(&["resume", &id]).prints("wrote a.txt");
        assert_eq!((branches(&world).len(), worktrees(&world).len()), (1, 1));
    }
}

#[test]
fn a_fork_of_a_conversation_works_in_a_worktree() {
    let world = repository(&[("base.md", "reply base"), ("a.md", "run pwd\nask A?\nrun pwd\nreply {result}")]);
    let base = world.run(&["spawn", "base.md", "--json"]).json()["id"].as_str().expect("an id").to_owned();
    let source = world.transcripts().remove(0);
    let before = fs::read(&source).expect("it is there");
    let id = world.run(&["spawn", "a.md", "--fork-from", &base, "--worktree"]).started();
    world.answer("be");
    let [worktree] = worktrees(&world).try_into().expect("one worktree");
    world.run(&["resume", &id]).prints(worktree.to_str().expect("text"));
    let log = world.log();
    assert_eq!(log.starts[1].value_of("--resume"), world.kept(&base).to_str());
    assert_eq!(log.starts[2].session(), log.starts[1].session());
    insta::assert_snapshot!(world.named(&log.starts[1].prompt), @"
    Read [PROJECT]/a.md and follow its instructions.

    You work in a git worktree of your own from now on, [STATE]/worktrees/a-[ID2:8], on the branch agent-cli/a-[ID2:8]. Read and change the files there, not those that this conversation has named so far.
    ");
    assert_eq!(fs::read(&source).expect("it is there"), before);

    fs::remove_dir_all(world.home().join(".claude")).expect("own folder");
    world.file("b.md", "reply B");
    world.run(&["spawn", "b.md", "--fork-from", &base, "--worktree"]).prints("B");
}

#[test]
fn an_agent_may_let_a_child_read_instructions_that_it_could_read_itself() {
    let world = repository(&[("kept", "")]);
    let files = world.project();
    world.file("a.md", "reply A");
    fs::write(world.home().join("secret.md"), "reply secret").expect("writable");
    let secret = world.home().join("secret.md").display().to_string();
    std::os::unix::fs::symlink(&secret, files.join("link.md")).expect("writable");
    let rule = |file: &str, more: &str| {
        world.file("root.md", format!("spawn {file} {more}\nreply {{result}}\n"));
        let before = world.starts();
        world.run(&["spawn", "root.md"]).succeeds();
        let log = world.log();
        log.starts[before + 1].allowed.iter().find(|rule| rule.starts_with("Read(")).cloned()
    };
    let own = format!("Read(/{}/a.md)", files.display());
    assert_eq!(rule("a.md", "--worktree"), Some(own));
    assert_eq!(rule("a.md", ""), None, "where it works it may read anyway");
    for outside in [&secret, "link.md", "../home/secret.md"] {
        assert_eq!(rule(outside, "--worktree"), None, "{outside}");
    }
}

#[test]
fn gc_removes_worktrees_in_which_nothing_is_lost_and_keeps_chains_with_others() {
    let world =
        repository(&[("a.md", &commits("a.txt")), ("b.md", "run echo b > b.txt\nreply B\n"), ("c.md", "reply C")]);
    let group = world.run(&["spawn", "a.md", "b.md", "c.md", "--worktree", "--json"]).json();
    let branch = |at: usize| group["members"][at]["worktree"]["branch"].as_str().expect("a branch").to_owned();
    let gc = |more: &[&str]| world.run(&[["gc", "--older-than", "0s"].as_slice(), more].concat());
    let said = |outcome: Outcome| {
        let lines = [outcome.stdout.lines(), outcome.stderr.lines()].into_iter().flatten();
        let lines: Vec<_> = lines.filter(|line| line.contains("worktree")).collect();
        let sizeless = lines.join("\n");
        let sizeless = sizeless.lines().map(|line| {
            line.split_once(", such as ").map_or(line.to_owned(), |(text, _)| format!("{text}, such as [COMMIT]"))
        });
        let sizeless = sizeless.collect::<Vec<_>>().join("\n");
        world.named(sizeless.rsplit_once(": ").map_or(&sizeless, |(before, _)| before))
    };
    insta::assert_snapshot!(said(gc(&["--dry-run"])), @"
    [STATE]/worktrees/c-[ID4:8]
    kept [ID2:8] because of its worktree [STATE]/worktrees/a-[ID2:8] (branch agent-cli/a-[ID2:8]): it has commits that are on no branch outside agent-cli/, such as [COMMIT]
    kept [ID3:8] because of its worktree [STATE]/worktrees/b-[ID3:8] (branch agent-cli/b-[ID3:8]): it has uncommitted changes
    would remove 0 chains with 0 agents and 1 worktree
    ");
    assert_eq!(worktrees(&world).len(), 3, "it only says so");
    insta::assert_snapshot!(said(gc(&[])), @"
    [STATE]/worktrees/c-[ID4:8]
    kept [ID2:8] because of its worktree [STATE]/worktrees/a-[ID2:8] (branch agent-cli/a-[ID2:8]): it has commits that are on no branch outside agent-cli/, such as [COMMIT]
    kept [ID3:8] because of its worktree [STATE]/worktrees/b-[ID3:8] (branch agent-cli/b-[ID3:8]): it has uncommitted changes
    removed 0 chains with 0 agents and 1 worktree
    ");
    assert_eq!(branches(&world), [branch(0), branch(1)]);

    git(&world.project(), &format!("merge -q {}", branch(0)));
    let held = gc(&["--json"]).json();
    assert_eq!((held["held"].as_array().map(Vec::len), &held["held"][0]["branch"]), (Some(1), &branch(1).into()));
    assert_eq!(held["chains"], serde_json::json!([]), "the chain stays with it");
    fs::remove_file(worktrees(&world)[0].join("b.txt")).expect("it is there");
    let gone = gc(&["--json"]).json();
    assert_eq!((gone["chains"].as_array().map(Vec::len), gone["held"].as_array().map(Vec::len)), (Some(1), Some(0)));
    assert_eq!((branches(&world).len(), worktrees(&world).len()), (0, 0));
}

#[test]
fn a_removal_that_is_killed_is_done_by_the_next() {
    for point in
        ["remove_worktree.before", "remove_worktree.within", "remove_worktree.after", "remove_worktree.after:2"]
    {
        let world = repository(&[("a.md", "reply A"), ("b.md", "reply B")]);
        world.run(&["spawn", "a.md", "b.md", "--worktree"]).succeeds();
        let killed = world.command(["gc", "--older-than", "0s"]).with("AGENT_CLI_CRASH", point).run();
        assert_eq!(killed.code(), None, "{point}: {killed}");
        world.run(&["fsck"]).succeeds();
        world.run(&["gc", "--older-than", "0s"]).succeeds();
        assert_eq!((branches(&world).len(), worktrees(&world).len()), (0, 0), "{point}");
        assert_eq!(world.run(&["ls", "-ap", "--json"]).stdout, "[]\n", "{point}");
    }
}

#[test]
fn gc_removes_a_worktree_of_an_open_chain_when_its_parent_has_the_result_and_nobody_works_there() {
    let world = repository(&[("a.md", "reply A"), ("b.md", "ask B?\nreply {result}\n")]);
    world.file("root.md", "spawn a.md --worktree\nspawn b.md --worktree\nreply {results}\n");
    let id = world.run(&["spawn", "root.md"]).started();
    let tree = world.run(&["tree", &id, "--json"]).json();
    let done = tree.as_array().expect("frames").iter().find(|frame| frame["status"] == "done").expect("a child");
    let (child, path) = (done["id"].as_str().expect("an id"), done["worktree"]["path"].as_str().expect("a path"));
    world.file("fork.md", "ask F?\nreply {result}\n");
    let fork = world.run(&["spawn", "fork.md", "--fork-from", child]).started();
    let gc = || world.run(&["gc", "--older-than", "0s", "--json"]).json();
    assert!(gc()["held"][0]["why"].as_str().unwrap().starts_with("another agent works in it: "));
    world.answer_to("F?", "yes");
    world.run(&["resume", &fork]).succeeds();
    assert_eq!(gc()["worktrees"], serde_json::json!([path]));
    assert_eq!(worktrees(&world).len(), 1, "that of the one that waits");
    world.answer_to("B?", "be");
    world.run(&["resume", &id]).succeeds();
}

/// The roots of all chains, the newest first.
fn roots(world: &World) -> Vec<String> {
    let listed = world.run(&["ls", "-ap", "--json"]).json();
    listed.as_array().expect("a list").iter().map(|chain| chain["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn the_commit_of_a_parent_is_not_safe_because_its_child_began_with_it() {
    let world = repository(&[("b.md", "run echo scratch > scratch\nreply B\n")]);
    world.file(
        "a.md",
        format!(
            "{}\nspawn {} --worktree\nreply A\n",
            COMMITS.replace("{file}", "a.txt"),
            world.project().join("b.md").display()
        ),
    );
    world.run(&["spawn", "a.md", "--worktree"]).succeeds();
    let gc = |more: &[&str]| world.run(&[["gc", "--older-than", "0s", "--json"].as_slice(), more].concat()).json();
    let commit = git(&worktrees(&world)[0], "rev-parse HEAD");
    let is_kept =
        || git(&world.project(), &format!("for-each-ref --contains {commit}")).contains("refs/heads/agent-cli/");
    gc(&[]);
    assert!(is_kept());
    let scratch = worktrees(&world).into_iter().map(|path| path.join("scratch")).find(|path| path.exists());
    fs::remove_file(scratch.expect("it was not removed")).expect("own file");
    for more in [["--dry-run"].as_slice(), &[]] {
        let held = gc(more);
        assert_eq!(held["held"].as_array().map(Vec::len), Some(2), "{held}");
        assert!(is_kept());
    }
    git(&world.project(), &format!("merge -q {commit}"));
    let (would, did) = (gc(&["--dry-run"]), gc(&[]));
    assert_eq!((&would["worktrees"], did["worktrees"].as_array().map(Vec::len)), (&did["worktrees"], Some(2)));
    assert_eq!((branches(&world).len(), worktrees(&world).len()), (0, 0));
}

#[test]
fn files_that_git_is_configured_to_hide_stay() {
    let world = repository(&[("a.md", "run echo result > result.txt\nreply A\n")]);
    git(&world.project(), "config status.showUntrackedFiles no");
    world.run(&["spawn", "a.md", "--worktree"]).succeeds();
    let gone = world.run(&["gc", "--older-than", "0s", "--json"]).json();
    assert_eq!(gone["held"][0]["why"], "it has uncommitted changes");
    assert!(worktrees(&world)[0].join("result.txt").is_file());
    world.file("new.txt", "new");
    let outcome = world.run(&["spawn", "a.md", "--worktree"]);
    assert!(outcome.stderr.contains("without the uncommitted changes"), "{outcome}");
}

#[test]
fn ignored_files_are_listed_and_only_what_is_built_again_goes() {
    let world =
        repository(&[(".gitignore", "target/\n.env\n"), ("a.md", "run mkdir target && touch target/x\nreply A\n")]);
    world.file("b.md", "run mkdir target && touch target/x && echo secret > .env\nreply B\n");
    crate::repository::commit(&world);
    let gc = |more: &[&str]| world.run(&[["gc", "--older-than", "0s"].as_slice(), more].concat());
    let said = |outcome: Outcome| {
        let lines = outcome.stderr.lines().filter(|line| line.contains("ignore"));
        world.named(&lines.collect::<Vec<_>>().join("\n"))
    };
    world.run(&["spawn", "a.md", "--worktree"]).succeeds();
    world.run(&["spawn", "b.md", "--worktree"]).succeeds();
    insta::allow_duplicates! {
        for more in [["--dry-run"].as_slice(), &[]] {
            insta::assert_snapshot!(said(gc(more)), @"
            ignored files removed with worktree [STATE]/worktrees/a-[ID1:8]: target
            kept [ID2:8] because of its worktree [STATE]/worktrees/b-[ID2:8] (branch agent-cli/b-[ID2:8]): it has files that git ignores, which --ignored would remove: .env
            ");
        }
    }
    let [kept] = worktrees(&world).try_into().expect("one worktree");
    assert!(kept.join(".env").is_file());
    let gone = gc(&["--ignored", "--json"]).json();
    let names = [".env", "target"].map(|name| kept.join(name).display().to_string());
    assert_eq!((&gone["ignored"], gone["held"].as_array().map(Vec::len)), (&serde_json::json!(names), Some(0)));
    assert!(worktrees(&world).is_empty());
}

#[test]
fn a_worktree_stays_in_which_a_failed_agent_would_continue() {
    let world = repository(&[("a.md", "reply A"), ("fails.md", "once fail it broke\nreply went on\n")]);
    world.run(&["spawn", "a.md", "--worktree"]).succeeds();
    let [path] = worktrees(&world).try_into().expect("one worktree");
    world.run(&["spawn", "fails.md", "--cwd", path.to_str().expect("text")]).exits_with(1);
    let [second, first] = roots(&world).try_into().expect("two chains");
    let gc = |more: &[&str]| world.run(&[["gc", "--older-than", "0s", "--json"].as_slice(), more].concat()).json();
    for more in [["--dry-run"].as_slice(), &[]] {
        let stays = gc(more);
        let why = format!("an agent that failed or was stopped would continue in it: {}", &second[..8]);
        assert_eq!((&stays["held"][0]["why"], &stays["chains"]), (&why.into(), &serde_json::json!([])));
    }
    world.run(&["resume", &second]).prints("went on");
    let (would, did) = (gc(&["--dry-run"]), gc(&[]));
    let ids = |gone: &serde_json::Value| {
        gone["chains"].as_array().expect("a list").iter().map(|tree| tree["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(&would), ids(&did)),
        (vec![first.clone().into(), second.clone().into()], vec![first.into(), second.into()])
    );
}

#[test]
fn a_failed_chain_that_stays_keeps_the_worktrees_of_all_its_agents() {
    let world = repository(&[("a.md", "fail it broke"), ("b.md", "run echo b > b.txt\nfail it broke\n")]);
    world.run(&["spawn", "a.md", "b.md", "--worktree"]).exits_with(1);
    let gone = world.run(&["gc", "--older-than", "0s", "--failed", "--json"]).json();
    assert_eq!((&gone["worktrees"], gone["held"].as_array().map(Vec::len)), (&serde_json::json!([]), Some(1)));
    assert_eq!(worktrees(&world).len(), 2);
}

#[test]
fn a_person_is_told_of_every_branch_that_the_reply_does_not_name() {
    let world = repository(&[("a.md", &commits("a.txt"))]);
    world.file("root.md", "spawn a.md --worktree\nreply all is well\n");
    let outcome = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(outcome, @"
    all is well
    --- stderr
    [ID1:8] a.md: its work is on the branch agent-cli/a-[ID1:8], in the worktree [STATE]/worktrees/a-[ID1:8]
    --- exit status: 0
    ");
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let json = world.run(&["resume", &id, "--json"]).json();
    let [branch] = branches(&world).try_into().expect("one branch");
    assert_eq!(json["worktrees_below"][0]["branch"].as_str(), Some(&*branch));
    assert!(json.get("worktree").is_none(), "the agent at the top has none: {json}");
}

/// The command of a hint, between these words.
fn command_in(said: &str, before: &str, after: &str) -> String {
    let rest = said.split_once(before).unwrap_or_else(|| panic!("{before:?} in {said}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("{after:?} in {said}")).0.to_owned()
}

#[test]
fn what_rm_suggests_lets_it_remove_the_worktree() {
    let world = repository(&[("a.md", &commits("a.txt"))]);
    let mut ids = (0..3).map(|_| {
        world.run(&["spawn", "a.md", "--worktree"]).succeeds();
        world.run(&["ls", "-a", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned()
    });
    let shell = |command: &str| {
        let done = Command::new("/bin/sh").args(["-c", command]).env("HOME", world.home()).output().expect("a shell");
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let refused = |id: &str| world.run(&["rm", "--yes", id]).exits_with(1).stderr.clone();
    let discarded = ids.next().expect("one");
    shell(&command_in(&refused(&discarded), "to discard it: ", "\n"));
    world.run(&["rm", "--yes", &discarded]).succeeds();

    let locked = ids.next().expect("one");
    let worktree = worktrees(&world).pop().expect("one");
    git(&world.project(), &format!("worktree lock {}", worktree.display()));
    shell(&command_in(&refused(&locked), "hint: ", "; then agent-cli rm"));
    shell(&command_in(&refused(&locked), "to discard it: ", "\n"));
    world.run(&["rm", "--yes", &locked]).succeeds();

    let replaced = ids.next().expect("one");
    let worktree = worktrees(&world).pop().expect("one");
    fs::remove_file(worktree.join(".git")).expect("it is there");
    let said = refused(&replaced);
    assert!(said.contains("if nothing in ") && said.contains(" is needed, remove that folder"), "{said}");
    fs::remove_dir_all(&worktree).expect("it is there");
    shell(&command_in(&refused(&replaced), "to discard it: ", "\n"));
    world.run(&["rm", "--yes", &replaced]).succeeds();
}
