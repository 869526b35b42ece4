//! What a line means that a person types in the inbox: an answer, or a command, which begins with a colon.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// An answer; it may name choices.
    Answer(&'a str),
    /// An answer, taken as text whatever it looks like.
    Text(&'a str),
    Command(Command),
    /// A word behind a colon that is not a command. Nobody wants a mistyped command to be sent to an agent.
    NoCommand(&'a str),
    /// Nothing but blanks.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Shows the rest of a long text without further questions.
    All,
    Edit,
    Skip,
    Back,
    Quit,
    Help,
}

/// The commands, with their help.
pub(super) const COMMANDS: [(Command, &str, &str); 6] = [
    (Command::Edit, "edit", "write the answer in $VISUAL or $EDITOR"),
    (Command::Skip, "skip", "leave it open"),
    (Command::Back, "back", "return to the one before"),
    (Command::Quit, "quit", "leave the inbox; what was answered stays answered"),
    (Command::All, "all", "show the rest of a long text at once"),
    (Command::Help, "help", "show this"),
];

/// The commands as people read them.
pub(super) fn help() -> String {
    let commands = COMMANDS.iter().map(|(_, name, what)| format!("  :{name:<10} {what}\n")).collect::<String>();
    format!(
        "Enter sends what you have typed, exactly as it is. Ctrl-C leaves.\n{commands}  :text TEXT  answer with TEXT even if it \
         looks like a choice or a command\n"
    )
}

/// What `line` means. The bytes of an answer are those of the line.
pub(super) fn read(line: &str) -> Typed<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return Typed::Nothing;
    }
    // A bare question mark is meant for the inbox: it tells an agent nothing.
    if trimmed == "?" {
        return Typed::Command(Command::Help);
    }
    let Some(word) = trimmed.strip_prefix(':') else { return Typed::Answer(line) };
    if let Some(text) = ["text ", "t "].iter().find_map(|name| word.strip_prefix(name)) {
        return Typed::Text(text);
    }
    if word == "?" {
        return Typed::Command(Command::Help);
    }
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphabetic()) {
        return Typed::Answer(line);
    }
    let named = COMMANDS.iter().find(|(_, name, _)| *name == word || word.len() == 1 && name.starts_with(word));
    named.map_or(Typed::NoCommand(trimmed), |(command, ..)| Typed::Command(*command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_behind_a_colon_is_a_command() {
        for (line, expected) in [
            ("Jan 1st", Typed::Answer("Jan 1st")),
            ("  two \t", Typed::Answer("  two \t")),
            (":q", Typed::Command(Command::Quit)),
            (" :quit ", Typed::Command(Command::Quit)),
            (":?", Typed::Command(Command::Help)),
            (" ?", Typed::Command(Command::Help)),
            ("why?", Typed::Answer("why?")),
            (":text ?", Typed::Text("?")),
            (":e", Typed::Command(Command::Edit)),
            (":a", Typed::Command(Command::All)),
            (":sikp", Typed::NoCommand(":sikp")),
            (":", Typed::Answer(":")),
            (":)", Typed::Answer(":)")),
            (":: a", Typed::Answer(":: a")),
            (":set x", Typed::Answer(":set x")),
            (":text :q", Typed::Text(":q")),
            (":t 7", Typed::Text("7")),
            ("q", Typed::Answer("q")),
            ("", Typed::Nothing),
            (" \t", Typed::Nothing),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn every_command_has_a_letter_of_its_own() {
        for (command, name, _) in COMMANDS {
            assert_eq!(read(&format!(":{}", &name[..1])), Typed::Command(command));
        }
    }
}
