//! The input of a notification's command: an object on standard input, and the main fields in its environment.
//! `docs/notifications.md` describes both.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::core::agent::usage::usd;
use crate::core::id::{FrameId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape;

/// The version of the JSON format. It changes when the meaning of a field changes or a field is removed, not when one is added.
const VERSION: u32 = 1;

/// Longer texts are truncated in the environment, which has little room.
const LONGEST: usize = 1_000;

/// A notification as its command gets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Payload {
    pub version: u32,
    /// The same in each try.
    pub id: NotificationId,
    pub event: Occasion,
    /// When it happened.
    pub at: Timestamp,
    /// How many attempts to send it have failed.
    pub failures: u32,
    /// What happened, in a sentence or less.
    pub message: String,
    pub chain: Chain,
    pub agent: Agent,
    /// The question or approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<AskedQuestion>,
    /// The reply of a chain that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Where the question or the chain is on the page, if it is served. Only a browser that has logged in sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Other details about this kind of event.
    #[serde(flatten)]
    pub detail: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Chain {
    pub id: FrameId,
    /// The name of the chain.
    pub name: Option<String>,
    /// The task of its first agent.
    pub task: String,
    /// Where its first agent works.
    pub cwd: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Agent {
    pub id: FrameId,
    pub task: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AskedQuestion {
    pub id: RequestId,
    pub asked: Timestamp,
    /// As it was recorded: a question with its choices, a call with its input, or a plan.
    #[serde(flatten)]
    pub kind: RequestKind,
}

/// The subject of a notification, without the details of its event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct About {
    pub id: NotificationId,
    pub event: Occasion,
    pub at: Timestamp,
    pub failures: u32,
    pub chain: Chain,
    pub agent: Agent,
    /// The details that were recorded with the event.
    pub detail: Value,
}

impl Payload {
    pub(crate) fn new(about: About, question: Option<AskedQuestion>, reply: Option<String>) -> Self {
        let About { id, event, at, failures, chain, agent, detail } = about;
        let message = message(event, &detail, question.as_ref(), reply.as_deref());
        Self { version: VERSION, id, event, at, failures, message, chain, agent, question, reply, url: None, detail }
    }

    /// With the address of the page, which is served.
    pub(crate) fn on_page(self, address: &str) -> Self {
        let path = match &self.question {
            Some(question) => format!("question/{}", question.id),
            None => format!("chain/{}", self.chain.id),
        };
        Self { url: Some(format!("{address}/{path}")), ..self }
    }

    /// An example for a person who tests a command.
    pub(crate) fn example(event: Occasion, now: Timestamp) -> Self {
        let (id, detail) = (
            FrameId::random(),
            match event {
                Occasion::Failed => json!({"why": "this is only an example"}),
                Occasion::Limit => json!({"resets_at": now}),
                Occasion::Stalled => json!({"last_event": now}),
                Occasion::Budget => json!({"max_usd": 1.0, "spent_usd": 1.25}),
                _ => json!({}),
            },
        );
        let kind = match event {
            Occasion::Question => Some(RequestKind::Ask(Form::text("Is this only an example?"))),
            Occasion::Approval => Some(RequestKind::Permission {
                tool: "Bash".to_owned(),
                input: json!({"command": "echo 'this is only an example'"}),
                reason: None,
                place: None,
            }),
            _ => None,
        };
        let (task, cwd) = ("example.md".to_owned(), "/".to_owned());
        let chain = Chain { id, name: Some("example".to_owned()), task: task.clone(), cwd };
        let about = About {
            id: NotificationId::random(),
            event,
            at: now,
            failures: 0,
            chain,
            agent: Agent { id, task },
            detail,
        };
        let question = kind.map(|kind| AskedQuestion { id: RequestId::random(), asked: now, kind });
        Self::new(about, question, (event == Occasion::Done).then(|| "this is only an example".to_owned()))
    }

    /// Variables for the command. Texts are one escaped line, so that they are harmless on a terminal; the object contains them
    /// completely.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| escape::one_line(text.trim()).chars().take(LONGEST).collect::<String>();
        let mut variables = vec![
            ("AGENT_CLI_EVENT", self.event.name().to_owned()),
            (NOTIFICATION, self.id.to_string()),
            ("AGENT_CLI_CHAIN", self.chain.id.to_string()),
            ("AGENT_CLI_CHAIN_NAME", text(self.chain.name.as_ref().unwrap_or(&self.chain.task))),
            ("AGENT_CLI_AGENT", self.agent.id.to_string()),
            ("AGENT_CLI_TASK", text(&self.agent.task)),
            ("AGENT_CLI_CWD", text(&self.chain.cwd)),
            ("AGENT_CLI_MESSAGE", text(&self.message)),
        ];
        variables.extend(self.question.as_ref().map(|question| ("AGENT_CLI_QUESTION", question.id.to_string())));
        variables.extend(self.url.as_ref().map(|url| ("AGENT_CLI_URL", url.clone())));
        variables
    }
}

/// The variable that identifies the notification whose command is run.
pub(crate) const NOTIFICATION: &str = "AGENT_CLI_NOTIFICATION";

/// The variables that [`Payload::environment`] may leave out: a command must not get those of its caller.
pub(crate) const OPTIONAL_VARIABLES: [&str; 2] = ["AGENT_CLI_QUESTION", "AGENT_CLI_URL"];

fn message(event: Occasion, detail: &Value, question: Option<&AskedQuestion>, reply: Option<&str>) -> String {
    let text = |name: &str| detail[name].as_str().unwrap_or_default().trim().to_owned();
    match event {
        Occasion::Question | Occasion::Approval => match question.map(|question| &question.kind) {
            Some(RequestKind::Ask(form)) => form.question.trim().to_owned(),
            Some(kind) => kind.command(),
            None => String::new(),
        },
        Occasion::Done => reply.and_then(|reply| reply.trim().lines().next()).unwrap_or_default().to_owned(),
        Occasion::Failed => text("why"),
        Occasion::Limit => format!("the usage limit is met until {}", text("resets_at")),
        Occasion::Stalled => format!("no event since {}", text("last_event")),
        Occasion::Budget => {
            let dollars = |name: &str| usd(detail[name].as_f64().unwrap_or_default());
            format!("the chain has spent {} of its budget of {}", dollars("spent_usd"), dollars("max_usd"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f2c1a90-0000-4000-8000-000000000001";

    fn about(event: Occasion, detail: Value) -> About {
        About {
            id: ID.parse().unwrap(),
            event,
            at: Timestamp::UNIX_EPOCH,
            failures: 0,
            chain: Chain { id: ID.parse().unwrap(), name: None, task: "root.md".into(), cwd: "/srv".into() },
            agent: Agent { id: ID.parse().unwrap(), task: "child.md".into() },
            detail,
        }
    }

    fn asked(question: &str) -> AskedQuestion {
        let kind = RequestKind::Ask(Form::text(question));
        AskedQuestion { id: ID.parse().unwrap(), asked: Timestamp::UNIX_EPOCH, kind }
    }

    #[test]
    fn a_question_is_whole_in_the_object_and_one_harmless_line_in_the_environment() {
        let hostile = format!("When?\n$(rm -rf ~)\u{1b}]0;x\u{7}{}", "y".repeat(5_000));
        let payload = Payload::new(about(Occasion::Question, json!({})), Some(asked(&hostile)), None);
        assert_eq!(serde_json::to_value(&payload).unwrap()["question"]["ask"]["question"], hostile.as_str());
        let variables = payload.environment();
        let of = |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| value.clone());
        let message = of("AGENT_CLI_MESSAGE").unwrap();
        assert!(message.starts_with("When?⏎$(rm -rf ~)\\u{1b}"), "{message}");
        assert!(message.chars().count() <= LONGEST && !message.chars().any(char::is_control));
        assert_eq!(of("AGENT_CLI_QUESTION").as_deref(), Some(ID));
        assert_eq!(of("AGENT_CLI_CHAIN_NAME").as_deref(), Some("root.md"));
    }

    #[test]
    fn every_event_has_a_message() {
        let said =
            |event, detail| Payload::new(about(event, detail), None, Some("\n all is well \nmore".into())).message;
        for (event, detail, expected) in [
            (Occasion::Done, json!({}), "all is well "),
            (Occasion::Failed, json!({"why": " boom\n"}), "boom"),
            (Occasion::Limit, json!({"resets_at": "noon"}), "the usage limit is met until noon"),
            (Occasion::Stalled, json!({"last_event": "noon"}), "no event since noon"),
            (
                Occasion::Budget,
                json!({"max_usd": 0.5, "spent_usd": 0.75}),
                "the chain has spent $0.75 of its budget of $0.50",
            ),
            (Occasion::Question, json!({}), ""),
        ] {
            assert_eq!(said(event, detail), expected);
        }
    }

    #[test]
    fn an_example_says_what_a_real_one_would() {
        for event in Occasion::ALL {
            let said = Payload::example(event, Timestamp::UNIX_EPOCH).message;
            assert!(!said.is_empty() && said.trim() == said && !said.contains("$0.0000"), "{event:?}: {said:?}");
        }
    }

    #[test]
    fn the_object_has_a_version_and_what_its_event_adds() {
        let payload = Payload::new(about(Occasion::Failed, json!({"why": "boom"})), None, None);
        let object = serde_json::to_value(&payload).unwrap();
        assert_eq!(
            (&object["version"], &object["event"], &object["why"]),
            (&json!(1), &json!("failed"), &json!("boom"))
        );
        assert_eq!(object["chain"], json!({"id": ID, "name": null, "task": "root.md", "cwd": "/srv"}));
        assert!(object.get("question").is_none() && object.get("reply").is_none());
    }
}
