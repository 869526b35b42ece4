//! How denied calls are reported, with the options that would have allowed them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;

use crate::claude::tools::denied::remedies;
use crate::cli::output::{self, tell};
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::denied::{Denied, in_words};
use crate::core::chain::frame::Frame;
use crate::core::chain::state::FrameState;
use crate::core::id::FrameId;
use crate::core::text::shell::{quoted, shell_word};
use crate::runtime::RuntimeError;
use crate::runtime::requests::adopt;
use crate::store::{Attempt, Attempts, Store};

/// A denied call, as `--json` lists it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeniedCall {
    frame: FrameId,
    task: String,
    #[serde(flatten)]
    denied: Denied,
    /// Arguments of `agent-cli spawn`, or of `agent-cli resume` for an adopted session. Each list would have let the
    /// call run, or let a person decide.
    allowed_by: Vec<Vec<String>>,
    /// The session at the top of its chain, if that was adopted.
    #[serde(skip)]
    adopted: Option<Adopted>,
}

/// A person's session that agent-cli continued.
#[derive(Clone, Debug)]
struct Adopted {
    root: FrameId,
    is_done: bool,
    /// What it was started with: arguments that follow replace all of it.
    args: ClaudeArgs,
}

impl Adopted {
    fn of(store: &Store, frame: &Frame) -> Result<Option<Self>, RuntimeError> {
        let Some(root) = store.frame(frame.root)? else { return Ok(None) };
        let was_adopted = adopt::was_adopted(store, &root)?;
        let is_done = root.state == FrameState::Done;
        Ok(was_adopted.then_some(Self { root: root.id, is_done, args: root.launch.args }))
    }

    /// What allows later calls that these options and rules would have allowed.
    fn command(&self, options: &[String], rules: &[String]) -> String {
        let root = self.root.short();
        let keeps_args = !self.is_done && rules.is_empty();
        let args = if keeps_args { Vec::new() } else { self.args.words() };
        let args: Vec<String> = args.iter().map(|word| shell_word(word)).chain(rules.iter().cloned()).collect();
        // Before the dashes, because everything after them is for Claude Code.
        let first = match self.is_done {
            false => format!("agent-cli resume {root}"),
            true => format!("agent-cli spawn --prompt TEXT --fork-from {root}"),
        };
        let dashes = (!args.is_empty()).then(|| format!("-- {}", args.join(" ")));
        std::iter::once(first).chain(options.iter().cloned()).chain(dashes).collect::<Vec<_>>().join(" ")
    }
}

/// The denied calls of a frame and of all frames below it.
pub(crate) fn below(store: &Store, top: FrameId) -> Result<Vec<DeniedCall>, RuntimeError> {
    let mut frames = HashMap::new();
    let mut all = Vec::new();
    let attempts = store.attempts(Attempts::WithDenied(top))?.into_iter();
    for (id, denied) in
        attempts.flat_map(|Attempt { frame, denied, .. }| denied.into_iter().map(move |call| (frame, call)))
    {
        if let Entry::Vacant(unknown) = frames.entry(id) {
            let frame = store.frame(id)?;
            let adopted = frame.as_ref().map(|frame| Adopted::of(store, frame)).transpose()?.flatten();
            unknown.insert(frame.map(|frame| (frame, adopted)));
        }
        let Some((frame, adopted)) = frames.get(&id).and_then(Option::as_ref) else { continue };
        let adopted = adopted.clone();
        let allowed_by = remedies(&denied, &frame.launch, &frame.cwd);
        all.push(DeniedCall { frame: id, task: frame.task.title(), denied, allowed_by, adopted });
    }
    Ok(all)
}

/// The denied calls of one frame.
pub(crate) fn of_frame(store: &Store, frame: FrameId) -> Result<Vec<DeniedCall>, RuntimeError> {
    Ok(below(store, frame)?.into_iter().filter(|listed| listed.frame == frame).collect())
}

/// Reports denied calls, and what would have allowed them. The agent at the top needs no name.
pub(crate) fn print_all(listed: &[DeniedCall], top: FrameId) {
    let mut named: Vec<FrameId> = Vec::new();
    for DeniedCall { frame, task, .. } in listed {
        if !named.contains(frame) {
            named.push(*frame);
            let calls: Vec<Denied> = of(listed, *frame).map(|listed| listed.denied.clone()).collect();
            let whose = (*frame != top).then(|| format!("{task} ({})", frame.short()));
            tell(&in_words(&calls, whose.as_deref()));
        }
    }
    if let Some(hint) = hint(listed) {
        output::hint(&hint);
    }
}

/// One agent's calls in words, with the reason that the agent was given if no option would have helped.
pub(crate) fn words(listed: &[DeniedCall]) -> Vec<String> {
    let said = |listed: &DeniedCall| match &listed.denied {
        denied if denied.said.is_empty() || denied.unapproved && !denied.asked_by_hook => denied.call(),
        denied => format!("{} ({})", denied.call(), denied.said),
    };
    listed.iter().map(said).collect()
}

/// Options that would have helped. `None`: none of them.
pub(crate) fn hint(listed: &[DeniedCall]) -> Option<String> {
    const MOST: usize = 4;
    let (mut asks, mut options, mut rules) = (false, Vec::new(), Vec::new());
    for remedy in listed.iter().flat_map(|listed| &listed.allowed_by) {
        match remedy.as_slice() {
            [option, ..] if option == "--on-permission" => asks = true,
            [separator, rule] if separator == "--" => push_new(&mut rules, quoted(rule)),
            option => push_new(&mut options, option.join(" ")),
        }
    }
    if rules.len() > MOST {
        rules.clear();
    }
    let allowable = |listed: &DeniedCall| listed.allowed_by.iter().any(|remedy| remedy[0] != "--on-permission");
    let them = if listed.iter().all(allowable) { "them" } else { "some of them" };
    let ask = "with --on-permission ask, a person decides about such calls";
    let allowing = (!options.is_empty() || !rules.is_empty()).then(|| {
        match listed.iter().find_map(|listed| listed.adopted.as_ref()) {
            Some(adopted) => format!("{} continues with {them} allowed", adopted.command(&options, &rules)),
            None => {
                let dashes = (!rules.is_empty()).then(|| format!("-- {}", rules.join(" ")));
                let options = options.into_iter().chain(dashes).collect::<Vec<_>>().join(" ");
                format!("{options} would have allowed {them}")
            }
        }
    });
    let hints: Vec<String> = asks.then(|| ask.to_owned()).into_iter().chain(allowing).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn push_new(all: &mut Vec<String>, new: String) {
    if !all.contains(&new) {
        all.push(new);
    }
}

fn of(listed: &[DeniedCall], frame: FrameId) -> impl Iterator<Item = &DeniedCall> {
    listed.iter().filter(move |listed| listed.frame == frame)
}
