//! An API that is overloaded, throttles requests, or is unreachable: the chain waits, and nothing is lost.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::chain::{Chain, Said, TEMPLATE};
use crate::support::{Item, MessagesApi, Turn, follow, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(an_answer_outlasts_the_error,);

on_every_version_of_a_whole_run!(an_api_that_cannot_be_reached_is_waited_for, work_before_the_error_is_kept,);

/// A chain whose API fails with the status that is set, if one is, once the agent has read its instructions, or before.
fn failing(version: &str, after_work: bool) -> (Chain, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(0));
    let set = Arc::clone(&status);
    let api = MessagesApi::start(move |conversation| match set.load(Ordering::SeqCst) {
        0 => follow(conversation),
        _ if after_work && conversation.last_result().is_none() => follow(conversation),
        status => Turn::error(status, "api_error", "words").header("x-should-retry", "false"),
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    (chain, status)
}

fn waits_for_its_next_try(said: &Said, tries: u32) {
    assert_eq!(said.code, Some(0), "{said:?}");
    let reason = format!(" ({tries} failed so far): ");
    assert!(said.err.contains("waits for a retry at ") && said.err.contains(&reason), "{said:?}");
    assert!(said.err.contains("hint: agent-cli resume ") && said.err.contains(" --now "), "{said:?}");
}

fn work_before_the_error_is_kept(version: &str) {
    let (chain, status) = failing(version, true);
    status.store(529, Ordering::SeqCst);
    let said = chain.run(&["spawn", "ins.md"]);
    let root = chain.only_root();
    assert_eq!(said.out, format!("SGN_PEND_STARTED ({root})\n"), "{said:?}");
    waits_for_its_next_try(&said, 1);

    let (asked, transcripts) = (chain.api.count(), chain.home.transcripts());
    let said = chain.run(&["resume", &root]);
    assert_eq!((said.out.as_str(), chain.api.count()), ("SGN_PEND_ONGOING\n", asked), "{said:?}");
    waits_for_its_next_try(&said, 1);

    // What is tried again and fails before any work leaves nothing behind.
    for (another, tries) in [(429, 1), (500, 1)] {
        status.store(another, Ordering::SeqCst);
        waits_for_its_next_try(&chain.run(&["resume", &root, "--now"]), tries);
        assert_eq!(chain.home.transcripts(), transcripts);
    }

    status.store(0, Ordering::SeqCst);
    let before = chain.api.count();
    assert_eq!(chain.started(&["resume", &root, "--now"]), root);
    let resumed = chain.api.requests()[before].conversation();
    assert_eq!(resumed.items().iter().filter(|item| matches!(item, Item::Call { .. })).count(), 1, "it read once");
    let prompt = resumed.last_user_text().unwrap();
    assert!(prompt.starts_with("SGN_RESUME\n\nYour last turn was cut short: API Error: 529 "), "{prompt}");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}

/// The answer is to return from a suspended call.
fn an_answer_outlasts_the_error(version: &str) {
    let (chain, status) = failing(version, false);
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("Jan 1st");
    let transcripts = chain.home.transcripts();
    status.store(529, Ordering::SeqCst);
    waits_for_its_next_try(&chain.run(&["resume", &root]), 1);
    assert_eq!(chain.home.transcripts(), transcripts);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    status.store(0, Ordering::SeqCst);
    assert_eq!(chain.ok(&["resume", &root, "--now"]), "Jan 1st\n");
}

fn an_api_that_cannot_be_reached_is_waited_for(version: &str) {
    let (chain, status) = failing(version, false);
    // Claude Code itself would try for minutes.
    let once = |url: &str, arguments: &[&str]| {
        let mut command = chain.command();
        command.env("ANTHROPIC_BASE_URL", url).env("CLAUDE_CODE_MAX_RETRIES", "0").args(arguments);
        Said::from(command.output().unwrap())
    };
    // Nobody listens there any more.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    waits_for_its_next_try(&once(&format!("http://{address}"), &["spawn", "ins.md"]), 1);
    assert!(chain.home.transcripts().is_empty());
    let root = chain.only_root();
    assert_eq!(chain.started(&["resume", &root, "--now"]), root);

    // What no retry helps is told apart.
    chain.answer("Jan 1st");
    status.store(401, Ordering::SeqCst);
    let said = once(&chain.api.url(), &["resume", &root]);
    assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{said:?}");
    status.store(0, Ordering::SeqCst);
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}
