//! Claude Code cannot continue: no login, an error of the API, a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{Timestamp, ToSpan};

use crate::chain::{Chain, Said, TEMPLATE};
use crate::support::{Item, MessagesApi, Turn, follow, on_every_version};

const ASK: &str = "ask When?\nreply {result}\n";

on_every_version!(
    without_a_login_nothing_is_lost,
    an_error_of_the_api_costs_no_work,
    a_limit_of_turns_is_an_error_that_resume_carries_on_from,
    a_usage_limit_is_waited_for,
);

/// A chain whose API fails with `error` as long as the switch is on, but lets each agent read its instructions.
fn failing(version: &str, error: impl Fn() -> Turn + Send + Sync + 'static) -> (Chain, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&fails);
    let api = MessagesApi::start(move |conversation| {
        let has_worked = conversation.last_result().is_some();
        if has_worked && switch.load(Ordering::SeqCst) { error() } else { follow(conversation) }
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("ins.md", ASK);
    (chain, fails)
}

fn without_login(chain: &Chain, arguments: &[&str]) -> Said {
    Said::from(chain.command().env_remove("ANTHROPIC_API_KEY").args(arguments).output().unwrap())
}

fn without_a_login_nothing_is_lost(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", ASK);
    let refused = |said: Said| {
        assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{said:?}");
        assert!(said.err.contains("error: Not logged in"), "{said:?}");
        assert!(said.err.contains("hint: run claude and log in with /login"), "{said:?}");
    };
    refused(without_login(&chain, &["spawn", "ins.md"]));
    assert_eq!((chain.api.count(), chain.home.transcripts()), (0, vec![]));

    let root = chain.only_root();
    assert_eq!(chain.started(&["resume", &root]), root);
    let transcripts = chain.home.transcripts();
    chain.answer("Jan 1st");
    refused(without_login(&chain, &["resume", &root]));
    assert_eq!(chain.home.transcripts(), transcripts);
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}

fn an_error_of_the_api_costs_no_work(version: &str) {
    let error = || Turn::error(400, "invalid_request_error", "out of order");
    let (chain, fails) = failing(version, error);
    let failed = |arguments: &[&str], code: i32| {
        let said = chain.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{said:?}");
        assert!(said.err.contains("out of order") && said.err.contains("hint: agent-cli resume "), "{said:?}");
    };
    failed(&["spawn", "ins.md"], 1);
    let root = chain.only_root();
    // An attempt that meets the error before any work is a refusal: it leaves nothing behind.
    let transcripts = chain.home.transcripts();
    failed(&["resume", &root], 4);
    assert_eq!(chain.home.transcripts(), transcripts);
    fails.store(false, Ordering::SeqCst);
    let before = chain.api.count();
    assert_eq!(chain.started(&["resume", &root]), root);
    let resumed = chain.api.requests()[before].conversation();
    assert_eq!(resumed.items().iter().filter(|item| matches!(item, Item::Call { .. })).count(), 1);
    let prompt = resumed.last_user_text().unwrap();
    assert!(
        prompt.starts_with("SGN_RESUME\n\nYour last turn was cut short: API Error: ")
            && prompt.contains("out of order"),
        "{prompt}"
    );
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}

/// One turn an attempt: it reads, which is an error, it asks, and it replies.
fn a_limit_of_turns_is_an_error_that_resume_carries_on_from(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", ASK);
    let limited = |arguments: &[&str]| {
        let said = chain.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.contains("maximum number of turns"), "{said:?}");
    };
    limited(&["spawn", "ins.md", "--", "--max-turns", "1"]);
    let root = chain.only_root();
    assert_eq!(chain.started(&["resume", &root]), root);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), 2);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 3);
}

/// Only a subscription has one that names its end.
fn a_usage_limit_is_waited_for(version: &str) {
    let resets_at = Timestamp::now().checked_add(1.hour()).unwrap().as_second().to_string();
    let error = move || {
        Turn::error(429, "rate_limit_error", "This request would exceed your account's rate limit.")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", &resets_at)
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("anthropic-ratelimit-unified-overage-status", "rejected")
            .header("x-should-retry", "false")
    };
    let (chain, _) = failing(version, error);
    let subscribed = |arguments: &[&str]| {
        let mut command = chain.command();
        command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "dummy").args(arguments);
        Said::from(command.output().unwrap())
    };
    let said = subscribed(&["spawn", "ins.md"]);
    let root = chain.only_root();
    assert_eq!((said.code, said.out), (Some(0), format!("SGN_PEND_STARTED ({root})\n")), "{}", said.err);
    assert!(said.err.contains("waits for the usage limit to reset at "), "{}", said.err);
    let asked = chain.api.count();
    let said = subscribed(&["resume", &root]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "SGN_PEND_ONGOING\n"), "{}", said.err);
    assert_eq!(chain.api.count(), asked);
}
