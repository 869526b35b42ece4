//! The convention: the words in instruction files that make agents call agent-cli, as `CLAUDE.md.template` defines them.

/// What CLAUDE.md tells agents.
pub(crate) const TEXT: &str = include_str!("../../../CLAUDE.md.template");

/// The word without which there are no chains.
pub(crate) const SPAWN: &str = "_spawn_";

/// The words that stand for a command of agent-cli. An agent that does not know them does something else and ends as if nothing
/// was wrong, whereas the other words of the convention mean what they say.
pub(crate) fn words() -> Vec<&'static str> {
    let mut words = Vec::new();
    for row in TEXT.lines().filter_map(|line| line.strip_prefix("| ")) {
        let Some((action, meaning)) = row.split_once(" | ") else { continue };
        let word = action.trim_start_matches('`').split(' ').next().unwrap_or_default();
        if meaning.starts_with("_run_ `agent-cli ") && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// The words that a text contains.
pub(crate) fn used(text: &str) -> Vec<&'static str> {
    words().into_iter().filter(|word| contains(text, word)).collect()
}

/// Whether instructions name the commands themselves, so that an agent may need no definition.
pub(crate) fn explains_itself(instructions: &str) -> bool {
    instructions.contains("agent-cli")
}

/// Words as people list them.
pub(crate) fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        few => few.concat(),
    }
}

/// Whether a word occurs that is not part of a longer name, such as `my_ask_x`.
fn contains(text: &str, word: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_of_name) && !text[at + word.len()..].starts_with(is_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_template_that_call_agent_cli() {
        assert_eq!(words(), [SPAWN, "_ask_", "_wait_"]);
        assert_eq!(used(TEXT), words(), "the template defines them");
    }

    #[test]
    fn words_are_listed_in_a_sentence() {
        let words = ["_a_", "_b_", "_c_"];
        let lists = ["", "`_a_`", "`_a_` and `_b_`", "`_a_`, `_b_` and `_c_`"];
        assert_eq!([0, 1, 2, 3].map(|count| listed(&words[..count])), lists);
    }

    #[test]
    fn a_word_counts_only_as_a_whole() {
        assert_eq!(used("1. _ask_ \"When?\"\n2. (_spawn_)"), [SPAWN, "_ask_"]);
        assert_eq!(used("def no_spawn_here(): __ask__, _waiting_, _run_ it"), Vec::<&str>::new());
        assert_eq!(used("x_ask_ and _ask_"), ["_ask_"]);
    }
}
