//! The config file: the commands for notifications, as TOML.
//!
//! ```toml
//! [on]
//! question = "notify-send -- 'Claude asks' \"$AGENT_CLI_MESSAGE\""
//! timeout = "10s"
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use crate::core::notifications::occasion::Occasion;

/// The commands to run, and their timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventCommands {
    /// A shell command for each event.
    pub of: BTreeMap<Occasion, String>,
    pub timeout: Duration,
}

/// The usable part of a config file, and the problems of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedCommands {
    pub commands: EventCommands,
    pub problems: Vec<String>,
}

/// The default for `timeout`.
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(600);

/// The table with the commands. Other tables of a config file are not read here.
pub(crate) const TABLE: &str = "on";
const TIMEOUT_KEY: &str = "timeout";

impl Default for EventCommands {
    fn default() -> Self {
        Self { of: BTreeMap::new(), timeout: TIMEOUT }
    }
}

/// Parses a config file. One bad key does not disable the others.
///
/// The error says in one line why it is not TOML.
pub(crate) fn parse(text: &str) -> Result<ParsedCommands, String> {
    let (mut commands, mut problems) = (EventCommands::default(), Vec::new());
    match table(text)?.remove(TABLE) {
        Some(toml::Value::Table(on)) => {
            problems.extend(on.into_iter().filter_map(|(key, value)| read(&mut commands, &key, value)));
        }
        Some(_) => problems.push("`on` is not a table".to_owned()),
        None => {}
    }
    Ok(ParsedCommands { commands, problems })
}

/// The whole content of a config file.
///
/// The error says in one line why it is not TOML.
pub(crate) fn table(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {}: {}", before.matches('\n').count() + 1, error.message())
    })
}

/// Reads one key of `[on]`; returns its problem, if any.
fn read(commands: &mut EventCommands, key: &str, value: toml::Value) -> Option<String> {
    let occasion = Occasion::named(key);
    if occasion.is_none() && key != TIMEOUT_KEY {
        let known: Vec<_> = Occasion::ALL.iter().map(|occasion| occasion.name()).chain([TIMEOUT_KEY]).collect();
        return Some(format!("unknown key `{key}` in [on]: it can be {}", known.join(", ")));
    }
    let toml::Value::String(text) = value else { return Some(format!("`{key}` in [on] is not a string")) };
    let Some(occasion) = occasion else {
        match text.parse::<SignedDuration>().ok().and_then(|timeout| Duration::try_from(timeout).ok()) {
            Some(timeout) if timeout >= Duration::from_secs(1) && timeout <= LONGEST => commands.timeout = timeout,
            _ => return Some("`timeout` in [on] is not a duration between 1s and 10m".to_owned()),
        }
        return None;
    };
    if text.contains('\0') {
        return Some(format!("`{key}` in [on] contains a null character"));
    }
    // An empty command disables one.
    if !text.trim().is_empty() {
        commands.of.insert(occasion, text);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_and_their_timeout_are_read() {
        let read = parse("[on]\nquestion = \"tell\"\ndone = ''\ntimeout = \"5s\"\n").unwrap();
        assert_eq!(read.problems, Vec::<String>::new());
        assert_eq!(read.commands.of, BTreeMap::from([(Occasion::Question, "tell".to_owned())]));
        assert_eq!(read.commands.timeout, Duration::from_secs(5));
        assert_eq!(parse("").unwrap().commands, EventCommands::default());
    }

    #[test]
    fn what_is_wrong_is_named_and_the_rest_is_used() {
        let read = parse("colour = 1\n[on]\nquesiton = 'a'\nfailed = 'b'\ndone = 7\ntimeout = '1h'\n").unwrap();
        assert_eq!(read.commands.of, BTreeMap::from([(Occasion::Failed, "b".to_owned())]));
        assert_eq!(
            read.problems,
            [
                "`done` in [on] is not a string",
                "unknown key `quesiton` in [on]: it can be question, approval, done, failed, limit, stalled, budget, timeout",
                "`timeout` in [on] is not a duration between 1s and 10m",
            ]
        );
        assert_eq!(parse("on = 3").unwrap().problems, ["`on` is not a table"]);
        assert!(parse("[on]\nquestion = tell\n").unwrap_err().starts_with("line 2: "));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\[on\\]\n)?(\\PC{0,12}( = )?\\PC{0,12}\n?){0,4}") {
            let _ = parse(&text);
        }
    }
}
