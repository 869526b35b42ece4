//! Which chains `ls` lists, and how people name them.

use serde_json::{Value, json};

use crate::gate::wait_until;
use crate::world::{World, files_below};

/// A world with an open chain of its project, one that is done, and one of another project.
fn world() -> (World, String) {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.file("replies.md", "reply fine\n");
    let id = world.run(&["spawn", "asks.md", "--name", "birthday"]).started();
    world.run(&["spawn", "replies.md"]).succeeds();
    std::fs::create_dir(world.home().join("other")).unwrap();
    let other = world.home().join("other");
    world
        .run(&["spawn", "asks.md", "--cwd", other.to_str().unwrap(), "--permission-mode", "bypassPermissions"])
        .succeeds();
    (world, id)
}

#[test]
fn a_list_has_the_open_chains_of_the_project_and_counts_the_others() {
    let (world, _) = world();
    let outcome = world.run(&["ls"]);
    insta::assert_snapshot!(outcome, @"
    CHAIN     STATE  AGE  COST   NAME      TASK
    [ID1:8]  asks   [AGE]  $0.03  birthday  asks.md  [ID2:8]: When?, asked [AGE] ago
    --- stderr
    1 chain of another project: agent-cli ls --all-projects
    1 chain that is done: agent-cli ls --all
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.command(["ls", "-ap"]).on_terminal(40), @"
    CHAIN     STATE  NAME
    [ID3:8]  asks   other: asks.md
      [ID4:8]: When?, asked [AGE] ago
    [ID1:8]  asks   birthday
      [ID2:8]: When?, asked [AGE] ago
    [ID5:8]  done   replies.md
    --- exit status: 0
    ");
    let coloured = world.command(["ls", "-a", "--color", "always"]).on_terminal(80).stdout;
    assert!(coloured.contains("\u{1b}[1m\u{1b}[33masks\u{1b}[0m"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[2mdone\u{1b}[0m"), "{coloured:?}");
    for args in [["tree", "birthday"], ["show", "birthday"]] {
        let coloured = world.run(&[&["--color", "always"], &args[..]].concat()).stdout;
        assert!(coloured.contains("\u{1b}[1m\u{1b}[33masks\u{1b}[0m"), "{coloured:?}");
    }
    for name in ["over-budget", "over_budget", "over budget", "can_continue", "approve?", "plan?"] {
        let said = world.run(&["ls", "--status", name]);
        assert!(said.succeeds().stderr.starts_with("no chain in this project has the status "), "{name}: {said}");
    }
    let plain = world.command(["ls", "-a"]).with("NO_COLOR", "1").on_terminal(80).stdout;
    assert!(plain.contains("asks") && !plain.contains('\u{1b}'), "{plain:?}");
    let count = |args: &[&str]| world.run(&[&["ls", "--json"], args].concat()).json().as_array().map(Vec::len);
    assert_eq!(count(&[]), Some(1));
    assert_eq!(count(&["--all"]), Some(2));
    assert_eq!(count(&["--all-projects"]), Some(2));
    assert_eq!(count(&["-ap"]), Some(3));
    assert_eq!(count(&["-ap", "--limit", "2"]), Some(2));
    assert_eq!(count(&["--status", "done"]), Some(1));
    assert_eq!(count(&["--status", "failed"]), Some(0));
}

#[test]
fn a_repository_is_one_project() {
    let (world, _) = world();
    std::fs::create_dir_all(world.project().join("src/deep")).unwrap();
    let at = |dir: &str| {
        let command = world.command(["ls", "--json"]).within(&world.project().join(dir));
        command.run().json().as_array().map(Vec::len)
    };
    assert_eq!(at("src/deep"), Some(0));
    std::fs::create_dir(world.project().join(".git")).unwrap();
    assert_eq!(at("src/deep"), Some(1));
}

#[test]
fn a_chain_goes_by_its_name_and_the_newest_by_last() {
    let (world, id) = world();
    let named = |args: &[&str]| world.run(args).json();
    assert_eq!(named(&["show", "birthday", "--json"])["id"], id.as_str());
    assert_eq!(named(&["tree", "birthday", "--json"])[0]["id"], id.as_str());
    assert_eq!(named(&["show", "last", "--json"])["status"], "done", "that of another project is newer");
    assert_eq!(named(&["questions", "birthday", "--json"])[0]["question"], "When?");
    world.run(&["answer", "birthday", "Jan 1st"]).succeeds();
    world.run(&["resume", "birthday"]).prints("Jan 1st");
    world.run(&["rm", "birthday", "--yes"]).succeeds();
    world.run(&["show", "birthday"]).exits_with(3);
}

#[test]
fn a_name_is_unused_and_no_id() {
    let (world, _) = world();
    insta::assert_snapshot!(world.run(&["spawn", "asks.md", "--name", "birthday"]), @"
    --- stderr
    error: another chain, [ID1:8], is already named birthday
    hint: give another name; agent-cli resume [ID1:8] continues that chain
    --- exit status: 2
    ");
    for bad in ["last", "cafe", "a b", "", "7up"] {
        world.run(&["spawn", "asks.md", "--name", bad]).exits_with(2);
    }
    world.run(&["answer", "birthday", "x"]).succeeds();
    world.run(&["resume", "birthday"]).prints("x");
    world.run(&["spawn", "asks.md", "--name", "birthday"]).started();
}

/// How many chains `ls` shows with this name.
fn named(world: &World, name: &str) -> usize {
    let listed = world.run(&["ls", "-ap", "--json"]).json();
    listed.as_array().into_iter().flatten().filter(|chain| chain["name"] == name).count()
}

#[test]
fn a_chain_that_is_continued_gives_its_name_up_to_the_one_that_has_it() {
    let (world, first) = world();
    world.run(&["pause", "birthday"]).succeeds();
    let second = world.run(&["spawn", "asks.md", "--name", "birthday"]).started();
    assert_eq!(named(&world, "birthday"), 2, "one of them is paused");
    let continued = world.run(&["resume", &first]);
    let lost = format!("the chain {} is no longer named birthday: another chain has this name", &first[..8]);
    assert!(continued.succeeds().stderr.contains(&lost), "{continued}");
    assert_eq!(named(&world, "birthday"), 1);
    assert_eq!(world.run(&["show", "birthday", "--json"]).json()["id"], second.as_str());
    assert_eq!(world.events(&first, "name_lost").len(), 1);
    assert!(!world.run(&["resume", &first]).succeeds().stderr.contains("no longer named"), "it is said once");
    world.run(&["fsck"]).succeeds();
}

#[test]
fn a_chain_that_is_imported_leaves_its_name_to_the_one_that_has_it() {
    let (world, first) = world();
    let archive = crate::archive::export(&world, &first);
    world.run(&["rm", &first, "--yes"]).succeeds();
    let second = world.run(&["spawn", "asks.md", "--name", "birthday"]).started();
    let imported = crate::archive::import(&world, &archive, &[]);
    assert!(imported.succeeds().stderr.contains("imported without its name, which another chain has"), "{imported}");
    assert_eq!(named(&world, "birthday"), 1);
    assert_eq!(world.run(&["show", "birthday", "--json"]).json()["id"], second.as_str());
}

#[test]
fn agents_reach_no_chain_by_its_name() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "asks.md", "--name", "secret"]).started();
    world.file("peeks.md", "run agent-cli show secret 2>&1; agent-cli show last 2>&1; true\nreply {result}\n");
    let reply = world.run(&["spawn", "peeks.md", "--permission-mode", "bypassPermissions"]).stdout;
    assert_eq!(reply.matches("agents name other agents by their ids").count(), 2, "{reply}");
}

#[test]
fn a_conversation_is_opened_by_people_who_have_one() {
    let (world, id) = world();
    let outcome = world.run(&["open", "birthday"]);
    insta::assert_snapshot!(outcome, @"
    cd [PROJECT] && [STAND-IN] --resume [ID1] --fork-session
    --- exit status: 0
    ");
    assert_eq!(
        world.run(&["show", &id, "--json"]).json()["open"].as_str().map(|open| format!("{open}\n")),
        Some(outcome.stdout)
    );
    world.run(&["spawn", "asks.md", "asks.md", "--name", "two"]).started();
    insta::assert_snapshot!(world.run(&["open", "two"]), @"
    --- stderr
    error: [ID6:8] is a group of agents, which has no conversation: name one of them
    hint: agent-cli tree [ID6:8] shows them
    --- exit status: 2
    ");
    world.file("opens.md", "run agent-cli open last 2>&1; true\nreply {result}\n");
    let reply = world.run(&["spawn", "opens.md", "--permission-mode", "bypassPermissions"]).stdout;
    assert!(reply.contains("agents cannot open conversations"), "{reply}");
}

/// The state of the newest chain, as `ls` prints it.
fn status_of_newest(world: &World) -> String {
    let listed = world.run(&["ls", "-a"]).stdout;
    let cell = listed.lines().nth(1).and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(world.run(&["ls", "-a", "--json"]).json()[0]["state"].as_str(), cell);
    cell.expect("a chain").to_owned()
}

#[test]
fn the_status_of_a_chain_follows_from_its_agents() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md\nreply {results}\n");
    world.file("child.md", "hold gate\nask When?\nreply ok\n");
    let none = world.run(&["ls", "--status", "paused"]);
    assert_eq!(
        (none.stdout.as_str(), none.log.as_str()),
        ("", "no chains yet\nhint: agent-cli spawn FILE starts one\n")
    );
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    assert_eq!(status_of_newest(&world), "working");
    let child = world.log().starts[1].session()[..8].to_owned();
    let only = |status: &str| world.run(&["ls", "--status", status]).stdout.lines().count();
    assert_eq!(["running", "waiting", "paused"].map(only), [2, 0, 0]);
    let none = world.run(&["ls", "--status", "paused"]);
    assert_eq!(
        none.log,
        "no chain in this project has the status paused\nhint: agent-cli ls --all lists all chains of this project\n"
    );
    world.run(&["pause", &child, "--now"]).succeeds();
    spawn.ends().succeeds();
    assert_eq!(status_of_newest(&world), "paused");
    assert_eq!(["running", "waiting", "paused"].map(only), [0, 0, 2]);
    let resume = world.command(["resume", &child]).start();
    gate.reached_by(2);
    resume.signal(rustix::process::Signal::INT);
    // From then on the agent stops after its tool.
    let is_stop = |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name == "stop");
    wait_until("the agent is to stop", || files_below(&world.state()).iter().any(is_stop));
    gate.open_for_one();
    resume.ends().exits_with(130);
    assert_eq!(status_of_newest(&world), "interrupted");
    assert!(world.run(&["ls"]).stdout.contains("  interrupted  "));
    assert_eq!(["running", "waiting", "cancelled"].map(only), [0, 0, 2]);
}

#[test]
fn what_is_listed_without_an_id_is_of_this_project() {
    let world = World::new();
    world.file("other/asks.md", "ask Elsewhere?\nreply {result}\n");
    let project = world.project().join("other");
    std::fs::create_dir_all(project.join(".git")).expect("it can be made");
    world.file("asks.md", "ask Here?\nreply {result}\n");
    world.run(&["spawn", "asks.md"]).started();
    let elsewhere = project.display().to_string();
    world.run(&["spawn", "other/asks.md", "--cwd", &elsewhere]).started();
    let questions = world.run(&["questions"]);
    assert!(questions.stdout.contains("Here?") && !questions.stdout.contains("Elsewhere?"), "{questions}");
    assert_eq!(questions.log, "1 question of another project: agent-cli questions --all-projects\n");
    let tree = world.run(&["tree"]);
    assert_eq!(
        (tree.stdout.lines().count(), tree.log.as_str()),
        (1, "1 chain of another project: agent-cli tree --all-projects\n")
    );
    assert_eq!(world.run(&["tree", "-p"]).stdout.lines().count(), 2);
    assert_eq!(world.run(&["questions", "-p", "--json"]).json().as_array().map(Vec::len), Some(2));
    let first = world.run(&["questions", "-p", "-n", "1"]);
    assert_eq!(first.log, "there are more: agent-cli questions --all-projects --limit N\n");
    let answered = world.run(&["questions", "--all", "-p", "-n", "1"]);
    assert_eq!(answered.log, "there are more: agent-cli questions --all --all-projects --limit N\n");
    let waiting = world.run(&["ls", "-p", "-n", "1", "--status", "waiting"]);
    assert_eq!(waiting.log, "1 more chain: agent-cli ls --all-projects --status waiting --limit N\n");
    assert_eq!(world.run(&["ls", "-p", "-n", "1"]).log, "1 more chain: agent-cli ls --all-projects --limit N\n");
}

#[test]
fn a_person_gives_a_chain_another_name_or_none() {
    let (world, id) = world();
    insta::assert_snapshot!(world.run(&["name", "birthday", "party"]), @"
    [ID1:8] is named party
    --- exit status: 0
    ");
    assert_eq!(world.run(&["name", &id[..8], "feast", "--json"]).json(), json!({"chain": id, "name": "feast"}));
    let other = world.run(&["spawn", "asks.md", "--name", "party"]).started();
    insta::assert_snapshot!(world.run(&["name", &other, "feast"]).exits_with(2), @"
    --- stderr
    error: another chain, [ID1:8], is already named feast
    hint: agent-cli name [ID1:8] --clear removes it from that chain
    --- exit status: 2
    ");
    world.run(&["name", "feast", "--clear"]).prints(&format!("{} has no name", &id[..8]));
    assert_eq!(world.run(&["name", "party", "--clear", "--json"]).json()["name"], Value::Null);
    world.run(&["show", "party"]).exits_with(3);
    let missing = world.run(&["name", "last"]).exits_with(2).stderr.clone();
    assert!(missing.contains("CHAIN NAME\n") && missing.contains("CHAIN --clear\n"), "{missing}");
    for wrong in [&["name", &id][..], &["name", &id, "x", "--clear"], &["name", &id, "last"]] {
        world.run(wrong).exits_with(2);
    }
    world.file("names.md", format!("run agent-cli name {id} mine 2>&1; true\nreply {{result}}\n"));
    let refused = world.run(&["spawn", "names.md"]).stdout;
    assert!(refused.contains("agents cannot name chains"), "{refused}");
}

#[test]
fn a_narrow_terminal_shows_what_is_asked() {
    let world = World::new();
    world.file(
        "asks.md",
        "ask Which of the two servers shall get the release tonight, and who will look after it?\nreply x\n",
    );
    world.spawn_paused("asks.md");
    insta::assert_snapshot!(world.command(["ls"]).on_terminal(100), @"
    CHAIN     STATE  AGE  COST   TASK
    [ID1:8]  asks   [AGE]  $0.03  asks.md
      [ID2:8]: Which of the two servers shall get the release tonight, and who will look after it?,
      asked [AGE] ago
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.command(["ls"]).on_terminal(60), @"
    CHAIN     STATE  AGE  COST   TASK
    [ID1:8]  asks   [AGE]  $0.03  asks.md
      [ID2:8]: Which of the two servers shall get the release
      tonight, and who will look after it?, asked [AGE] ago
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.command(["ls"]).on_terminal(40), @"
    CHAIN     STATE  TASK
    [ID1:8]  asks   asks.md
      [ID2:8]: Which of the two servers
      shall get the release tonight, and who
      will look after it?, asked [AGE] ago
    --- exit status: 0
    ");
    let id = world.run(&["questions", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    for command in ["questions", "show"] {
        let shown = world.command([command, &id]).with("PAGER", "cat").on_terminal(40).stdout;
        let header = shown.lines().skip_while(|line| !line.starts_with(&id[..8])).take(2).collect::<Vec<_>>();
        assert!(header.iter().all(|line| line.chars().count() <= 40) && header[1].ends_with("ago)"), "{shown}");
        let piped = world.run(&[command, &id]).stdout;
        assert!(piped.lines().any(|line| line.contains("tonight, and who will look after it?")), "{piped}");
    }
}
