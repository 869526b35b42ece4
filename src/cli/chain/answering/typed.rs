//! Parses a line that a person types in the inbox: an answer, or a command, which begins with a colon.

use crate::cli::output::format::cut;
use crate::core::requests::request::RequestKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedLine<'a> {
    /// An answer, which may name options.
    Answer(&'a str),
    /// An answer, taken literally.
    Text(&'a str),
    Command(Command),
    /// An unknown command. It must not be sent to an agent as an answer.
    NoCommand(&'a str),
    /// Only blanks.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Shows the rest of a long text without stopping.
    All,
    Edit,
    Skip,
    Back,
    Quit,
    Help,
}

/// The commands, with their names and help.
pub(super) const COMMANDS: [(Command, &str, &str); 6] = [
    (Command::Edit, "edit", "write the answer in $VISUAL or $EDITOR"),
    (Command::Skip, "skip", "leave it open"),
    (Command::Back, "back", "return to the one before"),
    (Command::Quit, "quit", "leave the inbox; what was answered stays answered"),
    (Command::All, "all", "show the rest of a long text at once"),
    (Command::Help, "help", "show this"),
];

/// The help about commands.
pub(super) fn help() -> String {
    let commands = COMMANDS.iter().map(|(_, name, what)| format!("  :{name:<10} {what}\n")).collect::<String>();
    format!(
        "Enter sends what you have typed, exactly as it is. Ctrl-C leaves.\n{commands}  :text TEXT  answer with TEXT even if it \
         looks like a choice or a command\n"
    )
}

/// Parses `line`. Answers are returned unchanged, byte for byte.
pub(super) fn read(line: &str) -> TypedLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return TypedLine::Nothing;
    }
    // A bare question mark asks for help. It would not help an agent.
    if trimmed == "?" {
        return TypedLine::Command(Command::Help);
    }
    let Some(word) = trimmed.strip_prefix(':') else { return TypedLine::Answer(line) };
    if let Some(text) = ["text ", "t "].iter().find_map(|name| word.strip_prefix(name)) {
        return TypedLine::Text(text);
    }
    // The help says what `:text` needs.
    if ["?", "text", "t"].contains(&word) {
        return TypedLine::Command(Command::Help);
    }
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphabetic()) {
        return TypedLine::Answer(line);
    }
    let named = COMMANDS.iter().find(|(_, name, _)| *name == word || word.len() == 1 && name.starts_with(word));
    named.map_or(TypedLine::NoCommand(trimmed), |(command, ..)| TypedLine::Command(*command))
}

/// Whether an answer may have been meant as a command: a single letter, a command's name without its colon, or with more
/// than its name behind the colon.
pub(super) fn could_be_a_command(text: &str) -> bool {
    let word = text.trim().to_ascii_lowercase();
    let is_letter = |word: &str| word.len() == 1 && word.chars().all(|c| c.is_ascii_alphabetic());
    let is_name = |word: &str| OTHERS.contains(&word) || COMMANDS.iter().any(|(_, name, _)| *name == word);
    let is_after_colon = word.strip_prefix(':').is_some_and(|rest| {
        let rest = rest.trim_start();
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
        is_letter(name) || is_name(name)
    });
    is_letter(&word) || is_name(&word) || is_after_colon
}

/// Commands of other programs that leave something open or quit.
const OTHERS: [&str; 4] = ["exit", "later", "next", "wq"];

/// The answer that an empty line gives.
pub(super) fn default(kind: &RequestKind) -> Option<&str> {
    match kind {
        RequestKind::Ask(form) => form.default.as_deref(),
        _ => None,
    }
}

/// Says what can be typed as an answer.
pub(super) fn how_to_answer(kind: &RequestKind, is_uninvited: bool) -> String {
    let how = match kind {
        RequestKind::Permission { .. } => "allow, or deny and why".to_owned(),
        RequestKind::Plan(plan) => {
            let modes = plan.modes.iter().map(|mode| cut(mode, 40)).collect::<Vec<_>>().join("|");
            format!("allow, allow {modes}, or deny and why")
        }
        RequestKind::Ask(form) => match form.naming() {
            Some(naming) => format!("your answer: {naming}"),
            None => "your answer".to_owned(),
        },
        _ => "your answer".to_owned(),
    };
    let enter = match (default(kind), is_uninvited) {
        (Some(_), _) => "Enter: the default, ",
        (None, true) => "Enter: later, ",
        (None, false) => "",
    };
    format!("{how}\nor {enter}:edit :skip :back :quit, :? for help\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_behind_a_colon_is_a_command() {
        for (line, expected) in [
            ("Jan 1st", TypedLine::Answer("Jan 1st")),
            ("  two \t", TypedLine::Answer("  two \t")),
            (":q", TypedLine::Command(Command::Quit)),
            (" :quit ", TypedLine::Command(Command::Quit)),
            (":?", TypedLine::Command(Command::Help)),
            (" ?", TypedLine::Command(Command::Help)),
            ("why?", TypedLine::Answer("why?")),
            (":text ?", TypedLine::Text("?")),
            (":e", TypedLine::Command(Command::Edit)),
            (":a", TypedLine::Command(Command::All)),
            (":sikp", TypedLine::NoCommand(":sikp")),
            (":", TypedLine::Answer(":")),
            (":)", TypedLine::Answer(":)")),
            (":: a", TypedLine::Answer(":: a")),
            (":set x", TypedLine::Answer(":set x")),
            (":text :q", TypedLine::Text(":q")),
            (":t 7", TypedLine::Text("7")),
            (":text ", TypedLine::Command(Command::Help)),
            (":t", TypedLine::Command(Command::Help)),
            ("q", TypedLine::Answer("q")),
            ("", TypedLine::Nothing),
            (" \t", TypedLine::Nothing),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_letter_or_the_name_of_a_command_could_be_meant_for_the_prompt() {
        for text in ["s", " Q ", "y", "n", "skip", "quit", "Exit", "later", ":q!", ":wq!", ":skip it", ":quit.", ": q"]
        {
            assert!(could_be_a_command(text), "{text}");
        }
        for text in ["yes", "no", "7", "é", "ok", "skip it", ":)", ":", ":: a", ":set x", ":1", "-"] {
            assert!(!could_be_a_command(text), "{text}");
        }
    }

    #[test]
    fn every_command_has_a_letter_of_its_own() {
        for (command, name, _) in COMMANDS {
            assert_eq!(read(&format!(":{}", &name[..1])), TypedLine::Command(command));
        }
    }
}
