//! A request of the Messages API as the model sees it: who said what, in order.

use serde_json::Value;

/// Everything said and done so far, without what Claude Code adds.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    items: Vec<Item>,
    context: String,
}

/// One thing said or done.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// The user (or a program in the user's place) said this.
    User(String),
    /// The model said this.
    Assistant(String),
    /// The model called a tool.
    Call {
        /// Ties the result to the call.
        id: String,
        /// The tool.
        name: String,
        /// What it was called with.
        input: Value,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call.
        id: String,
        /// The text of the result.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
    },
}

impl Conversation {
    /// Reads the body of a request.
    pub fn of(body: &Value) -> Self {
        let mut conversation = Self::default();
        for text in texts(&body["system"]) {
            conversation.note(&text);
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or_default();
            match &message["content"] {
                Value::String(text) => conversation.say(role, text),
                blocks => blocks.as_array().into_iter().flatten().for_each(|block| conversation.take(role, block)),
            }
        }
        conversation
    }

    /// What was said and done, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Everything the model was told that nobody said: the system prompt, messages of role `system`, and the
    /// `<system-reminder>` blocks, among them the CLAUDE.md files.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// What the user said, in order.
    pub fn user_texts(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.items.iter().filter_map(|item| match item {
            Item::User(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The first thing that the user said: whose conversation it is.
    pub fn task(&self) -> &str {
        self.user_texts().next().unwrap_or_default()
    }

    /// The last thing that the user said.
    pub fn last_user_text(&self) -> Option<&str> {
        self.user_texts().next_back()
    }

    /// The results of tool calls, in order, and whether the tool failed.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = (&str, bool)> + Clone {
        self.items.iter().filter_map(|item| match item {
            Item::Result { text, is_error, .. } => Some((text.as_str(), *is_error)),
            _ => None,
        })
    }

    /// The texts of the results.
    pub fn result_texts(&self) -> Vec<&str> {
        self.results().map(|(text, _)| text).collect()
    }

    /// The same in the order of the calls: those of one message come in any order.
    pub fn results_by_call(&self) -> Vec<(&str, bool)> {
        let of = |call: &str| {
            self.items.iter().find_map(|item| match item {
                Item::Result { id, text, is_error } if id == call => Some((text.as_str(), *is_error)),
                _ => None,
            })
        };
        let result = |item: &Item| match item {
            Item::Call { id, .. } => of(id),
            _ => None,
        };
        self.items.iter().filter_map(result).collect()
    }

    /// The texts of all results but those of calls that load tools, which newer versions offer only on request.
    pub fn results_but_of_loading(&self) -> Vec<&str> {
        let loads = |wanted: &str| {
            let is_it =
                |item: &Item| matches!(item, Item::Call { id, name, .. } if id == wanted && name == "ToolSearch");
            self.items.iter().any(is_it)
        };
        let results = self.items.iter().filter_map(|item| match item {
            Item::Result { id, text, .. } if !loads(id) => Some(text.as_str()),
            _ => None,
        });
        results.collect()
    }

    /// The tools that were called, in order, and their input.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + Clone {
        self.items.iter().filter_map(|item| match item {
            Item::Call { name, input, .. } => Some((name.as_str(), input)),
            _ => None,
        })
    }

    /// The result that came last.
    pub fn last_result(&self) -> Option<&str> {
        self.results().next_back().map(|(text, _)| text)
    }

    fn take(&mut self, role: &str, block: &Value) {
        let string = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => self.say(role, &string("text")),
            Some("tool_use") => {
                let input = block["input"].clone();
                self.items.push(Item::Call { id: string("id"), name: string("name"), input });
            }
            Some("tool_result") => {
                let text = self.without_reminders(&texts(&block["content"]).join("\n"));
                let is_error = block["is_error"].as_bool().unwrap_or(false);
                self.items.push(Item::Result { id: string("tool_use_id"), text, is_error });
            }
            _ => {}
        }
    }

    fn say(&mut self, role: &str, text: &str) {
        match role {
            "assistant" => self.items.push(Item::Assistant(text.to_owned())),
            "user" => {
                let said = self.without_reminders(text);
                if !said.trim().is_empty() {
                    self.items.push(Item::User(said));
                }
            }
            _ => self.note(text),
        }
    }

    fn note(&mut self, text: &str) {
        self.context.push_str(text);
        self.context.push('\n');
    }

    /// `text` without the reminders in it, which become context.
    fn without_reminders(&mut self, text: &str) -> String {
        const START: &str = "<system-reminder>";
        const END: &str = "</system-reminder>";
        let mut rest = text;
        let mut said = String::new();
        while let Some((before, after)) = rest.split_once(START)
            && let Some((reminder, following)) = after.split_once(END)
        {
            said.push_str(before);
            self.note(reminder);
            rest = following;
        }
        said + rest
    }
}

/// A file's text from the result of the Read tool, which numbers the lines (`1→` or `1` and a tab, padded or not).
pub fn without_line_numbers(result: &str) -> String {
    let line = |line: &str| {
        let unpadded = line.trim_start_matches(' ');
        let text = unpadded.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = text.len() < unpadded.len();
        text.strip_prefix(['→', '\t']).filter(|_| numbered).map_or_else(|| line.to_owned(), str::to_owned)
    };
    result.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The texts of a content, which is one string or a list of blocks.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        blocks => {
            let blocks = blocks.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
    }
}
