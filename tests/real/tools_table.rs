//! The table of tools in `docs/claude-code.md`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, NEWEST, OLDER, Turn, extent};

/// The names in the first column of the table, and in its last column where a tool is tested.
fn documented() -> Vec<(Vec<String>, String)> {
    let table =
        include_str!("../../docs/claude-code.md").split("| tool | what a pause does | test |\n").nth(1).unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        (names(cells[1]), names(cells[cells.len() - 2]).join(" "))
    })
    .collect()
}

/// What Claude Code offers an agent, at once or to be loaded.
fn offered(version: &str) -> BTreeSet<String> {
    let chain = Chain::with_model(version, MessagesApi::start(|_: &Conversation| Turn::text("done")));
    chain.home.write("ins.md", "Do what the model does.");
    let mut names = BTreeSet::new();
    // The tools for tasks depend on the model.
    for model in ["claude-opus-4-8", "claude-sonnet-4-5", "claude-haiku-4-5"] {
        chain.ok(&["spawn", "ins.md", "--model", model]);
        let request = chain.api.requests().pop().unwrap();
        let tools = request.body["tools"].as_array().unwrap().iter();
        names.extend(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let said = request.conversation();
        let loadable = said.context().split("to load tool schemas before calling them:\n").nth(1).unwrap_or_default();
        names.extend(loadable.lines().take_while(|line| !line.is_empty()).map(str::to_owned));
    }
    // It is there to keep a place in the list.
    names.remove("DeferredToolPlaceholder");
    names
}

#[test]
fn the_table_has_every_tool_that_is_offered() {
    let rows = documented();
    let names: Vec<_> = rows.iter().flat_map(|(names, _)| names.clone()).collect();
    let documented: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(names.len(), documented.len(), "one row a tool");
    let only_older = BTreeSet::from(["TaskOutput".to_owned()]);
    let newest = offered(NEWEST);
    assert_eq!(documented.difference(&newest).cloned().collect::<BTreeSet<_>>(), only_older);
    assert_eq!(newest.difference(&documented).next(), None);
    if extent::is_whole() {
        assert_eq!(offered(OLDER).difference(&newest).cloned().collect::<BTreeSet<_>>(), only_older);
    }
}

#[test]
fn each_row_of_the_table_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (tools, tests) in documented() {
        assert!(!tests.is_empty(), "{tools:?}");
        for test in tests.split(' ') {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{tools:?}: {test}"));
            let text = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap_or_default();
            assert!(text.contains(&format!("fn {name}(")), "{tools:?}: there is no {test}");
        }
    }
}
