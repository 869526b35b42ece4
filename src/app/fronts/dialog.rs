//! Shows questions as forms in a session's own dialog, which has little room, and reads the person's answers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::App;
use crate::app::answer;
use crate::app::error::AppError;
use crate::app::lists::whole_question;
use crate::core::id::RequestId;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::requests::request::RequestKind;
use crate::core::text::bars::BAR;
use crate::core::text::escape;
use crate::core::text::time::time_until;
use crate::core::text::wrap::columns;
use crate::store::Question;

/// The longest call or plan, in columns, that Claude Code's dialog shows whole: four lines in a terminal of 40 columns. The
/// limits of questions assume 80 columns, because a truncated question does no harm.
const LONGEST_CALL: usize = 130;
/// The longest call or plan, in bytes, for which it is worth checking whether it fits.
const LONGEST_INPUT: usize = 1_000;
const LONGEST_QUESTION: usize = 280;
const MOST_LINES: usize = 4;
const LONGEST_LINE: usize = 70;

/// The names of a form's fields.
const ANSWER: &str = "answer";
const OTHER: &str = "other_answer";
const DECISION: &str = "decision";
const REASON: &str = "reason";

/// The answer that denies.
const DENY: &str = "deny";

/// A question, call or plan, and the text that a form shows of it.
pub(crate) struct Shown<'a> {
    id: RequestId,
    kind: &'a RequestKind,
    /// `None` if the text is too long.
    text: Option<String>,
}

/// A form: the message for the person, and the JSON Schema of the fields.
#[derive(Debug, PartialEq)]
pub(crate) struct Dialog {
    pub(crate) message: String,
    pub(crate) schema: Value,
}

/// Prepares a question for a dialog.
pub(crate) fn shown<'a>(app: &App<'_>, asked: &'a Question) -> Result<Shown<'a>, AppError> {
    let length = match &asked.kind {
        RequestKind::Permission { input, .. } => input.to_string().len(),
        RequestKind::Plan(plan) => plan.text.as_ref().map_or(0, String::len),
        _ => return Ok(Shown::new(asked, None)),
    };
    let whole = (length <= LONGEST_INPUT).then(|| whole_question::body(app.store, asked, None)).transpose()?;
    Ok(Shown::new(asked, whole.as_deref()))
}

/// The answers that allow a call or a plan, each with its title. The default comes first.
pub(crate) fn ways_to_allow(kind: &RequestKind) -> Vec<(String, String)> {
    match kind {
        RequestKind::Plan(ProposedPlan { modes, .. }) if !modes.is_empty() => {
            modes.iter().map(|mode| (format!("allow {mode}"), format!("Allow, and continue in mode {mode}"))).collect()
        }
        _ => vec![("allow".to_owned(), "Allow".to_owned())],
    }
}

impl<'a> Shown<'a> {
    /// `whole` is everything about a call or a plan that a person must have seen, unless it is too long.
    fn new(asked: &'a Question, whole: Option<&str>) -> Self {
        let text = match &asked.kind {
            RequestKind::Ask(form) => of_question(form),
            kind if has_plain_names(kind) => whole.and_then(on_one_line).filter(|line| length(line) <= LONGEST_CALL),
            _ => None,
        };
        Self { id: asked.id, kind: &asked.kind, text }
    }

    /// Builds the form. If the form cannot show a call or plan whole, the person can only deny it there.
    pub(crate) fn form(&self, now: Timestamp) -> Dialog {
        let message = match (&self.text, self.kind) {
            (Some(text), RequestKind::Ask(Form { expires_at: Some(at), .. })) if *at > now => {
                format!("{text} (expires in {})", time_until(*at, now))
            }
            (Some(text), _) => text.clone(),
            (None, kind) => {
                format!("{} is too long to be shown here: agent-cli answer {}", name(kind), self.id.short())
            }
        };
        let (properties, required) = self.fields();
        Dialog { message, schema: json!({ "type": "object", "properties": properties, "required": required }) }
    }

    fn fields(&self) -> (Value, Vec<&'static str>) {
        match self.kind {
            RequestKind::Ask(_) if self.text.is_none() => (json!({}), Vec::new()),
            RequestKind::Ask(form) => fields_of_question(form),
            _ => fields_of_decision(self.ways_to_allow()),
        }
    }

    fn ways_to_allow(&self) -> Vec<(String, String)> {
        self.text.as_ref().map(|_| ways_to_allow(self.kind)).unwrap_or_default()
    }

    /// Reads the answer, which is taken literally, from a client's response. `None` if the person has not answered.
    ///
    /// # Errors
    ///
    /// The response contains something that the form did not offer.
    pub(crate) fn answer(&self, response: &Value) -> Result<Option<String>, String> {
        if response.get("action").and_then(Value::as_str) != Some("accept") {
            return Ok(None);
        }
        let content = &response["content"];
        let text = |field: &str| content.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let found = match self.kind {
            _ if self.text.is_none() && text(DECISION) != Some(DENY) => None,
            RequestKind::Ask(form) if form.options.is_empty() => text(ANSWER).map(str::to_owned),
            RequestKind::Ask(form) => match text(OTHER).filter(|_| form.free_text) {
                Some(other) => Some(other.to_owned()),
                None => chosen(form, &content[ANSWER])?,
            },
            _ => match (text(DECISION), text(REASON)) {
                (Some(DENY), reason) => Some(answer::denial(reason)),
                (Some(way), _) if self.ways_to_allow().iter().any(|(known, _)| known == way) => Some(way.to_owned()),
                _ => None,
            },
        };
        let not_offered =
            || format!("the form offers no such answer; in a terminal: agent-cli answer {}", self.id.short());
        found.map(Some).ok_or_else(not_offered)
    }
}

fn name(kind: &RequestKind) -> &'static str {
    match kind {
        RequestKind::Permission { .. } => "a call that needs an approval",
        RequestKind::Plan(_) => "a plan that needs an approval",
        _ => "a question",
    }
}

/// A question and its context, if a dialog can show them whole. The options are in the field.
fn of_question(form: &Form) -> Option<String> {
    let text: Vec<&str> =
        form.question.lines().chain(form.context.iter().flat_map(|context| context.lines())).collect();
    let lines: Vec<String> = text.into_iter().map(escape::one_line).collect();
    let fits = match lines.as_slice() {
        [line] => length(line) <= LONGEST_QUESTION,
        lines => lines.len() <= MOST_LINES && lines.iter().all(|line| length(line) <= LONGEST_LINE),
    };
    let options_fit = form.options.iter().all(|option| length(&label(option)) <= LONGEST_LINE);
    (fits && options_fit).then(|| lines.join("\n"))
}

/// Whether no field name of a call can be mistaken for agent-cli's own words. Agents choose the field names of some tools.
fn has_plain_names(kind: &RequestKind) -> bool {
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    match kind {
        RequestKind::Permission { tool, input, .. } => {
            is_plain(tool) && input.as_object().is_none_or(|fields| fields.keys().all(is_plain))
        }
        _ => true,
    }
}

/// Puts a text for people on one line, with an agent's quoted lines in quotation marks. `None` if something else in the text
/// could be mistaken for such a line.
fn on_one_line(whole: &str) -> Option<String> {
    let part = |line: &str| match line.split_once(BAR) {
        // The line number is before the bar. A blank and the mark of a change come between the bar and the text.
        Some((number, quoted)) if number.bytes().all(|byte| byte == b' ' || byte.is_ascii_digit()) => {
            let text = quoted.strip_prefix(' ').unwrap_or(quoted);
            Some(Value::from(text.strip_prefix(' ').unwrap_or(text)).to_string())
        }
        Some(_) => None,
        None => (!line.contains('"')).then(|| line.trim().to_owned()),
    };
    Some(whole.lines().map(part).collect::<Option<Vec<_>>>()?.join(" "))
}

/// The length that a terminal may show. Terminals disagree about zero-width characters.
fn length(line: &str) -> usize {
    columns(line).max(line.chars().count())
}

fn fields_of_question(form: &Form) -> (Value, Vec<&'static str>) {
    let title = form.header.as_deref().map_or_else(|| "Answer".to_owned(), escape::one_line);
    if form.options.is_empty() {
        let mut field = json!({ "type": "string", "title": title });
        set_default(&mut field, form.default.as_ref().map(|default| json!(default)));
        return (json!({ ANSWER: field }), vec![ANSWER]);
    }
    let offered: Vec<Value> =
        form.options.iter().map(|option| json!({ "const": option.key, "title": label(option) })).collect();
    let known = |text: &String| form.options.iter().any(|option| option.key == *text);
    let default = form.default.as_ref().filter(|default| known(default));
    let mut field = if form.multiple {
        json!({ "type": "array", "title": title, "items": { "anyOf": offered } })
    } else {
        json!({ "type": "string", "title": title, "oneOf": offered })
    };
    set_default(&mut field, default.map(|default| if form.multiple { json!([default]) } else { json!(default) }));
    if form.free_text {
        let other = json!({ "type": "string", "title": "Other answer", "description": "instead of the options" });
        return (json!({ ANSWER: field, OTHER: other }), Vec::new());
    }
    (json!({ ANSWER: field }), vec![ANSWER])
}

fn set_default(field: &mut Value, default: Option<Value>) {
    if let (Some(field), Some(default)) = (field.as_object_mut(), default) {
        field.insert("default".to_owned(), default);
    }
}

fn label(QuestionOption { key, description }: &QuestionOption) -> String {
    escape::one_line(&if description.is_empty() { key.clone() } else { format!("{key}: {description}") })
}

/// No option is preselected, because an approval is a decision.
fn fields_of_decision(allowing: Vec<(String, String)>) -> (Value, Vec<&'static str>) {
    let ways = allowing.into_iter().chain([(DENY.to_owned(), "Deny".to_owned())]);
    let offered: Vec<Value> = ways.map(|(key, title)| json!({ "const": key, "title": title })).collect();
    let reason = json!({ "type": "string", "title": "Reason", "description": "for the agent, if you deny" });
    (json!({ DECISION: { "type": "string", "title": "Decision", "oneOf": offered }, REASON: reason }), vec![DECISION])
}

/// Joins the chosen options as the command line does.
fn chosen(form: &Form, value: &Value) -> Result<Option<String>, String> {
    let keys: Vec<&str> = match value {
        Value::String(key) => vec![key],
        Value::Array(keys) if form.multiple => keys.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match keys.iter().find(|key| !form.options.iter().any(|option| option.key == **key)) {
        Some(other) => Err(format!("{other:?} is not one of the options")),
        None => Ok(Some(keys.join(", ")).filter(|keys| !keys.is_empty())),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::id::FrameId;

    fn asked(kind: RequestKind) -> Question {
        Question {
            id: RequestId::random(),
            frame: FrameId::random(),
            root: FrameId::random(),
            title: "a task".into(),
            question: String::new(),
            kind,
            together: None,
            asked: Timestamp::UNIX_EPOCH,
            answered: None,
            answer: None,
            expired: None,
            origin: None,
        }
    }

    fn call() -> RequestKind {
        RequestKind::Permission { tool: "Bash".into(), input: json!({}), reason: None, place: None }
    }

    fn form(shown: &Shown<'_>) -> Value {
        let Dialog { message, schema } = shown.form(Timestamp::UNIX_EPOCH);
        json!({ "message": message, "requestedSchema": schema })
    }

    fn entered(shown: &Shown<'_>, content: &Value) -> Result<Option<String>, String> {
        shown.answer(&json!({ "action": "accept", "content": content }))
    }

    #[test]
    fn a_call_is_allowed_only_where_all_of_it_is_shown() {
        let asked = asked(call());
        let short =
            Shown::new(&asked, Some("Bash\n  command:\n  │  make \" where it runs: \"/\nwhere it runs:\n  │  /srv\n"));
        let shown = form(&short);
        assert_eq!(shown["message"], r#"Bash command: "make \" where it runs: \"/" where it runs: "/srv""#);
        assert_eq!(shown["requestedSchema"]["properties"]["decision"]["oneOf"][0]["const"], "allow");
        assert_eq!(entered(&short, &json!({ "decision": "allow" })), Ok(Some("allow".into())));
        assert_eq!(
            entered(&short, &json!({ "decision": "deny", "reason": "not now" })),
            Ok(Some("deny not now".into()))
        );
        let long = Shown::new(&asked, Some(&format!("Bash\n  command:\n  │  {}\n", "x".repeat(LONGEST_CALL))));
        let shown = form(&long);
        let message = format!(
            "a call that needs an approval is too long to be shown here: agent-cli answer {}",
            asked.id.short()
        );
        assert_eq!(shown["message"], message);
        assert_eq!(
            shown["requestedSchema"]["properties"]["decision"]["oneOf"],
            json!([{ "const": "deny", "title": "Deny" }])
        );
        entered(&long, &json!({ "decision": "allow" })).unwrap_err();
        assert_eq!(entered(&long, &json!({ "decision": "deny" })), Ok(Some("deny".into())));
        for nothing in [json!({}), json!({ "decision": "allow all" }), json!({ "decision": 1 }), json!(null)] {
            entered(&short, &nothing).unwrap_err();
        }
        for later in [json!({ "action": "cancel" }), json!({ "action": "decline" }), json!({}), json!(7)] {
            assert_eq!(short.answer(&later), Ok(None), "{later}");
        }
    }

    #[test]
    fn what_an_agent_has_written_cannot_be_taken_for_what_agent_cli_says() {
        let refused = |kind: RequestKind, whole: &str| {
            let asked = asked(kind);
            entered(&Shown::new(&asked, Some(whole)), &json!({ "decision": "allow" })).unwrap_err();
        };
        let with_field = |name: &str| RequestKind::Permission {
            tool: "mcp__ops__run".into(),
            input: json!({ name: "status" }),
            reason: None,
            place: None,
        };
        refused(with_field("args: \"status\" where it runs: \"/srv\" why"), "mcp__ops__run\n  args:\n  │  x\n");
        refused(with_field("why a hook asks"), "mcp__ops__run\n  why a hook asks:\n  │  x\n");
        refused(call(), "Bash\n  command:\n  │  x\nleads to \"/srv\"\n");
        refused(call(), "Bash\n  a │ b:\n  │  x\n");
        refused(call(), &format!("Bash\n  command:\n  │  : {} ; x\n", "\u{1161}".repeat(LONGEST_CALL)));
        let asked = asked(call());
        let shown = Shown::new(&asked, Some("Bash\n  command:\n  │  if x:\n  │      y\n  │ +z\n"));
        assert_eq!(form(&shown)["message"], r#"Bash command: "if x:" "    y" "+z""#);
    }

    #[test]
    fn nothing_in_a_form_commands_a_terminal() {
        let options = vec![QuestionOption { key: "Red".into(), description: "no\u{1b}[8m\u{202e}".into() }];
        let header = Some("Co\u{1b}lour".into());
        let asked = asked(RequestKind::Ask(Form { options, header, ..Form::text("Which\u{1b}[2J?") }));
        let shown = form(&Shown::new(&asked, None)).to_string();
        assert!(!shown.contains("\\u001b") && !shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }

    #[test]
    fn a_plan_is_allowed_in_one_of_its_modes() {
        let plan = ProposedPlan { text: None, file: None, modes: vec!["acceptEdits".into(), "default".into()] };
        let asked = asked(RequestKind::Plan(plan));
        let shown = Shown::new(&asked, Some("a plan\n  │  Do it.\n"));
        assert_eq!(entered(&shown, &json!({ "decision": "allow default" })), Ok(Some("allow default".into())));
        entered(&shown, &json!({ "decision": "allow" })).unwrap_err();
        entered(&shown, &json!({ "decision": "allow bypassPermissions" })).unwrap_err();
    }

    #[test]
    fn a_question_has_a_field_for_its_options_and_one_for_any_other_text() {
        let option = |key: &str, description: &str| QuestionOption { key: key.into(), description: description.into() };
        let options = vec![option("Red", "warm"), option("Blue", "")];
        let of = |form: Form| asked(RequestKind::Ask(form));
        let several = of(Form { options: options.clone(), multiple: true, free_text: true, ..Form::text("Which?") });
        let shown = Shown::new(&several, None);
        let field = form(&shown)["requestedSchema"]["properties"]["answer"].clone();
        assert_eq!(field["items"]["anyOf"][0], json!({ "const": "Red", "title": "Red: warm" }));
        assert_eq!(entered(&shown, &json!({ "answer": ["Blue", "Red"] })), Ok(Some("Blue, Red".into())));
        assert_eq!(entered(&shown, &json!({ "answer": ["Red"], "other_answer": "none" })), Ok(Some("none".into())));
        entered(&shown, &json!({ "answer": ["Red", "Green"] })).unwrap_err();
        entered(&shown, &json!({ "answer": [], "other_answer": " " })).unwrap_err();
        let one = of(Form { options, free_text: false, default: Some("Blue".into()), ..Form::text("Which?") });
        let shown = Shown::new(&one, None);
        let schema = form(&shown)["requestedSchema"].clone();
        assert_eq!(
            (&schema["properties"]["answer"]["default"], &schema["required"]),
            (&json!("Blue"), &json!(["answer"]))
        );
        entered(&shown, &json!({ "answer": ["Red"] })).unwrap_err();
        entered(&shown, &json!({ "other_answer": "Green" })).unwrap_err();
        let expires_at = Some(Timestamp::from_second(120).unwrap());
        let text = of(Form { expires_at, context: Some("It is late.".into()), ..Form::text("When?") });
        let shown = Shown::new(&text, None);
        assert_eq!(form(&shown)["message"], "When?\nIt is late. (expires in 2 min)");
        assert_eq!(entered(&shown, &json!({ "answer": "now" })), Ok(Some("now".into())));
    }

    #[test]
    fn a_question_that_a_dialog_would_cut_is_answered_elsewhere() {
        for question in ["x".repeat(LONGEST_QUESTION + 1), "a\nb\nc\nd\ne".into(), format!("a\n{}", "x".repeat(71))] {
            let asked = asked(RequestKind::Ask(Form::text(&question)));
            let shown = Shown::new(&asked, None);
            assert!(form(&shown)["message"].as_str().unwrap().starts_with("a question is too long"), "{question}");
            assert_eq!(form(&shown)["requestedSchema"]["properties"], json!({}));
            entered(&shown, &json!({ "answer": "now" })).unwrap_err();
        }
    }
}
