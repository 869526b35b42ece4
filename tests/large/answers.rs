//! Many people and scripts that answer at once: two answers to each question, and several commands that continue the chains.

use std::collections::HashMap;

use crate::PATIENCE;
use crate::extent::size;
use crate::world::World;

const QUESTIONS: [usize; 3] = [16, 200, 500];
/// How many processes answer at a time.
const AT_ONCE: [usize; 3] = [8, 50, 50];

#[test]
fn each_question_is_answered_once_and_each_chain_continued_once() {
    let world = World::new();
    let (questions, at_once) = (size(QUESTIONS), size(AT_ONCE));
    world.file("asks.md", "ask When?\nreply {result}\n");
    for first in (0..questions).step_by(8) {
        let spawns: Vec<_> =
            (first..questions.min(first + 8)).map(|_| world.command(["spawn", "asks.md"]).start()).collect();
        for spawn in spawns {
            spawn.ends_within(PATIENCE).started();
        }
    }
    let open = world.run(&["questions", "--json"]).json();
    let open: Vec<_> = open.as_array().expect("a list").iter().collect();
    assert_eq!(open.len(), questions);

    let answers: Vec<(String, String, String)> = open
        .iter()
        .enumerate()
        .flat_map(|(n, asked)| ["a", "b"].map(|who| (asked, format!("{who}{n}"))))
        .map(|(asked, answer)| (asked["chain"].to_string(), asked["id"].to_string(), answer))
        .map(|(root, id, answer)| (root.replace('"', ""), id.replace('"', ""), answer))
        .collect();
    let mut recorded = HashMap::new();
    for batch in answers.chunks(at_once) {
        let running: Vec<_> = batch
            .iter()
            .enumerate()
            .map(|(n, (root, id, answer))| {
                // One in four continues the chain itself.
                let arguments: &[&str] = if n % 4 == 0 { &["--resume"] } else { &[] };
                let words = ["answer", id, answer].into_iter().chain(arguments.iter().copied());
                (root, answer, world.command(words).start())
            })
            .collect();
        for (root, answer, process) in running {
            let ended = process.ends_within(PATIENCE);
            match ended.code() {
                Some(0) => assert_eq!(recorded.insert(root.clone(), answer.clone()), None, "{ended}"),
                _ => assert!(ended.exits_with(2).stderr.contains(" was already answered, "), "{ended}"),
            }
        }
    }
    assert_eq!(recorded.len(), questions);

    let continuing: Vec<_> = (0..4).map(|_| world.command(["resume", "--all"]).start()).collect();
    for process in continuing {
        process.ends_within(PATIENCE);
    }
    for (root, answer) in &recorded {
        world.run(&["resume", root]).prints(answer);
    }
    assert_eq!(world.starts(), 2 * questions, "one until it asks, and one that has the answer");
    world.run(&["fsck"]).succeeds();
}
