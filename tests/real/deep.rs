//! A chain much deeper than usual.

use std::fs;

use crate::chain::Chain;
use crate::support::NEWEST;
use crate::support::extent::size;

/// How deep the chain is, in a sample, in the rest, and in a whole run. Another test names its own number in the variable.
const DEPTH: [usize; 3] = [3, 15, 50];
const OTHER_DEPTH: &str = "AGENT_CLI_REAL_DEPTH";
/// How much memory, in kilobytes, the runner may use beyond its initial size.
const MORE_MEMORY: u64 = 8 * 1024;
/// Notes the memory of the runner, which is the parent of the `claude` whose tool this is.
const NOTE_MEMORY: &str = "run ps -o rss=,comm= -p $(ps -o ppid= -p $PPID) >> memory";

#[test]
fn one_process_lives_at_a_time_and_each_level_costs_the_same() {
    let depth = std::env::var(OTHER_DEPTH);
    let depth = depth.map_or_else(|_| size(DEPTH), |depth| depth.parse().expect("a depth"));
    let chain = Chain::new(NEWEST).without_lingering();
    for level in 2..depth {
        let steps = format!("spawn {}.md\nreply {{result}}\n", level + 1);
        chain.home.write(&format!("{level}.md"), &steps);
    }
    let first = format!("{NOTE_MEMORY}\nspawn 2.md\nreply {{result}}\n");
    chain.home.write("1.md", &first);
    let last = format!("{NOTE_MEMORY}\nask When?\nreply {{result}}\n");
    chain.home.write(&format!("{depth}.md"), &last);

    let root = chain.started(&["spawn", "1.md", "--permission-mode", "bypassPermissions"]);
    let to_the_pause = chain.api.count();
    assert_eq!(to_the_pause, 2 * depth + 2, "each reads its file and makes its call, and two note the memory");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), to_the_pause);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count() - to_the_pause, depth, "each replies");
    assert_eq!(chain.attempts_one_after_the_other(&root), 2 * depth);

    let noted = fs::read_to_string(chain.home.project().join("memory")).unwrap();
    println!("memory of the runner, in kilobytes:\n{noted}");
    let memory = |line: &str| line.trim().strip_suffix(" agent-cli")?.trim().parse::<u64>().ok();
    let [Some(top), Some(end)] = noted.lines().map(memory).collect::<Vec<_>>()[..] else { panic!("{noted}") };
    assert!(end < top + MORE_MEMORY, "{noted}");
}
