//! Everything that is specific to Claude Code: finding the program, starting it, reading what it prints, deciding how
//! an attempt ended, and its transcripts. `docs/claude-code.md` lists the facts that this relies on.

pub(crate) mod attempt_ending;
pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod installation;
pub(crate) mod options;
pub(crate) mod processes;
pub(crate) mod settings;
pub(crate) mod stream;
pub(crate) mod tools;
pub(crate) mod transcript;

pub(crate) mod invocation;
pub(crate) mod json_lines;

/// Lines as Claude Code, a full disk, a kill or a future version may write them.
#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Write;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::claude::stream::output_reader;
    use crate::claude::tools::hook_input::HookInput;
    use crate::claude::tools::permission_server::{Permission, respond};
    use crate::claude::transcript::insert_results::{self, CallResult};
    use crate::claude::transcript::rewrite::Entries;
    use crate::claude::transcript::salvaged_transcript::SalvagedTranscript;
    use crate::claude::transcript::{ancestry, turn};

    /// JSON that JavaScript writes, or reads without a word.
    fn any_input() -> impl Strategy<Value = String> {
        let text = prop_oneof![
            r#"(\\ud83d|\\udc4d|\\ud83d\\udc4d|a|\\\\|\\u0041|\\n|\\"|👍|\{|\[){0,6}"#,
            any::<String>()
                .prop_map(|text| json!(text).to_string())
                .prop_map(|text| text[1..text.len() - 1].to_owned()),
            (0..200_000_usize).prop_map(|length| "x".repeat(length)),
        ];
        let leaf = prop_oneof![
            8 => text.prop_map(|text| format!("\"{text}\"")),
            1 => prop::sample::select(vec!["1e999", "-1e999", "99999999999999999999999", "1.50", "-0", "null", "true"])
                .prop_map(str::to_owned),
            1 => (0..300_usize).prop_map(|levels| format!(r#"{}"]\ud83d"{}"#, "[".repeat(levels), "]".repeat(levels))),
            1 => (0..300_usize).prop_map(|levels| format!(r#"{}1{}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))),
        ];
        let name = prop::sample::select(vec!["command", "description", "uuid", "cut \\ud83d,", "a"]);
        prop::collection::vec((name, leaf), 0..4).prop_map(|fields| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        })
    }

    /// The calls of a conversation, each with the kind of broken line before it.
    fn any_calls() -> impl Strategy<Value = Vec<(String, Option<Vec<u8>>)>> {
        let torn = any_input().prop_map(|input| {
            let line = format!(r#"{{"type":"assistant","message":{{"content":[{{"input":{input}"#);
            line.into_bytes()
        });
        let broken = prop_oneof![
            4 => Just(None),
            1 => torn.prop_map(Some),
            1 => Just(Some(vec![0; 100])),
            1 => Just(Some(b"\xff\xfe garbage".to_vec())),
        ];
        prop::collection::vec((any_input(), broken), 1..8)
    }

    fn cases() -> ProptestConfig {
        let given = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
        ProptestConfig::with_cases(given.unwrap_or(64))
    }

    proptest! {
        #![proptest_config(cases())]
        #[test]
        fn any_line_is_read_by_everything_that_reads_lines(calls in any_calls()) {
            // Too far apart for a missing line to be bridged.
            let line = |at: usize, kind: &str, message: &str| {
                let parent = at.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
                format!(
                    r#"{{"type":"{kind}","uuid":"u{at}","parentUuid":{parent},"timestamp":"2026-01-01T{:02}:00:00Z","x":{{"y":[]}},"message":{message},"type":"{kind}"}}"#,
                    at % 24,
                )
            };
            let mut transcript = line(0, "user", r#"{"content":"go"}"#).into_bytes();
            let mut broken_lines = 0;
            for (at, (input, broken)) in calls.iter().enumerate() {
                if let Some(text) = broken {
                    transcript.extend([b"\n", text.as_slice()].concat());
                    broken_lines += 1;
                }
                let block = format!(r#"{{"type":"tool_use","id":"t{at}","name":"Bash","input":{input}}}"#);
                let call = line(2 * at + 1, "assistant", &format!(r#"{{"id":"m{at}","content":[{block}]}}"#));
                let block = format!(r#"{{"type":"tool_result","tool_use_id":"t{at}","content":[{input}]}}"#);
                let result = line(2 * at + 2, "user", &format!(r#"{{"content":[{block}]}}"#));
                transcript.extend([b"\n", call.as_bytes(), b"\r\n", result.as_bytes()].concat());
            }
            let at = 2 * calls.len() + 1;
            let open = line(at, "assistant", r#"{"id":"m","content":[{"type":"tool_use","id":"open","name":"Bash","input":{}}]}"#);
            transcript.extend([b"\n", open.as_bytes(), b"\n"].concat());

            // The stream.
            let digest = output_reader::read([transcript.as_slice(), br#"{"type":"result","is_error":false,"result":"cut \ud83d"}"#].concat().as_slice()).unwrap();
            prop_assert_eq!(digest.result.map(|result| result.text), Some("cut \u{fffd}".to_owned()));
            prop_assert_eq!(digest.broken_lines, broken_lines);

            // The transcript.
            prop_assert_eq!(ancestry::check(transcript.as_slice()).unwrap(), Ok(()));
            let entries = Entries::read(transcript.as_slice()).unwrap();
            let copied = entries.copy(&HashMap::new(), Vec::new()).unwrap();
            prop_assert!(copied == transcript, "a copy is identical to the byte");
            let result = CallResult { text: "done".to_owned(), is_error: false };
            let answered = insert_results::copy(&entries, HashMap::from([("open".to_owned(), result)])).unwrap();
            prop_assert!(answered.others.is_empty() && answered.text.starts_with(&transcript));
            prop_assert_eq!(ancestry::check(answered.text.as_slice()).unwrap(), Ok(()));
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().write_all(&transcript).unwrap();
            turn::read(file.path()).unwrap();
            let salvaged = SalvagedTranscript::from_file(file.path(), None).unwrap();
            prop_assert!(salvaged.continues && salvaged.answered.len() == calls.len());

            // The hook and the permission server.
            for (input, _) in &calls {
                let asked = format!(r#"{{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{input}}}"#);
                let read = HookInput::parse(asked.as_bytes()).unwrap();
                prop_assert_eq!(read.tool_name.as_deref(), Some("Bash"));
                let asked = format!(
                    r#"{{"method":"tools/call","params":{{"arguments":{{"tool_name":"Bash","input":{input}}}}},"jsonrpc":"2.0","id":7}}"#
                );
                let answer = respond(asked.as_bytes(), |call| Permission::Allow { input: call.input.clone() });
                prop_assert_eq!(&answer.unwrap()["id"], &json!(7));
                let torn = format!(r#"{{"id":7,"method":"tools/call","params":{input}"#);
                let answer = respond(torn.as_bytes(), |_| unreachable!()).unwrap_or(Value::Null);
                prop_assert_eq!(&answer["id"], &json!(7));
            }
        }
    }
}
