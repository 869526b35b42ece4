//! Where the shell of an agent is, as its transcript tells: each line carries the directory in which it was written.

use std::io::{self, BufRead};
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    uuid: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    is_sidechain: bool,
}

/// Where the agent's shell was when the last line of `transcript` was written.
///
/// # Errors
///
/// Those of reading. Lines that are no JSON, and those of subagents, are passed over.
pub fn shell(transcript: impl BufRead) -> io::Result<Option<PathBuf>> {
    let mut last = None;
    for line in transcript.split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(&line?) else { continue };
        if line.uuid.is_some() && !line.is_sidechain {
            last = line.cwd.or(last);
        }
    }
    Ok(last.filter(|directory| directory.is_absolute()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<PathBuf> {
        shell(lines.join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_last_line_of_the_agent_tells() {
        let first = r#"{"uuid":"a","cwd":"/p"}"#;
        let then = r#"{"uuid":"b","cwd":"/p/build","isSidechain":false}"#;
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[first, then]), Some("/p/build".into()));
        for passed_over in [
            r#"{"uuid":"c","cwd":"/q","isSidechain":true}"#,
            r#"{"type":"last-prompt","cwd":"/q"}"#,
            r#"{"uuid":"c"}"#,
            r#"{"uuid":"c","cwd":"/q""#,
            "",
        ] {
            assert_eq!(of(&[first, then, passed_over]), Some("/p/build".into()), "{passed_over}");
        }
        assert_eq!(of(&[r#"{"uuid":"a","cwd":"build"}"#]), None);
    }
}
