//! The events of an agent, or of an agent and all agents below it, in chronological order: first the existing ones, later new
//! ones.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::core::chain::tree::Tree;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::id::FrameId;
use crate::runtime::activity::log_events;
use crate::runtime::activity::output::{Output, Span};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempts, EventRecord, Extent, Requests, Store};

/// Reads the events of a frame or of a chain.
#[derive(Debug)]
pub(crate) struct ChainEvents<'a> {
    store: &'a Store,
    top: FrameId,
    /// Whether the frames below are included.
    whole: bool,
    /// How many bytes of a text are kept; `None`: all.
    most: Option<usize>,
    sources: Vec<AgentSource>,
    places: HashMap<FrameId, usize>,
    /// The last entry of the log that was read.
    seq: u64,
    tree: Tree,
}

/// The events of one frame that were read but not returned yet.
#[derive(Debug)]
struct AgentSource {
    frame: FrameId,
    output: Output,
    printed: VecDeque<AgentEvent>,
    recorded: VecDeque<AgentEvent>,
    /// Whether the output had no more lines.
    is_dry: bool,
    /// Whether new output is read as soon as it is printed.
    is_live: bool,
    /// Whether the beginning of the output is skipped.
    is_cut: bool,
    /// The time of the first printed event that was read.
    first: Option<Timestamp>,
}

impl<'a> ChainEvents<'a> {
    pub(crate) fn new(store: &'a Store, top: FrameId, whole: bool, most: Option<usize>) -> Result<Self, RuntimeError> {
        let (sources, places) = (Vec::new(), HashMap::new());
        let tree = Tree::new(top, Vec::new());
        let mut events = Self { store, top, whole, most, sources, places, seq: 0, tree };
        events.refresh(None)?;
        events.sources.iter_mut().for_each(|source| source.is_live = false);
        Ok(events)
    }

    /// Reads new records: agents, attempts, requests and ends.
    pub(crate) fn refresh(&mut self, now: Option<Timestamp>) -> Result<(), RuntimeError> {
        // An attempt that has ended was printed completely before its end was recorded.
        let records = self.store.events(Extent::Below(self.top), self.seq)?;
        self.tree = self.store.tree(self.top)?;
        let frames: Vec<FrameId> = if self.whole {
            self.tree.parents_first().into_iter().map(|node| node.id).collect()
        } else {
            vec![self.top]
        };
        for frame in frames {
            self.places.entry(frame).or_insert_with(|| {
                let output = Output::new(frame, self.store.dir().printed(frame), self.most);
                let (printed, recorded) = (VecDeque::new(), VecDeque::new());
                self.sources.push(AgentSource {
                    frame,
                    output,
                    printed,
                    recorded,
                    is_dry: false,
                    is_live: true,
                    is_cut: false,
                    first: None,
                });
                self.sources.len() - 1
            });
        }
        self.sources.iter_mut().try_for_each(AgentSource::look)?;
        let mut spans: HashMap<FrameId, Vec<Span>> = HashMap::new();
        for attempt in self.store.attempts(Attempts::Of(Extent::Below(self.top)))? {
            spans.entry(attempt.frame).or_default().push(Span::new(&attempt));
        }
        for source in &mut self.sources {
            source.output.set_spans(spans.remove(&source.frame).unwrap_or_default());
        }
        // An end must come after everything that was printed before it.
        for source in self.sources.iter_mut().filter(|_| now.is_some()) {
            source.fill(now)?;
        }
        for record in records {
            self.seq = self.seq.max(record.seq);
            if let Some(place) = self.places.get(&record.frame).copied() {
                let events = self.recorded(&record)?;
                self.sources[place].recorded.extend(events);
            }
        }
        Ok(())
    }

    /// The events that a log entry stands for.
    fn recorded(&self, record: &EventRecord) -> Result<Vec<AgentEvent>, RuntimeError> {
        let mut events: Vec<AgentEvent> = log_events::event(record).into_iter().collect();
        if let Some(id) = log_events::message_of(record) {
            let messages = self.store.steering(record.frame)?.messages;
            let message = messages.iter().find(|message| message.id == id);
            events.extend(message.map(|message| log_events::message_event(record, message, self.most)));
        }
        for id in log_events::placed(record) {
            for (request, result) in self.store.requests(Requests::One(*id))? {
                let result = result.and_then(|result| log_events::result_event(record, &request, &result, self.most));
                events.extend(result);
            }
        }
        Ok(events)
    }

    /// Notes that agents have printed something.
    pub(crate) fn printed(&mut self, frames: &HashSet<FrameId>) -> Result<(), RuntimeError> {
        for frame in frames {
            if let Some(place) = self.places.get(frame) {
                let source = &mut self.sources[*place];
                source.look()?;
                source.output.set_spans(self.store.attempts(*frame)?.iter().map(Span::new).collect());
            }
        }
        Ok(())
    }

    /// The next event; `None`: there is none at present. `now`: the time, if events are read as soon as they are printed.
    pub(crate) fn next(&mut self, now: Option<Timestamp>) -> Result<Option<AgentEvent>, RuntimeError> {
        for source in &mut self.sources {
            if source.printed.is_empty() {
                source.fill(now)?;
            }
        }
        let first = self.sources.iter_mut().filter(|source| source.head().is_some()).min_by_key(|source| source.head());
        Ok(first.and_then(AgentSource::take))
    }

    /// Skips all but the last `most` bytes of each agent's output. Returns whether anything is skipped.
    pub(crate) fn skip_to_end(&mut self, most: u64) -> Result<bool, RuntimeError> {
        for source in &mut self.sources {
            source.is_cut = source.output.skip_to_end(most).map_err(while_trying(READ_PRINTED))?;
            if source.is_cut
                && let Some(frame) = self.store.frame(source.frame)?
            {
                source.output.set_directory(frame.cwd);
            }
            source.fill(None)?;
        }
        Ok(self.sources.iter().any(|source| source.is_cut))
    }

    /// The time since which nothing is skipped; `None`: unknown.
    pub(crate) fn complete_since(&self) -> Option<Timestamp> {
        let cut = self.sources.iter().filter(|source| source.is_cut);
        cut.map(|source| source.first).try_fold(Timestamp::MIN, |since, first| Some(since.max(first?)))
    }

    /// The chain as it was recorded at the last refresh.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The frames whose events are read, and where each prints to.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (FrameId, PathBuf)> {
        self.sources.iter().map(|source| (source.frame, self.store.dir().printed(source.frame)))
    }
}

impl AgentSource {
    fn look(&mut self) -> Result<(), RuntimeError> {
        self.is_dry = false;
        self.output.look().map_err(while_trying(READ_PRINTED))
    }

    /// Reads until there is an event or the input ends.
    fn fill(&mut self, now: Option<Timestamp>) -> Result<(), RuntimeError> {
        while !self.is_dry && (self.printed.is_empty() || now.is_some()) {
            let read = self.output.read(now.filter(|_| self.is_live), &mut self.printed);
            self.is_dry = !read.map_err(while_trying(READ_PRINTED))?;
            self.is_live |= self.is_dry;
        }
        self.first = self.first.or_else(|| Some(self.printed.front()?.at));
        Ok(())
    }

    /// The time of the next event. Events of one frame keep their order even if a clock was set back.
    fn head(&self) -> Option<Timestamp> {
        [self.printed.front(), self.recorded.front()].into_iter().flatten().map(|event| event.at).min()
    }

    fn take(&mut self) -> Option<AgentEvent> {
        match (self.printed.front(), self.recorded.front()) {
            (Some(printed), Some(recorded)) if recorded.at < printed.at => self.recorded.pop_front(),
            // The texts that an attempt was given precede everything that it printed.
            (Some(printed), Some(AgentEvent { at, what: AgentEventKind::ToolResult { .. }, .. }))
                if *at == printed.at =>
            {
                self.recorded.pop_front()
            }
            (Some(_), _) => self.printed.pop_front(),
            (None, _) => self.recorded.pop_front(),
        }
    }
}
