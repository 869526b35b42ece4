//! `agent-cli ask`: an agent asks a person.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use crate::cli::arguments::form::{self, FormOptions};
use crate::cli::chain::request;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::requests::question_files::QuestionFile;
use crate::runtime::requests::record;
use crate::store::{Caller, Store};

/// Ask a person (for agents)
///
/// Records the question of the calling agent. The agent's call is suspended and returns the answer; nothing runs until
/// then. If calls cannot be suspended, this prints `SGN_PEND_STARTED (ID)` at once: the agent ends its turn, and the
/// answer arrives in a later prompt.
///
/// With --expires, the call fails if nobody has answered by then, and says so. With --default as well, it returns the
/// default instead, and says that it is the default.
///
/// With --file, a person can also answer by editing that file. Its text is the question; a line `A:` may end it.
/// What a person writes after `A:` is the answer as soon as a line `---` follows it, or the file has not changed for 10
/// seconds. The file must be in the agent's directory, and is created only where the agent may write.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli ask \"When is your birthday?\"
  agent-cli ask \"Deploy?\" --option now --option later=\"in the morning\" --default later --expires 2h
  agent-cli ask \"Which tests?\" --option unit --option browser --multiple --context @failures.txt
  agent-cli ask --questions questions.json
  agent-cli ask --file question.md")]
pub(crate) struct Ask {
    /// The question; `-`: from standard input
    #[arg(allow_hyphen_values = true, required_unless_present_any = ["questions", "file"])]
    question: Option<String>,

    #[command(flatten)]
    form: FormOptions,

    /// Ask the question in this file, and let a person answer it there; with QUESTION, create the file
    #[arg(long, value_name = "PATH", conflicts_with = "questions")]
    file: Option<PathBuf>,

    /// Ask several questions at once: a JSON array of objects with question and, if needed, name, context, options,
    /// multiple, free_text, default, expires; `-`: from standard input. Returns one JSON array with the answers
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    questions: Option<PathBuf>,
}

impl Ask {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let caller = context.caller.ok_or_else(|| {
            CliError::usage("only agents can ask: this shell was not started by agent-cli")
                .hint("agent-cli questions lists what agents have asked")
        })?;
        request::make(context, caller, false, |store| self.resolve(store, caller))
    }

    pub(crate) fn resolve(self, store: &Store, caller: Caller) -> Result<AgentRequest, CliError> {
        let below = record::shows_only_below(store, caller)?;
        let now = Timestamp::now();
        let question = match self.question.as_deref() {
            Some("-") => Some(form::standard_input()?.trim_end_matches('\n').to_owned()),
            _ => self.question,
        };
        if let Some(path) = &self.file {
            let file = QuestionFile::named(store, caller, path).map_err(CliError::usage)?;
            let question = question.map_or_else(|| file.question(), Ok).map_err(CliError::usage)?;
            let form = self.form.form(&question, below.as_deref(), now)?;
            let (file, form) = file.of(form);
            return Ok(AgentRequest::AskInFile(file, Box::new(form)));
        }
        let forms = match (self.questions, question) {
            (Some(file), _) => self.form.forms(&file, below.as_deref(), now)?,
            (None, question) => vec![self.form.form(&question.unwrap_or_default(), below.as_deref(), now)?],
        };
        Ok(AgentRequest::Ask(forms))
    }
}
