//! Errors in a command line, which may be of no use for anything else.

use std::ffi::OsString;

use clap::ColorChoice;
use clap::error::ErrorKind;

use crate::cli::error::CliError;

/// Whether a program reads the output. Works even if the arguments are invalid.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json" || argument == "--stream")
}

/// Returns clap's message without the lines about usage.
pub(crate) fn usage_error(error: &clap::Error) -> CliError {
    let said = error.render().to_string();
    let (message, rest) = said.split_once("\n\n").unwrap_or((&said, ""));
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command was given",
        _ => message.trim().trim_start_matches("error: "),
    };
    let tips = rest.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    tips.fold(CliError::usage(message), CliError::hint)
}

/// The colour choice in arguments that cannot be parsed as a whole.
pub(crate) fn named_colour(arguments: &[OsString]) -> ColorChoice {
    let words = || arguments.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let named = words().zip(words().skip(1)).filter(|(word, _)| word == "--color").map(|(_, value)| value.into_owned());
    let joined = words().filter_map(|word| word.strip_prefix("--color=").map(str::to_owned));
    named.chain(joined).find_map(|value| value.parse().ok()).unwrap_or_default()
}
