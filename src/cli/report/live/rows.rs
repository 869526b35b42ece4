//! The rows of the live display: a line for each running or waiting agent.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::cli::output::format::{cut, fitted};
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::progress_lines;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::Blocking;
use crate::core::events::activity::{Activity, ActivityTracker, is_stalled};
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::core::requests::approval;
use crate::core::text::escape;
use crate::core::text::wrap::columns;

/// What is known about the agents of a chain.
#[derive(Debug, Default)]
pub(crate) struct Agents(HashMap<FrameId, ActivityTracker>);

/// Below this width there is no room for ids, tokens and costs.
const WIDE: usize = 60;
/// How wide a name may be.
const NAME: usize = 16;

impl Agents {
    /// Takes the next event into account.
    pub(crate) fn absorb(&mut self, event: &AgentEvent) {
        self.0.entry(event.frame).or_default().absorb(event);
    }

    fn waiting(&self, tree: &Tree, node: &Node, width: usize, now: Timestamp) -> String {
        row(node, &awaited(tree, node, now), &self.facts(node, width, now), width)
    }

    fn running(&self, tree: &Tree, node: &Node, width: usize, now: Timestamp) -> String {
        let known = self.0.get(&node.id);
        let what = match known.map_or(Activity::Starting, |known| known.activity(now)) {
            // It belongs to the previous attempt.
            Activity::Waiting | Activity::Ended => Activity::Starting.words(now),
            activity => activity.words(now),
        };
        let last = known.and_then(|known| known.last_event).unwrap_or(node.since).max(node.since);
        let stalled = is_stalled(last, now, tree.whole().limits.stall_after());
        let what = if stalled { format!("stalled for {}: {what}", progress_lines::age(last, now)) } else { what };
        row(node, &what, &self.facts(node, width, now), width)
    }

    /// Time in its state, tokens and cost, if there is room.
    fn facts(&self, node: &Node, width: usize, now: Timestamp) -> String {
        let mut facts = Vec::new();
        if let Some(known) = self.0.get(&node.id).filter(|_| width >= WIDE) {
            facts.extend(known.context_tokens.map(|count| format!("{} tokens", tokens(count))));
            facts.extend(Some(known.cost_usd).filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.2}")));
        }
        facts.push(clock(now.duration_since(node.since)));
        facts.join("  ")
    }
}

/// The rows of these chains: at most `most` lines, escaped, each at most `width` columns wide. Running agents come before
/// waiting ones.
pub(crate) fn rows(chains: &[(&Agents, &Tree)], width: usize, most: usize, now: Timestamp) -> Vec<String> {
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for (agents, tree) in chains {
        for node in tree.parents_first() {
            match node.state {
                FrameState::Running { .. } => running.push((agents, tree, node)),
                FrameState::Waiting { .. } if !node.is_group => waiting.push((agents, tree, node)),
                _ => {}
            }
        }
    }
    let all = running.len() + waiting.len();
    let shown = if all > most { most.max(1) - 1 } else { all };
    let running = running.into_iter().map(|(agents, tree, node)| agents.running(tree, node, width, now));
    let waiting = waiting.into_iter().map(|(agents, tree, node)| agents.waiting(tree, node, width, now));
    let hidden = (shown < all).then(|| fitted(&format!("… and {} more", all - shown), width));
    running.chain(waiting).take(shown).chain(hidden).collect()
}

/// What an agent waits for. For a question to a person, this includes the id to answer it.
fn awaited(tree: &Tree, node: &Node, now: Timestamp) -> String {
    let asked = tree.blockers_of(node, now).into_iter().find_map(|blocker| match blocker.what {
        Blocking::Question { id, form } => {
            // The end of a line is cut first.
            let expiry = form.expires_at.map_or_else(String::new, |at| expiry(at, now));
            Some(format!("asks {}{expiry}: {}", id.short(), form.question.trim()))
        }
        Blocking::Permission { id, tool, input, .. } => {
            Some(format!("asks to approve {}: {}", id.short(), approval::summary(&tool, &input)))
        }
        Blocking::Plan { id, plan } => Some(format!("asks to approve {}: {}", id.short(), plan.summary())),
        _ => None,
    });
    asked.unwrap_or_else(|| progress_lines::ended(tree, node, now))
}

fn expiry(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!(" (expires in {})", progress_lines::time_until(at, now)) } else { " (expired)".to_owned() }
}

fn row(node: &Node, what: &str, facts: &str, width: usize) -> String {
    let mark = if matches!(node.state, FrameState::Running { .. }) { '>' } else { '-' };
    let name = cut(&node.title, if width >= WIDE { NAME } else { NAME / 2 });
    let id = if width >= WIDE { format!(" {}", node.id.short()) } else { String::new() };
    let room = width.saturating_sub(columns(facts) + 2);
    let left = fitted(&format!("{mark}{id} {name}: {}", escape::one_line(what)), room);
    let gap = " ".repeat(width.saturating_sub(columns(&left) + columns(facts)));
    fitted(&format!("{left}{gap}{facts}"), width)
}

/// A duration as on a clock: `0:07`, `1:02:33`.
pub(crate) fn clock(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A number of tokens in three digits: `950`, `12.2k`, `155k`, `1.2M`.
fn tokens(count: u64) -> String {
    let thousands = count as f64 / 1000.0;
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{thousands:.1}k"),
        100_000..1_000_000 => format!("{thousands:.0}k"),
        _ => format!("{:.1}M", thousands / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::tree::testing;
    use crate::core::events::agent_event::{AgentEventKind, VERSION};

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

    #[test]
    fn each_agent_that_runs_or_waits_has_a_row() {
        let resets_at = at(200);
        let waits = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
        let nodes = vec![
            node("4f2c1a90", "root.md", waits),
            running("7bbfa010", "a rather long name of a task.md"),
            node("00000001", "over.md", FrameState::Done),
        ];
        let mut agents = Agents::default();
        agents.absorb(&called(&nodes[1], "Bash: cargo test --workspace --all-features"));
        let tree = chain(nodes);
        let rows_of = |width, most| rows(&[(&agents, &tree)], width, most, at(75));
        let rows = |width| rows_of(width, 9).join("\n");
        insta::assert_snapshot!(rows(80), @r#"
    > 7bbfa010 a rather long n…: running Bash: cargo test --wor…  12.2k tokens  1:15
    - 4f2c1a90 root.md: waits for the usage limit to reset in 2 min             1:15
    "#);
        insta::assert_snapshot!(rows(40), @r#"
    > a rathe…: running Bash: cargo t…  1:15
    - root.md: waits for the usage li…  1:15
    "#);
        assert_eq!(rows_of(40, 1), ["… and 2 more"]);
        for width in 0..90 {
            assert!(rows_of(width, 9).iter().all(|row| columns(row) <= width), "{width}");
        }
    }

    #[test]
    fn an_agent_that_is_silent_for_long_is_marked() {
        let tree = chain(vec![running("4f2c1a90", "a.md")]);
        let row = &rows(&[(&Agents::default(), &tree)], 80, 9, at(660))[0];
        assert!(row.starts_with("> 4f2c1a90 a.md: stalled for 11 min: starting  "), "{row}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([7, 62, 3753].map(|s| clock(SignedDuration::from_secs(s))), ["0:07", "1:02", "1:02:33"]);
        assert_eq!([950, 12_235, 155_000, 1_234_567].map(tokens), ["950", "12.2k", "155k", "1.2M"]);
    }
}
