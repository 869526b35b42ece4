//! Tests what an attempt is given, for each way.

use super::*;
use crate::core::agent::launch::Launch;
use crate::core::agent::situation::Situation;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::Batch;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestResult;
use crate::runtime::delivery::restored_situation;
use crate::runtime::programs::Program;
use crate::store::testing;

fn delivery(kind: RequestKind, call: &str, text: &str) -> Delivery {
    Delivery {
        request: RequestId::random(),
        call: Some(call.to_owned()),
        kind,
        result: RequestResult::Text(text.to_owned()),
    }
}

fn permission(tool: &str, call: &str) -> Delivery {
    let kind = RequestKind::Permission { tool: tool.into(), input: serde_json::Value::Null, reason: None, place: None };
    delivery(kind, call, "allow")
}

#[test]
fn questions_that_were_asked_together_are_delivered_once() {
    let batch = Batch { id: RequestId::random(), name: None };
    let other = Batch { id: RequestId::random(), name: None };
    let ask = |batch: Option<&Batch>| {
        delivery(RequestKind::Ask(Form { batch: batch.cloned(), ..Form::text("When?") }), "t1", "Jan 1st")
    };
    let all = [ask(Some(&batch)), ask(None), ask(Some(&batch)), ask(None), ask(Some(&other))];
    let kept = one_for_each_batch(&all);
    assert_eq!(kept, [all[0].clone(), all[1].clone(), all[3].clone(), all[4].clone()]);
}

#[test]
fn a_resumed_call_returns_its_result_and_what_was_lost_stands_beside_it() {
    let (_temp, store) = testing::store();
    let frame = store.frame(store.root()).unwrap().unwrap();
    let resumed = |native: bool, worktree: Option<&str>| {
        let asked = delivery(RequestKind::Ask(Form { native, ..Form::text("When?") }), "t1", "Jan 1st");
        let situation = Situation { worktree: worktree.map(Into::into), ..Situation::default() };
        let frame = Frame { situation, ..frame.clone() };
        let restored = restored_situation::restored(&frame, &Program::old(), None);
        let (deliveries, notices) = (std::slice::from_ref(&asked), &[][..]);
        let input = Delivering { store: &store, frame: &frame, source: &None, result_input: None, deliveries, notices }
            .resumed_call(&restored);
        assert_eq!(input.prompt, "", "nothing else is said");
        (input.resumed_calls == [(asked.request, Handover::ToReturn)], input.notice)
    };
    assert_eq!(resumed(false, None), (true, None));
    assert_eq!(resumed(true, None), (false, None), "no program runs in place of Claude Code's own tool");
    let (_, notice) = resumed(false, Some("/nowhere/worktree"));
    assert!(notice.is_some_and(|notice| notice.contains("/nowhere/worktree")));
}

#[test]
fn beside_a_call_that_is_open_again_only_other_results_are_named() {
    let (_temp, store) = testing::store();
    let frame = store.frame(store.root()).unwrap().unwrap();
    let checkpoint = AttemptId::random();
    store.dir().frame_dir(frame.id).unwrap();
    let transcript = [
        r#"{"type":"assistant","uuid":"u1","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"x"}}]}}"#,
        r#"{"type":"user","uuid":"u2","parentUuid":"u1","sourceToolAssistantUUID":"u1","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]},"toolUseResult":"User rejected tool use"}"#,
        r#"{"type":"user","uuid":"u3","parentUuid":"u2","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#,
    ];
    std::fs::write(store.dir().checkpoint(frame.id, checkpoint), transcript.join("\n") + "\n").unwrap();
    let approved = permission(BASH, "t1");
    let answered = delivery(RequestKind::Ask(Form::text("When?")), "t0", "Jan 1st");
    let reopened = |deliveries: &[Delivery], call: &str| {
        let frame = Frame { checkpoint: Some(checkpoint), ..frame.clone() };
        let delivering =
            Delivering { store: &store, frame: &frame, source: &None, result_input: None, deliveries, notices: &[] };
        let input = delivering.repeated_call(checkpoint, call).unwrap();
        (input.prompt, input.transcript == Some(store.dir().answered(frame.id)))
    };
    assert_eq!(reopened(std::slice::from_ref(&approved), "t1"), (String::new(), true), "the call says it all");
    let (prompt, is_open) = reopened(&[approved.clone(), answered.clone()], "t1");
    assert!(is_open && prompt.contains("Jan 1st") && !prompt.contains("allow"), "{prompt}");
    // Without such a call, everything is in a prompt.
    let (prompt, is_open) = reopened(&[approved, answered], "t9");
    assert!(!is_open && prompt.contains("Jan 1st") && prompt.contains("allow"), "{prompt}");
}

#[test]
fn what_the_hooks_of_the_user_have_to_see_is_fetched_by_a_command() {
    let temp = tempfile::tempdir().unwrap();
    let (_temp, store) = testing::store();
    let frame = store.frame(store.root()).unwrap().unwrap();
    std::fs::create_dir(temp.path().join(".claude")).unwrap();
    let of_way = |matcher: Option<&str>, way: &DeliveryWay, checkpoint: Option<AttemptId>| {
        let hooks = matcher.map(|matcher| {
            let hook = serde_json::json!({"type": "command", "command": "true"});
            serde_json::json!([{"matcher": matcher, "hooks": [hook]}])
        });
        let settings = serde_json::json!({"hooks": {"PostToolUse": hooks}}).to_string();
        std::fs::write(temp.path().join(".claude/settings.json"), settings).unwrap();
        let launch = Launch { config_dir: Some(temp.path().join("config")), ..frame.launch.clone() };
        let frame = Frame { cwd: temp.path().to_owned(), launch, checkpoint, ..frame.clone() };
        let asked = |native| delivery(RequestKind::Ask(Form { native, ..Form::text("When?") }), "t1", "Jan 1st");
        as_shown(&frame, way, vec![asked(false), asked(true)])
            .iter()
            .map(|delivery| !delivery.result.text().contains("Jan 1st"))
            .collect::<Vec<_>>()
    };
    let checkpoint = Some(AttemptId::random());
    let fetched = |matcher| of_way(matcher, &DeliveryWay::Prompt, checkpoint);
    assert_eq!(fetched(None), [false, false]);
    assert_eq!(fetched(Some("Write")), [false, false]);
    assert_eq!(fetched(Some("Bash")), [true, false], "a native question is answered without a command");
    assert_eq!(fetched(Some("*")), [true, true]);
    assert_eq!(
        of_way(Some("*"), &DeliveryWay::ResumedCall, checkpoint),
        [false, false],
        "they see what a call returns"
    );
    assert_eq!(of_way(Some("*"), &DeliveryWay::ResumedCall, None), [true, true], "there is no call yet");
}

#[test]
fn only_an_approved_command_is_run_first() {
    let way = DeliveryWay::RepeatedCall { call: "t1".into() };
    assert!(begins_with_command(&way, &[permission("Write", "t0"), permission(BASH, "t1")]));
    assert!(!begins_with_command(&way, &[permission(BASH, "t0"), permission("Write", "t1")]));
    assert!(!begins_with_command(&DeliveryWay::Prompt, &[permission(BASH, "t1")]));
}

#[test]
fn the_answer_to_a_plan_is_put_into_the_words_of_claude_code() {
    let plan = ProposedPlan { text: None, file: None, modes: vec!["default".into()] };
    let answered = |answer| delivery(RequestKind::Plan(plan.clone()), "t1", answer);
    let asked = delivery(RequestKind::Ask(Form::text("When?")), "t2", "allow");
    let given = plans_in_words(&[answered("allow"), answered("deny: too large"), answered("unclear"), asked.clone()]);
    assert!(given[0].result.text().starts_with("User has approved"), "{:?}", given[0].result);
    assert_eq!(given[1].result, RequestResult::Failed("too large".into()));
    assert_eq!(given[2].result, RequestResult::Text("unclear".into()));
    assert_eq!(given[3], asked);
}
