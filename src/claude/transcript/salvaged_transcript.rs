//! What survives of the conversation of a killed `claude`. It writes its transcript about a tenth of a second after it has
//! printed the same (seen with 2.1.197 and 2.1.330), and a fork's whole history at once.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::claude::json_lines::blocks;
use crate::claude::stream::event::{StreamBlock, is_cut_short};
use crate::claude::transcript::insert_results;
use crate::core::attempt::prompt;
use crate::core::id::IdPrefix;
use crate::core::requests::request::Delivery;
use crate::core::text::json;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SalvagedTranscript {
    /// Whether a session can continue from it: it has the whole conversation that it was forked from, and the prompt that followed.
    pub continues: bool,
    /// The tool calls whose results it has.
    pub answered: HashSet<String>,
    /// Those that already had them when the session was forked.
    answered_before: HashSet<String>,
    /// The tool calls that it marks as suspended.
    pub suspended: HashSet<String>,
    /// Its prompts since then.
    prompts: Vec<String>,
    /// The names of its lines.
    names: HashSet<String>,
}

impl SalvagedTranscript {
    /// What `transcript` still contains. `earlier`: the transcript that its session was forked from, if any.
    pub(crate) fn from_file(transcript: &Path, earlier: Option<&Path>) -> io::Result<Self> {
        let known = HashSet::new();
        let earlier = match earlier.map(|earlier| TranscriptFindings::in_file(earlier, &known)) {
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
            earlier => earlier.transpose()?,
        };
        let earlier = earlier.unwrap_or_default();
        let found = TranscriptFindings::in_file(transcript, &earlier.names)?;
        // Only a truncated file can lack part of its history: Claude Code may summarise a conversation and drop the rest.
        let last = earlier.messages.last().filter(|_| found.torn);
        let is_all_there = last.is_none_or(|last| found.messages.contains(last));
        let TranscriptFindings { has_news, answered, suspended, prompts, names, .. } = found;
        let continues = has_news && is_all_there;
        Ok(Self { continues, answered, answered_before: earlier.answered, suspended, prompts, names })
    }

    /// Whether it has the message that was printed under this name.
    pub(crate) fn has_line(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether it has this result, either of its call or in a prompt. A call that has already returned something else, such as
    /// the output of a killed command, does not return the result later.
    pub(crate) fn has_result(&self, delivery: &Delivery) -> bool {
        let heading = prompt::beginning_of_heading(delivery);
        if let Some(scheduled) = delivery.kind.scheduled() {
            // Claude Code stores the name and the arguments of a slash command separately.
            let prompt = scheduled.prompt.strip_prefix("/loop").unwrap_or(&scheduled.prompt).trim();
            return self.prompts.iter().any(|given| given.contains(prompt));
        }
        let is_answered = |call| self.answered.contains(call) && !self.answered_before.contains(call);
        delivery.call.as_ref().is_some_and(is_answered) || self.prompts.iter().any(|prompt| prompt.contains(&heading))
    }
}

/// Whether a call that looked this result up has returned it. Another call may have returned the same text.
pub(crate) fn shows(transcript: &Path, delivery: &Delivery) -> io::Result<bool> {
    let id = delivery.known_as();
    let mut lookups = HashSet::new();
    for line in BufReader::new(File::open(transcript)?).split(b'\n') {
        let entry: Value = json::read(&line?).unwrap_or_default();
        for block in blocks(&entry) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if block["type"] == "tool_use" && text(&block["input"]["command"]).contains(&id[..IdPrefix::SHORTEST]) {
                lookups.insert(text(&block["id"]));
            }
            let returned = || StreamBlock::deserialize(block).ok()?.as_result();
            if block["type"] == "tool_result"
                && lookups.contains(&text(&block["tool_use_id"]))
                && returned().is_some_and(|returned| delivery.result.is_in(&returned))
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[derive(Default)]
struct TranscriptFindings {
    /// The names of its lines.
    names: HashSet<String>,
    /// Whether it has a prompt or a message of the model that is not known yet. The results of calls do not count: they may have been
    /// added to the conversation that was continued.
    has_news: bool,
    /// The ids of the model's messages.
    messages: Vec<String>,
    answered: HashSet<String>,
    suspended: HashSet<String>,
    prompts: Vec<String>,
    /// Whether its last line is truncated.
    torn: bool,
}

impl TranscriptFindings {
    /// `known`: the names of the lines of an earlier transcript. A fork keeps them.
    fn in_file(transcript: &Path, known: &HashSet<String>) -> io::Result<Self> {
        let mut found = Self::default();
        let (mut reader, mut line) = (BufReader::new(File::open(transcript)?), Vec::new());
        while reader.read_until(b'\n', &mut line)? > 0 {
            found.torn = line.last() != Some(&b'\n');
            if !found.torn {
                found.take(&json::read(&line).unwrap_or_default(), known);
            }
            line.clear();
        }
        Ok(found)
    }

    fn take(&mut self, entry: &Value, known: &HashSet<String>) {
        self.suspended.extend(insert_results::mark(entry).map(str::to_owned));
        let message = &entry["message"];
        let is_new = entry["uuid"].as_str().is_none_or(|name| !known.contains(name));
        self.names.extend(entry["uuid"].as_str().map(str::to_owned));
        // Claude Code adds such lines before a prompt.
        let is_new = is_new && entry["isMeta"] != true;
        self.has_news |= is_new && entry["type"] == "assistant" && message.is_object();
        // Lines of other types may repeat messages.
        if entry["type"] == "assistant" {
            self.messages.extend(message["id"].as_str().map(str::to_owned));
        }
        if entry["type"] == "user" {
            let finished =
                |block: &&Value| !is_cut_short(block["content"].as_str().unwrap_or_default(), &entry["toolUseResult"]);
            let results = blocks(entry).filter(finished).filter_map(|block| block["tool_use_id"].as_str());
            self.answered.extend(results.map(str::to_owned));
            let texts =
                message["content"].as_str().into_iter().chain(blocks(entry).filter_map(|block| block["text"].as_str()));
            let before = self.prompts.len();
            self.prompts.extend(texts.filter(|_| is_new).map(str::to_owned));
            self.has_news |= self.prompts.len() > before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::{RequestKind, RequestResult};

    const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"go"}}"#;
    const CALL: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1"}]}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
    const MARK: &str = r#"{"type":"attachment","attachment":{"type":"hook_deferred_tool","toolUseID":"t1"}}"#;
    const QUEUED: &str = r#"{"type":"queue-operation","operation":"enqueue"}"#;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, text).unwrap();
            path
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn of(text: &str) -> SalvagedTranscript {
        SalvagedTranscript::from_file(&folder().file("a", text), None).unwrap()
    }

    #[test]
    fn without_a_word_there_is_no_conversation() {
        for text in ["", "{", PROMPT, QUEUED, &format!("{QUEUED}\n{QUEUED}\n"), &format!("{QUEUED}\n{PROMPT}")] {
            assert_eq!(of(text), SalvagedTranscript::default(), "{text}");
        }
        assert!(of(&format!("{QUEUED}\n{PROMPT}\n")).continues);
    }

    #[test]
    fn a_call_is_answered_once_its_result_is_written() {
        assert!(of(&format!("{PROMPT}\n{CALL}\n{RESULT}")).answered.is_empty());
        assert_eq!(of(&format!("{PROMPT}\n{CALL}\n{RESULT}\n")).answered, HashSet::from(["t1".to_owned()]));
        assert_eq!(of(&format!("{PROMPT}\n{CALL}\n{MARK}\n")).suspended, HashSet::from(["t1".to_owned()]));
    }

    #[test]
    fn a_result_is_found_by_its_call_or_in_a_prompt() {
        let delivery = |call: Option<&str>| Delivery {
            request: RequestId("4f2c1a90-0000-4000-8000-000000000000".parse().unwrap()),
            call: call.map(str::to_owned),
            kind: RequestKind::Ask(Form::text("When?")),
            result: RequestResult::Text("Jan 1st".into()),
        };
        let call = of(&format!("{PROMPT}\n{CALL}\n{RESULT}\n"));
        assert!(call.has_result(&delivery(Some("t1"))));
        assert!(!call.has_result(&delivery(Some("t2"))) && !call.has_result(&delivery(None)));
        let folder = folder();
        let earlier = folder.file("earlier", format!("{PROMPT}\n{CALL}\n{RESULT}\n"));
        let fork = |text: &str| SalvagedTranscript::from_file(&folder.file("fork", text), Some(&earlier)).unwrap();
        let text = prompt::resume(&[delivery(None)], &[]);
        let prompt = json!({"type": "user", "message": {"content": text}});
        assert!(!fork(&format!("{PROMPT}\n{CALL}\n{RESULT}\n")).has_result(&delivery(Some("t1"))));
        assert!(fork(&format!("{PROMPT}\n{CALL}\n{RESULT}\n{prompt}\n")).has_result(&delivery(Some("t1"))));
        for content in [json!(text), json!([{"type": "text", "text": text}])] {
            let salvage = of(&format!("{}\n", json!({"type": "user", "message": {"content": content}})));
            assert!(salvage.has_result(&delivery(None)) && salvage.has_result(&delivery(Some("t1"))));
        }
        let said = of(&format!("{}\n", json!({"type": "assistant", "message": {"content": text}})));
        assert!(!said.has_result(&delivery(None)));
    }

    #[test]
    fn a_fork_that_was_cut_short_in_its_history_does_not_continue_it() {
        let folder = folder();
        let earlier = folder.file("earlier", format!("{PROMPT}\n{CALL}\n{RESULT}\n"));
        let continues =
            |text: &str| SalvagedTranscript::from_file(&folder.file("fork", text), Some(&earlier)).unwrap().continues;
        assert!(!continues(&format!("{PROMPT}\n{{\"type\":\"assi")));
        assert!(continues(&format!("{PROMPT}\n{CALL}\n{{\"type\":\"us")));
        let summed_up = format!("{PROMPT}\n");
        assert!(continues(&summed_up));
        let gone = folder.0.path().join("gone");
        assert!(SalvagedTranscript::from_file(&earlier, Some(&gone)).unwrap().continues);
    }

    #[test]
    fn a_fork_that_has_its_history_and_not_its_prompt_does_not_continue_it() {
        let folder = folder();
        let named = |line: &str, uuid: &str| line.replacen('{', &format!(r#"{{"uuid":"{uuid}","#), 1);
        let history = [named(PROMPT, "a"), named(CALL, "b"), named(MARK, "c")].join("\n");
        let earlier = folder.file("earlier", format!("{history}\n"));
        let continues = |more: &str| {
            let fork = folder.file("fork", format!("{history}\n{more}\n"));
            SalvagedTranscript::from_file(&fork, Some(&earlier)).unwrap().continues
        };
        assert!(!continues("") && !continues(&named(RESULT, "d")), "the result may have been added to the history");
        let meta = named(PROMPT, "e").replacen('{', r#"{"isMeta":true,"#, 1);
        assert!(!continues(&meta) && continues(&named(PROMPT, "e")) && continues(&named(CALL, "e")));
    }

    proptest! {
        #[test]
        fn any_bytes_have_something_or_nothing(bytes: Vec<u8>) {
            SalvagedTranscript::from_file(&folder().file("a", bytes), None).unwrap();
        }
    }
}
