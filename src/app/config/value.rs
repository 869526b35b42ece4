//! Values of settings, as files, variables and the command line write them.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use jiff::fmt::friendly::{Designator, Spacing, SpanPrinter};

use crate::core::agent::usage::prices::{Price, Prices};
use crate::core::chain::limits;
use crate::core::housekeeping::hosting::Labels;
use crate::core::text::time::duration;

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// An absolute path, a path below `~`, or a path relative to the folder of the settings file.
    Path,
    OneOf(&'static [&'static str]),
    Switch,
    /// At least 1.
    Count,
    /// At least 0, which can also be written as `off`.
    CountOrOff,
    /// US dollars, above 0.
    Dollars,
    Duration,
    /// A duration of at least one second.
    RunningTime,
    Words,
    Labels,
    /// Absolute paths.
    Directories,
    /// A shell command. An empty text means no command.
    Command,
    /// A table of prices for each model.
    Prices,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingValue {
    Text(String),
    Switch(bool),
    Count(u64),
    Dollars(f64),
    Duration(SignedDuration),
    Words(Vec<String>),
    Prices(Prices),
}

/// The largest count. Limits are recorded with 32 bits.
const MOST: u64 = u32::MAX as u64;
const COUNT_OR_OFF: &str = "a number, or off";

impl SettingValue {
    /// Parses the text of a variable or the command line. The error names the expected value, and follows the words "is not".
    pub(crate) fn from_text(kind: Kind, text: &str) -> Result<Self, String> {
        match kind {
            Kind::Text | Kind::Path if text.is_empty() => Err("a text of at least one character".to_owned()),
            Kind::Text | Kind::Path | Kind::Command if text.contains('\0') => {
                Err("a text without null characters".to_owned())
            }
            Kind::Text | Kind::Path | Kind::Command => Ok(Self::Text(text.to_owned())),
            Kind::OneOf(choices) if choices.contains(&text) => Ok(Self::Text(text.to_owned())),
            Kind::OneOf(choices) => Err(format!("one of {}", choices.join(", "))),
            Kind::Switch => text.parse().map(Self::Switch).map_err(|_| "true or false".to_owned()),
            Kind::Count => {
                let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
                count.map(Self::Count).ok_or_else(|| "a number of at least 1".to_owned())
            }
            Kind::CountOrOff if text == "off" => Ok(Self::Count(0)),
            Kind::CountOrOff => {
                let count = text.parse().ok().filter(|count| *count <= MOST);
                count.map(Self::Count).ok_or_else(|| COUNT_OR_OFF.to_owned())
            }
            Kind::Dollars => limits::budget_in(text).map(Self::Dollars).map_err(str::to_owned),
            Kind::Duration => duration(text).map(Self::Duration).map_err(|why| format!("a duration: {why}")),
            Kind::RunningTime => match duration(text).map_err(|why| format!("a duration: {why}"))? {
                time if time.as_secs() < 1 => Err("a duration of at least one second".to_owned()),
                time => Ok(Self::Duration(time)),
            },
            Kind::Words | Kind::Labels | Kind::Directories => {
                Self::from_words(kind, text.split_whitespace().map(str::to_owned).collect())
            }
            Kind::Prices => {
                let table: Option<toml::Table> = format!("prices = {text}").parse().ok();
                prices(table.as_ref().and_then(|table| table.get("prices")))
            }
        }
    }

    /// Parses the words that the command line gives for a list. A single word may be the whole list, as it is printed.
    ///
    /// # Errors
    ///
    /// As [`SettingValue::from_text`].
    pub(crate) fn from_arguments(kind: Kind, words: &[String]) -> Result<Self, String> {
        let list = |text: &String| format!("list = {text}").parse::<toml::Table>().ok()?.remove("list");
        let whole = if let [word] = words { list(word).filter(toml::Value::is_array) } else { None };
        match whole {
            Some(whole) => Self::from_toml(kind, &whole),
            None => Self::from_words(kind, words.to_vec()),
        }
    }

    /// Checks the words of a list.
    ///
    /// # Errors
    ///
    /// As [`SettingValue::from_text`].
    pub(crate) fn from_words(kind: Kind, words: Vec<String>) -> Result<Self, String> {
        if kind == Kind::Labels {
            let labels: Labels = words.join(" ").parse().map_err(|_| "a list of labels".to_owned())?;
            return Ok(Self::Words(labels.names().map(str::to_owned).collect()));
        }
        if kind == Kind::Directories && words.iter().any(|path| !Path::new(path).is_absolute()) {
            return Err("a list of absolute paths".to_owned());
        }
        match words.iter().any(String::is_empty) {
            true => Err("a list without empty texts".to_owned()),
            false => Ok(Self::Words(words)),
        }
    }

    /// Parses a value of a file.
    ///
    /// # Errors
    ///
    /// As [`SettingValue::from_text`].
    pub(crate) fn from_toml(kind: Kind, value: &toml::Value) -> Result<Self, String> {
        match (kind, value) {
            (Kind::Switch, toml::Value::Boolean(switch)) => Ok(Self::Switch(*switch)),
            (Kind::Switch, _) => Err("true or false".to_owned()),
            (Kind::Count | Kind::CountOrOff | Kind::Dollars, toml::Value::Integer(number)) => {
                Self::from_text(kind, &number.to_string())
            }
            (Kind::Dollars, toml::Value::Float(number)) => Self::from_text(kind, &number.to_string()),
            (Kind::Count, _) => Err("a number of at least 1".to_owned()),
            (Kind::CountOrOff, toml::Value::String(text)) if text == "off" => Ok(Self::Count(0)),
            (Kind::CountOrOff, _) => Err(COUNT_OR_OFF.to_owned()),
            (Kind::Dollars, _) => Err(limits::BUDGET.to_owned()),
            (Kind::Words | Kind::Labels | Kind::Directories, toml::Value::Array(words)) => {
                let words = words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>();
                words.ok_or_else(|| "a list of strings".to_owned()).and_then(|words| Self::from_words(kind, words))
            }
            (Kind::Words | Kind::Labels | Kind::Directories, _) => Err("a list of strings".to_owned()),
            (Kind::Prices, value) => prices(Some(value)),
            (_, toml::Value::String(text)) => Self::from_text(kind, text),
            (Kind::Duration | Kind::RunningTime, _) => Err("a duration in quotes, such as \"30m\"".to_owned()),
            _ => Err("a string".to_owned()),
        }
    }

    /// The value as settings files contain it.
    pub(crate) fn to_toml(&self) -> toml_edit::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Switch(switch) => (*switch).into(),
            Self::Count(count) => i64::try_from(*count).unwrap_or(i64::MAX).into(),
            Self::Dollars(amount) => (*amount).into(),
            Self::Duration(_) => self.to_string().into(),
            Self::Words(words) => words.iter().map(String::as_str).collect::<toml_edit::Array>().into(),
            Self::Prices(prices) => inline(prices),
        }
    }

    /// Whether the value is at most `other`. False if they cannot be compared.
    pub(crate) fn is_at_most(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Count(one), Self::Count(other)) => one <= other,
            (Self::Dollars(one), Self::Dollars(other)) => one <= other,
            (Self::Duration(one), Self::Duration(other)) => one <= other,
            _ => false,
        }
    }

    /// Resolves a path from a file in `folder`.
    pub(crate) fn in_folder(self, kind: Kind, folder: &Path, home: Option<&Path>) -> Self {
        match self {
            Self::Text(text) if kind == Kind::Path => {
                let path: PathBuf = folder.join(with_home(Path::new(&text), home)).components().collect();
                Self::Text(path.into_os_string().into_string().unwrap_or(text))
            }
            other => other,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn amount(&self) -> Option<f64> {
        if let Self::Dollars(amount) = self { Some(*amount) } else { None }
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.text().map(PathBuf::from)
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Switch(switch) => (*switch).into(),
            Self::Count(count) => (*count).into(),
            Self::Dollars(amount) => (*amount).into(),
            Self::Duration(_) => self.to_string().into(),
            Self::Words(words) => words.as_slice().into(),
            Self::Prices(prices) => serde_json::to_value(prices).unwrap_or_default(),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Switch(switch) => switch.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Dollars(amount) => amount.fmt(f),
            Self::Duration(duration) => {
                const SHORT: SpanPrinter =
                    SpanPrinter::new().designator(Designator::Compact).spacing(Spacing::BetweenUnits);
                f.write_str(&SHORT.duration_to_string(duration))
            }
            Self::Words(words) => f.write_str(&words.join(" ")),
            Self::Prices(prices) => inline(prices).fmt(f),
        }
    }
}

/// Reads a table of prices.
fn prices(value: Option<&toml::Value>) -> Result<SettingValue, String> {
    const WANTED: &str = "a table with `input`, `output`, `cache-write` and `cache-read` for each model, in US dollars for a million tokens";
    let prices: Prices = value.and_then(|value| value.clone().try_into().ok()).ok_or_else(|| WANTED.to_owned())?;
    match prices.problem() {
        Some(problem) => Err(problem),
        None => Ok(SettingValue::Prices(prices)),
    }
}

/// Formats prices as an inline table.
fn inline(prices: &Prices) -> toml_edit::Value {
    let of_model = |price: &Price| {
        let classes = price.classes().into_iter().filter_map(|(name, usd)| Some((name, usd?)));
        toml_edit::Value::from(classes.collect::<toml_edit::InlineTable>())
    };
    prices.iter().map(|(model, price)| (model, of_model(price))).collect::<toml_edit::InlineTable>().into()
}

/// Replaces a leading `~` by the home directory, as shells do: a path in a file or a unit of systemd has not passed a shell.
pub(crate) fn with_home<'a>(path: &'a Path, home: Option<&Path>) -> Cow<'a, Path> {
    let below = path.strip_prefix("~").ok().zip(home);
    below.map_or(Cow::Borrowed(path), |(rest, home)| Cow::Owned(home.join(rest)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::config::setting::SETTINGS;

    #[test]
    fn every_kind_says_what_it_should_be() {
        for (kind, bad) in [
            (Kind::Text, ""),
            (Kind::Command, "a\0"),
            (Kind::OneOf(&["ask", "deny"]), "asks"),
            (Kind::Switch, "yes"),
            (Kind::Count, "0"),
            (Kind::Count, "4294967296"),
            (Kind::CountOrOff, "none"),
            (Kind::CountOrOff, "-1"),
            (Kind::Dollars, "-1"),
            (Kind::Dollars, "inf"),
            (Kind::Duration, "7"),
            (Kind::RunningTime, "0s"),
        ] {
            assert!(SettingValue::from_text(kind, bad).is_err(), "{kind:?} {bad:?}");
        }
        for off in ["off", "0"] {
            assert_eq!(SettingValue::from_text(Kind::CountOrOff, off), Ok(SettingValue::Count(0)));
        }
        assert_eq!(SettingValue::from_text(Kind::Command, ""), Ok(SettingValue::Text(String::new())));
    }

    #[test]
    fn a_path_is_meant_where_it_is_written() {
        let meant = |text: &str| {
            let value = SettingValue::Text(text.into()).in_folder(Kind::Path, Path::new("/p"), Some(Path::new("/h")));
            value.text().unwrap().to_owned()
        };
        assert_eq!([meant("a"), meant("/a"), meant("~/a")], ["/p/a", "/a", "/h/a"]);
        assert_eq!([meant("~"), meant("~b/a"), meant("b/~/a")], ["/h", "/p/~b/a", "/p/b/~/a"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(at in 0..SETTINGS.len(), text in "(\\PC{0,10}|[0-9]{1,6}|[0-9]{1,4}[smhd]|true|ask|never)") {
            let kind = SETTINGS[at].kind;
            if let Ok(value) = SettingValue::from_text(kind, &text) {
                let written = format!("key = {}", value.to_toml());
                let read: toml::Table = written.parse().unwrap();
                prop_assert_eq!(SettingValue::from_toml(kind, &read["key"]), Ok(value));
            }
        }
    }
}
