//! The tree that is driven, and what comes of it when nothing dies.

use crate::history::TOOL;
use crate::world::World;

/// What the root replies when every answer has come up to it once.
pub(crate) const REPLY: &str = "[when: Jan 1st; where: at home]; [who: Ann]";

/// A reply with its parts in the order of the requests. The result of a suspended call comes before that of one which was
/// not suspended because its hook was killed.
pub(crate) fn in_order(reply: &str) -> String {
    let reply = reply.replace("where: at home; when: Jan 1st", "when: Jan 1st; where: at home");
    match reply.strip_prefix("[who: Ann]; ") {
        Some(left) => format!("{left}; [who: Ann]"),
        None => reply,
    }
}

/// How many starts it takes: each agent is started once and woken once.
pub(crate) const STARTS_WITH_SIGNALS: usize = 12;
/// Two agents are woken between their two requests, too.
pub(crate) const STARTS_WITH_SUSPENDED_CALLS: usize = 14;

/// What each leaf asks, and what the person answers.
const ANSWERS: [(&str, &str); 3] = [("When?", "Jan 1st"), ("Where?", "at home"), ("Who?", "Ann")];

/// Three levels: a root, two children, and three leaves that ask.
pub(crate) fn write(world: &World) {
    world.file("root.md", "spawn left.md &\nspawn right.md\nreply {results}\n");
    world.file("left.md", "spawn when.md &\nspawn where.md\nreply [{results}]\n");
    world.file("right.md", "spawn who.md\nreply [{results}]\n");
    for (question, _) in ANSWERS {
        let name = question.trim_end_matches('?').to_lowercase();
        world.file(format!("{name}.md"), format!("{TOOL}\nask {question}\nreply {name}: {{result}}\n"));
    }
}

/// What a person answers.
pub(crate) fn answer_to(question: &str) -> &'static str {
    ANSWERS.iter().find(|(asked, _)| *asked == question).expect("a question of a leaf").1
}

/// How many questions the leaves ask.
pub(crate) const QUESTIONS: usize = ANSWERS.len();
