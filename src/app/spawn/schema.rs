//! The file of `--schema`.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::core::agent::reply_schema::{LARGEST_SCHEMA, ReplySchema};
use crate::core::text::escape::one_line;
use crate::runtime::requests::reply_check;

const GIVE_A_FILE: &str = "give the path of a file with a JSON Schema";

/// The schema in the named file. `below`: the directory in which the file must be.
pub(super) fn read(app: &App<'_>, named: &Path, below: Option<&Path>) -> Result<ReplySchema, AppError> {
    let shown = one_line(&named.display().to_string());
    let schema = parse(&content(app, named, &shown, below)?, &shown)?;
    let trouble =
        reply_check::trouble(&schema).map_err(|error| Refusal::failure(format!("failed to check {shown}: {error}")))?;
    match trouble {
        Some(why) => {
            Err(Refusal::new(format!("{shown} cannot be used as a JSON Schema: {why}")).hint(GIVE_A_FILE).into())
        }
        None => Ok(schema),
    }
}

fn content(app: &App<'_>, named: &Path, shown: &str, below: Option<&Path>) -> Result<Vec<u8>, Refusal> {
    let unreadable = |error: io::Error| Refusal::new(format!("cannot read {shown}: {error}")).hint(GIVE_A_FILE);
    let path = app.path(named).canonicalize().map_err(unreadable)?;
    if let Some(below) = below
        && !path.starts_with(below.canonicalize().map_err(unreadable)?)
    {
        let message = format!("{shown} is outside your directory, so it cannot be given to another agent");
        return Err(Refusal::new(message).hint("write the schema into a file in your directory"));
    }
    if !fs::metadata(&path).map_err(unreadable)?.is_file() {
        return Err(Refusal::new(format!("{shown} is not a regular file")).hint(GIVE_A_FILE));
    }
    let mut content = Vec::new();
    let file = fs::File::open(&path).map_err(unreadable)?;
    file.take(LARGEST_SCHEMA as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

fn parse(content: &[u8], shown: &str) -> Result<ReplySchema, Refusal> {
    if content.len() > LARGEST_SCHEMA {
        let message = format!("{shown} has more than 64 KiB");
        return Err(Refusal::new(message).hint("an agent reads all of the schema: give a shorter one"));
    }
    let text = String::from_utf8_lossy(content);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    ReplySchema::from_text(text)
        .map_err(|error| Refusal::new(format!("{shown} is not JSON: {}", one_line(&error))).hint(GIVE_A_FILE))
}
