//! The rows of the live display: a line for each running or waiting agent.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::cli::output::format::{cut, fitted};
use crate::core::agent::usage::{self, usd};
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::progress_lines;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::Blocking;
use crate::core::events::activity::{Activity, ActivityTracker, is_stalled};
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::core::requests::approval;
use crate::core::text::escape;
use crate::core::text::time::{time_since, time_until};
use crate::core::text::wrap::columns;
use crate::local_zone::local_zone;

/// The activities of a chain's agents.
#[derive(Debug, Default)]
pub(crate) struct Agents(HashMap<FrameId, ActivityTracker>);

/// A chain as the display shows it.
#[derive(Debug)]
pub(crate) struct ShownChain<'a> {
    /// Its name, or its task.
    pub(crate) name: &'a str,
    pub(crate) agents: &'a Agents,
    pub(crate) tree: &'a Tree,
}

/// An agent that runs or waits. `depth` is the number of agents above it that have a row.
struct Shown<'a> {
    chain: &'a ShownChain<'a>,
    node: &'a Node,
    depth: usize,
}

/// Below this width, ids, tokens and costs are left out.
const WIDE: usize = 57;
/// The maximum width of a name.
const NAME: usize = 16;
/// The deepest indentation. Deeper agents are not indented further.
const DEEPEST: usize = 4;
/// The hint at the end of the last row, if there is room for it.
const HINTS: [&str; 2] = ["Ctrl-C: stop after the running tools", "Ctrl-C: stop"];
/// The same after the first Ctrl-C.
const HINTS_AT_STOP: [&str; 2] = ["Ctrl-C again: kill the running tools", "Ctrl-C: kill"];

/// How to show the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLayout {
    /// The maximum width of a row, in columns.
    pub(crate) width: usize,
    /// The maximum number of rows.
    pub(crate) most: usize,
    /// Whether Ctrl-C was pressed.
    pub(crate) is_stopping: bool,
}

impl Agents {
    /// Takes the next event into account.
    pub(crate) fn absorb(&mut self, event: &AgentEvent) {
        self.0.entry(event.frame).or_default().absorb(event);
    }

    /// The activity of a running agent, and when it began.
    fn doing(&self, tree: &Tree, node: &Node, now: Timestamp) -> (String, Timestamp) {
        let Some(known) = self.0.get(&node.id) else {
            return (stalled(tree, node.since, now, Activity::Starting.words(now)), node.since);
        };
        let last = known.last_event.unwrap_or(node.since).max(node.since);
        let (what, since) = match (known.activity(now), known.said()) {
            // The activity belongs to the previous attempt.
            (Activity::Waiting | Activity::Ended | Activity::Starting, _) => {
                (Activity::Starting.words(now), node.since)
            }
            (Activity::Thinking, Some(said)) => (format!("says: {said}"), last),
            (activity @ Activity::Running { .. }, _) => (activity.words(now), known.call_since().unwrap_or(last)),
            (activity, _) => (activity.words(now), last),
        };
        (stalled(tree, last, now, what), since)
    }
}

fn stalled(tree: &Tree, last_event: Timestamp, now: Timestamp, what: String) -> String {
    let is_stalled = is_stalled(last_event, now, tree.whole().limits.stall_after());
    if is_stalled { format!("stalled for {}: {what}", time_since(last_event, now)) } else { what }
}

impl Shown<'_> {
    fn is_running(&self) -> bool {
        matches!(self.node.state, FrameState::Running { .. })
    }

    fn row(&self, width: usize, now: Timestamp) -> String {
        let Self { chain: ShownChain { agents, tree, .. }, node, depth } = self;
        let (mark, (what, since)) = match self.is_running() {
            true => ('>', agents.doing(tree, node, now)),
            false => ('-', (awaited(tree, node, now), node.since)),
        };
        let is_wide = width >= WIDE;
        let tokens = agents.0.get(&node.id).and_then(|known| known.context_tokens).filter(|_| is_wide);
        let tokens = tokens.map_or_else(String::new, |count| format!("{} context  ", usage::in_short(count)));
        let facts = format!("{tokens}{}", clock(now.duration_since(since)));
        let indent = "  ".repeat((*depth).min(if is_wide { DEEPEST } else { DEEPEST / 2 }));
        let id = if is_wide { format!(" {}", node.id.short()) } else { String::new() };
        let name = cut(&node.title, if is_wide { NAME } else { NAME / 2 });
        spread(&format!("{indent}{mark}{id} {name}: {}", escape::one_line(&what)), &facts, width)
    }
}

/// Formats escaped rows of the chains. Agents are listed below the agents
/// that started them. If there are too many agents, running ones take precedence. The last row is a summary.
pub(crate) fn rows(chains: &[ShownChain<'_>], layout: RowLayout, now: Timestamp) -> Vec<String> {
    let RowLayout { width, most, .. } = layout;
    let all: Vec<_> = chains.iter().flat_map(shown_of).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let most = most.saturating_sub(1);
    let room = if all.len() > most { most.saturating_sub(1) } else { all.len() };
    let mut preferred: Vec<_> = (0..all.len()).collect();
    preferred.sort_by_key(|at| !all[*at].is_running());
    preferred.truncate(room);
    preferred.sort_unstable();
    let shown = preferred.iter().map(|at| all[*at].row(width, now));
    let hidden = (room < all.len() && most > 0).then(|| fitted(&format!("… and {} more", all.len() - room), width));
    shown.chain(hidden).chain([total(chains, layout)]).collect()
}

/// The agents of a chain that run or wait, parents first.
fn shown_of<'a>(chain: &'a ShownChain<'a>) -> Vec<Shown<'a>> {
    let (mut shown, mut depths) = (Vec::new(), HashMap::new());
    for node in chain.tree.parents_first() {
        let above = node.parent.and_then(|parent| depths.get(&parent)).copied().unwrap_or(0);
        let has_row = !node.is_group && matches!(node.state, FrameState::Running { .. } | FrameState::Waiting { .. });
        depths.insert(node.id, above + usize::from(has_row));
        if has_row {
            shown.push(Shown { chain, node, depth: above });
        }
    }
    shown
}

/// The summary: what the chains have used so far, and how to stop them.
fn total(chains: &[ShownChain<'_>], RowLayout { width, is_stopping, .. }: RowLayout) -> String {
    let name = match chains {
        [chain] => cut(chain.name, width / 3),
        several => format!("{} chains", several.len()),
    };
    let known = || chains.iter().flat_map(|chain| chain.agents.0.values());
    let tokens = known().map(|known| known.usage.all()).sum::<u64>();
    let cost = known().map(|known| known.cost_usd).sum::<f64>();
    let used = match (tokens, cost) {
        (0, _) => String::new(),
        (tokens, 0.0) => format!(": {} tokens so far", usage::in_short(tokens)),
        (tokens, cost) => format!(": {} tokens, {} so far", usage::in_short(tokens), usd(cost)),
    };
    let text = name + &used;
    let fits = |hint: &&&str| columns(&text) + 2 + columns(hint) <= width;
    let hints = if is_stopping { HINTS_AT_STOP } else { HINTS };
    spread(&text, hints.iter().find(fits).copied().unwrap_or_default(), width)
}

/// Formats a line with `right` at its end. Only `left` is cut.
fn spread(left: &str, right: &str, width: usize) -> String {
    let left = fitted(left, width.saturating_sub(columns(right) + 2));
    let gap = " ".repeat(width.saturating_sub(columns(&left) + columns(right)));
    fitted(format!("{left}{gap}{right}").trim_end(), width)
}

/// Describes what an agent waits for. For a question to a person, this includes the question's id.
fn awaited(tree: &Tree, node: &Node, now: Timestamp) -> String {
    let asked = tree.blockers_of(node, now).into_iter().find_map(|blocker| match blocker.what {
        Blocking::Question { id, form } => {
            // Put the text last, because the end of a line is cut first.
            let expiry = form.expires_at.map_or_else(String::new, |at| expiry(at, now));
            Some(format!("asks {}{expiry}: {}", id.short(), form.question.trim()))
        }
        Blocking::Permission { id, tool, input, .. } => {
            Some(format!("approve? {}: {}", id.short(), approval::summary(&tool, &input)))
        }
        Blocking::Plan { id, plan } => Some(format!("plan? {}: {}", id.short(), plan.summary())),
        _ => None,
    });
    asked.unwrap_or_else(|| progress_lines::ended(tree, node, now, &local_zone()))
}

fn expiry(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!(" (expires in {})", time_until(at, now)) } else { " (expired)".to_owned() }
}

/// Formats a duration as on a clock: `0:07`, `1:02:33`.
pub(crate) fn clock(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::usage::Usage;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::tree::testing;
    use crate::core::events::agent_event::{AgentEventKind, VERSION};
    use crate::core::text::time::on_clock;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(id: &str, title: &str, state: FrameState) -> Node {
        let id = format!("{id}-0000-4000-8000-000000000000").parse().unwrap();
        Node { title: title.into(), ..testing::node(id, None, state) }
    }

    fn running(id: &str, title: &str) -> Node {
        node(id, title, FrameState::Running { waited: None })
    }

    fn chain(mut nodes: Vec<Node>) -> Tree {
        let top = nodes[0].id;
        nodes.iter_mut().skip(1).for_each(|node| node.parent = Some(top));
        Tree::new(top, nodes)
    }

    fn called(node: &Node, summary: &str) -> AgentEvent {
        let (id, name, input) = ("t".to_owned(), "Bash".to_owned(), serde_json::Value::Null);
        AgentEvent {
            version: VERSION,
            at: at(60),
            frame: node.id,
            attempt: None,
            parent_tool_use_id: None,
            context_tokens: Some(12_235),
            cut: false,
            what: AgentEventKind::ToolUse { id, name, summary: summary.into(), input },
        }
    }

    #[test]
    fn a_question_says_when_it_expires() {
        assert_eq!(expiry(at(7_200), at(0)), " (expires in 2 h)");
        assert_eq!(expiry(at(5), at(5)), " (expired)");
    }

    fn rows_of(agents: &Agents, tree: &Tree, width: usize, most: usize) -> Vec<String> {
        let layout = RowLayout { width, most, is_stopping: false };
        rows(&[ShownChain { name: "root.md", agents, tree }], layout, at(75))
    }

    #[test]
    fn each_agent_that_runs_or_waits_has_a_row_below_its_caller() {
        let resets_at = at(200);
        let waits = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
        let nodes = vec![
            node("4f2c1a90", "root.md", waits),
            running("7bbfa010", "a rather long name of a task.md"),
            node("00000001", "over.md", FrameState::Done),
        ];
        let mut agents = Agents::default();
        agents.absorb(&called(&nodes[1], "Bash: cargo test --workspace --all-features"));
        let usage = Usage { input_tokens: 30_000, output_tokens: 4_500, ..Usage::default() };
        for what in [turn(usage), AgentEventKind::Paused { waits_for: "x".into(), message: None, cost_usd: Some(0.5) }]
        {
            agents.absorb(&AgentEvent { what, ..called(&nodes[0], "") });
        }
        let tree = chain(nodes);
        let clock = on_clock(resets_at, at(75), &local_zone());
        let shown = |width| rows_of(&agents, &tree, width, 9).join("\n").replace(&clock, "00:03");
        insta::assert_snapshot!(shown(77), @"
        - 4f2c1a90 root.md: limit until 00:03 (in 2 min)          12.2k context  1:15
          > 7bbfa010 a rather long n…: running Bash: cargo test…  12.2k context  0:15
        root.md: 34.5k tokens, $0.50 so far      Ctrl-C: stop after the running tools
        ");
        insta::assert_snapshot!(shown(37), @"
        - root.md: limit until 00:03 (…  1:15
          > a rathe…: running Bash: ca…  0:15
        root.md: 34.5k tokens, $0.50 so far
        ");
        assert_eq!(rows_of(&agents, &tree, 37, 2)[0], "… and 2 more");
        assert!(rows_of(&agents, &tree, 37, 3)[1].starts_with("  > a rathe…"), "the one that runs");
        for width in 0..90 {
            let rows = rows_of(&agents, &tree, width, 9);
            assert!(rows.iter().all(|row| columns(row) <= width), "{width}");
        }
        let layout = RowLayout { width: 80, most: 9, is_stopping: true };
        assert!(rows(&[], layout, at(75)).is_empty());
        let stopping = rows(&[ShownChain { name: "root.md", agents: &agents, tree: &tree }], layout, at(75));
        assert!(stopping[2].ends_with("  Ctrl-C again: kill the running tools"), "{}", stopping[2]);
    }

    fn turn(usage: Usage) -> AgentEventKind {
        let (is_error, deferred, total_cost_usd) = (false, false, 0.0);
        let (subtype, text, num_turns, duration_ms) = (None, String::new(), None, None);
        AgentEventKind::Result { is_error, subtype, deferred, text, usage, total_cost_usd, num_turns, duration_ms }
    }

    #[test]
    fn an_agent_that_writes_is_quoted() {
        let nodes = vec![running("4f2c1a90", "a.md")];
        let mut agents = Agents::default();
        let text = "I have read it.\nNow I run the tests.".to_owned();
        agents.absorb(&AgentEvent { what: AgentEventKind::Text { text }, ..called(&nodes[0], "") });
        let row = &rows_of(&agents, &chain(nodes), 77, 9)[0];
        assert!(row.starts_with("> 4f2c1a90 a.md: says: Now I run the tests.  ") && row.ends_with("0:15"), "{row}");
    }

    #[test]
    fn an_agent_that_is_silent_for_long_is_marked() {
        let tree = chain(vec![running("4f2c1a90", "a.md")]);
        let agents = Agents::default();
        let layout = RowLayout { width: 80, most: 9, is_stopping: false };
        let row = &rows(&[ShownChain { name: "a.md", agents: &agents, tree: &tree }], layout, at(660))[0];
        assert!(row.starts_with("> 4f2c1a90 a.md: stalled for 11 min: starting  "), "{row}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([7, 62, 3753].map(|s| clock(SignedDuration::from_secs(s))), ["0:07", "1:02", "1:02:33"]);
        assert_eq!([950, 12_235, 155_000, 1_234_567].map(usage::in_short), ["950", "12.2k", "155k", "1.2M"]);
    }
}
