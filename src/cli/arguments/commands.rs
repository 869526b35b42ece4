//! Descriptions of arguments that are made only where somebody needs them. To describe those of all commands takes a good part of the
//! time of a poll.

use std::cell::Cell;
use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Parser};

thread_local! {
    /// Whether the parser that is being made needs only the names of its commands.
    static NAMES_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// The arguments of a command.
#[derive(Debug)]
pub(crate) struct Lazy<T>(pub(crate) T);

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        if NAMES_ONLY.get() { command.defer(T::augment_args) } else { T::augment_args(command) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Parses a command line, the program's name first.
pub(crate) fn parse<P: Parser>(line: &[OsString]) -> Result<P, Error> {
    NAMES_ONLY.set(true);
    let parsed = P::try_parse_from(line);
    NAMES_ONLY.set(false);
    // Help and errors speak of other commands, too.
    parsed.or_else(|_| P::try_parse_from(line))
}
