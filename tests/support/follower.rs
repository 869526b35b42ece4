//! A scripted model that follows a convention for chains as a good model would. It only knows the conversation.

use serde_json::json;

use super::conversation::{Conversation, Item, without_line_numbers};
use super::dialect::Dialect;
use super::part::{ONGOING, Part, STARTED, State};
use super::pattern::Roles;
use super::script::{self, Call, Condition, Line, Step};
use super::turn::{ToolCall, Turn};

const RESUME: &str = "SGN_RESUME";
/// How the result of the call begins that started a fork, in the fork.
const FORKED: &str = "This call has started you: you are its fork";

/// As long as an id.
const ID: &str = "00000000-0000-4000-8000-000000000000";

/// What the model does next.
pub fn follow(conversation: &Conversation) -> Turn {
    follow_roles(conversation, &Roles::default())
}

/// The same for a model that knows what it does with some tasks. For others it does what their files say.
pub(super) fn follow_roles(conversation: &Conversation, roles: &Roles) -> Turn {
    let dialect = Dialect::of(conversation);
    let mut progress = Progress::of(roles);
    for item in conversation.items() {
        progress.see(item, dialect);
    }
    progress.next(dialect)
}

/// The model's progress, from the conversation.
struct Progress<'a> {
    roles: &'a Roles,
    /// What it was told to do.
    task: Option<String>,
    /// The instruction file, from the first prompt.
    file: Option<String>,
    /// The call that reads it.
    read: Option<String>,
    /// The file's contents; a file that cannot be read or followed is an error to report.
    steps: Option<Result<Vec<Line>, String>>,
    /// How many steps are over.
    over: usize,
    /// The requests of the next step, one for each argument. Empty until the model has begun it.
    parts: Vec<Part>,
    /// The result of the last step that had one, or its results, one per line.
    result: String,
    /// All results.
    results: Vec<String>,
    /// Results that it was given before it had read its steps.
    told: Vec<Section>,
}

/// A result in a prompt.
struct Section {
    /// The command that made it.
    command: String,
    result: String,
}

impl<'a> Progress<'a> {
    fn of(roles: &'a Roles) -> Self {
        Self {
            roles,
            task: None,
            file: None,
            read: None,
            steps: None,
            over: 0,
            parts: Vec::new(),
            result: String::new(),
            results: Vec::new(),
            told: Vec::new(),
        }
    }

    fn see(&mut self, item: &Item, dialect: Option<Dialect>) {
        match item {
            Item::User(text) => self.hear(text),
            Item::Assistant(_) => {}
            Item::Call { id, .. } => self.called(id),
            Item::Result { id, text, is_error } => self.returned(id, text, *is_error, dialect),
        }
        self.settle();
    }

    fn hear(&mut self, text: &str) {
        if let Some(resumed) = text.trim_start().strip_prefix(RESUME) {
            let mut told = sections(resumed).into_iter();
            for part in &mut self.parts {
                part.resumed(&mut told.by_ref().map(|section| section.result));
            }
            self.recall(told);
        } else if let Some(file) = instruction_file(text) {
            *self =
                Self { task: Some(text.to_owned()), file: Some(file), told: sections(text), ..Self::of(self.roles) };
        } else if self.task.is_none()
            && let Some(steps) = self.roles.steps(text)
        {
            *self = Self { task: Some(text.to_owned()), steps: Some(Ok(steps.to_vec())), ..Self::of(self.roles) };
        }
    }

    /// Records results of requests that it does not know: it was killed before its conversation had them. It has also taken the
    /// steps without a request before them. A result that is given again, because something went wrong with its call, replaces
    /// the first.
    fn recall(&mut self, told: impl IntoIterator<Item = Section>) {
        for Section { command, result } in told {
            let Some(Ok(steps)) = &self.steps else {
                self.told.push(Section { command, result });
                continue;
            };
            let of = |over: usize| {
                let calls = calls(&steps.get(over)?.step);
                let is_meant = |call: &Call| match call {
                    Call::Spawn(argument) | Call::Ask(argument) => command.contains(argument.as_str()),
                    Call::Run(_) | Call::Tool(..) => false,
                };
                Some((over, calls.iter().position(is_meant)?, calls.len()))
            };
            let is_request = |call: &Call| matches!(call, Call::Spawn(_) | Call::Ask(_));
            let does_more =
                |line: &&Line| matches!(&line.step, Step::Call { calls, .. } if !calls.iter().any(is_request));
            let passed = steps[self.over.min(steps.len())..].iter().take_while(does_more).count();
            if let Some((over, at, width)) = of(self.over).or_else(|| of(self.over + passed)) {
                if over > self.over {
                    self.parts.clear();
                }
                self.over = over;
                self.parts.resize_with(width, Part::default);
                self.parts[at].recalled(result);
                self.settle();
            } else if self.over.checked_sub(1).and_then(of).is_some_and(|(_, _, width)| width == 1) {
                self.result = result;
            }
        }
    }

    fn called(&mut self, id: &str) {
        if !matches!(self.steps, Some(Ok(_))) {
            self.read = Some(id.to_owned());
            return;
        }
        // Only the order shows what a call is for: a hook may have changed its input.
        let called = |part: &Part| part.call.is_some();
        let mut asking = self.parts.iter_mut().filter(|part| part.is_asking()).collect::<Vec<_>>();
        asking.sort_by_key(|part| called(part));
        if let Some(part) = asking.first_mut() {
            part.call = Some(id.to_owned());
        }
    }

    fn returned(&mut self, id: &str, text: &str, is_error: bool, dialect: Option<Dialect>) {
        if text.starts_with(FORKED) {
            // What its caller was about to do is not for it.
            *self = Self::of(self.roles);
        } else if interrupted(text) {
            // The call may or may not have taken effect; a part without a call is asked again.
            self.parts.iter_mut().filter(|part| part.call.as_deref() == Some(id)).for_each(|part| part.call = None);
        } else if self.read.as_deref() == Some(id) {
            let text = without_line_numbers(text);
            let known = self.task.as_deref().and_then(|task| self.roles.steps(task));
            self.steps = Some(match known {
                _ if is_error => Err(text),
                Some(known) => Ok(known.to_vec()),
                None => steps(&text),
            });
            let told = std::mem::take(&mut self.told);
            self.recall(told);
        } else if let Some(at) = self.parts.iter().position(|part| part.call.as_deref() == Some(id)) {
            let call = self.step().and_then(|step| calls(step).get(at));
            let in_file = dialect.zip(call).is_some_and(|(dialect, call)| dialect.asks_in_file(call));
            self.parts[at].returned(text, in_file);
        }
    }

    /// Proceeds to the next step, and makes room for its requests.
    fn settle(&mut self) {
        while let Some(line) = self.line() {
            if matches!(&line.condition, Condition::Said(text) if !self.result.contains(text.as_str())) {
                self.over += 1;
                continue;
            }
            let Step::Call { calls, .. } = &line.step else { return };
            let width = calls.len();
            if self.parts.len() < width {
                self.parts.resize_with(width, Part::default);
            }
            let Some(results) = self.parts.iter().map(Part::result).collect::<Option<Vec<_>>>() else {
                return;
            };
            self.result = results.join("\n");
            self.results.extend(results.into_iter().map(str::to_owned).collect::<Vec<_>>());
            self.parts.clear();
            self.over += 1;
        }
    }

    fn line(&self) -> Option<&Line> {
        self.steps.as_ref()?.as_ref().ok()?.get(self.over)
    }

    fn step(&self) -> Option<&Step> {
        Some(&self.line()?.step)
    }

    fn next(&self, dialect: Option<Dialect>) -> Turn {
        match (&self.steps, &self.file) {
            (None, None) => return Turn::text("I have no instructions."),
            (None, Some(file)) => return Turn::call("Read", json!({"file_path": file})),
            (Some(Err(error)), _) => return Turn::text(format!("I cannot read my instructions: {error}")),
            (Some(Ok(_)), _) => {}
        }
        let Some(dialect) = dialect else {
            return Turn::text("I do not know what _spawn_ means.");
        };
        match self.step() {
            None => Turn::text(&self.result),
            Some(Step::Reply(text)) => {
                Turn::text(text.replace("{result}", &self.result).replace("{results}", &self.results.join("; ")))
            }
            Some(Step::End(text)) => Turn::text(text),
            Some(step) => {
                let folder = self.file.as_deref().and_then(|file| file.rsplit_once('/')).map(|(folder, _)| folder);
                self.pursue(step, dialect, folder.unwrap_or("."))
            }
        }
    }

    /// The call with the id that was printed last in the place of `{id}`.
    fn with_id(&self, mut call: ToolCall) -> ToolCall {
        let is_id = |word: &&str| word.len() == ID.len() && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
        let id = self.results.iter().rev().map(|result| result.trim()).find(is_id);
        if let (Some(command), Some(id)) = (call.input["command"].as_str(), id) {
            call.input["command"] = command.replace("{id}", id).into();
        }
        call
    }

    /// Makes the requests of a step that have no result, or pauses when all are made.
    fn pursue(&self, step: &Step, dialect: Dialect, folder: &str) -> Turn {
        let due = self.parts.iter().zip(calls(step)).filter_map(|(part, call)| match &part.state {
            State::Open => Some(self.with_id(dialect.call(call, folder))),
            State::Due(id) => Some(dialect.check(call, id.as_deref())),
            _ => None,
        });
        let turn = due.fold(Turn::default(), Turn::and);
        if !turn.tool_calls().is_empty() {
            return turn;
        }
        let started = self.parts.iter().any(|part| matches!(part.state, State::Started(_)));
        Turn::text(if started { STARTED } else { ONGOING })
    }
}

/// The steps of a file, as far as a model can take them.
pub(super) fn steps(text: &str) -> Result<Vec<Line>, String> {
    let lines = script::parse(text).map_err(|error| format!("{error:#}"))?;
    let can_be_taken = |line: &Line| {
        matches!(line.step, Step::Call { go_on: false, .. } | Step::Reply(_) | Step::End(_))
            && matches!(line.condition, Condition::Always | Condition::Said(_))
    };
    match lines.iter().find(|line| !can_be_taken(line)) {
        Some(line) => Err(format!("a model cannot {line:?}")),
        None => Ok(lines),
    }
}

fn calls(step: &Step) -> &[Call] {
    if let Step::Call { calls, .. } = step { calls } else { &[] }
}

/// The absolute path in `Read <path> and follow its instructions.`
fn instruction_file(prompt: &str) -> Option<String> {
    let (_, after) = prompt.split_once("Read ")?;
    let (path, _) = after.split_once(" and follow ")?;
    path.starts_with('/').then(|| path.to_owned())
}

/// The results in a resume prompt, each below a line that names its request. The blank lines between two sections belong to
/// neither.
fn sections(prompt: &str) -> Vec<Section> {
    let heads = ["result of `agent-cli ", "failed: agent-cli ", "failed: `agent-cli "];
    let end = prompt.split_once("Each result below ends at the line `").and_then(|(_, rest)| rest.split_once('`'));
    let end = end.map(|(line, _)| line);
    let mut sections = Vec::<(&str, Vec<&str>)>::new();
    let mut closed = true;
    for line in prompt.split('\n') {
        let is_head = heads.iter().any(|head| line.starts_with(head)) && line.ends_with(':');
        if is_head && (closed || end.is_none()) {
            sections.push((line, Vec::new()));
            closed = false;
        } else if end == Some(line) {
            closed = true;
        } else if let Some((_, section)) = sections.last_mut().filter(|_| !closed) {
            section.push(line);
        }
    }
    let section = |(command, lines): (&str, Vec<&str>)| Section {
        command: command.to_owned(),
        result: match end {
            Some(_) => lines.join("\n"),
            None => lines.join("\n").trim_end_matches('\n').to_owned(),
        },
    };
    sections.into_iter().map(section).collect()
}

/// Whether Claude Code wrote this in place of a result that never came.
fn interrupted(result: &str) -> bool {
    let notes = ["[Tool call interrupted", "[Request interrupted", "The user doesn't want to proceed"];
    notes.iter().any(|note| result.starts_with(note))
}
