//! Claude Code cannot continue: no login, an error of the API, a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{Timestamp, ToSpan};

use crate::chain::{Chain, Said, TEMPLATE};
use crate::support::{Item, MessagesApi, Turn, follow, on_every_version, on_every_version_before_a_release};

const ASK: &str = "ask When?\nreply {result}\n";

on_every_version!(
    without_a_login_nothing_is_lost, an_error_of_the_api_costs_no_work,
    a_limit_of_turns_is_an_error_that_resume_carries_on_from, a_usage_limit_is_waited_for,
);

on_every_version_before_a_release!(limits_count_over_pauses);

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

/// It asks, works and replies, and is limited as if its calls had merely taken long.
fn limits_count_over_pauses(version: &str) {
    let work = ["ask When?", "run echo a", "ask When?", "run echo b", "reply {result}"];
    let ended = |waits: bool, limit: &str| {
        let chain = Chain::new(version);
        let line = |line: &str| if waits { line.to_owned() } else { line.replace("ask When?", "run echo yes") };
        chain.home.write("ins.md", &work.map(line).join("\n"));
        let mut said = chain.run(&["spawn", "ins.md", "--permission-mode", "bypassPermissions", "--", limit]);
        let root = chain.only_root();
        while said.out.starts_with("SGN_PEND_STARTED") {
            chain.answer("yes");
            said = chain.run(&["resume", &root]);
        }
        let reason = said
            .err
            .split_once("Reached maximum")
            .map(|(_, reason)| reason.lines().next().unwrap().replace(&root[..8], "ID"));
        (chain.api.count(), said.code, said.out, reason, chain, root)
    };
    let cost = |chain: &Chain, root: &str| chain.json(&["show", root, "--json"])["cost_usd"].as_f64().unwrap();
    let (.., chain, root) = ended(false, "--max-turns=9");
    let a_turn = cost(&chain, &root) / 5.0;
    let budgets = [1.5, 2.5, 3.5].map(|turns| format!("--max-budget-usd={:.6}", a_turn * turns));
    let turns = [1, 2, 3, 4, 5].map(|turns| format!("--max-turns={turns}"));
    for limit in turns.iter().chain(&budgets) {
        let (requests, code, out, reason, ..) = ended(false, limit);
        let (counted, same_code, same_out, same_reason, chain, root) = ended(true, limit);
        assert_eq!((counted, same_code, same_out, same_reason), (requests, code, out, reason.clone()), "{limit}");
        // Who continues an agent that has met its limit gives it the same again.
        if limit == "--max-turns=3" {
            assert!(reason.is_some(), "{limit}");
            let root = chain.started(&["resume", &root, "--", "--max-turns=2"]);
            assert_eq!(chain.api.count(), 4);
            chain.answer("yes");
            let said = chain.run(&["resume", &root]);
            assert!(said.err.contains("Reached maximum number of turns (2)"), "{said:?}");
            assert_eq!(chain.api.count(), 5);
        }
    }
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
    // What is left after the pause is for the reply.
    assert_eq!(chain.started(&["resume", &root, "--", "--max-turns=2"]), root);
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
