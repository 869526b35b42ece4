//! Parses a config file.

use std::collections::BTreeMap;

use crate::app::config::setting::{SETTINGS, Setting};
use crate::app::config::value::SettingValue;
use crate::core::notifications::event_commands;

/// The values and problems of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    pub values: BTreeMap<&'static str, SettingValue>,
    pub problems: Vec<String>,
}

/// Parses a file. One bad key does not disable the others.
pub(crate) fn parse(text: &str) -> Result<Parsed, String> {
    let mut parsed = Parsed { problems: event_commands::parse(text)?.problems, ..Parsed::default() };
    for (name, value) in event_commands::table(text)? {
        match value {
            // Problems in `[on]` were reported above.
            toml::Value::Table(on) if name == event_commands::TABLE => {
                for (key, value) in on {
                    let setting = Setting::named(&format!("{name}.{key}"));
                    let read = setting.and_then(|it| Some((it.key, SettingValue::from_toml(it.kind, &value).ok()?)));
                    parsed.values.extend(read);
                }
            }
            _ if name == event_commands::TABLE => {}
            toml::Value::Table(table) if is_table(&name) => {
                table.iter().for_each(|(key, value)| parsed.take(&format!("{name}.{key}"), value));
            }
            value if is_table(&name) => {
                parsed.problems.push(format!("`{name}` is not a table: it is {}", value.type_str()));
            }
            value => parsed.take(&name, &value),
        }
    }
    Ok(parsed)
}

impl Parsed {
    fn take(&mut self, key: &str, value: &toml::Value) {
        let Some(setting) = Setting::named(key) else {
            self.problems.push(unknown(key));
            return;
        };
        match SettingValue::from_toml(setting.kind, value) {
            Ok(value) => drop(self.values.insert(setting.key, value)),
            Err(wanted) => self.problems.push(format!("`{key}` is not {wanted}")),
        }
    }
}

/// The message about an unknown key.
pub(crate) fn unknown(key: &str) -> String {
    match Setting::similar_to(key) {
        Some(similar) => format!("unknown key `{key}`: did you mean `{similar}`?"),
        None => format!("unknown key `{key}`"),
    }
}

fn is_table(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key.split_once('.').is_some_and(|(table, _)| table == name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read_and_what_is_wrong_is_named() {
        let text = "color = 'never'\nclaud = 'x'\nlimits = 3\n[spawn]\nmodle = 'a'\ntimeout = '30m'\nworktree = 'yes'\n\
            [on]\nquestion = 'tell'\ndone = 7\n";
        let parsed = parse(text).unwrap();
        assert_eq!(
            parsed.values.keys().copied().collect::<Vec<_>>(),
            ["color", "on.question", "spawn.timeout"],
            "{parsed:?}"
        );
        assert_eq!(
            parsed.problems,
            [
                "`done` in [on] is not a string", "unknown key `claud`: did you mean `claude`?",
                "`limits` is not a table: it is integer", "unknown key `spawn.modle`: did you mean `spawn.model`?",
                "`spawn.worktree` is not true or false",
            ]
        );
        assert!(parse("[spawn\n").unwrap_err().starts_with("line 1: "));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\[(on|spawn|limits)\\]\n)?(\\PC{0,12}( = )?\\PC{0,12}\n?){0,4}") {
            let _ = parse(&text);
        }
    }
}
