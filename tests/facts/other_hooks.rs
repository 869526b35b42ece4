//! The user's own hooks and rules together with ours.

use serde_json::{Value, json};

use crate::session::{REQUEST, Session, decision, results, run_instead};
use crate::support::{Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_users_hook_is_run_beside_ours_and_a_deferral_beats_its_allow,
    a_users_hook_that_denies_beats_a_deferral,
    a_users_hook_that_asks_keeps_a_resumed_call_from_its_result,
    of_two_hooks_that_rewrite_the_last_to_end_wins,
    a_users_hook_that_hangs_is_waited_for_until_its_timeout,
    a_deny_rule_counts_for_the_command_that_is_run_instead,
    a_hook_after_the_call_is_told_the_command_that_was_run_instead_and_replaces_its_output,
    commands_in_skills_are_run_without_hooks_and_fail_the_skill,
);

fn a_users_hook_is_run_beside_ours_and_a_deferral_beats_its_allow(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let theirs = decision("allow", json!({"updatedInput": {"command": "echo theirs"}}));
    user_hook(&session, &format!("echo >> theirs\necho '{theirs}'\n"), &json!({}));
    assert!(session.start().is_deferred());
    assert_eq!(session.read("theirs"), "\n");
}

fn a_users_hook_that_denies_beats_a_deferral(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let theirs = decision("deny", json!({"permissionDecisionReason": "no"}));
    user_hook(&session, &format!("echo '{theirs}'\n"), &json!({}));
    let run = session.start();
    assert_eq!((run.is_deferred(), run.requests.len()), (false, 2));
    // It was asked, too: its record is about a call that was never made.
    assert_eq!(session.asked().len(), 1);
}

fn a_users_hook_that_asks_keeps_a_resumed_call_from_its_result(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let theirs = decision("ask", json!({"permissionDecisionReason": "hm"}));
    user_hook(&session, &format!("echo '{theirs}'\n"), &json!({}));
    assert!(session.start().is_deferred());
    session.decide(&run_instead("echo answer"));
    assert_eq!(session.resume().tool_result(), ("hm", true));
}

/// So the runner must check what the agent was given.
fn of_two_hooks_that_rewrite_the_last_to_end_wins(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session
        .script("hook", &format!("echo '{}'\nmkfifo order 2>/dev/null\necho $$ > order\n", run_instead("echo ours")));
    // The other hook is the slow one: it runs for a while after ours has ended.
    let theirs = decision("allow", json!({"updatedInput": {"command": "echo theirs"}}));
    let wait = "mkfifo order 2>/dev/null\nread ours < order\nwhile kill -0 $ours 2>/dev/null; do :; done\nsleep 0.3\n";
    user_hook(&session, &format!("{wait}echo '{theirs}'\n"), &json!({}));
    assert_eq!(session.resume().tool_result(), ("theirs", false));
}

fn a_users_hook_that_hangs_is_waited_for_until_its_timeout(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    user_hook(&session, "exec sleep 60\n", &json!({"timeout": 1}));
    assert!(session.start().is_deferred());
}

fn a_deny_rule_counts_for_the_command_that_is_run_instead(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let rules = json!({"permissions": {"deny": ["Bash(agent-cli:*)", "Bash(/bin/cat:*)"]}});
    session.write(".claude/settings.json", &rules.to_string());
    // One against the request itself does not keep it from being deferred.
    assert!(session.start().is_deferred());
    session.decide(&run_instead("/bin/cat /dev/null"));
    let run = session.resume();
    let denied = "Permission to use Bash with command /bin/cat /dev/null has been denied.";
    assert_eq!(run.tool_result(), (denied, true));
}

fn a_hook_after_the_call_is_told_the_command_that_was_run_instead_and_replaces_its_output(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let shown = json!({"stdout": "theirs", "stderr": "", "interrupted": false, "isImage": false});
    let said = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": shown}});
    let hook = session.script("after", &format!("cat > after-asked\necho '{said}'\n"));
    let other = session.script("other", "echo >> other-asked\n");
    let of = |hook: &str, rule: &str| json!({"type": "command", "command": hook, "if": rule});
    let hooks = json!([of(&hook, "Bash(*echo ours*)"), of(&other, "Bash(*agent-cli*)")]);
    let settings = json!({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": hooks}]}});
    session.write(".claude/settings.json", &settings.to_string());
    assert!(session.start().is_deferred());
    session.decide(&run_instead("echo ours"));
    assert_eq!(session.resume().tool_result(), ("theirs", false));
    let asked: Value = serde_json::from_str(&session.read("after-asked")).unwrap();
    assert_eq!(
        (&asked["tool_input"]["command"], &asked["tool_response"]["stdout"]),
        (&json!("echo ours"), &json!("ours"))
    );
    assert_eq!(session.read("other-asked"), "");
}

fn user_hook(session: &Session, text: &str, more: &Value) {
    let mut hook = json!({"type": "command", "command": session.script("user-hook", text)});
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    session.write(".claude/settings.json", &settings.to_string());
}

fn commands_in_skills_are_run_without_hooks_and_fail_the_skill(version: &str) {
    for (status, expected) in
        [(0, "Launching skill: ps"), (75, "Shell command failed for pattern \"!`echo agent-cli ask; exit 75`\"")]
    {
        let mut session = Session::new(version, Turn::call("Skill", json!({"skill": "ps"})));
        let head = "---\nname: ps\ndescription: x\nallowed-tools: Bash\n---\n";
        session
            .home
            .write(".claude/skills/ps/SKILL.md", &format!("{head}The answer: !`echo agent-cli ask; exit {status}`\n"));
        session.arguments = vec!["--allowedTools=Bash,Skill"];
        let run = session.start();
        let (_, text, is_error) = results(run.requests.last().unwrap()).remove(0);
        assert!(text.starts_with(expected) && is_error == (status == 75), "{text}");
        assert_eq!(session.asked().len(), 0);
    }
}
