//! The options that describe a question.

use clap::Args;

use crate::app::GivenText;
use crate::app::request::form_input::FormInput;
use crate::core::requests::question_form::QuestionOption;

/// The parts of a question.
#[derive(Debug, Args)]
pub(crate) struct FormOptions {
    /// An option to choose, and what it means; repeat it for each. Nothing else is an answer unless --free-text is given
    #[arg(long = "option", value_name = "KEY[=DESCRIPTION]", conflicts_with = "questions")]
    options: Vec<String>,

    /// Allow several options to be chosen
    #[arg(long, conflicts_with = "questions")]
    multiple: bool,

    /// Accept any other text as an answer, too
    #[arg(long, conflicts_with = "questions")]
    free_text: bool,

    /// The answer to use when the question expires; if there are options, the key of one
    #[arg(long, value_name = "KEY", conflicts_with = "questions", allow_hyphen_values = true)]
    default: Option<String>,

    /// A text that a person should read before they answer, or a file with it
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "questions", allow_hyphen_values = true)]
    context: Option<String>,

    /// Stop waiting for an answer after this time, for example 90m or 3d, or at this one, for example 2026-12-24T18:00:00Z
    #[arg(long, value_name = "DURATION|TIME")]
    expires: Option<String>,
}

impl FormOptions {
    /// Splits the options into the context and the other parts of the question.
    pub(crate) fn given(self) -> (Option<GivenText>, FormInput) {
        let Self { options, multiple, free_text, default, context, expires } = self;
        let option = |text: String| {
            let (key, description) = text.split_once('=').unwrap_or((&text, ""));
            QuestionOption { key: key.to_owned(), description: description.to_owned() }
        };
        let context = context.map(|text| match text.strip_prefix('@') {
            Some(file) => GivenText::File(file.into()),
            None => GivenText::Text(text),
        });
        let options = options.into_iter().map(option).collect();
        (context, FormInput { options, multiple, free_text, default, expires })
    }
}
