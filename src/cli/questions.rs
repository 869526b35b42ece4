//! `agent-cli questions`: what agents have asked.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::{print, print_json, tell};
use super::text::{age, one_line, table};
use crate::core::id::{FrameId, RequestId};
use crate::core::question::{Choice, Choices};
use crate::core::request::Wish;

/// List the questions that wait for an answer
#[derive(Debug, Args)]
pub(super) struct Questions {
    /// Answered ones too
    #[arg(long)]
    all: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Listed {
    id: RequestId,
    question: String,
    kind: &'static str,
    #[serde(flatten)]
    choices: Option<Choices>,
    #[serde(flatten)]
    permission: Option<Permission>,
    frame: FrameId,
    root: FrameId,
    task: String,
    asked: Timestamp,
    answered: Option<Timestamp>,
    answer: Option<String>,
}

/// What a permission is asked for.
#[derive(Debug, Serialize)]
struct Permission {
    tool: String,
    input: serde_json::Value,
}

impl Questions {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let questions = context.store()?.questions(!self.all)?;
        let listed: Vec<_> = questions
            .into_iter()
            .map(|question| Listed {
                id: question.id,
                question: question.question,
                kind: match question.wish {
                    Wish::Permission { .. } => "permission",
                    _ => "question",
                },
                permission: match &question.wish {
                    Wish::Permission { tool, input } => Some(Permission { tool: tool.clone(), input: input.clone() }),
                    _ => None,
                },
                choices: match question.wish {
                    Wish::Ask { choices, .. } => choices,
                    _ => None,
                },
                frame: question.frame,
                root: question.root,
                task: question.title,
                asked: question.asked,
                answered: question.answered,
                answer: question.answer,
            })
            .collect();
        if self.json {
            print_json(&listed)?;
            return Ok(Exit::Ok);
        }
        if listed.is_empty() {
            tell("no question waits for an answer");
            return Ok(Exit::Ok);
        }
        let now = Timestamp::now();
        let head = ["QUESTION", "ASKED", "BY", "CHAIN", ""].map(str::to_owned).to_vec();
        let row = |listed: &Listed| {
            let text = match &listed.answer {
                Some(answer) => format!("{} -> {}", one_line(&listed.question), one_line(answer)),
                None if listed.permission.is_some() => format!("allow {}?", one_line(&listed.question)),
                None => one_line(&listed.question),
            };
            vec![listed.id.short(), age(listed.asked, now), one_line(&listed.task), listed.root.short(), text]
        };
        let rows: Vec<_> = std::iter::once(head)
            .chain(listed.iter().flat_map(|listed| std::iter::once(row(listed)).chain(offered(listed))))
            .collect();
        print(&table(&rows))?;
        Ok(Exit::Ok)
    }
}

/// What can be chosen, below a question that waits for an answer.
fn offered(listed: &Listed) -> Vec<Vec<String>> {
    let Some(choices) = listed.choices.as_ref().filter(|_| listed.answer.is_none()) else { return Vec::new() };
    let below = |text: String| vec![String::new(), String::new(), String::new(), String::new(), text];
    let number = |(at, option): (usize, &Choice)| match one_line(&option.description) {
        description if description.is_empty() => format!("  {}. {}", at + 1, one_line(&option.label)),
        description => format!("  {}. {}: {description}", at + 1, one_line(&option.label)),
    };
    let several = choices.multi_select.then(|| "  (several may be chosen)".to_owned());
    choices.options.iter().enumerate().map(number).chain(several).map(below).collect()
}
