//! The trees that are driven, and their results when nothing dies.

use crate::history::TOOL;
use crate::world::World;

/// A tree of three levels: a root, two children, and three leaves that go into plan mode and ask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tree {
    /// Each child is a request of its own.
    Children,
    /// The children of an agent are one request.
    Groups,
}

/// What each leaf asks, and what the person answers.
const ANSWERS: [(&str, &str); 3] = [("When?", "Jan 1st"), ("Where?", "at home"), ("Who?", "Ann")];

/// How many questions the leaves ask.
pub(crate) const QUESTIONS: usize = ANSWERS.len();

impl Tree {
    /// Writes the instructions.
    pub(crate) fn write(self, world: &World) {
        let (root, left) = match self {
            Self::Children => ("spawn left.md &\nspawn right.md", "spawn when.md &\nspawn where.md"),
            Self::Groups => ("spawn left.md right.md", "spawn when.md where.md"),
        };
        for (name, requests) in [("root", root), ("left", left), ("right", "spawn who.md")] {
            let reply = if name == "root" || matches!(self, Self::Groups) { "{results}" } else { "[{results}]" };
            world.file(format!("{name}.md"), format!("{requests}\nreply {reply}\n"));
        }
        for (question, _) in ANSWERS {
            let name = question.trim_end_matches('?').to_lowercase();
            world.file(
                format!("{name}.md"),
                format!("mode plan\n{TOOL}\nask {question}\nreply {name} ({{mode}}): {{result}}\n"),
            );
        }
    }

    /// The root's reply when every answer has been passed up once.
    pub(crate) fn reply(self) -> &'static str {
        match self {
            Self::Children => "[when (plan): Jan 1st; where (plan): at home]; [who (plan): Ann]",
            Self::Groups => "when (plan): Jan 1st\nwhere (plan): at home\nwho (plan): Ann",
        }
    }

    /// What a reply says, regardless of its agents' ids. `reordered`: whether results may have come in another order.
    pub(crate) fn said(self, reply: &str, reordered: bool) -> String {
        match self {
            Self::Children if reordered => in_order(reply.trim_end()),
            Self::Children => reply.trim_end().to_owned(),
            Self::Groups => {
                let is_heading = |line: &&str| line.starts_with('#') || line.starts_with("2 agents: all done");
                let said = reply.lines().filter(|line| !line.is_empty() && !is_heading(line));
                said.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// How many starts it takes: each agent is started once and woken once and, if calls are suspended, also between its two
    /// requests.
    pub(crate) fn starts(self, suspends: bool) -> usize {
        match self {
            Self::Children if suspends => 14,
            Self::Children | Self::Groups => 12,
        }
    }
}

/// What a person answers.
pub(crate) fn answer_to(question: &str) -> &'static str {
    ANSWERS.iter().find(|(asked, _)| *asked == question).expect("a question of a leaf").1
}

/// A reply with its parts in the order of the requests. The result of a suspended call comes before that of a call that was not
/// suspended because its hook was killed.
fn in_order(reply: &str) -> String {
    let reply =
        reply.replace("where (plan): at home; when (plan): Jan 1st", "when (plan): Jan 1st; where (plan): at home");
    match reply.strip_prefix("[who (plan): Ann]; ") {
        Some(left) => format!("{left}; [who (plan): Ann]"),
        None => reply,
    }
}
