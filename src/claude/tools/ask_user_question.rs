//! AskUserQuestion, Claude Code's own tool for questions: what an agent asks with it, and how it is answered.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::core::requests::question::{Choice, Form};
use crate::core::requests::request::RequestKind;

pub(crate) const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// The questions in a call's input, in order. `None` if Claude Code would refuse them: none, two identical ones, or another
/// shape.
#[must_use]
pub(crate) fn questions(input: &Value) -> Option<Vec<RequestKind>> {
    let asked = input["questions"].as_array()?.iter().map(question).collect::<Option<Vec<_>>>()?;
    let mut seen = HashSet::new();
    let alike = asked.iter().any(|kind| match kind {
        RequestKind::Ask(form) => !seen.insert(&form.question),
        _ => false,
    });
    (!asked.is_empty() && !alike).then_some(asked)
}

/// The input with which an answered call runs. `answers`: pairs of a question and its answer.
#[must_use]
pub(crate) fn with_answers(input: &Value, answers: &[(&str, &str)]) -> Value {
    let mut input = input.clone();
    let answers: Map<String, Value> = answers.iter().map(|(asked, said)| ((*asked).into(), (*said).into())).collect();
    input["answers"] = answers.into();
    input
}

/// What the tool itself returns when it was answered, for a call that cannot run. In the words of 2.1.197.
#[must_use]
pub(crate) fn result(answers: &[(&str, &str)]) -> String {
    let answers: Vec<_> = answers.iter().map(|(asked, said)| format!("\"{asked}\"=\"{said}\"")).collect();
    let answers = answers.join(", ");
    format!("Your questions have been answered: {answers}. You can now continue with these answers in mind.")
}

fn question(asked: &Value) -> Option<RequestKind> {
    let question = asked["question"].as_str().filter(|text| !text.trim().is_empty())?.to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let option = |option: &Value| {
        Some(Choice { key: option["label"].as_str()?.to_owned(), description: text(&option["description"]) })
    };
    Some(RequestKind::Ask(Form {
        header: Some(text(&asked["header"])).filter(|header| !header.is_empty()),
        multiple: asked["multiSelect"] == true,
        options: asked["options"].as_array()?.iter().map(option).collect::<Option<_>>()?,
        native: true,
        ..Form::text(&question)
    }))
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
            Choice { key: "Jan".into(), description: "January".into() },
            Choice { key: "Feb".into(), description: String::new() },
        ];
        let header = Some("Birthday".into());
        let form = Form { header, options, multiple: true, native: true, ..Form::text("When?") };
        assert_eq!(asked[0], RequestKind::Ask(form));
        assert_eq!(asked[1], RequestKind::Ask(Form { native: true, ..Form::text("Why?") }));
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
    fn answers_are_told_as_claude_code_reads_them() {
        let input = json!({"questions": [when()], "metadata": {"source": "x"}});
        let input = with_answers(&input, &[("When?", "Jan, Feb"), ("Why?", "\"so\"")]);
        assert_eq!(
            input,
            json!({"questions": [when()], "metadata": {"source": "x"},
            "answers": {"When?": "Jan, Feb", "Why?": "\"so\""}})
        );
        assert_eq!(
            result(&[("When?", "Jan"), ("Why?", "so")]),
            "Your questions have been answered: \"When?\"=\"Jan\", \"Why?\"=\"so\". You can now continue with these \
             answers in mind."
        );
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in crate::claude::settings::merged::any_json()) {
            let _ = questions(&value);
            let _ = questions(&json!({"questions": [value.clone(), {"question": "?", "options": value}]}));
        }
    }
}
