//! Instructions in a folder of the project, with a CLAUDE.md of its own.

use crate::chain::{Chain, TEMPLATE};
use crate::support::{MessagesApi, follow, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(the_convention_may_lie_beside_the_instructions);

fn the_convention_may_lie_beside_the_instructions(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(follow));
    chain.home.write("examples/some/CLAUDE.md", TEMPLATE);
    chain.home.write("examples/some/ins1.md", "spawn ins2.md\nreply {result}\n");
    chain.home.write("examples/some/ins2.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "examples/some/ins1.md"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}
