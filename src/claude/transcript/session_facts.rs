//! What a transcript says about its session: its origin, the directory of its agent, its costs, and its plans.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::claude::json_lines::{blocks, json_lines, json_lines_of};
use crate::claude::stream::tokens::{Answers, of_models};
use crate::claude::transcript::locate::folder_name;
use crate::core::agent::usage::Totals;

/// What is known about a session that agent-cli did not start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ForeignSession {
    pub cwd: Option<PathBuf>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Its spending so far; nothing if its version does not record it.
    pub total: Totals,
}

/// A line with what the session has cost, or with a message.
#[derive(Deserialize)]
struct SessionLine {
    cwd: Option<PathBuf>,
    #[serde(rename = "totalCostUSD")]
    total_cost_usd: Option<f64>,
    #[serde(rename = "modelUsage", default)]
    model_usage: Value,
    message: Option<SessionMessage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionMessage {
    id: Value,
    model: Value,
    usage: Value,
}

/// The origin of a session. The agent may have changed its directory: the session belongs to the directory after which the
/// folder of its transcript is named, or else to the first one.
pub(crate) fn origin(transcript: &Path) -> io::Result<ForeignSession> {
    let mut origin = ForeignSession::default();
    let folder = transcript.parent().and_then(Path::file_name);
    let belongs = |cwd: &Path| folder.is_some_and(|folder| folder == folder_name(cwd).as_str());
    for line in json_lines_of::<SessionLine>(transcript)? {
        let line = line?;
        if origin.cwd.is_none() || line.cwd.as_deref().is_some_and(belongs) {
            origin.cwd = line.cwd.or(origin.cwd);
        }
        if let Some(usd) = line.total_cost_usd {
            origin.total = Totals { usd, usage: of_models(&line.model_usage) };
        }
        let model = line.message.and_then(|message| message.model.as_str().map(str::to_owned));
        origin.model = model.filter(|model| !model.starts_with('<')).or(origin.model);
    }
    Ok(origin)
}

/// What a transcript says about costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionCosts {
    /// What the session had spent when Claude Code last recorded it; a fork continues this count. `None`: its version does not
    /// record it.
    pub(crate) total: Option<Totals>,
    /// All responses in it, including those of earlier attempts.
    pub(crate) answers: Answers,
}

/// What a session has cost.
pub(crate) fn costs(transcript: &Path) -> io::Result<SessionCosts> {
    let mut costs = SessionCosts::default();
    for line in json_lines_of::<SessionLine>(transcript)? {
        let line = line?;
        if let Some(usd) = line.total_cost_usd {
            costs.total = Some(Totals { usd, usage: of_models(&line.model_usage) });
        }
        if let Some(SessionMessage { id, model, usage }) = line.message {
            costs.answers.absorb(&id, &model, &usage);
        }
    }
    Ok(costs)
}

/// Where an agent is: each line contains the directory of its shell, and some name the worktree that it entered with
/// EnterWorktree.
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

/// Where the agent was when the last line of `transcript` was written.
pub(crate) fn whereabouts(transcript: impl BufRead) -> io::Result<Whereabouts> {
    let mut last = Whereabouts::default();
    for line in json_lines::<WhereaboutsLine>(transcript) {
        let line = line?;
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

/// The directory of the agent's shell at a call, once `transcript` contains it: the call is printed shortly before it is
/// written.
pub(crate) fn shell_at(transcript: impl BufRead, call: &str) -> io::Result<Option<PathBuf>> {
    let mut shell = None;
    for line in json_lines::<Value>(transcript) {
        let line = line?;
        if line["isSidechain"] != true && blocks(&line).any(|block| block["id"] == call) {
            shell = line["cwd"].as_str().map(PathBuf::from).filter(|directory| directory.is_absolute());
        }
    }
    Ok(shell)
}

/// The names of a conversation's plans.
pub(crate) fn plans(transcript: &Path) -> io::Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct NamedPlan {
        slug: Option<String>,
    }
    let lines = match json_lines_of::<NamedPlan>(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        lines => lines?,
    };
    let mut found = BTreeSet::new();
    for line in lines {
        found.extend(line?.slug.filter(|slug| !slug.is_empty() && !slug.contains('/')));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::core::agent::usage::Usage;

    #[test]
    fn a_transcript_tells_its_origin() {
        let config = tempfile::tempdir().unwrap();
        let transcript = config.path().join("a.jsonl");
        fs::write(
            &transcript,
            "{\"type\":\"summary\"}\ngarbage\n{\"cwd\":\"/a\",\"message\":{\"model\":\"claude-opus-4-8\"}}\n\
             {\"cwd\":\"/a\",\"message\":{\"model\":\"<synthetic>\"}}\n\
             {\"type\":\"cost-state\",\"totalCostUSD\":0.25}\n{\"torn",
        )
        .unwrap();
        let expected = ForeignSession {
            cwd: Some("/a".into()),
            model: Some("claude-opus-4-8".into()),
            total: Totals { usd: 0.25, usage: None },
        };
        assert_eq!(origin(&transcript).unwrap(), expected);
    }

    #[test]
    fn the_last_total_and_every_answer_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(
            file.path(),
            r#"garbage
{"type":"cost-state","totalCostUSD":0.25,"modelUsage":{"m":{"inputTokens":5}}}
{"type":"user","message":{"role":"user","content":"text"}}
{"type":"assistant","message":{"id":"m1","model":"m","usage":{"input_tokens":3,"output_tokens":4}}}
{"type":"cost-state","totalCostUSD":0.5,"modelUsage":{"m":{"inputTokens":8}}}
{"torn"#,
        )
        .unwrap();
        let costs = costs(file.path()).unwrap();
        let usage = Usage { input_tokens: 8, ..Usage::default() };
        assert_eq!(costs.total, Some(Totals { usd: 0.5, usage: Some(usage) }));
        assert_eq!((costs.answers.count(), costs.answers.usage().output_tokens), (1, 4));
    }

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
        whereabouts(lines.join("\n").as_bytes()).unwrap()
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

    #[test]
    fn a_transcript_names_its_plans() {
        let temp = tempfile::tempdir().unwrap();
        let transcript = temp.path().join("a.jsonl");
        assert_eq!(plans(&transcript).unwrap(), BTreeSet::new());
        let lines = "{\"slug\":\"a-calm-plan\",\"type\":\"user\"}\n{\"message\":{\"slug\":\"said\"}}\n{\"slug\":\"../x\"}\n{\"to";
        fs::write(&transcript, lines).unwrap();
        assert_eq!(plans(&transcript).unwrap(), BTreeSet::from(["a-calm-plan".to_owned()]));
    }
}
