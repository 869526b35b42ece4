//! Changes one setting in the text of a settings file.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Table};

use crate::app::config::setting::Setting;
use crate::app::config::value::SettingValue;

/// Returns the text with `setting` set to `value`, or without the setting if `value` is `None`. `None` if it is not there to be
/// removed. Everything else stays: comments, line breaks, and a byte order mark.
pub(crate) fn with(text: &str, setting: &Setting, value: Option<&SettingValue>) -> Result<Option<String>, String> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(text) => ("\u{feff}", text),
        None => ("", text),
    };
    let place = Place::find(text, setting)?;
    let after = match (value, place) {
        (Some(value), Some(Place { value: old, .. })) => {
            Some([&text[..old.start], &value.to_toml().to_string(), &text[old.end..]].concat())
        }
        (Some(value), None) => Some(with_new(text, setting, value)?),
        (None, Some(Place { lines, .. })) => Some([&text[..lines.start], &text[lines.end..]].concat()),
        (None, None) => None,
    };
    Ok(after.map(|after| format!("{mark}{after}")))
}

/// Where a setting is in a file.
struct Place {
    value: Range<usize>,
    /// The lines that it is alone on.
    lines: Range<usize>,
}

impl Place {
    /// `None`: it is not there, or is a table.
    fn find(text: &str, setting: &Setting) -> Result<Option<Self>, String> {
        let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
        let (table, key) = match setting.key.split_once('.') {
            None => (document.as_table(), setting.key),
            Some((name, key)) => match document.get(name) {
                None => return Ok(None),
                Some(item) => (item.as_table().ok_or_else(|| not_a_table(name))?, key),
            },
        };
        let found = table.get_key_value(key).filter(|(_, item)| item.is_value());
        let Some((key, value)) = found.and_then(|(key, item)| Some((key.span()?, item.span()?))) else {
            return Ok(None);
        };
        let start = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[value.end..].find('\n').map_or(text.len(), |at| value.end + at + 1);
        Ok(Some(Self { value, lines: start..end }))
    }
}

fn not_a_table(name: &str) -> String {
    format!("`{name}` is not a table of its own")
}

/// The text with a setting that it did not have.
fn with_new(text: &str, setting: &Setting, value: &SettingValue) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let (table, key) = match setting.key.split_once('.') {
        None => (document.as_table_mut(), setting.key),
        Some((name, key)) => {
            let table = document.entry(name).or_insert_with(|| Item::Table(Table::new()));
            (table.as_table_mut().ok_or_else(|| not_a_table(name))?, key)
        }
    };
    table.insert(key, Item::Value(value.to_toml()));
    let after = document.to_string();
    // The library writes the line breaks of Unix.
    let is_windows = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    Ok(if is_windows { after.replace('\n', "\r\n") } else { after })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::config::file;
    use crate::app::config::setting::{MAX_AGENTS, SETTINGS};

    fn setting(key: &str) -> &'static Setting {
        Setting::named(key).unwrap()
    }

    #[test]
    fn everything_else_in_a_file_stays() {
        let text =
            "# Licence\n\n# why\ncolor = \"never\"\n\n[limits]\n# said so\nmax-agents = 5 # for now\nmax-depth = 3\n";
        let four = SettingValue::from_text(MAX_AGENTS.kind, "4").unwrap();
        for (newline, mark) in [("\n", ""), ("\r\n", ""), ("\n", "\u{feff}"), ("\r\n", "\u{feff}")] {
            let of = |text: &str| format!("{mark}{}", text.replace('\n', newline));
            let changed = |key: &str, value| with(&of(text), setting(key), value).unwrap().unwrap();
            assert_eq!(changed("color", None), of(&text.replace("color = \"never\"\n", "")));
            assert_eq!(changed("limits.max-agents", None), of(&text.replace("max-agents = 5 # for now\n", "")));
            assert_eq!(changed("limits.max-agents", Some(&four)), of(&text.replace("= 5", "= 4")));
            let new = changed("limits.max-parallel", Some(&four));
            assert_eq!(new, of(&format!("{text}max-parallel = 4\n")));
            assert_eq!(with(&new, setting("limits.max-parallel"), None).unwrap().unwrap(), of(text));
        }
    }

    proptest! {
        #[test]
        fn what_is_set_is_read(at in 0..SETTINGS.len(), other in 0..SETTINGS.len(), text in "(\\PC{0,8}|[1-9][0-9]{0,5}|[1-9]{1,3}[smhd]|true|ask|never)") {
            let setting = &SETTINGS[at];
            if let Ok(value) = SettingValue::from_text(setting.kind, &text) {
                let before = SETTINGS[other].default_value();
                let first = with("", &SETTINGS[other], before.as_ref()).unwrap().unwrap_or_default();
                let written = with(&first, setting, Some(&value)).unwrap().unwrap();
                let parsed = file::parse(&written).unwrap();
                prop_assert_eq!(parsed.values.get(setting.key), Some(&value));
            }
        }
    }
}
