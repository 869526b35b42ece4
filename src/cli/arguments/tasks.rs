//! Agents' tasks: instruction files and prompts, in command-line order.

use std::path::{Path, PathBuf};

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::cli::arguments::instructions;
use crate::cli::error::CliError;
use crate::core::chain::frame::Task;
use crate::core::text::escape::shortened;
use crate::runtime::requests::record::NamedTask;

/// The tasks that the command line names, unchecked.
#[derive(Clone, Debug)]
pub(crate) struct Tasks(Vec<Given>);

#[derive(Clone, Debug)]
enum Given {
    File(PathBuf),
    Prompt(String),
}

#[derive(Debug, Args)]
struct Arguments {
    /// A file with instructions for an agent, or `-` for standard input. Each further file starts another agent, which
    /// runs at the same time
    #[arg(value_name = "FILE", required_unless_present = "prompt")]
    file: Vec<PathBuf>,

    /// Give an agent TEXT as its instructions. Can be repeated, and combined with files
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
}

impl Tasks {
    /// The tasks with their names. If one cannot be carried out, all are refused.
    pub(crate) fn checked(&self) -> Result<Vec<NamedTask>, CliError> {
        self.0.iter().map(Given::checked).collect()
    }
}

impl Given {
    fn checked(&self) -> Result<NamedTask, CliError> {
        match self {
            Self::File(file) if file == Path::new("-") => {
                Ok(NamedTask { task: Task::Prompt(instructions::from_standard_input()?), name: "-".to_owned() })
            }
            Self::File(file) => {
                let path = instructions::file(file)?;
                Ok(NamedTask { task: Task::File(path), name: shortened(&file.display().to_string()) })
            }
            Self::Prompt(text) if text.trim().is_empty() => {
                Err(CliError::usage("the prompt is empty").hint("say what the agent should do"))
            }
            Self::Prompt(text) => {
                let task = Task::Prompt(text.clone());
                let name = format!("--prompt \"{}\"", shortened(&task.title()));
                Ok(NamedTask { task, name })
            }
        }
    }
}

impl FromArgMatches for Tasks {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Arguments { file, prompt } = Arguments::from_arg_matches(matches)?;
        let places = |name| matches.indices_of(name).into_iter().flatten();
        let files = places("file").zip(file.into_iter().map(Given::File));
        let prompts = places("prompt").zip(prompt.into_iter().map(Given::Prompt));
        let mut given: Vec<_> = files.chain(prompts).collect();
        given.sort_by_key(|(place, _)| *place);
        Ok(Self(given.into_iter().map(|(_, given)| given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Tasks {
    fn augment_args(command: Command) -> Command {
        Arguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args_for_update(command)
    }
}
