//! Reads and writes the answer to a posted question.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::core::id::RequestId;
use crate::core::posted::{field, named, text};
use crate::core::steering::origin::Origin;

/// Why a file is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadAnswer {
    #[error("is not JSON: {0}")]
    NotJson(String),
    #[error("has no answer: a text under `answer`, `response`, `reply`, `value`, `choice`, `selected` or `answers`")]
    NoAnswer,
}

const ANSWER: [&str; 8] = ["answer", "response", "reply", "value", "choice", "selected", "selected_option", "answers"];

/// The answer in a file of the folder `answered`. Several chosen options become a list with commas.
pub(crate) fn answer(content: &str) -> Result<String, BadAnswer> {
    let value: Value = serde_json::from_str(content).map_err(|error| BadAnswer::NotJson(error.to_string()))?;
    let found = match &value {
        Value::Object(object) => match named(object, &ANSWER) {
            // A version is not a number: 3.10 is not 3.1.
            Some((name, Value::Number(_))) => as_written(content, name),
            named => named.and_then(|(_, value)| given(value)),
        },
        Value::String(_) => text(&value),
        _ => None,
    };
    found.ok_or(BadAnswer::NoAnswer)
}

/// A field exactly as it is written.
fn as_written(content: &str, name: &str) -> Option<String> {
    let object: HashMap<String, &RawValue> = serde_json::from_str(content).ok()?;
    object.get(name).map(|value| value.get().to_owned())
}

fn given(value: &Value) -> Option<String> {
    match value {
        Value::Object(object) => match field(object, &["text", "value", "key", "label", "answer"]) {
            Some(inner) => text(inner),
            None => text(value),
        },
        Value::Array(several) if several.iter().all(|one| one.is_string() || one.is_number()) => {
            let all: Vec<_> = several.iter().filter_map(text).collect();
            (!all.is_empty()).then(|| all.join(", "))
        }
        other => text(other),
    }
}

/// The outcome of a posted question.
pub(crate) enum End<'a> {
    Answered {
        answer: &'a str,
        at: Timestamp,
        by: &'a Origin,
    },
    /// It expired without an answer.
    Expired {
        default: Option<&'a str>,
        at: Timestamp,
    },
}

/// The field with the question's id in the files that are written here. A file with it was not written by a person, and one
/// with another question's id belongs to an earlier question of the same name.
const RECORDED_AS: &str = "recorded_as";

/// The question that a file was written for, if it was written here.
pub(crate) fn recorded_as(content: &str) -> Option<RequestId> {
    let object = serde_json::from_str::<Map<String, Value>>(content).ok()?;
    object.get(RECORDED_AS)?.as_str()?.parse().ok()
}

/// The text of the file of a closed question: the question's own, if it contained an object, with its end added. `there`: the
/// current content of that file. A person's text in it is kept.
pub(crate) fn file(
    pending: Option<&str>,
    there: Option<&str>,
    id: RequestId,
    posted: &str,
    question: &str,
    end: &End<'_>,
) -> String {
    let asked = pending.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let mut object = asked.unwrap_or_else(|| {
        let asked = json!({"id": posted, "question": question});
        asked.as_object().cloned().unwrap_or_default()
    });
    object.insert(RECORDED_AS.to_owned(), json!(id));
    if let Some(unused) = there.filter(|text| recorded_as(text).is_none() && !text.trim().is_empty()) {
        object.insert("unused".to_owned(), json!(unused));
    }
    let end = match end {
        End::Answered { answer, at, by } => {
            json!({"status": "answered", "answer": answer, "answered_at": at, "answered_by": by})
        }
        End::Expired { default, at } => json!({"status": "expired", "default": default, "expired_at": at}),
    };
    object.extend(end.as_object().cloned().unwrap_or_default());
    serde_json::to_string_pretty(&object).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whatever_its_field_is_called() {
        for (content, expected) in [
            (r#"{"answer": "Jan 1st"}"#, "Jan 1st"),
            (r#"{"id": "q1", "response": {"text": "Jan 1st"}}"#, "Jan 1st"),
            (r#"{"selected": ["a", "b"]}"#, "a, b"),
            (r#"{"answer": true}"#, "yes"),
            (r#"{"value": 7}"#, "7"),
            (r#"{"answer": 3.10}"#, "3.10"),
            (r#"{"Answer": 12345678901234567890123}"#, "12345678901234567890123"),
            (r#""Jan 1st""#, "Jan 1st"),
        ] {
            assert_eq!(answer(content).as_deref(), Ok(expected), "{content}");
        }
        for none in [r#"{"answer": ""}"#, r#"{"answer": null}"#, "{}", "[1]", r#"{"answer": []}"#] {
            assert_eq!(answer(none), Err(BadAnswer::NoAnswer), "{none}");
        }
        assert!(matches!(answer(r#"{"answer": "Ja"#), Err(BadAnswer::NotJson(_))));
    }

    #[test]
    fn what_is_written_has_the_question_and_is_read_again() {
        let by = Origin { user: Some("dev".into()), ..Origin::default() };
        let (id, earlier) = (RequestId::random(), RequestId::random());
        let asked = r#"{"id": "q1", "question": "When?", "priority": 3, "status": "pending"}"#;
        let of_earlier = json!({"answer": "x", RECORDED_AS: earlier}).to_string();
        for pending in [Some(asked), Some("half"), None] {
            for (there, unused) in [(None, None), (Some("{half"), Some("{half")), (Some(of_earlier.as_str()), None)] {
                let end = End::Answered { answer: "Jan\n1st", at: Timestamp::UNIX_EPOCH, by: &by };
                let written = file(pending, there, id, "q1", "When?", &end);
                assert_eq!(answer(&written).as_deref(), Ok("Jan\n1st"));
                assert_eq!(recorded_as(&written), Some(id));
                let read: Value = serde_json::from_str(&written).unwrap();
                assert_eq!((&read["question"], &read["status"]), (&json!("When?"), &json!("answered")));
                assert_eq!(read["priority"].is_null(), pending != Some(asked));
                assert_eq!(read["answered_by"]["user"], "dev");
                assert_eq!(read["unused"].as_str(), unused);
            }
        }
        assert_eq!(recorded_as(r#"{"answer": "x"}"#), None);
    }
}
