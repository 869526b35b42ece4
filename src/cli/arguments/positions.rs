//! Records the positions of options on the command line. Clap forgets them once their values are taken.

use std::collections::HashMap;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The positions of the values of each option.
#[derive(Debug, Default)]
pub(crate) struct Positions(HashMap<String, Vec<usize>>);

impl Positions {
    /// Whether an option comes before all other options except `these`.
    pub(crate) fn is_first_but_for(&self, option: &str, these: &[&str]) -> bool {
        let others = self.0.iter().filter(|(name, _)| *name != option && !these.contains(&name.as_str()));
        let first_of_others = others.filter_map(|(_, places)| places.iter().min()).min();
        let own = self.0.get(option).and_then(|places| places.iter().min());
        // A group has the position of its first option.
        own.is_some_and(|own| first_of_others.is_none_or(|other| own <= other))
    }

    /// For each value of `option`, returns which value of `before` is the last one before it.
    pub(crate) fn each_after(&self, option: &str, before: &str) -> Vec<Option<usize>> {
        let places = |of: &str| self.0.get(of).map_or(&[][..], Vec::as_slice);
        let before_it = |place: &usize| places(before).iter().filter(|other| *other < place).count().checked_sub(1);
        places(option).iter().map(before_it).collect()
    }
}

impl FromArgMatches for Positions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        // Clap also gives flags that were omitted a position.
        let ids = matches.ids().map(clap::Id::as_str).filter(|id| given(id));
        let places = ids.filter_map(|id| Some((id.to_owned(), matches.indices_of(id)?.collect())));
        Ok(Self(places.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Positions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        positions: Positions,
        #[arg(long)]
        file: Vec<String>,
        #[arg(long)]
        matches: Vec<String>,
        #[arg(long)]
        command: Vec<String>,
        #[arg(long)]
        any: bool,
        #[arg(short, long, global = true)]
        quiet: bool,
    }

    fn positions(words: &str) -> Positions {
        let line = Line::try_parse_from(std::iter::once("program").chain(words.split(' '))).unwrap();
        line.positions
    }

    #[test]
    fn the_first_option_is_the_first_whatever_its_form() {
        for (words, first) in [
            ("--command a --file b", true),
            ("--command=a --any --file b --command c", true),
            ("--file b --command a", false),
            ("--file=b --command=a", false),
            ("--any --command a", false),
            ("-q --command a", true),
            ("--file b", false),
        ] {
            assert_eq!(positions(words).is_first_but_for("command", &["quiet"]), first, "{words}");
        }
    }

    #[test]
    fn a_value_belongs_to_the_one_before_it() {
        let each = positions("--matches x --file a --file b --matches y").each_after("matches", "file");
        assert_eq!(each, [None, Some(1)]);
    }
}
