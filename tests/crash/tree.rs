//! The tree that is driven, and the person who answers its questions.

use std::collections::BTreeMap;

use crate::world::World;

/// What each leaf asks, and what the person answers.
const ANSWERS: [(&str, &str); 3] = [("When?", "Jan 1st"), ("Where?", "at home"), ("Who?", "you")];

/// What the root replies when every answer has come up to it once.
pub(crate) const REPLY: &str = "[when: Jan 1st; where: at home]; [who: you]";

/// Three levels: a root, two children, and three leaves that ask.
pub(crate) fn write(world: &World) {
    world.file("root.md", "spawn left.md &\nspawn right.md\nreply {results}\n");
    world.file("left.md", "spawn when.md &\nspawn where.md\nreply [{results}]\n");
    world.file("right.md", "spawn who.md\nreply [{results}]\n");
    for (question, _) in ANSWERS {
        let name = question.trim_end_matches('?').to_lowercase();
        world.file(format!("{name}.md"), format!("run true\nask {question}\nreply {name}: {{result}}\n"));
    }
}

/// The id of the chain, once it has one.
pub(crate) fn root(world: &World) -> Option<String> {
    let listed = world.run(&["ls", "--json"]).json();
    let roots = listed.as_array().expect("a list of chains");
    assert!(roots.len() <= 1, "one chain was started: {listed}");
    roots.first().map(|root| root["id"].as_str().expect("an id").to_owned())
}

/// Answers the first of the open questions, and counts the answers by their questions.
pub(crate) fn answer_one(world: &World, given: &mut BTreeMap<String, usize>) {
    if let Some((question, id)) = world.questions().into_iter().next() {
        let (_, answer) = ANSWERS.iter().find(|(asked, _)| *asked == question).expect("a question of a leaf");
        world.run(&["answer", &id, answer]).succeeds();
        *given.entry(question).or_default() += 1;
    }
}

/// Fails the test unless each question was asked and answered once.
pub(crate) fn each_was_answered_once(given: &BTreeMap<String, usize>) {
    let expected = ANSWERS.iter().map(|(question, _)| ((*question).to_owned(), 1)).collect();
    assert_eq!(given, &expected);
}
