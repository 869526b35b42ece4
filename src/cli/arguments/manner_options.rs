//! The options of every command.

use clap::{Args, ColorChoice};

/// The options of every command.
#[derive(Debug, Args)]
pub(crate) struct MannerOptions {
    /// Print progress to standard error, as on a terminal
    #[arg(short, long, global = true, hide_short_help = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Print nothing but errors to standard error
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,

    /// Record chains on a PostgreSQL server from now on, instead of in a file of the state directory
    // Help names it next to its variable.
    #[arg(long, global = true, hide = true, value_name = "postgres://…")]
    pub(crate) store: Option<String>,

    /// When to use colours [default: auto]
    #[arg(long, global = true, hide_short_help = true, value_name = "WHEN")]
    pub(crate) color: Option<ColorChoice>,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::core::requests::agent_command::verb::global_options;

    #[test]
    fn the_global_options_of_requests_are_those_of_the_program() {
        let program = MannerOptions::augment_args(Command::new("agent-cli"));
        for option in program.get_arguments() {
            let long = format!("--{}", option.get_long().expect("it has a long name"));
            let takes_value = option.get_action().takes_values();
            let value = takes_value.then(|| "x".to_owned());
            let names = std::iter::once(long.clone()).chain(option.get_short().map(|short| format!("-{short}")));
            for name in names {
                let line: Vec<String> = [name].into_iter().chain(value.clone()).chain(["spawn".to_owned()]).collect();
                assert_eq!(global_options(&line), line.len() - 1, "{line:?}");
            }
            if takes_value {
                assert_eq!(global_options(&[format!("{long}=x"), "spawn".to_owned()]), 1, "{long}");
            }
        }
    }
}
