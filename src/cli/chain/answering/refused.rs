//! Hints for inputs that are not recorded as an answer.

use crate::app::error::AnswerError;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::core::requests::answer::NoAnswer;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;
use crate::core::text::shell::quoted;
use crate::store::Question;

impl From<AnswerError> for CliError {
    fn from(error: AnswerError) -> Self {
        let message = error.to_string();
        match error {
            AnswerError::NotAnAnswer { question, kind, text, replaces, error } => {
                let option = if replaces { "--replace " } else { "" };
                let command = |answer: &str| format!("agent-cli answer {} {option}{answer}", question.short());
                not_an_answer(Self::usage(message), command, &kind, &text, &error)
            }
            AnswerError::TooLarge(_) => {
                Self::usage(message).hint("write it to a file, and answer with the name of the file")
            }
            AnswerError::NoPlanAllowed { plan, mode } => Self::usage(message).hint(match plan {
                Some(plan) => format!("agent-cli answer {} allow --mode {mode}", plan.short()),
                None => "leave --mode out".to_owned(),
            }),
            AnswerError::Changed(question) => {
                Self::usage(message).hint(format!("look at it again: agent-cli questions {}", question.short()))
            }
            AnswerError::NoAnswer(chain) => Self::new(ExitStatus::NoSuchFrame, message)
                .hint(format!("agent-cli history {} lists its questions", chain.short())),
            AnswerError::NoOpenQuestion { replaceable, .. } => {
                let replace = |asked: &Question| {
                    let (id, question) = (asked.id.short(), shortened(&asked.question));
                    format!(
                        "agent-cli answer {id} --replace ANSWER changes an answer that was not delivered ({question})"
                    )
                };
                let refused = Self::new(ExitStatus::NoSuchFrame, message);
                let refused = replaceable.iter().map(replace).fold(refused, Self::hint);
                refused.hint("agent-cli questions lists the open questions")
            }
            AnswerError::SeveralOpenQuestions { open, .. } => one_of(&message, &open, ""),
            AnswerError::SeveralAnswers { answered, .. } => one_of(&message, &answered, "--replace "),
            AnswerError::InSessionOf(agent) => {
                let why = "use a shell of your own";
                Self::usage(message).hint(format!("this runs in the Claude session of agent {}: {why}", agent.short()))
            }
        }
    }
}

/// A person must name one of these questions.
fn one_of(message: &str, questions: &[Question], option: &str) -> CliError {
    let one = |asked: &Question| format!("{} ({})", asked.id.short(), shortened(&asked.question));
    let all = questions.iter().map(one).collect::<Vec<_>>().join(", ");
    CliError::new(ExitStatus::NoSuchFrame, format!("{message}: {all}"))
        .hint(format!("name one: agent-cli answer {} {option}ANSWER", questions[0].id.short()))
}

fn not_an_answer(
    refused: CliError,
    command: impl Fn(&str) -> String,
    kind: &RequestKind,
    text: &str,
    error: &NoAnswer,
) -> CliError {
    let example = match kind {
        RequestKind::Ask(form) => form.example().unwrap_or("ANSWER"),
        _ => "ANSWER",
    };
    match (error, kind) {
        (NoAnswer::NoSuchChoice { .. }, _) => {
            let text = format!("--text={}", quoted(text.trim()));
            refused.hint(command(example)).hint(format!("to answer with text, not a choice: {}", command(&text)))
        }
        (NoAnswer::NotAnOption { .. }, _) => refused.hint(command(example)),
        (_, RequestKind::Permission { .. } | RequestKind::Plan(_)) => {
            refused.hint(command("allow")).hint(format!("or {}", command("deny use the test server")))
        }
        _ => refused.hint(command("ANSWER")),
    }
}
