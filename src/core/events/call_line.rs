//! A tool call on one line, for people: the tool, and what it acts on.

use std::path::Path;

use serde_json::Value;

use crate::core::text::escape::shortened;

/// The call on one short, escaped line: `Bash: cargo test`, `Read docs.md`, `github: create_issue`. `directory`: where the agent
/// works, whose files are named without it.
pub(crate) fn call_line(tool: &str, input: &Value, directory: Option<&Path>) -> String {
    let field = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str()).filter(|text| !text.is_empty());
    let line = match tool {
        "Bash" | "BashOutput" | "Monitor" => {
            field(&["command"]).map(|command| format!("{tool}: {}", first_line(command)))
        }
        "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            field(&["file_path", "notebook_path"]).map(|path| format!("{tool} {}", within(path, directory)))
        }
        "Grep" | "Glob" => field(&["pattern"]).map(|pattern| match field(&["path"]) {
            Some(path) => format!("{tool} {pattern} in {}", within(path, directory)),
            None => format!("{tool} {pattern}"),
        }),
        "WebFetch" => field(&["url"]).map(|url| format!("{tool} {url}")),
        "WebSearch" | "ToolSearch" => field(&["query"]).map(|query| format!("{tool}: {query}")),
        "Agent" | "Task" => field(&["description"]).map(|what| format!("{tool}: {what}")),
        _ => tool.strip_prefix("mcp__").and_then(|name| {
            let (server, tool) = name.split_once("__")?;
            Some(format!("{server}: {tool}"))
        }),
    };
    shortened(&line.unwrap_or_else(|| unknown(tool, input)))
}

/// The call on one short, escaped line, as agents read it.
pub(crate) fn for_agents(tool: &str, input: &Value) -> String {
    let input = input["command"].as_str().map_or_else(|| input.to_string(), str::to_owned);
    shortened(&format!("{tool}: {input}"))
}

/// A tool without a form of its own.
fn unknown(tool: &str, input: &Value) -> String {
    let texts = input.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    match texts.filter(|text| !text.trim().is_empty()).min_by_key(|text| text.len()) {
        Some(text) => format!("{tool}: {}", first_line(text)),
        None => tool.to_owned(),
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim_end();
    if lines.all(|line| line.trim().is_empty()) { first.to_owned() } else { format!("{first} …") }
}

fn within<'a>(path: &'a str, directory: Option<&Path>) -> &'a str {
    let inside = directory.and_then(|directory| Path::new(path).strip_prefix(directory).ok()?.to_str());
    inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_says_what_it_acts_on() {
        for (tool, input, line) in [
            ("Bash", json!({"command": "\ncargo test\n"}), "Bash: cargo test"),
            ("Bash", json!({"command": "for i in 1 2\ndo\nls"}), "Bash: for i in 1 2 …"),
            ("Read", json!({"file_path": "/home/dev/docs.md", "limit": 7}), "Read docs.md"),
            ("Read", json!({"file_path": "/home/dev"}), "Read /home/dev"),
            ("Write", json!({"content": "x", "file_path": "/home/dev/a/b.rs"}), "Write a/b.rs"),
            ("Edit", json!({"file_path": "/home/developer/b.rs"}), "Edit /home/developer/b.rs"),
            ("NotebookEdit", json!({"notebook_path": "n.ipynb"}), "NotebookEdit n.ipynb"),
            ("Grep", json!({"pattern": "fn main", "path": "/home/dev/src"}), "Grep fn main in src"),
            ("Glob", json!({"pattern": "**/*.rs"}), "Glob **/*.rs"),
            ("WebFetch", json!({"url": "https://x.example/a", "prompt": "p"}), "WebFetch https://x.example/a"),
            ("WebSearch", json!({"query": "rust"}), "WebSearch: rust"),
            ("Agent", json!({"description": "look", "prompt": "long"}), "Agent: look"),
            ("mcp__github__create_issue", json!({"title": "x"}), "github: create_issue"),
            ("Novelty", json!({"a": "the longer one", "b": "short\u{1b}", "c": 7}), "Novelty: short\\u{1b}"),
            ("Novelty", json!({"c": 7}), "Novelty"),
            ("Read", json!("nonsense"), "Read"),
        ] {
            assert_eq!(call_line(tool, &input, Some(Path::new("/home/dev"))), line);
        }
        let long = call_line("Bash", &json!({"command": "x".repeat(1_000)}), None);
        assert_eq!(long.chars().count(), 120);
    }
}
