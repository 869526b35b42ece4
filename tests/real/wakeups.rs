//! Wake-ups that agents schedule with Claude Code's own tool, two levels deep: nothing runs until then.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{
    Conversation, Hold, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run, processes_of,
};

on_every_version!(
    three_rounds_cost_three_requests_and_no_process, a_wakeup_beside_a_command_and_a_question_waits_for_both,
);

on_every_version_of_a_whole_run!(a_wakeup_survives_a_killed_runner_and_a_killed_claude,);

/// The call of the tool. 2.1.330 has a field that 2.1.197 refuses.
pub(crate) fn wakeup(version: &str, seconds: u32, prompt: &str) -> Turn {
    let mut input = json!({"delaySeconds": seconds, "reason": "a build runs", "prompt": prompt});
    if version == crate::support::NEWEST {
        input["noop"] = json!(false);
    }
    Turn::call("ScheduleWakeup", input)
}

fn calls_of(said: &Conversation, tool: &str) -> usize {
    said.calls().filter(|(name, _)| *name == tool).count()
}

/// A root that starts `agent`, and replies with what that has said.
pub(crate) fn above(version: &str, agent: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Chain {
    let model = move |said: &Conversation| match (said.task().contains("root.md"), said.last_result()) {
        (true, None) => Turn::bash("agent-cli spawn child.md"),
        (true, Some(reply)) => Turn::text(format!("the child says: {reply}")),
        (false, _) => agent(said),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("root.md", "Start child.md.");
    chain.home.write("child.md", "Look until it is done.");
    chain
}

/// Lets the times come that agents have set.
pub(crate) fn time_passes(chain: &Chain) {
    let database = chain.database();
    let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.scheduled.at', '2026-01-01T00:00:00Z')";
    database.execute(sql, []).unwrap();
}

pub(crate) fn waits_for(chain: &Chain, root: &str) -> Value {
    chain.json(&["resume", root, "--json"])["waiting_on"].clone()
}

fn three_rounds_cost_three_requests_and_no_process(version: &str) {
    let of = version.to_owned();
    let chain = above(version, move |said| match calls_of(said, "ScheduleWakeup") {
        round @ 0..3 => wakeup(&of, 1_200, &format!("Look again: round {}.", round + 1)),
        _ => Turn::text("it is done"),
    });
    let root = chain.started(&["spawn", "root.md"]);
    assert_eq!(chain.api.count(), 2);
    for round in 1..=3 {
        assert!(processes_of(&chain.state()).is_empty());
        let before = chain.api.count();
        let waits = waits_for(&chain, &root);
        assert_eq!(waits[0]["wait"]["scheduled"]["prompt"], format!("Look again: round {round}."), "{waits}");
        let due: jiff::Timestamp = waits[0]["wait"]["scheduled"]["at"].as_str().unwrap().parse().unwrap();
        assert!(due > jiff::Timestamp::now());
        for shown in [chain.ok(&["tree", &root]), chain.run(&["resume", &root]).err] {
            assert!(shown.contains("its wake-up at ") && shown.contains(" min): Look again"), "{shown}");
        }
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        assert_eq!(chain.api.count(), before);
        time_passes(&chain);
        let said = chain.run(&["resume", &root]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let requests = chain.api.requests();
        let of_the_child = requests[before].conversation();
        assert_eq!(of_the_child.last_user_text(), Some(format!("Look again: round {round}.").as_str()));
        let result = of_the_child.last_result().unwrap();
        assert!(result.starts_with("Next wakeup scheduled for ") && result.contains("(in 1200s)"), "{result}");
        // The last round also ends the child and wakes the root.
        assert_eq!(requests.len() - before, if round == 3 { 2 } else { 1 });
        if round == 3 {
            assert_eq!(said.out, "the child says: it is done\n");
        } else {
            assert!(said.out.starts_with("SGN_PEND_STARTED"), "{said:?}");
        }
    }
    assert_eq!(chain.ok(&["resume", &root]), "the child says: it is done\n");
}

fn a_wakeup_beside_a_command_and_a_question_waits_for_both(version: &str) {
    let of = version.to_owned();
    let chain = above(version, move |said| match calls_of(said, "ScheduleWakeup") {
        0 => Turn::bash("echo ran")
            .and_bash("agent-cli ask 'Go?'")
            .and(wakeup(&of, 60, "Look again.").tool_calls()[0].clone()),
        _ => {
            let results: Vec<_> = said.results().map(|(text, _)| text.chars().take(21).collect::<String>()).collect();
            Turn::text(format!("{} after {}", said.last_user_text().unwrap(), results.join(", ")))
        }
    });
    let root = chain.started(&["spawn", "root.md"]);
    time_passes(&chain);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    let before = chain.api.count();
    chain.answer("yes");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.starts_with("the child says: Look again. after "), "{reply}");
    for result in ["ran", "yes", "Next wakeup scheduled"] {
        assert!(reply.contains(result), "{reply}");
    }
    assert_eq!(chain.api.count() - before, 2);
}

/// The runner dies while the child is about to call the tool, and later a `claude` that was woken.
fn a_wakeup_survives_a_killed_runner_and_a_killed_claude(version: &str) {
    let (of, holds) = (version.to_owned(), [Hold::new(), Hold::new()]);
    let held = holds.clone();
    let chain = above(version, move |said| match calls_of(said, "ScheduleWakeup") {
        0 => wakeup(&of, 60, "Look again.").held(&held[0]),
        _ => Turn::text("it is done").held(&held[1]),
    })
    .without_lingering();
    let runner = chain.start(&["spawn", "root.md"]);
    chain.api.wait_until(|requests| requests.len() == 2);
    let claude = runner.claude();
    runner.killed();
    holds[0].release();
    claude.has_ended();
    let root = chain.only_root();
    assert_eq!(waits_for(&chain, &root)[0]["wait"]["scheduled"]["prompt"], "Look again.");
    time_passes(&chain);
    let resume = chain.start(&["resume", &root]);
    chain.api.wait_until(|requests| requests.len() == 3);
    resume.claude().kill();
    assert_eq!(resume.ends().code, Some(1));
    holds[1].release();
    assert_eq!(chain.ok(&["resume", &root]), "the child says: it is done\n");
    let requests = chain.api.requests();
    assert_eq!(requests.len(), 5);
    let told = requests[3].conversation();
    let times = |text: &str| told.user_texts().filter(|said| *said == text).count();
    assert_eq!(times("Look again."), 1, "{told:?}");
}
