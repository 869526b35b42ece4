//! Changes one key of a config file, and leaves the rest of it as it was written: comments, order, blank lines.

use toml_edit::{DocumentMut, Item, Table};

use crate::app::config::setting::Setting;
use crate::app::config::value::Value;

/// The text with `setting` set to `value`; `None`: with it removed.
///
/// # Errors
///
/// The text is not TOML, or has something else where the table of the key should be: why, in one line.
pub(crate) fn with(text: &str, setting: &Setting, value: Option<&Value>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let (table, key) = match setting.key.split_once('.') {
        None => (document.as_table_mut(), setting.key),
        Some((name, key)) => {
            let table = document.entry(name).or_insert_with(|| Item::Table(Table::new()));
            (table.as_table_mut().ok_or_else(|| format!("`{name}` is not a table of its own"))?, key)
        }
    };
    match value {
        Some(value) => match table.get_mut(key).and_then(Item::as_value_mut) {
            // What stands beside the old value stays there.
            Some(old) => {
                let decor = old.decor().clone();
                *old = value.to_toml();
                *old.decor_mut() = decor;
            }
            None => drop(table.insert(key, Item::Value(value.to_toml()))),
        },
        None => drop(table.remove(key)),
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::config::file;
    use crate::app::config::setting::{MAX_AGENTS, MODEL, SETTINGS};

    #[test]
    fn the_rest_of_a_file_stays_as_it_is() {
        let text = "# mine\ncolor = 'never' # dark\n\n[spawn]\nmodel = 'a' # cheap\n";
        let changed = with(text, &MODEL, Some(&Value::Text("b".into()))).unwrap();
        assert_eq!(changed, text.replace("'a'", "\"b\""));
        let changed = with(text, &MAX_AGENTS, Some(&Value::Count(3))).unwrap();
        assert_eq!(changed, format!("{text}\n[limits]\nmax-agents = 3\n"));
        assert_eq!(with(&changed, &MODEL, None).unwrap(), changed.replace("model = 'a' # cheap\n", ""));
        assert_eq!(with("", &MODEL, None).unwrap().trim(), "[spawn]");
        assert!(with("spawn = 3\n", &MODEL, None).is_err());
        assert!(with("[", &MODEL, None).is_err());
    }

    proptest! {
        #[test]
        fn what_is_set_is_read(at in 0..SETTINGS.len(), other in 0..SETTINGS.len(), text in "(\\PC{0,8}|[1-9][0-9]{0,5}|[1-9]{1,3}[smhd]|true|ask|never)") {
            let setting = &SETTINGS[at];
            if let Ok(value) = Value::from_text(setting.kind, &text) {
                let before = SETTINGS[other].default_value();
                let first = with("", &SETTINGS[other], before.as_ref()).unwrap();
                let written = with(&first, setting, Some(&value)).unwrap();
                let parsed = file::parse(&written).unwrap();
                prop_assert_eq!(parsed.values.get(setting.key), Some(&value));
            }
        }
    }
}
