//! `agent-cli ask`: an agent asks a person.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::GivenText;
use crate::app::request::{Input, ask};
use crate::cli::arguments::form_options::FormOptions;
use crate::cli::chain::request_from_agent;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;

/// Ask a person (for agents)
///
/// Records the question of the calling agent. The agent's call is suspended and returns the answer; nothing runs until
/// then. If calls cannot be suspended, this prints `SGN_PEND_STARTED (ID)` at once: the agent ends its turn, and the
/// answer arrives in a later prompt.
///
/// With --expires, the call fails if there is no answer by then, and says so. With --default as well, it returns the default
/// instead, and says that it is the default.
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
        request_from_agent::make(context, self.into(), false, &mut io::stdin())
    }
}

impl From<Ask> for Input {
    fn from(Ask { question, form, file, questions }: Ask) -> Self {
        let (context, form) = form.given();
        let question = question.map(|text| if text == "-" { GivenText::StandardInput } else { GivenText::Text(text) });
        let named =
            |file: PathBuf| if file == Path::new("-") { GivenText::StandardInput } else { GivenText::File(file) };
        let questions = questions.map(named);
        Self::Ask(Box::new(ask::Input { question, context, form, file, questions }))
    }
}
