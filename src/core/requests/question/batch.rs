//! Questions that are asked together, and their one result.

use serde_json::{Value, json};

use crate::core::requests::question::Form;
use crate::core::requests::request::RequestResult;

/// One question of a batch that is over.
pub(crate) struct Part {
    pub(crate) form: Form,
    /// The answer, or the default of an expired question.
    pub(crate) answer: Option<String>,
    pub(crate) expired: bool,
}

/// The result of a batch: a JSON array on one line, with the questions in the order in which they were asked.
pub(crate) fn result(parts: &[Part]) -> RequestResult {
    let part = |part: &Part| {
        let mut object = json!({"question": part.form.question, "answer": part.answer, "expired": part.expired});
        if let Some(name) = part.form.batch.as_ref().and_then(|batch| batch.name.as_ref()) {
            object["name"] = json!(name);
        }
        object
    };
    RequestResult::Text(Value::Array(parts.iter().map(part).collect()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::question::Batch;

    #[test]
    fn a_batch_has_one_result_with_every_answer_to_the_byte() {
        let batch = |name: Option<&str>| Some(Batch { id: RequestId::random(), name: name.map(str::to_owned) });
        let (named, unnamed) = (
            Form { batch: batch(Some("day")), ..Form::text("When?") },
            Form { batch: batch(None), ..Form::text("Why?") },
        );
        let result = result(&[
            Part { form: named, answer: Some("Jan\n \"1st\"\u{2028}".into()), expired: false },
            Part { form: unnamed, answer: None, expired: true },
        ]);
        let read: Value = serde_json::from_str(result.text()).unwrap();
        let expected = json!([
            {"name": "day", "question": "When?", "answer": "Jan\n \"1st\"\u{2028}", "expired": false},
            {"question": "Why?", "answer": null, "expired": true},
        ]);
        assert_eq!(read, expected);
        assert!(!result.text().contains('\n'));
    }
}
