//! What agents are to do: files with instructions and prompts, in the order in which the command line names them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::error::CliError;
use crate::core::frame::Task;
use crate::core::request::shortened;
use crate::runtime::requests::Named;

/// The tasks that the command line names, unchecked.
#[derive(Clone, Debug)]
pub(super) struct Tasks(Vec<Given>);

#[derive(Clone, Debug)]
enum Given {
    File(PathBuf),
    Prompt(String),
}

#[derive(Debug, Args)]
struct Arguments {
    /// A file with the instructions of an agent. Several files are for as many agents, which run at the same time
    #[arg(value_name = "FILE", required_unless_present = "prompt")]
    file: Vec<PathBuf>,

    /// Tell an agent TEXT, instead of a file that it is to follow. May be given several times, also beside files
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
}

impl Tasks {
    /// The tasks, each with its name. One that cannot be carried out is an error of all.
    pub(super) fn checked(&self) -> Result<Vec<Named>, CliError> {
        self.0.iter().map(Given::checked).collect()
    }
}

impl Given {
    fn checked(&self) -> Result<Named, CliError> {
        match self {
            Self::File(file) => {
                let path = instructions(file)?;
                Ok(Named { task: Task::File(path), name: shortened(&file.display().to_string()) })
            }
            Self::Prompt(text) if text.trim().is_empty() => {
                Err(CliError::usage("the prompt is empty").hint("say what the agent shall do"))
            }
            Self::Prompt(text) => {
                let task = Task::Prompt(text.clone());
                let name = format!("--prompt \"{}\"", shortened(&task.title()));
                Ok(Named { task, name })
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

/// The absolute path of a file with instructions.
fn instructions(file: &Path) -> Result<PathBuf, CliError> {
    let shown = file.display();
    let text = file.to_str().ok_or_else(|| {
        CliError::usage(format!("the path {shown} is not UTF-8, and an agent can only be told text"))
            .hint("rename the file")
    })?;
    if text.chars().any(char::is_control) {
        let message = format!("the path {text:?} holds a line break or another control character");
        return Err(CliError::usage(message).hint("rename the file: an agent reads its path in one line"));
    }
    let known = fs::metadata(file).map_err(|error| {
        CliError::usage(format!("cannot read {shown}: {error}")).hint("give the path of a file with instructions")
    })?;
    if known.is_dir() {
        let message = format!("{shown} is a directory");
        return Err(CliError::usage(message).hint("give the path of a file with instructions"));
    }
    if !known.is_file() {
        let message = format!("{shown} is not a regular file");
        return Err(CliError::usage(message).hint("give the path of a file with instructions"));
    }
    let content = fs::read(file).map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    if content.iter().all(u8::is_ascii_whitespace) {
        let message = format!("{shown} is empty");
        return Err(CliError::usage(message).hint("write in it what the agent shall do"));
    }
    std::path::absolute(file).map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))
}
