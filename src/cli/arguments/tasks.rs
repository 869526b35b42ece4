//! Agents' tasks: instruction files and prompts, in command-line order.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::app::GivenText;
use crate::cli::output::tell;

/// The tasks on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Tasks(pub(crate) Vec<GivenText>);

#[derive(Debug, Args)]
struct Arguments {
    /// Instructions for an agent; `-`: from standard input
    ///
    /// Each further file starts another agent, which runs at the same time.
    #[arg(value_name = "FILE", required_unless_present = "prompt")]
    file: Vec<PathBuf>,

    /// Give an agent TEXT as its instructions
    ///
    /// Can be repeated, and combined with files.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
}

impl FromArgMatches for Tasks {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Arguments { file, prompt } = Arguments::from_arg_matches(matches)?;
        let places = |name| matches.indices_of(name).into_iter().flatten();
        let named =
            |file: PathBuf| if file == Path::new("-") { GivenText::StandardInput } else { GivenText::File(file) };
        let files = places("file").zip(file.into_iter().map(named));
        let prompts = places("prompt").zip(prompt.into_iter().map(GivenText::Text));
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

/// Tells the person what to type when the text is read.
#[derive(Debug, Default)]
pub(crate) struct TypedInstructions {
    has_begun: bool,
}

impl Read for TypedInstructions {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = io::stdin().lock();
        if !self.has_begun && input.is_terminal() {
            tell("type the instructions, then press Ctrl-D on an empty line");
        }
        self.has_begun = true;
        input.read(buffer)
    }
}
