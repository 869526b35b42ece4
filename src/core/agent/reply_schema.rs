//! The JSON Schema that an agent's reply must match (`spawn --schema`).
//!
//! Agents write both schemas and replies. Regular expressions take linear time and nothing is fetched, but a schema can still
//! demand any amount of work, so only a process with limits computes a [`Check`] of an untrusted schema.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::text::escape::one_line;

/// A JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReplySchema(Value);

/// The shape of an agent's last message, given its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyShape {
    /// Any text is allowed: there is no schema.
    Free,
    /// This JSON, which is the message or a part of it, fits.
    Fits(String),
    /// It does not fit, for these reasons.
    Misfit(Vec<String>),
}

/// A computation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Check {
    schema: ReplySchema,
    /// The reply; `None`: only whether the schema can be used.
    reply: Option<String>,
}

/// The shape of the reply, or why the schema cannot be used.
pub(crate) type Checked = Result<ReplyShape, String>;

/// In bytes. Each agent reads all of it.
pub(crate) const LARGEST_SCHEMA: usize = 64 << 10;
/// Readers of JSON have limits, and a schema is inside of other JSON.
const DEEPEST_SCHEMA: usize = 64;
/// In bytes.
const LARGEST_REPLY: usize = 1 << 20;
/// An agent corrects these, and sees the others afterwards.
const MOST_REASONS: usize = 10;
/// In characters, of one reason.
const LONGEST_REASON: usize = 300;
/// In bytes, of one compiled regular expression.
const LARGEST_PATTERN: usize = 1 << 20;

impl ReplySchema {
    /// The schema in a text, which need not be valid. The error follows the name of the text.
    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        let too_deep = || format!("is nested more than {DEEPEST_SCHEMA} levels deep");
        let schema: Value = serde_json::from_str(text).map_err(|error| match is_too_deep(&error) {
            true => too_deep(),
            false => format!("is not JSON: {error}"),
        })?;
        if is_deeper(&schema, DEEPEST_SCHEMA) { Err(too_deep()) } else { Ok(Self(schema)) }
    }

    /// On one line.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }

    fn validator(&self) -> Result<Validator, String> {
        let patterns = PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN);
        let options = jsonschema::options().with_pattern_options(patterns).offline();
        options.build(&self.0).map_err(|error| unusable(&error))
    }
}

impl Check {
    pub(crate) fn new(schema: &ReplySchema, reply: Option<&str>) -> Self {
        Self { schema: schema.clone(), reply: reply.map(str::to_owned) }
    }

    pub(crate) fn compute(&self) -> Checked {
        let validator = self.schema.validator()?;
        Ok(self.reply.as_deref().map_or(ReplyShape::Free, |reply| shape(&validator, reply)))
    }

    /// A question or its answer, as a process passes it to another.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub(crate) fn answer_from_json(json: &[u8]) -> Option<Checked> {
        serde_json::from_slice(json).ok()
    }
}

/// Whether a reader of JSON has given up at a valid text. Its kind of error does not say so.
fn is_too_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(values) => values.iter().any(|value| is_deeper(value, left)),
        Value::Object(fields) => fields.values().any(|value| is_deeper(value, left)),
        _ => false,
    }
}

fn unusable(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            reason(&format!("it refers to {uri}, and nothing is fetched: put the definition under $defs"))
        }
        ValidationErrorKind::Referencing(ReferencingError::PointerToNowhere { pointer }) => {
            reason(&format!("it refers to {pointer}, which it does not contain"))
        }
        ValidationErrorKind::AnyOf { .. } if error.instance_path().as_str().ends_with("/type") => {
            const TYPES: &str = "array, boolean, integer, null, number, object or string";
            reason(&format!("{}: it must be {TYPES}, or a list of these", error.instance_path()))
        }
        ValidationErrorKind::Referencing(ReferencingError::UnknownSpecification { specification }) => {
            reason(&format!("its $schema is no known version of JSON Schema: {specification}"))
        }
        ValidationErrorKind::Format { format } if format == "regex" => {
            let why = "(it may be too large, or use what takes more than linear time, like (?=…) and \\1)";
            format!("{} {why}", located(error))
        }
        _ => located(error),
    }
}

fn shape(validator: &Validator, reply: &str) -> ReplyShape {
    let misfit = |why: &str| ReplyShape::Misfit(vec![why.to_owned()]);
    if reply.len() > LARGEST_REPLY {
        return misfit("it is larger than 1 MiB");
    }
    let json = json_of(reply);
    let value: Value = match serde_json::from_str(json) {
        Ok(value) => value,
        Err(error) if is_too_deep(&error) => return misfit("it is nested more than 127 levels deep"),
        Err(error) if json == reply.trim() => {
            return misfit(&reason(&format!("it is not JSON, and has no ```json block: {error}")));
        }
        Err(error) => return misfit(&reason(&format!("its last ```json block is not JSON: {error}"))),
    };
    let reasons: Vec<_> = validator.iter_errors(&value).take(MOST_REASONS).map(|error| located(&error)).collect();
    if reasons.is_empty() { ReplyShape::Fits(json.to_owned()) } else { ReplyShape::Misfit(reasons) }
}

/// The JSON in a reply: all of it, or the content of its last code block that is marked as JSON or not marked at all.
fn json_of(reply: &str) -> &str {
    let whole = reply.trim();
    if serde_json::from_str::<&RawValue>(whole).is_ok() {
        return whole;
    }
    blocks(whole).last().map_or(whole, str::trim)
}

/// The content of its Markdown code blocks with JSON. A block without an end does not count.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut open: Option<(&str, bool, usize)> = None;
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let mark = if trimmed.starts_with('~') { '~' } else { '`' };
        let marks = trimmed.len() - trimmed.trim_start_matches(mark).len();
        let (fence, info) = trimmed.split_at(marks);
        match open {
            None if marks >= 3 && !(mark == '`' && info.contains('`')) => {
                let info = info.trim();
                open = Some((fence, info.is_empty() || info.eq_ignore_ascii_case("json"), at));
                None
            }
            Some((opening, is_json, begins)) if fence.starts_with(opening) && info.trim().is_empty() => {
                open = None;
                is_json.then(|| &text[begins..start])
            }
            _ => None,
        }
    })
}

/// What is wrong, and where. The value itself may be long.
fn located(error: &ValidationError<'_>) -> String {
    let said = error.to_string();
    let said = match error.kind() {
        ValidationErrorKind::FalseSchema => "the schema allows nothing here".to_owned(),
        _ if said.len() > LONGEST_REASON / 2 => error.masked().to_string(),
        _ => said,
    };
    match error.instance_path().as_str() {
        "" => reason(&said),
        path => reason(&format!("{path}: {said}")),
    }
}

fn reason(text: &str) -> String {
    let mut line: String = one_line(text.trim()).chars().take(LONGEST_REASON + 1).collect();
    if let Some((cut, _)) = line.char_indices().nth(LONGEST_REASON) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn computed(schema: &Value, reply: Option<&str>) -> Checked {
        Check::new(&ReplySchema(schema.clone()), reply).compute()
    }

    fn shape_of(reply: &str) -> ReplyShape {
        let of_a = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        computed(&of_a, Some(reply)).unwrap()
    }

    fn fits(json: &str) -> ReplyShape {
        ReplyShape::Fits(json.to_owned())
    }

    #[test]
    fn json_is_the_whole_reply_or_its_last_block() {
        let reply = r#"{"a": 1}"#;
        for text in [
            reply.to_owned(),
            format!("\n {reply}\n"),
            format!("```json\n{reply}\n```"),
            format!("Here it is:\n\n```JSON\n{reply}\n```\nThat is all."),
            format!("```\n{reply}\n```"),
            format!("````json\n{reply}\n````"),
            format!("~~~json\n{reply}\n~~~"),
            format!("~~~~ json\n{reply}\n~~~~~\n```sh\n~~~~\n```"),
            format!("First:\n```json\n{{\"b\": 2}}\n```\nNo, rather:\n```json\n{reply}\n```\n"),
            format!("```json\n{reply}\n```\nTo try it:\n```sh\ncat\n```\n"),
            format!("> ```json\n  ```json\n{reply}\n  ```"),
        ] {
            assert_eq!(shape_of(&text), fits(reply), "{text}");
        }
        for text in [
            "", "so: {\"a\": 1}", "```json\n{\"a\": 1}", "```sh\n{\"a\": 1}\n```", "~~~json\n{\"a\": 1}\n```",
            "{\"a\": 1} {\"a\": 1}",
        ] {
            assert!(matches!(shape_of(text), ReplyShape::Misfit(_)), "{text}");
        }
        assert_eq!(shape_of("{\"a\": 1, \"t\": \"```\\n```json\"}"), fits("{\"a\": 1, \"t\": \"```\\n```json\"}"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let misfit = |reply: &str| match shape_of(reply) {
            ReplyShape::Misfit(reasons) => reasons.join("\n"),
            other => panic!("{other:?}"),
        };
        insta::assert_snapshot!(misfit(r#"{"a": "one"}"#), @r#"/a: "one" is not of type "integer""#);
        insta::assert_snapshot!(misfit("[]"), @r#"[] is not of type "object""#);
        insta::assert_snapshot!(misfit("{}"), @r#""a" is a required property"#);
        insta::assert_snapshot!(misfit("yes"), @"it is not JSON, and has no ```json block: expected value at line 1 column 1");
        insta::assert_snapshot!(misfit("```json\n{\n```"), @"its last ```json block is not JSON: EOF while parsing an object at line 1 column 1");
        insta::assert_snapshot!(misfit(&"x".repeat(LARGEST_REPLY + 1)), @"it is larger than 1 MiB");
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(1000));
        insta::assert_snapshot!(misfit(&long), @r#"/a: value is not of type "integer""#);
        assert_eq!(misfit(&"[".repeat(100_000)), "it is nested more than 127 levels deep");
        let nothing = Check::new(&ReplySchema(json!({"properties": {"a": false}})), Some(r#"{"a": 1}"#)).compute();
        assert_eq!(nothing, Ok(ReplyShape::Misfit(vec!["/a: the schema allows nothing here".to_owned()])));
    }

    #[test]
    fn a_schema_that_cannot_be_used_says_why() {
        let why = |schema: Value| computed(&schema, None).unwrap_err();
        insta::assert_snapshot!(why(json!(3)), @r#"3 is not of types "boolean", "object""#);
        insta::assert_snapshot!(why(json!({"type": "text"})), @"/type: it must be array, boolean, integer, null, number, object or string, or a list of these");
        insta::assert_snapshot!(why(json!({"$ref": "#/$defs/gone"})), @"it refers to /$defs/gone, which it does not contain");
        insta::assert_snapshot!(why(json!({"pattern": "(?=a)b"})), @r#"/pattern: "(?=a)b" is not a "regex" (it may be too large, or use what takes more than linear time, like (?=…) and \1)"#);
        assert!(why(json!({"pattern": "((a{1000}){1000}){1000}"})).contains("it may be too large"));
        let deep = |levels: usize| {
            ReplySchema::from_text(&format!("{}true{}", "{\"not\":".repeat(levels), "}".repeat(levels)))
        };
        assert!(deep(63).is_ok());
        assert_eq!([deep(64), deep(200)].map(Result::unwrap_err), ["is nested more than 64 levels deep"; 2]);
        let schema = json!({"$schema": "https://example.org/mine"});
        insta::assert_snapshot!(why(schema), @"its $schema is no known version of JSON Schema: https://example.org/mine");
        for remote in ["file:///etc/passwd", "http://127.0.0.1/a.json", "other.json", "/etc/passwd"] {
            let why = why(json!({"properties": {"a": {"$ref": remote}}}));
            assert!(why.contains("nothing is fetched"), "{remote}: {why}");
            assert!(computed(&json!({"$schema": remote}), None).is_err(), "{remote}");
        }
    }

    #[test]
    fn a_pattern_takes_linear_time() {
        let text = format!("\"{}!\"", "a".repeat(100_000));
        assert!(matches!(computed(&json!({"pattern": "^(a+)+$"}), Some(&text)), Ok(ReplyShape::Misfit(_))));
    }

    proptest! {
        #[test]
        fn what_fits_is_json_that_fits_alone(before in "[a-z`\n]{0,20}", json in "[0-9{}\"a:`\\[\\]\n ]{0,20}", after in "[a-z`\n]{0,20}") {
            let text = format!("{before}\n```json\n{json}\n```\n{after}");
            if let Ok(ReplyShape::Fits(found)) = computed(&json!({"type": ["object", "array"]}), Some(&text)) {
                prop_assert!(text.contains(&found));
                prop_assert_eq!(computed(&json!({"type": ["object", "array"]}), Some(&found)), Ok(fits(&found)));
            }
        }

        #[test]
        fn reasons_are_few_and_short(schema in "[{}\"a:0-9,\\[\\]]{0,30}", reply in "\\PC{0,200}") {
            let Ok(schema) = ReplySchema::from_text(&schema) else { return Ok(()) };
            let reasons = match Check::new(&schema, Some(&reply)).compute() {
                Ok(ReplyShape::Misfit(reasons)) => reasons,
                Ok(_) => Vec::new(),
                Err(why) => vec![why],
            };
            prop_assert!(reasons.len() <= MOST_REASONS);
            prop_assert!(reasons.iter().all(|reason| reason.chars().count() <= LONGEST_REASON + 1 && !reason.contains('\n')));
        }
    }
}
