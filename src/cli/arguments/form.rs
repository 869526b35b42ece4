//! The questions that a command asks: its options, or JSON.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;

use crate::cli::error::CliError;
use crate::core::id::RequestId;
use crate::core::requests::question::{Batch, Choice, Form};
use crate::core::text::duration::{TOO_FAR, TOO_LONG, duration, moment};
use crate::core::text::escape::{one_line, shortened};

/// What can be said about a question.
#[derive(Debug, Args)]
pub(crate) struct FormOptions {
    /// An option to choose, and what it means; repeat it for each. Nothing else is an answer unless --free-text is given
    #[arg(long = "option", value_name = "KEY[=DESCRIPTION]", conflicts_with = "questions")]
    options: Vec<String>,

    /// Allow several options to be chosen
    #[arg(long, conflicts_with = "questions")]
    multiple: bool,

    /// Accept any other text as an answer, too
    #[arg(long, conflicts_with = "questions")]
    free_text: bool,

    /// The answer to use when the question expires; if there are options, the key of one
    #[arg(long, value_name = "KEY", conflicts_with = "questions", allow_hyphen_values = true)]
    default: Option<String>,

    /// A text that a person should read before they answer, or a file with it
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "questions", allow_hyphen_values = true)]
    context: Option<String>,

    /// Stop waiting for an answer after this time, for example 90m or 3d, or at this one, for example 2026-12-24T18:00:00Z
    #[arg(long, value_name = "DURATION|TIME")]
    expires: Option<String>,
}

/// One of several questions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: Option<String>,
    question: String,
    context: Option<String>,
    #[serde(default)]
    options: Vec<Offered>,
    #[serde(default)]
    multiple: bool,
    #[serde(default)]
    free_text: bool,
    default: Option<String>,
    expires: Option<String>,
}

/// An option: its key alone, or with what it means.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Offered {
    Key(String),
    Described(Described),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    key: String,
    #[serde(default)]
    description: String,
}

/// How many questions can be asked at once.
const MOST_QUESTIONS: usize = 50;
/// In bytes, of a file.
const MOST_BYTES: u64 = 1 << 20;

impl FormOptions {
    /// The one question that these options describe. `below`: the directory in which a file has to be.
    pub(crate) fn form(&self, question: &str, below: Option<&Path>, now: Timestamp) -> Result<Form, CliError> {
        let option = |text: &String| {
            let (key, description) = text.split_once('=').unwrap_or((text, ""));
            Choice { key: key.to_owned(), description: description.to_owned() }
        };
        let context = match self.context.as_deref().map(|text| (text, text.strip_prefix('@'))) {
            Some((_, Some(file))) => Some(text_of(Path::new(file), below)?),
            Some((text, None)) => Some(text.to_owned()),
            None => None,
        };
        let form = Form {
            context,
            options: self.options.iter().map(option).collect(),
            multiple: self.multiple,
            free_text: self.free_text || self.options.is_empty(),
            default: self.default.clone(),
            expires_at: self.expires_at(now)?,
            ..Form::text(question)
        };
        form.checked(now).map_err(|bad| {
            CliError::usage(bad.to_string())
                .hint("agent-cli ask \"Deploy?\" --option yes --option later=\"in the morning\"")
        })
    }

    /// The questions in a file, or on standard input.
    pub(crate) fn forms(&self, file: &Path, below: Option<&Path>, now: Timestamp) -> Result<Vec<Form>, CliError> {
        let text = if file == Path::new("-") { standard_input()? } else { text_of(file, below)? };
        let asked: Vec<Asked> = serde_json::from_str(&text)
            .map_err(|error| bad_json(&format!("the questions cannot be read: {}", one_line(&error.to_string()))))?;
        if asked.is_empty() || asked.len() > MOST_QUESTIONS {
            return Err(bad_json(&format!(
                "1 to {MOST_QUESTIONS} questions can be asked at once, not {}",
                asked.len()
            )));
        }
        let id = RequestId::random();
        let mut forms: Vec<Form> = Vec::new();
        for (number, asked) in (1..).zip(asked) {
            let which = asked.name.clone().unwrap_or_else(|| number.to_string());
            let form = self
                .one_of_several(asked, id, now)
                .map_err(|why| bad_json(&format!("question {}: {why}", shortened(&which))))?;
            let name = |form: &Form| form.batch.as_ref().and_then(|batch| batch.name.clone());
            if name(&form).is_some() && forms.iter().any(|other| name(other) == name(&form)) {
                return Err(bad_json(&format!("two questions have the name {}", shortened(&which))));
            }
            forms.push(form);
        }
        Ok(forms)
    }

    fn one_of_several(&self, asked: Asked, id: RequestId, now: Timestamp) -> Result<Form, String> {
        let option = |option| match option {
            Offered::Key(key) => Choice { key, description: String::new() },
            Offered::Described(Described { key, description }) => Choice { key, description },
        };
        let expires = asked.expires.as_ref().or(self.expires.as_ref());
        let options: Vec<Choice> = asked.options.into_iter().map(option).collect();
        let form = Form {
            context: asked.context,
            free_text: asked.free_text || options.is_empty(),
            options,
            multiple: asked.multiple,
            default: asked.default,
            expires_at: expires.map(|text| expiry(text, now)).transpose()?,
            batch: Some(Batch { id, name: asked.name }),
            ..Form::text(&asked.question)
        };
        form.checked(now).map_err(|bad| bad.to_string())
    }

    fn expires_at(&self, now: Timestamp) -> Result<Option<Timestamp>, CliError> {
        let expires_at = self.expires.as_ref().map(|text| expiry(text, now)).transpose();
        expires_at.map_err(|why| CliError::usage(format!("--expires: {why}")).hint("for example --expires 3d"))
    }
}

/// When a question expires that is asked at `now`: in whole seconds, because people read it.
fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let far = || format!("\"{}\" is {TOO_FAR}", shortened(text));
    let time = match duration(text) {
        Ok(duration) => now.checked_add(duration).map_err(|_| far())?,
        Err(why) if why == TOO_LONG => return Err(far()),
        Err(_) => moment(text).map_err(|why| match why == TOO_FAR {
            true => far(),
            false => format!("\"{}\" is neither a duration, for example 90m or 3d, nor a time: {why}", shortened(text)),
        })?,
    };
    Timestamp::from_second(time.as_second()).map_err(|_| far())
}

fn bad_json(message: &str) -> CliError {
    CliError::usage(message)
        .hint(r#"a JSON array: [{"name": "when", "question": "When?", "options": ["now", "later"], "expires": "3d"}]"#)
}

/// The text in a file that an agent names.
fn text_of(file: &Path, below: Option<&Path>) -> Result<String, CliError> {
    let shown = one_line(&file.display().to_string());
    let unreadable = |error: io::Error| CliError::usage(format!("cannot read {shown}: {error}"));
    let path: PathBuf = file.canonicalize().map_err(unreadable)?;
    if let Some(below) = below
        && !path.starts_with(below.canonicalize().map_err(unreadable)?)
    {
        let message = format!("{shown} is outside your directory, so it cannot be shown to a person");
        return Err(CliError::usage(message).hint("write what they need into a file in your directory"));
    }
    if !fs::metadata(&path).map_err(unreadable)?.is_file() {
        return Err(CliError::usage(format!("{shown} is not a regular file")));
    }
    read(fs::File::open(&path).map_err(unreadable)?, &shown)
}

/// The text on standard input.
pub(crate) fn standard_input() -> Result<String, CliError> {
    read(io::stdin().lock(), "standard input")
}

fn read(from: impl Read, shown: &str) -> Result<String, CliError> {
    let mut content = Vec::new();
    let read = from.take(MOST_BYTES + 1).read_to_end(&mut content);
    read.map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    if content.len() as u64 > MOST_BYTES {
        return Err(CliError::usage(format!("{shown} has more than 1 MiB")));
    }
    String::from_utf8(content).map_err(|_| CliError::usage(format!("{shown} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_duration_or_a_time_in_any_zone() {
        let now: Timestamp = "2026-10-24T12:00:00.7Z".parse().unwrap();
        for (text, expected) in [
            ("3d", "2026-10-27T12:00:00Z"),
            ("90m", "2026-10-24T13:30:00Z"),
            ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
            // The clocks go back in the night in between: a day is 24 hours, a time is what the clock there shows.
            ("1d", "2026-10-25T12:00:00Z"),
            ("2026-10-25T13:00:00[Europe/Berlin]", "2026-10-25T12:00:00Z"),
            ("2026-10-25T02:30:00+02:00[Europe/Berlin]", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00Z"),
        ] {
            assert_eq!(expiry(text, now), Ok(expected.parse().unwrap()), "{text}");
        }
        for bad in ["soon", "-3d", "2026-12-24", "2026-12-24T18:00:00", "", "99999999999w"] {
            assert!(expiry(bad, now).is_err(), "{bad}");
        }
    }
}
