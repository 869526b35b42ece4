//! Builds the form of a question from its parts, or the forms of several from JSON.

use jiff::Timestamp;
use serde::Deserialize;

use crate::app::error::Refusal;
use crate::core::id::RequestId;
use crate::core::requests::question_form::{Batch, Form, QuestionOption};
use crate::core::text::escape::{one_line, shortened};
use crate::core::text::time::{TOO_FAR, TOO_LONG, duration, moment};

/// The parts of a question.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormInput {
    pub(crate) options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    pub(crate) multiple: bool,
    /// Whether any other text is also an answer.
    pub(crate) free_text: bool,
    /// The answer to use when the question expires.
    pub(crate) default: Option<String>,
    /// A duration or a time.
    pub(crate) expires: Option<String>,
}

/// One of several questions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchQuestion {
    name: Option<String>,
    question: String,
    context: Option<String>,
    #[serde(default)]
    options: Vec<Offered>,
    #[serde(default)]
    multiple: bool,
    #[serde(default)]
    free_text: bool,
    default: Option<String>,
    expires: Option<String>,
}

/// An option: its key alone, or with its meaning.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Offered {
    Key(String),
    Described(Described),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    key: String,
    #[serde(default)]
    description: String,
}

/// How many questions can be asked at once.
const MOST_QUESTIONS: usize = 50;

/// Builds the form of one question that is asked at `now`.
pub(super) fn one(question: &str, context: Option<String>, input: FormInput, now: Timestamp) -> Result<Form, Refusal> {
    let expires_at = input.expires.map(|text| expiry(&text, now)).transpose();
    let expires_at =
        expires_at.map_err(|why| Refusal::new(format!("--expires: {why}")).hint("for example --expires 3d"))?;
    let form = Form {
        context,
        free_text: input.free_text || input.options.is_empty(),
        options: input.options,
        multiple: input.multiple,
        default: input.default,
        expires_at,
        ..Form::text(question)
    };
    form.checked(now).map_err(|bad| {
        Refusal::new(bad.to_string()).hint("agent-cli ask \"Deploy?\" --option yes --option later=\"in the morning\"")
    })
}

/// Builds the forms of the questions in a JSON array. `expires` applies to questions that do not have their own.
pub(super) fn several(json: &str, expires: Option<&str>, now: Timestamp) -> Result<Vec<Form>, Refusal> {
    let asked: Vec<BatchQuestion> = serde_json::from_str(json)
        .map_err(|error| bad_json(&format!("the questions cannot be read: {}", one_line(&error.to_string()))))?;
    if asked.is_empty() || asked.len() > MOST_QUESTIONS {
        return Err(bad_json(&format!("1 to {MOST_QUESTIONS} questions can be asked at once, not {}", asked.len())));
    }
    let id = RequestId::random();
    let mut forms: Vec<Form> = Vec::new();
    for (number, asked) in (1..).zip(asked) {
        let which = asked.name.clone().unwrap_or_else(|| number.to_string());
        let form = one_of_several(asked, id, expires, now)
            .map_err(|why| bad_json(&format!("question {}: {why}", shortened(&which))))?;
        let name = |form: &Form| form.batch.as_ref().and_then(|batch| batch.name.clone());
        if name(&form).is_some() && forms.iter().any(|other| name(other) == name(&form)) {
            return Err(bad_json(&format!("two questions have the name {}", shortened(&which))));
        }
        forms.push(form);
    }
    Ok(forms)
}

fn one_of_several(asked: BatchQuestion, id: RequestId, expires: Option<&str>, now: Timestamp) -> Result<Form, String> {
    let option = |option| match option {
        Offered::Key(key) => QuestionOption { key, description: String::new() },
        Offered::Described(Described { key, description }) => QuestionOption { key, description },
    };
    let expires = asked.expires.as_deref().or(expires);
    let options: Vec<QuestionOption> = asked.options.into_iter().map(option).collect();
    let form = Form {
        context: asked.context,
        free_text: asked.free_text || options.is_empty(),
        options,
        multiple: asked.multiple,
        default: asked.default,
        expires_at: expires.map(|text| expiry(text, now)).transpose()?,
        batch: Some(Batch { id, name: asked.name }),
        ..Form::text(&asked.question)
    };
    form.checked(now).map_err(|bad| bad.to_string())
}

/// When a question that is asked at `now` expires. Whole seconds are easier to read.
fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let far = || format!("\"{}\" is {TOO_FAR}", shortened(text));
    let time = match duration(text) {
        Ok(duration) => now.checked_add(duration).map_err(|_| far())?,
        Err(why) if why == TOO_LONG => return Err(far()),
        Err(_) => moment(text).map_err(|why| match why == TOO_FAR {
            true => far(),
            false => format!("\"{}\" is neither a duration, for example 90m or 3d, nor a time: {why}", shortened(text)),
        })?,
    };
    Timestamp::from_second(time.as_second()).map_err(|_| far())
}

fn bad_json(message: &str) -> Refusal {
    Refusal::new(message)
        .hint(r#"a JSON array: [{"name": "when", "question": "When?", "options": ["now", "later"], "expires": "3d"}]"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-10-24T12:00:00.7Z".parse().unwrap()
    }

    fn choice(key: &str) -> QuestionOption {
        QuestionOption { key: key.to_owned(), description: String::new() }
    }

    #[test]
    fn an_expiry_is_a_duration_or_a_time_in_any_zone() {
        for (text, expected) in [
            ("3d", "2026-10-27T12:00:00Z"),
            ("90m", "2026-10-24T13:30:00Z"),
            ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
            // The clocks go back in the night between these times: a day has 24 hours, and a time is the local clock time.
            ("1d", "2026-10-25T12:00:00Z"),
            ("2026-10-25T13:00:00[Europe/Berlin]", "2026-10-25T12:00:00Z"),
            ("2026-10-25T02:30:00+02:00[Europe/Berlin]", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00Z"),
        ] {
            assert_eq!(expiry(text, now()), Ok(expected.parse().unwrap()), "{text}");
        }
        for bad in ["soon", "-3d", "2026-12-24", "2026-12-24T18:00:00", "", "99999999999w"] {
            assert!(expiry(bad, now()).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_text_is_an_answer_unless_there_are_options() {
        let asked = |options: Vec<QuestionOption>, free_text| {
            let input = FormInput { options, free_text, ..FormInput::default() };
            one("Deploy?", None, input, now()).unwrap().free_text
        };
        assert!(asked(Vec::new(), false));
        assert!(!asked(vec![choice("yes")], false));
        assert!(asked(vec![choice("yes")], true));
    }

    #[test]
    fn everything_that_is_said_about_a_question_is_in_its_form() {
        let input = FormInput {
            options: vec![choice("now"), choice("later")],
            multiple: true,
            free_text: false,
            default: Some("later".into()),
            expires: Some("1h".into()),
        };
        let form = one("Deploy?", Some("It is late.".into()), input, now()).unwrap();
        let expected = Form {
            context: Some("It is late.".into()),
            options: vec![choice("now"), choice("later")],
            multiple: true,
            free_text: false,
            default: Some("later".into()),
            expires_at: Some("2026-10-24T13:00:00Z".parse().unwrap()),
            ..Form::text("Deploy?")
        };
        assert_eq!(form, expected);
    }

    #[test]
    fn a_bad_form_is_refused_with_an_example() {
        let refused = |input| one("Deploy?", None, input, now()).unwrap_err();
        let late = refused(FormInput { expires: Some("soon".into()), ..FormInput::default() });
        assert!(late.message.starts_with("--expires: \"soon\" is neither a duration"), "{late}");
        assert_eq!(late.hints, ["for example --expires 3d"]);
        let twice = refused(FormInput { options: vec![choice("a"), choice("a")], ..FormInput::default() });
        assert!(twice.hints[0].starts_with("agent-cli ask \"Deploy?\""), "{twice}");
    }

    #[test]
    fn several_questions_are_one_batch() {
        let json = r#"[
            {"name": "when", "question": "When?", "options": ["now", {"key": "later", "description": "at night"}]},
            {"question": "Why?", "context": "Because.", "expires": "1h"},
            {"question": "Which?", "options": ["a"], "multiple": true, "free_text": true, "default": "a", "expires": "2h"}
        ]"#;
        let forms = several(json, Some("3d"), now()).unwrap();
        let [first, second, third] = forms.as_slice() else { panic!("{forms:?}") };
        let later = QuestionOption { key: "later".into(), description: "at night".into() };
        assert_eq!((first.options.as_slice(), first.free_text), ([choice("now"), later].as_slice(), false));
        let expires = [first, second, third].map(|form| form.expires_at.unwrap().to_string());
        assert_eq!(expires, ["2026-10-27T12:00:00Z", "2026-10-24T13:00:00Z", "2026-10-24T14:00:00Z"]);
        assert_eq!((second.context.as_deref(), second.free_text), (Some("Because."), true));
        assert_eq!((third.multiple, third.free_text, third.default.as_deref()), (true, true, Some("a")));
        let batches = [first, second, third].map(|form| form.batch.clone().unwrap());
        assert_eq!(batches.iter().map(|batch| batch.name.as_deref()).collect::<Vec<_>>(), [Some("when"), None, None]);
        assert!(batches.iter().all(|batch| batch.id == batches[0].id));
    }

    #[test]
    fn json_that_is_no_list_of_questions_is_refused() {
        let refused = |json: &str| {
            let refusal = several(json, None, now()).unwrap_err();
            assert!(refusal.hints[0].starts_with("a JSON array"), "{refusal}");
            refusal.message
        };
        assert!(refused("{").starts_with("the questions cannot be read: "));
        assert_eq!(refused("[]"), "1 to 50 questions can be asked at once, not 0");
        let many = |count| format!("[{}]", vec![r#"{"question": "Q?"}"#; count].join(","));
        assert_eq!(refused(&many(51)), "1 to 50 questions can be asked at once, not 51");
        assert_eq!(several(&many(50), None, now()).unwrap().len(), 50);
        let twice = r#"[{"name": "a", "question": "Q?"}, {"name": "a", "question": "R?"}]"#;
        assert_eq!(refused(twice), "two questions have the name a");
        let late = r#"[{"question": "Q?"}, {"question": "R?", "expires": "soon"}]"#;
        assert!(refused(late).starts_with("question 2: \"soon\" is neither"));
    }
}
