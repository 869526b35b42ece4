//! Where an agent is, according to its transcript: each line has the directory of its shell, and some name the worktree that it
//! entered with EnterWorktree.

use std::io::{self, BufRead};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::core::text::json;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    /// The directory of its shell.
    pub shell: Option<PathBuf>,
    /// The worktree that it has entered and not left.
    pub worktree: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WhereaboutsLine {
    r#type: Option<String>,
    uuid: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    is_sidechain: bool,
    worktree_session: Option<WorktreeSession>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorktreeSession {
    worktree_path: PathBuf,
}

/// Where the agent's shell is at a call, once `transcript` has it: the call is printed a little before it is written.
pub(crate) fn shell_at(transcript: impl BufRead, call: &str) -> io::Result<Option<PathBuf>> {
    let mut shell = None;
    for line in transcript.split(b'\n') {
        let Ok(line) = json::read::<CallLine>(&line?) else { continue };
        let is_call = |block: &WhereaboutsBlock| block.id.as_deref() == Some(call);
        if !line.is_sidechain && line.message.is_some_and(|message| message.blocks().iter().any(is_call)) {
            shell = line.cwd.filter(|directory| directory.is_absolute());
        }
    }
    Ok(shell)
}

/// Where the agent was when the last line of `transcript` was written.
pub(crate) fn read(transcript: impl BufRead) -> io::Result<Whereabouts> {
    let mut last = Whereabouts::default();
    for line in transcript.split(b'\n') {
        let Ok(line) = json::read::<WhereaboutsLine>(&line?) else { continue };
        if line.r#type.as_deref() == Some("worktree-state") {
            last.worktree = line.worktree_session.map(|session| session.worktree_path);
        } else if line.uuid.is_some() && !line.is_sidechain {
            last.shell = line.cwd.or(last.shell);
        }
    }
    last.shell = last.shell.filter(|directory| directory.is_absolute());
    last.worktree = last.worktree.filter(|directory| directory.is_absolute());
    Ok(last)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallLine {
    cwd: Option<PathBuf>,
    #[serde(default)]
    is_sidechain: bool,
    message: Option<WhereaboutsMessage>,
}

#[derive(Deserialize)]
struct WhereaboutsMessage {
    content: Value,
}

#[derive(Deserialize)]
struct WhereaboutsBlock {
    id: Option<String>,
}

impl WhereaboutsMessage {
    fn blocks(self) -> Vec<WhereaboutsBlock> {
        serde_json::from_value(self.content).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_call_tells_where_it_is_made() {
        let first = r#"{"uuid":"a","cwd":"/p","message":{"content":"t1"}}"#;
        let call =
            r#"{"uuid":"b","cwd":"/p/build","message":{"content":[{"type":"text"},{"type":"tool_use","id":"t1"}]}}"#;
        let later = r#"{"uuid":"c","cwd":"/q","message":{"content":[{"type":"tool_use","id":"t2"}]}}"#;
        let shell = |lines: &[&str]| shell_at(lines.join("\n").as_bytes(), "t1").unwrap();
        assert_eq!(shell(&[first, call, later]), Some("/p/build".into()));
        assert_eq!(shell(&[first, later, "{"]), None);
    }

    fn of(lines: &[&str]) -> Whereabouts {
        read(lines.join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_last_line_of_the_agent_tells_where_its_shell_is() {
        let first = r#"{"uuid":"a","cwd":"/p"}"#;
        let then = r#"{"uuid":"b","cwd":"/p/build","isSidechain":false}"#;
        assert_eq!(of(&[]), Whereabouts::default());
        assert_eq!(of(&[first, then]).shell, Some("/p/build".into()));
        for passed_over in [
            r#"{"uuid":"c","cwd":"/q","isSidechain":true}"#, r#"{"type":"last-prompt","cwd":"/q"}"#, r#"{"uuid":"c"}"#,
            r#"{"uuid":"c","cwd":"/q""#, "",
        ] {
            assert_eq!(of(&[first, then, passed_over]).shell, Some("/p/build".into()), "{passed_over}");
        }
        assert_eq!(of(&[r#"{"uuid":"a","cwd":"build"}"#]).shell, None);
    }

    #[test]
    fn a_worktree_that_was_entered_and_not_left_is_known() {
        let entered = r#"{"type":"worktree-state","worktreeSession":{"originalCwd":"/p","worktreePath":"/p/.claude/worktrees/a"}}"#;
        let left = r#"{"type":"worktree-state","worktreeSession":null}"#;
        let said = r#"{"type":"user","uuid":"a","worktreeSession":{"worktreePath":"/q"}}"#;
        assert_eq!(of(&[said]).worktree, None);
        assert_eq!(of(&[entered, said]).worktree, Some("/p/.claude/worktrees/a".into()));
        assert_eq!(of(&[entered, left]).worktree, None);
        assert_eq!(of(&[left, entered]).worktree, Some("/p/.claude/worktrees/a".into()));
    }
}
