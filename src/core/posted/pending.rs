//! Reads a posted question. The names of its fields are not standardised, so all common ones are accepted.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::core::posted::{field, text, text_of};
use crate::core::requests::question_form::answer_file::Posted;
use crate::core::requests::question_form::bad_form::BadForm;
use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::text::escape::shortened;

/// Why a file is not a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadQuestion {
    #[error("is not JSON: {0}")]
    NotJson(String),
    #[error("is JSON, but not an object")]
    NotAnObject,
    #[error("has no question: a text under `question`, `text`, `prompt`, `message` or `title`")]
    NoQuestion,
    #[error("cannot be asked like this: {0}")]
    BadForm(#[from] BadForm),
    #[error("has a time that cannot be read ({}): give a time with its zone, as in 2026-12-24T18:00:00Z", shortened(.0))]
    BadTime(String),
    #[error("has a timeout that cannot be read ({}): give a number of seconds", shortened(.0))]
    BadTimeout(String),
}

const QUESTION: [&str; 5] = ["question", "text", "prompt", "message", "title"];
const KEY: [&str; 6] = ["key", "value", "id", "label", "name", "title"];

/// The question in a file of the folder `pending`. `made`: when the file was posted, unless it contains a time itself.
pub(crate) fn question(content: &str, posted: Posted, made: Timestamp) -> Result<Form, BadQuestion> {
    let value: Value = serde_json::from_str(content).map_err(|error| BadQuestion::NotJson(error.to_string()))?;
    let Value::Object(outer) = value else { return Err(BadQuestion::NotAnObject) };
    // Some files nest everything: {"id": …, "question": {"text": …, "options": …}}.
    let inner = field(&outer, &["question"]).and_then(Value::as_object);
    let object = inner.unwrap_or(&outer);
    let asked = batch(object).or_else(|| batch(&outer)).or_else(|| text_of(object, &QUESTION));
    let question = asked.ok_or(BadQuestion::NoQuestion)?;
    let of_either = |names: &[&str]| field(object, names).or_else(|| field(&outer, names));
    let kind = of_either(&["type", "kind", "question_type"]).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let mut options = of_either(&["options", "choices", "answers_allowed"]).map(options).unwrap_or_default();
    if options.is_empty() && ["yes_no", "yesno", "boolean", "bool", "confirm", "confirmation"].contains(&kind.as_str())
    {
        options = ["yes", "no"].map(|key| QuestionOption { key: key.to_owned(), description: String::new() }).to_vec();
    }
    let is = |names: &[&str]| of_either(names).and_then(Value::as_bool);
    let multiple = is(&["multiple", "multi_select", "allow_multiple"]).unwrap_or(kind.starts_with("multi_"));
    // A text is accepted even if the file does not say so: a person may know better than the options.
    let free_text = options.is_empty() || is(&["free_text", "allow_other", "allow_free_text"]).unwrap_or(true);
    let default = of_either(&["default", "default_answer", "default_option"]).and_then(text);
    let form = Form {
        default,
        context: context(object, &outer),
        expires_at: expires(&outer, made)?,
        options: options.clone(),
        multiple: multiple && !options.is_empty(),
        free_text,
        posted: Some(Posted { trouble: None, ..posted }),
        ..Form::text(&question)
    };
    // An expired question is asked, and expires.
    Ok(form.checked(Timestamp::MIN)?)
}

/// The questions of one file, numbered; `None`: it has one.
fn batch(object: &Map<String, Value>) -> Option<String> {
    let questions = field(object, &["questions"])?.as_array()?;
    let one = |question: &Value| match question {
        Value::Object(question) => text_of(question, &QUESTION),
        other => text(other),
    };
    let texts: Vec<String> = questions.iter().filter_map(one).collect();
    let numbered = texts.iter().enumerate().map(|(at, text)| format!("{}. {text}", at + 1));
    (!texts.is_empty()).then(|| numbered.collect::<Vec<_>>().join("\n"))
}

fn options(value: &Value) -> Vec<QuestionOption> {
    let choice =
        |key: String, description: Option<String>| QuestionOption { key, description: description.unwrap_or_default() };
    let one = |option: &Value| match option {
        Value::Object(option) => {
            let description =
                text_of(option, &["description", "detail", "details", "explanation", "label", "title", "text"]);
            let key = text_of(option, &KEY).or_else(|| description.clone())?;
            Some(choice(key.clone(), description.filter(|description| *description != key)))
        }
        other => text(other).map(|key| choice(key, None)),
    };
    match value {
        Value::Array(options) => options.iter().filter_map(one).collect(),
        Value::Object(options) => options.iter().map(|(key, value)| choice(key.clone(), text(value))).collect(),
        _ => Vec::new(),
    }
}

/// What a person should know: the context, and who claims to ask.
fn context(object: &Map<String, Value>, outer: &Map<String, Value>) -> Option<String> {
    const CONTEXT: [&str; 4] = ["context", "background", "details", "description"];
    const BY: [&str; 6] = ["asked_by", "agent", "agent_id", "from", "workflow", "workflow_id"];
    let context = text_of(object, &CONTEXT).or_else(|| text_of(outer, &CONTEXT));
    let by = text_of(outer, &BY).map(|by| format!("Asked by {by}, as the file says."));
    let parts: Vec<_> = context.into_iter().chain(by).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// When it expires. No time, zero, -1 and `unlimited` mean never.
fn expires(object: &Map<String, Value>, made: Timestamp) -> Result<Option<Timestamp>, BadQuestion> {
    let time = |value: &Value| value.as_str()?.trim().parse::<Timestamp>().ok();
    let limiting = |names: &[&str]| field(object, names).filter(|value| !is_never(value));
    if let Some(value) = limiting(&["expires_at", "expires", "deadline", "timeout_at"]) {
        return time(value).map(Some).ok_or_else(|| BadQuestion::BadTime(value.to_string()));
    }
    let Some(value) = limiting(&["timeout_seconds", "timeout_s", "timeout"]) else { return Ok(None) };
    let seconds = value.as_i64().filter(|seconds| *seconds > 0);
    let made =
        field(object, &["created_at", "created", "asked_at", "posted_at", "timestamp"]).and_then(time).unwrap_or(made);
    let expires = seconds.and_then(|seconds| made.checked_add(SignedDuration::from_secs(seconds)).ok());
    expires.map(Some).ok_or_else(|| BadQuestion::BadTimeout(value.to_string()))
}

fn is_never(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number == 0.0 || number == -1.0),
        Value::String(text) => ["", "never", "none", "unlimited"].contains(&text.trim().to_lowercase().as_str()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value == &Value::Bool(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Form {
        let posted = Posted { dir: "/q".into(), id: "q1".into(), trouble: None };
        question(&value.to_string(), posted, Timestamp::UNIX_EPOCH).unwrap()
    }

    fn keys(form: &Form) -> Vec<(&str, &str)> {
        form.options.iter().map(|option| (option.key.as_str(), option.description.as_str())).collect()
    }

    #[test]
    fn a_question_is_read_whatever_its_fields_are_called() {
        for value in [
            json!({"question": "When?", "options": ["a", "b"]}),
            json!({"id": "q1", "text": "When?", "choices": [{"label": "a"}, {"value": "b"}]}),
            json!({"Prompt": "When?", "options": [{"key": "a"}, {"id": "b"}], "type": "single_select"}),
            json!({"id": "q1", "question": {"text": "When?", "options": ["a", "b"]}}),
        ] {
            let form = read(&value);
            assert_eq!((form.question.as_str(), keys(&form)), ("When?", vec![("a", ""), ("b", "")]), "{value}");
        }
        let form = read(&json!({"question": "Which?", "options": {"a": "first", "b": "second"}, "multiSelect": true,
            "allow_other": false, "default": "b"}));
        assert_eq!(keys(&form), [("a", "first"), ("b", "second")]);
        assert_eq!((form.multiple, form.free_text, form.default.as_deref()), (true, false, Some("b")));
        assert_eq!(keys(&read(&json!({"message": "Sure?", "type": "yes_no"}))), [("yes", ""), ("no", "")]);
        let own_words = json!({"message": "Sure?", "type": "yes_no", "options": ["ja", "nein"]});
        assert_eq!(keys(&read(&own_words)), [("ja", ""), ("nein", "")]);
    }

    #[test]
    fn every_question_can_be_answered() {
        let free_text = |value: Value| read(&value).free_text;
        assert!(free_text(json!({"question": "Where?"})));
        assert!(free_text(json!({"question": "Where?", "allow_other": false})), "there is nothing to choose");
        assert!(free_text(json!({"question": "Where?", "options": ["here"]})), "nothing forbids it");
        assert!(!free_text(json!({"question": "Where?", "options": ["here"], "allow_other": false})));
        assert!(keys(&read(&json!({"question": "Where?"}))).is_empty());
    }

    #[test]
    fn several_questions_in_one_file_are_asked_as_one() {
        let form = read(&json!({"questions": [{"question": "When?"}, "Where?"], "context": {"a": 1}, "asked_by": "x"}));
        assert_eq!(form.question, "1. When?\n2. Where?");
        assert_eq!(form.context.as_deref(), Some("{\n  \"a\": 1\n}\n\nAsked by x, as the file says."));
    }

    #[test]
    fn a_question_without_a_time_limit_never_expires() {
        let expires = |value: Value| read(&value).expires_at.map(|at| at.to_string());
        for unlimited in [json!(null), json!(0), json!("unlimited"), json!(-1)] {
            assert_eq!(expires(json!({"question": "x", "timeout": unlimited})), None);
        }
        let limited = json!({"question": "x", "created_at": "2026-01-01T00:00:00Z", "timeout_seconds": 60});
        assert_eq!(expires(limited).as_deref(), Some("2026-01-01T00:01:00Z"));
        let limited = json!({"question": "x", "expires_at": "2026-01-01T00:00:00Z"});
        assert_eq!(expires(limited).as_deref(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn what_ask_would_refuse_is_refused_with_its_words() {
        let posted = Posted { dir: "/q".into(), id: "q1".into(), trouble: None };
        let why = |value: Value| question(&value.to_string(), posted.clone(), Timestamp::UNIX_EPOCH).unwrap_err();
        for (value, expected) in [
            (json!({"question": "x", "options": ["a", "a"]}), "two options have the key \"a\""),
            (json!({"question": "x", "options": ["a,b", "c"], "multiple": true}), "the key \"a,b\" has a comma"),
            (json!({"question": "x", "options": ["a\nb"]}), "the key \"a⏎b\" has more than one line"),
            (
                json!({"question": "x", "options": ["a"], "allow_other": false, "default": "b"}),
                "the default \"b\" is not an answer",
            ),
            (json!({"question": "x", "deadline": "2027-01-01"}), "has a time that cannot be read (\"2027-01-01\")"),
            (json!({"question": "x", "expires_at": 1_799_999_999}), "has a time that cannot be read (1799999999)"),
            (json!({"question": "x", "timeout": -5}), "has a timeout that cannot be read (-5)"),
            (json!({"question": "x", "timeout": "3d"}), "has a timeout that cannot be read (\"3d\")"),
        ] {
            let why = why(value.clone()).to_string();
            assert!(why.contains(expected), "{value}: {why}");
        }
    }

    #[test]
    fn what_is_not_a_question_is_said() {
        let posted = Posted { dir: "/q".into(), id: "q1".into(), trouble: None };
        let why = |text: &str| question(text, posted.clone(), Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert_eq!(why(r#"{"question": "Wh"#), "is not JSON: EOF while parsing a string at line 1 column 16");
        assert_eq!(why("[]"), "is JSON, but not an object");
        assert!(why(r#"{"question": " "}"#).starts_with("has no question: "));
        assert!(why(&"[".repeat(100_000)).starts_with("is not JSON: recursion limit"));
    }
}
