//! Reads the file of `--schema`.

use std::path::Path;

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::spawn::named_file::{self, Reading};
use crate::core::agent::reply_schema::{LARGEST_SCHEMA, ReplySchema};
use crate::core::text::escape::one_line;
use crate::runtime::requests::reply_check;

const GIVE_A_FILE: &str = "give the path of a file with a JSON Schema";

/// Reads the schema in the named file. `below` is the directory in which the file must be.
pub(super) fn read(app: &App<'_>, named: &Path, below: Option<&Path>) -> Result<ReplySchema, AppError> {
    let reading = Reading {
        below,
        most: LARGEST_SCHEMA as u64,
        use_: "given to another agent",
        instead: "write the schema into a file in your directory",
        hint: Some(GIVE_A_FILE),
    };
    let shown = named_file::shown(named);
    let schema = parse(&named_file::read(app, named, reading)?, &shown)?;
    let trouble =
        reply_check::trouble(&schema).map_err(|error| Refusal::failure(format!("failed to check {shown}: {error}")))?;
    match trouble {
        Some(why) => {
            let refusal = Refusal::new(format!("{shown} cannot be used as a JSON Schema: {why}"));
            Err(refusal.hint("correct it: json-schema.org/learn explains what a schema can say").into())
        }
        None => Ok(schema),
    }
}

fn parse(content: &[u8], shown: &str) -> Result<ReplySchema, Refusal> {
    if content.len() > LARGEST_SCHEMA {
        let message = format!("{shown} has more than 64 KiB");
        return Err(Refusal::new(message).hint("an agent reads all of the schema: give a shorter one"));
    }
    let Ok(text) = std::str::from_utf8(content) else {
        return Err(Refusal::new(format!("{shown} is not UTF-8")).hint(GIVE_A_FILE));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    ReplySchema::from_text(text)
        .map_err(|error| Refusal::new(format!("{shown} {}", one_line(&error))).hint(GIVE_A_FILE))
}
