//! One request of a step, from the call to its result.

/// The signal of a wait that has begun.
pub(super) const STARTED: &str = "SGN_PEND_STARTED";
/// The signal of a wait that is not over.
pub(super) const ONGOING: &str = "SGN_PEND_ONGOING";

/// One request of a step.
#[derive(Default)]
pub(super) struct Part {
    /// The last call made for it.
    pub(super) call: Option<String>,
    /// Its result so far.
    pub(super) state: State,
}

/// The progress of a request.
#[derive(Default, PartialEq)]
pub(super) enum State {
    /// Not asked, or asked with no result yet.
    #[default]
    Open,
    /// It has begun to wait. The frame's id, where the signal named one.
    Started(Option<String>),
    /// It still waits.
    Ongoing(Option<String>),
    /// It waited when the agent was resumed without a result for it: only asking again shows whether the wait is over.
    Due(Option<String>),
    /// It has its result.
    Done(String),
}

impl Part {
    /// The call returned `text`, which is the file itself if the question is asked `in_file`.
    pub(super) fn returned(&mut self, text: &str, in_file: bool) {
        let asked_before = matches!(self.state, State::Due(_));
        let known = self.id();
        self.state = if in_file {
            let answer = text.rsplit_once("A:").map_or("", |(_, answer)| answer.trim());
            match (asked_before, answer) {
                (false, _) => State::Started(None),
                (true, "") => State::Ongoing(None),
                (true, answer) => State::Done(answer.to_owned()),
            }
        } else if let Some(id) = text.lines().find_map(started_id) {
            State::Started(Some(id.to_owned()))
        } else if text.lines().any(|line| line.trim() == ONGOING) {
            State::Ongoing(known)
        } else {
            State::Done(text.to_owned())
        };
    }

    /// The agent was resumed, with a result for each request that waits, or without.
    pub(super) fn resumed(&mut self, results: &mut impl Iterator<Item = String>) {
        if matches!(self.state, State::Open | State::Done(_)) {
            return;
        }
        self.call = None;
        self.state = results.next().map_or_else(|| State::Due(self.id()), State::Done);
    }

    /// The agent is given the result of a request that it made before it was killed, and does not know about.
    pub(super) fn recalled(&mut self, result: String) {
        if self.state == State::Open {
            *self = Self { call: None, state: State::Done(result) };
        }
    }

    /// Whether the agent must still ask, or receive the result.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.state, State::Open | State::Due(_))
    }

    fn id(&self) -> Option<String> {
        match &self.state {
            State::Started(id) | State::Ongoing(id) | State::Due(id) => id.clone(),
            State::Open | State::Done(_) => None,
        }
    }

    /// The result, once there is one.
    pub(super) fn result(&self) -> Option<&str> {
        match &self.state {
            State::Done(result) => Some(result),
            _ => None,
        }
    }
}

fn started_id(line: &str) -> Option<&str> {
    line.trim().strip_prefix(STARTED)?.trim().strip_prefix('(')?.strip_suffix(')')
}
