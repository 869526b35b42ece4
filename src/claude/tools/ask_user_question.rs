//! AskUserQuestion, Claude Code's own tool for questions: what an agent asks with it, and how it is answered.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::requests::request::RequestResult;

pub(crate) const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// The questions in a call's input, in order. `None` if Claude Code would refuse them: none, two identical ones, or another
/// shape.
pub(crate) fn questions(input: &Value) -> Option<Vec<Form>> {
    let asked = input["questions"].as_array()?.iter().map(question).collect::<Option<Vec<_>>>()?;
    let mut seen = HashSet::new();
    let alike = asked.iter().any(|form| !seen.insert(&form.question));
    (!asked.is_empty() && !alike).then_some(asked)
}

/// The input with which an answered call runs. `results`: pairs of a question and its result.
pub(crate) fn with_answers(input: &Value, results: &[(&str, &RequestResult)]) -> Value {
    let mut input = input.clone();
    let answers: Map<String, Value> =
        answered(results).map(|(asked, said)| (asked.to_owned(), said.to_owned().into())).collect();
    input["answers"] = answers.into();
    input
}

/// Whether a call has run with these results.
pub(crate) fn has_run_with(input: &Value, results: &[(&str, &RequestResult)]) -> bool {
    answered(results).all(|(asked, said)| input["answers"][asked] == *said)
}

/// What the tool itself returns when it was answered, for a call that cannot run. The wording is that of 2.1.197, and for
/// questions without an answer that of 2.1.330.
pub(crate) fn result(results: &[(&str, &RequestResult)]) -> String {
    let answers: Vec<_> = answered(results).map(|(asked, said)| format!("\"{asked}\"=\"{said}\"")).collect();
    let answers = answers.join(", ");
    let Some(seconds) = idle_seconds(results) else {
        return format!(
            "Your questions have been answered: {answers}. You can now continue with these answers in mind."
        );
    };
    let idle = format!(
        "No response after {seconds}s — the user may be away from keyboard. Proceed using your best judgment based on the \
         context so far; you can re-ask this question later if it's still relevant."
    );
    if answers.is_empty() { idle } else { format!("{idle}\n\nBefore going idle the user had selected: {answers}.") }
}

/// The same for a call that is denied because not all of its questions were answered, in agent-cli's words. A hook cannot give
/// the call the idle time that it would mention itself.
pub(crate) fn denial(results: &[(&str, &RequestResult)]) -> String {
    let said = results.iter().find(|(_, result)| matches!(result, RequestResult::Unanswered { .. }));
    let said = said.map(|(_, result)| format!("{}. ", result.text())).unwrap_or_default();
    format!("{said}{}", result(results))
}

fn answered<'a>(results: &'a [(&'a str, &'a RequestResult)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    results.iter().filter_map(|(asked, result)| match result {
        RequestResult::Unanswered { .. } => None,
        result => Some((*asked, result.text())),
    })
}

fn idle_seconds(results: &[(&str, &RequestResult)]) -> Option<u64> {
    let waited = results.iter().map(|(_, result)| match result {
        RequestResult::Unanswered { seconds, .. } => Some(*seconds),
        _ => None,
    });
    waited.max().flatten()
}

fn question(asked: &Value) -> Option<Form> {
    let question = asked["question"].as_str().filter(|text| !text.trim().is_empty())?.to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let option = |option: &Value| {
        Some(QuestionOption { key: option["label"].as_str()?.to_owned(), description: text(&option["description"]) })
    };
    Some(Form {
        header: Some(text(&asked["header"])).filter(|header| !header.is_empty()),
        multiple: asked["multiSelect"] == true,
        options: asked["options"].as_array()?.iter().map(option).collect::<Option<_>>()?,
        native: true,
        ..Form::text(&question)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn when() -> Value {
        json!({"question": "When?", "header": "Birthday", "multiSelect": true,
            "options": [{"label": "Jan", "description": "January"}, {"label": "Feb", "preview": "x"}]})
    }

    #[test]
    fn questions_are_read_with_their_options() {
        let asked = questions(&json!({"questions": [when(), {"question": "Why?", "options": []}]})).unwrap();
        let options = vec![
            QuestionOption { key: "Jan".into(), description: "January".into() },
            QuestionOption { key: "Feb".into(), description: String::new() },
        ];
        let header = Some("Birthday".into());
        let form = Form { header, options, multiple: true, native: true, ..Form::text("When?") };
        assert_eq!(asked[0], form);
        assert_eq!(asked[1], Form { native: true, ..Form::text("Why?") });
    }

    #[test]
    fn what_claude_code_would_refuse_is_not_asked() {
        for input in [
            Value::Null,
            json!({"questions": []}),
            json!({"questions": "When?"}),
            json!({"questions": [when(), when()]}),
            json!({"questions": [{"question": " ", "options": []}]}),
            json!({"questions": [{"question": "When?"}]}),
            json!({"questions": [{"question": "When?", "options": [{"description": "x"}]}]}),
        ] {
            assert_eq!(questions(&input), None, "{input}");
        }
    }

    #[test]
    fn answers_are_written_as_claude_code_reads_them() {
        let input = json!({"questions": [when()], "metadata": {"source": "x"}});
        let text = |text: &str| RequestResult::Text(text.to_owned());
        let (both, so, jan) = (text("Jan, Feb"), text("\"so\""), text("Jan"));
        let results = [("When?", &both), ("Why?", &so)];
        let input = with_answers(&input, &results);
        assert!(has_run_with(&input, &results) && !has_run_with(&input, &[("When?", &jan)]));
        assert_eq!(
            input,
            json!({"questions": [when()], "metadata": {"source": "x"},
            "answers": {"When?": "Jan, Feb", "Why?": "\"so\""}})
        );
        assert_eq!(
            result(&[("When?", &jan), ("Why?", &text("so"))]),
            "Your questions have been answered: \"When?\"=\"Jan\", \"Why?\"=\"so\". You can now continue with these \
             answers in mind."
        );
    }

    #[test]
    fn nobody_answered_in_the_words_of_claude_code() {
        let unanswered = RequestResult::Unanswered { said: "expired".into(), seconds: 60 };
        let jan = RequestResult::Text("Jan".into());
        let nobody = "No response after 60s — the user may be away from keyboard. Proceed using your best judgment based on \
                      the context so far; you can re-ask this question later if it's still relevant.";
        assert_eq!(result(&[("When?", &unanswered)]), nobody);
        assert_eq!(denial(&[("When?", &unanswered)]), format!("expired. {nobody}"));
        let both = [("When?", &jan), ("Why?", &unanswered)];
        assert_eq!(result(&both), format!("{nobody}\n\nBefore going idle the user had selected: \"When?\"=\"Jan\"."));
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in crate::core::text::json::any_json()) {
            let _ = questions(&value);
            let _ = questions(&json!({"questions": [value.clone(), {"question": "?", "options": value}]}));
        }
    }
}
