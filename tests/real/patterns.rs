//! The patterns in `examples/patterns`: what each of them is for happens with these very files.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::birthday::shares_its_prefix;
use crate::chain::{Chain, Said};
use crate::processes::wait_until;
use crate::support::{MessagesApi, NEWEST, Pattern, RecordedRequest, as_shell, on_every_version_before_a_release};

on_every_version_before_a_release!(
    prompt_chaining_stops_at_a_gate,
    sections_are_one_call,
    votes_are_counted,
    a_ticket_goes_to_one_agent,
    workers_are_as_many_as_the_orchestrator_finds,
    what_is_written_is_judged_until_it_holds,
    forked_reviewers_share_what_the_reviewer_has_read,
    only_the_leaf_is_woken_for_its_two_answers,
    the_desk_is_not_woken_for_the_reply,
    a_build_in_the_background_is_joined_when_the_notes_are_written,
    a_refund_above_the_limit_is_for_a_person,
    the_agent_sees_one_form_of_what_tools_print,
);

#[test]
fn every_pattern_is_described() {
    let page = include_str!("../../docs/patterns.md");
    for name in Pattern::names() {
        assert!(page.contains(&format!("| `{name}` | ")), "{name} is not in docs/patterns.md");
    }
}

/// A project with the files of a pattern.
fn project(version: &str, name: &str) -> Chain {
    let pattern = Pattern::named(name);
    let chain = Chain::with_model(version, MessagesApi::start(pattern.model()));
    pattern.copy_to(&chain.home);
    chain
}

/// Starts the chain with the command in the pattern's README.
fn spawn(chain: &Chain, name: &str) -> Said {
    chain.shell(&command(name))
}

fn command(name: &str) -> String {
    let mut commands = Pattern::named(name).commands().into_iter();
    commands.find(|command| command.starts_with("agent-cli spawn ")).unwrap()
}

/// The reply of a chain that does not pause.
fn reply(chain: &Chain, name: &str) -> String {
    let said = spawn(chain, name);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.out.trim_end().to_owned()
}

/// Gives the other commands in the pattern's README, and returns the last reply.
fn go_on(chain: &Chain, name: &str) -> String {
    let commands = Pattern::named(name).commands();
    let mut last = None;
    for command in commands.iter().filter(|command| !command.starts_with("agent-cli spawn ")) {
        let questions = chain.json(&["questions", "--json"]);
        let question = questions[0]["id"].as_str().unwrap_or_default();
        let said = chain.shell(&command.replace("QUESTION", question).replace("ID", &chain.only_root()));
        assert_eq!(said.code, Some(0), "{command}: {said:?}");
        last = Some(said);
    }
    last.unwrap().out.trim_end().to_owned()
}

/// The agents of the only chain: each task, and that of its caller.
fn calls(chain: &Chain) -> Vec<(String, String)> {
    let agents = agents(chain);
    let task_of = |id: &Value| agents.iter().find(|agent| agent["id"] == *id).map_or(String::new(), task);
    agents.iter().map(|agent| (task_of(&agent["parent"]), task(agent))).collect()
}

fn agents(chain: &Chain) -> Vec<Value> {
    chain.json(&["tree", &chain.only_root(), "--json"]).as_array().unwrap().clone()
}

fn task(agent: &Value) -> String {
    agent["task"].as_str().unwrap().to_owned()
}

fn called(calls: &[(&str, &str)]) -> Vec<(String, String)> {
    calls.iter().map(|(caller, task)| ((*caller).to_owned(), (*task).to_owned())).collect()
}

fn prompt_chaining_stops_at_a_gate(version: &str) {
    let chain = project(version, "prompt-chaining");
    assert_eq!(reply(&chain, "prompt-chaining"), "Name your chains, and take them along");
    let announcement = "announcement.md";
    assert_eq!(
        calls(&chain),
        called(&[
            ("", announcement),
            (announcement, "outline.md"),
            (announcement, "text.md"),
            (announcement, "headline.md")
        ])
    );

    let chain = project(version, "prompt-chaining");
    chain.home.write("changes.txt", "names: a\nprices: b\n");
    assert!(reply(&chain, "prompt-chaining").contains("missing: prices"));
    assert_eq!(calls(&chain), called(&[("", announcement), (announcement, "outline.md")]));
}

fn sections_are_one_call(version: &str) {
    let chain = project(version, "sectioning");
    let reply = reply(&chain, "sectioning");
    let found =
        ["1 of 3: security.md", "12: the customer", "2 of 3: speed.md", "14: a query", "3 of 3: errors.md", "17: "];
    let at: Vec<_> = found.iter().map(|part| reply.find(part)).collect();
    assert!(at.is_sorted() && at[0].is_some(), "{reply}");
    let group = "security.md speed.md errors.md";
    let all = ["security.md", "speed.md", "errors.md"].map(|task| (group, task));
    assert_eq!(calls(&chain), called(&[&[("", "review.md"), ("review.md", group)], &all[..]].concat()));
}

fn votes_are_counted(version: &str) {
    let chain = project(version, "voting");
    assert_eq!(reply(&chain, "voting"), "unsafe, by 2 of 3 votes");

    let chain = project(version, "voting");
    chain.home.write("migration.sql", "create index orders_by_customer on orders (customer);\n");
    assert_eq!(reply(&chain, "voting"), "safe, by 2 of 3 votes");
}

fn a_ticket_goes_to_one_agent(version: &str) {
    let front = "front.md";
    for (ticket, answer, agent) in [
        ("My card was charged twice.", "The second charge is for November", Some("billing.md")),
        ("It crashes.", "Please update", Some("technical.md")),
        ("I like it.", "Ada does", None),
    ] {
        let chain = project(version, "routing");
        chain.home.write("ticket.txt", ticket);
        let mut said = spawn(&chain, "routing");
        if agent.is_none() {
            chain.answer("Ada does");
            said = chain.run(&["resume", &chain.only_root()]);
        }
        assert!(said.code == Some(0) && said.out.starts_with(answer), "{said:?}");
        let calls = calls(&chain);
        let routed: Vec<_> = agent.into_iter().map(|agent| (front, agent)).collect();
        assert_eq!(calls, called(&[&[("", front), (front, "classify.md")], &routed[..]].concat()));
        let by_haiku = chain.api.requests().into_iter().filter(|request| request.model().contains("haiku"));
        assert_eq!(by_haiku.count(), 3, "only the classifier is the small model: {calls:?}");
    }
}

fn workers_are_as_many_as_the_orchestrator_finds(version: &str) {
    let chain = project(version, "orchestrator-workers");
    assert_eq!(reply(&chain, "orchestrator-workers"), "no fetch_user is left");
    let tasks: Vec<_> = calls(&chain).into_iter().skip(2).map(|(_, task)| task).collect();
    assert_eq!(tasks.len(), 3);
    for (task, file) in tasks.iter().zip(["users.py", "report.py", "users.txt"]) {
        assert!(task.contains(file), "{tasks:?}");
    }
    let written = |name: &str| fs::read_to_string(chain.home.project().join("src").join(name)).unwrap();
    assert!(written("users.py").contains("fetch_user = load_user") && written("users.txt").contains("cache"));
    assert_eq!(written("report.py"), "from users import load_user\n\nprint(load_user(\"ada\"))\n");
}

fn what_is_written_is_judged_until_it_holds(version: &str) {
    let name = "evaluator-optimizer";
    let rounds = |count: usize| {
        let round = [("summary.md", "write.md"), ("summary.md", "judge.md")];
        called(&[&[("", "summary.md")], &round.repeat(count)[..]].concat())
    };
    let chain = project(version, name);
    assert!(reply(&chain, name).contains("decide by 7 December"));
    assert_eq!(calls(&chain), rounds(2));
    // The judge knows the report and the summary, and nothing of how it was written.
    let judges = chain.api.requests().into_iter().map(|request| request.conversation());
    let judges = judges.filter(|said| said.task().contains("judge.md")).collect::<Vec<_>>();
    assert!(judges.iter().all(|said| !said.items().iter().any(|item| format!("{item:?}").contains("criticism"))));

    let chain = project(version, name);
    chain.home.write("report.txt", "The disk is at 81 percent, and full on 2 January.\n");
    assert!(spawn(&chain, name).out.starts_with("SGN_PEND_STARTED"));
    assert_eq!(calls(&chain), rounds(3));
    let asked = &chain.json(&["questions", "--json"])[0];
    assert_eq!(asked["context"], "Not every number is in the report.", "{asked}");
    chain.answer("None");
    assert_eq!(chain.ok(&["resume", &chain.only_root()]), "None\n");
}

fn forked_reviewers_share_what_the_reviewer_has_read(version: &str) {
    let chain = project(version, "forked-review");
    let reply = reply(&chain, "forked-review");
    assert!(reply.ends_with("Between files: cart.py:3: the discount is in euros, and price.py subtracts cents"));
    let requests = chain.api.requests();
    let has =
        |request: &RecordedRequest, text: &str| request.conversation().user_texts().any(|said| said.contains(text));
    let of_caller: Vec<_> = requests.iter().filter(|request| !has(request, "Review src/")).collect();
    let read = |request: &RecordedRequest| request.conversation().result_texts().join("\n");
    for (file, other) in [("cart.py", "def total"), ("price.py", "def line")] {
        let of_fork: Vec<_> = requests.iter().filter(|request| has(request, &format!("Review src/{file}."))).collect();
        assert_eq!(of_fork.len(), 2, "{file}: it reads nothing but its file");
        shares_its_prefix(of_caller[3], of_fork[0]);
        assert!(read(of_fork[1]).contains("Money is in cents") && !read(of_fork[1]).contains(other));
    }
    // The pass across files comes when all forks have replied.
    assert!(
        ["no breach.", "cart.py:2: it prints"].iter().all(|said| read(of_caller[4]).contains(said))
            && of_caller.len() == 6,
        "{}",
        of_caller.len()
    );
}

fn only_the_leaf_is_woken_for_its_two_answers(version: &str) {
    let chain = project(version, "call-tree").without_lingering();
    let said = spawn(&chain, "call-tree");
    assert!(said.out.starts_with("SGN_PEND_STARTED"), "{said:?}");
    assert_eq!(calls(&chain), called(&[("", "front.md"), ("front.md", "order.md"), ("order.md", "refund.md")]));
    let requests = chain.api.count();
    assert_eq!(go_on(&chain, "call-tree"), "We are sorry. This is on its way to you: A-17: 40 euros by voucher.");
    // Two of the leaf, and one of each agent above it.
    assert_eq!(chain.api.count() - requests, 4);
    let leaf = chain.api.requests()[requests + 1].conversation();
    assert!(leaf.task().contains("refund.md") && leaf.result_texts()[2..] == ["A-17", "voucher"], "{leaf:?}");
}

fn the_desk_is_not_woken_for_the_reply(version: &str) {
    let chain = project(version, "handoff-desk");
    assert!(spawn(&chain, "handoff-desk").out.starts_with("SGN_PEND_STARTED"));
    let all = agents(&chain);
    let successors: Vec<_> = all.iter().map(|agent| agent["handed_off_to"].clone()).collect();
    assert_eq!(successors, [all[1]["id"].clone(), all[2]["id"].clone(), Value::Null]);
    assert_eq!(calls(&chain), called(&[("", "desk.md"), ("desk.md", "repairs.md"), ("repairs.md", "warranty.md")]));
    let requests = chain.api.count();
    let reply = go_on(&chain, "handoff-desk");
    assert_eq!(reply, "A parcel label for SN-4711 is in your mail. The repair is free.");
    assert_eq!(chain.api.count() - requests, 1, "only the specialist replies");
}

fn a_build_in_the_background_is_joined_when_the_notes_are_written(version: &str) {
    let name = "background-build";
    let file = |chain: &Chain, name: &str| chain.home.project().join(name);
    let chain = project(version, name);
    // The build takes until there is something to read.
    let source = file(&chain, "src/2.txt");
    fs::remove_file(&source).unwrap();
    assert!(Command::new("mkfifo").arg(&source).status().unwrap().success());
    let mut spawn = as_shell(&chain.command(), &command(name));
    let spawn = spawn.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the notes are written", || file(&chain, "notes.txt").exists());
    assert!(!file(&chain, "dist/app.txt").exists());
    fs::write(&source, "The second half.\n").unwrap();
    let said = Said::from(spawn.wait_with_output().unwrap());
    assert_eq!(said.out, "released 2 lines with 1 notes\n", "{said:?}");
    assert_eq!(calls(&chain), called(&[("", "release.md"), ("release.md", "build.md")]));

    let chain = project(version, name);
    chain.home.write("src/2.txt", "");
    let reply = reply(&chain, name);
    assert!(reply.starts_with("not released: ") && reply.contains("src/2.txt: it is empty"), "{reply}");
    assert!(file(&chain, "notes.txt").exists() && !file(&chain, "dist/app.txt").exists());
}

fn a_refund_above_the_limit_is_for_a_person(version: &str) {
    let chain = project(version, "refund-policy");
    let paid = || fs::read_to_string(chain.home.project().join("refunds.csv")).unwrap();
    assert!(spawn(&chain, "refund-policy").out.starts_with("SGN_PEND_STARTED"));
    assert_eq!(paid(), "A-1,120\n", "no one is asked about 120");
    let asked = &chain.json(&["questions", "--json"])[0];
    assert_eq!(asked["input"]["command"], "./refund.sh B-2 900");
    assert_eq!(asked["reason"], "900 in all for order B-2", "{asked}");
    // 900 is allowed, and the rest of what was once 570 is not.
    let reply = go_on(&chain, "refund-policy");
    assert!(reply.ends_with("A-1: 450 denied: Offer a voucher."), "{reply}");
    assert_eq!(paid(), "A-1,120\nB-2,900\n");
}

/// The commands with which an agent could pay more than one by one.
#[test]
fn the_policy_decides_about_every_command_that_refunds() {
    let chain = project(NEWEST, "refund-policy");
    chain.home.write("refunds.csv", "A-1,450\nB-2,900\n");
    for (command, decision) in [
        ("./refund.sh C-3 500", Some("allow")),
        ("./refund.sh C-3 501", Some("ask")),
        ("./refund.sh A-1 50", Some("allow")),
        ("./refund.sh A-1 51", Some("ask")),
        ("./refund.sh B-2 1", Some("ask")),
        ("./refund.sh C-3 1\n./refund.sh C-3 1000", Some("ask")),
        ("./refund.sh C-3 1; ./refund.sh C-3 1000", Some("ask")),
        ("./refund.sh C-3 -1000", Some("ask")),
        ("sh refund.sh C-3 1", Some("ask")),
        ("cat requests.txt", None),
    ] {
        let mut hook = chain.home.command(".claude/hooks/refund-policy.sh");
        hook.env("CLAUDE_PROJECT_DIR", chain.home.project()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut hook = hook.spawn().unwrap();
        let input = json!({"tool_name": "Bash", "tool_input": {"command": command}});
        hook.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let said = hook.wait_with_output().unwrap();
        assert!(said.status.success());
        let said: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"].as_str(), decision, "{command}");
    }
}

fn the_agent_sees_one_form_of_what_tools_print(version: &str) {
    let chain = project(version, "normalised-output");
    let seen = [
        r#"{"order":"A-17","date":"2026-11-24","state":"sent"}"#,
        r#"{"order":"A-17","date":"2026-11-30","state":"in transit"}"#,
    ];
    assert_eq!(reply(&chain, "normalised-output"), seen.join("; "));
    let sent: Vec<_> = chain.api.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(!sent.iter().any(|body| body.contains("1795478400") || body.contains("IN_TRANSIT")));
}
