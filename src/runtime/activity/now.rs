//! Determines what agents are doing now.

use std::collections::{BTreeMap, VecDeque};
use std::fs;

use jiff::Timestamp;
use serde::Serialize;

use crate::core::agent::usage::Usage;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Tree;
use crate::core::events::activity::{Activity, ActivityTracker, is_stalled};
use crate::core::id::FrameId;
use crate::runtime::activity::output::{Output, Span};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempts, Store};

/// What a running agent is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Doing {
    #[serde(flatten)]
    pub activity: Activity,
    /// When its attempt began.
    pub began: Timestamp,
    /// When `claude` printed something last, or the attempt began.
    pub last_event: Timestamp,
    /// Whether that was so long ago that a person should look.
    pub stalled: bool,
    /// The number of tokens in its conversation, if Claude Code has reported it.
    pub context_tokens: Option<u64>,
    /// Token usage of the finished turns of this attempt.
    pub usage: Usage,
}

impl Doing {
    /// A description, with a note if it is stalled.
    pub(crate) fn words(&self, now: Timestamp) -> String {
        let words = self.activity.words(now);
        let silent = now.duration_since(self.last_event).as_mins();
        if self.stalled { format!("{words} (stalled: no event for {silent} min)") } else { words }
    }
}

/// How many bytes at the end of an attempt's output are read: reading more would slow down lists, and the current activity is
/// at the end.
const TAIL: u64 = 1024 * 1024;
/// Enough of a text for a summary.
const TEXT: usize = 2_000;

/// What an agent that is recorded as running is doing; `None`: it is not running.
pub(crate) fn activity_of(store: &Store, frame: FrameId, now: Timestamp) -> Result<Option<Doing>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame))?.pop() else { return Ok(None) };
    let recorded = store.frame(frame)?.filter(|frame| matches!(frame.state, FrameState::Running { .. }));
    let Some(recorded) = recorded else { return Ok(None) };
    let path = store.dir().printed(frame);
    let (mut progress, mut last_event) = (ActivityTracker::default(), attempt.began);
    if let Ok(file) = fs::metadata(&path) {
        let begins = file.len().saturating_sub(TAIL).max(attempt.output_from);
        let span = Span::new(&attempt);
        let mut output = Output::new(frame, path, Some(TEXT)).beginning_at(begins);
        output.set_directory(recorded.cwd);
        output.look().map_err(while_trying(READ_PRINTED))?;
        output.set_spans(vec![span]);
        let mut events = VecDeque::new();
        if begins > attempt.output_from {
            progress.works(attempt.id);
        }
        if file.len() > attempt.output_from {
            let printed = file.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            last_event = last_event.max(printed.unwrap_or(last_event));
        }
        // Among lines without a time only the last one matters, and it was printed at this time.
        while output.read(Some(last_event), &mut events).map_err(while_trying(READ_PRINTED))? {
            events.drain(..).for_each(|event| progress.absorb(&event));
        }
    }
    Ok(Some(Doing {
        activity: progress.activity(now),
        began: attempt.began,
        last_event,
        stalled: is_stalled(last_event, now, store.chain_of(frame)?.limits.stall_after()),
        context_tokens: progress.context_tokens,
        usage: progress.usage,
    }))
}

/// What the running agents of a tree are doing.
pub(crate) fn activities(store: &Store, tree: &Tree, now: Timestamp) -> Result<BTreeMap<FrameId, Doing>, RuntimeError> {
    let nodes = tree.parents_first().into_iter();
    let running = nodes.filter(|node| matches!(node.state, FrameState::Running { .. }));
    let found = running.map(|node| Ok(activity_of(store, node.id, now)?.map(|doing| (node.id, doing))));
    found.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::store::testing;

    #[test]
    fn only_a_running_agent_does_anything() {
        let (_temp, store) = testing::store();
        let root = store.root();
        let now = Timestamp::now();
        assert_eq!(activity_of(&store, root, now).unwrap(), None);
        let caller = store.start(root);
        let doing = activity_of(&store, root, now).unwrap().unwrap();
        assert_eq!((doing.activity, doing.last_event), (Activity::Starting, doing.began));
        assert_eq!(
            activities(&store, &store.tree(root).unwrap(), now).unwrap().into_keys().collect::<Vec<_>>(),
            [root]
        );
        store.end(caller, &testing::reply("done"));
        assert_eq!(activity_of(&store, root, now).unwrap(), None);
        assert!(activities(&store, &store.tree(root).unwrap(), now).unwrap().is_empty());
    }

    #[test]
    fn what_it_printed_last_says_what_it_does_and_since_when() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        store.dir().frame_dir(caller.frame).unwrap();
        let tool = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}"#;
        let call = format!(r#"{{"type":"assistant","message":{{"content":[{tool}]}}}}"#);
        let printed = store.dir().output(caller.frame);
        let began = store.attempts(caller.frame).unwrap()[0].began;
        let later = began + jiff::SignedDuration::from_mins(5);
        let doing = |text: &str, minutes: i64| {
            fs::write(&printed, text).unwrap();
            File::options().append(true).open(&printed).unwrap().set_modified(later.into()).unwrap();
            let now = later + jiff::SignedDuration::from_mins(minutes);
            activity_of(&store, caller.frame, now).unwrap().unwrap()
        };
        // The first 7 bytes belong to an earlier attempt.
        let earlier = doing("before\n", 0);
        assert_eq!((earlier.activity, earlier.last_event), (Activity::Starting, began));
        let runs = doing(&format!("before\n{call}\n"), 1);
        assert_eq!(runs.activity, Activity::Running { tool: "Bash: make".into(), others: 0 });
        assert_eq!((runs.last_event, runs.stalled), (later, false));
        assert!(!runs.words(later).contains("stalled"));
        let silent = doing(&format!("before\n{call}\n"), 600);
        assert!(silent.stalled);
        let words = silent.words(later + jiff::SignedDuration::from_mins(600));
        assert!(words.ends_with("(stalled: no event for 600 min)"), "{words}");
        // It works even if only the end of the output is read.
        let long = format!("before\n{}\n", "x".repeat(2 * 1024 * 1024));
        assert_eq!(doing(&long, 1).activity, Activity::Thinking);
    }
}
