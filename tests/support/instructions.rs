//! Instruction files: numbered steps, each with one keyword of the convention.

/// One numbered step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Start a sub-agent for each of these files.
    Spawn(Vec<String>),
    /// Ask a person each of these questions.
    Ask(Vec<String>),
    /// Run each of these commands.
    Run(Vec<String>),
    /// Keep something in mind, which takes no action.
    Remember,
    /// End with this text.
    Say(String),
    /// End with the result of the step before.
    Reply,
    /// Something that the convention does not have.
    Unknown(String),
}

/// The steps of an instruction file, in order. Everything else in it is ignored.
pub(super) fn steps(file: &str) -> Vec<Step> {
    file.lines().filter_map(numbered).filter_map(step).collect()
}

/// The text after `1.` or `1)`.
fn numbered(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['.', ')']).filter(|_| rest.len() < line.len())
}

fn step(text: &str) -> Option<Step> {
    let (_, after) = text.split_once('_')?;
    let (keyword, arguments) = after.split_once('_')?;
    let step = match keyword {
        "spawn" => Step::Spawn(enclosed(arguments, '`')),
        "ask" => Step::Ask(enclosed(arguments, '"')),
        "run" => Step::Run(enclosed(arguments, '`')),
        "remember" => Step::Remember,
        "terminate" => enclosed(arguments, '"').into_iter().next().map_or(Step::Reply, Step::Say),
        other => Step::Unknown(other.to_owned()),
    };
    Some(step)
}

/// What stands between pairs of `mark`.
fn enclosed(text: &str, mark: char) -> Vec<String> {
    let mut pieces = text.split(mark).skip(1);
    let mut found = Vec::new();
    while let (Some(inside), Some(_)) = (pieces.next(), pieces.next()) {
        found.push(inside.to_owned());
    }
    found
}
