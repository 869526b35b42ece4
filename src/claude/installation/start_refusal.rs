//! Why `claude` refuses to start, according to its message: each cause needs a different hint.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartRefusal {
    /// There is no login, or the key is not valid.
    Login,
    /// The model does not exist, or this account cannot use it.
    Model,
    /// The permission mode does not exist.
    Mode,
    /// Root may not bypass permissions.
    Superuser,
    /// An option is unknown, its value is not valid, or a file that it names does not exist.
    Arguments,
    /// The session to continue does not exist.
    Session,
    /// A disk is full.
    Room,
    /// The output is not Claude Code's.
    NotClaude,
    /// Another cause.
    Other,
}

impl StartRefusal {
    pub(crate) fn from_message(said: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if has(&["No conversation found"]) {
            Self::Session
        } else if has(&["ENOSPC", "EDQUOT", "No space left on device", "no space left on device", "quota exceeded"]) {
            Self::Room
        } else if has(&["root/sudo privileges"]) {
            Self::Superuser
        } else if has(&["option '--permission-mode"]) {
            Self::Mode
        } else if has(&["unknown option '", "error: option '", "Settings file not found", "MCP config"])
            || said.starts_with("error: ")
        {
            Self::Arguments
        } else if has(&["/login", "Invalid API key", "invalid x-api-key", "authentication_error"]) {
            Self::Login
        } else if has(&["issue with the selected model"]) {
            Self::Model
        } else if has(&[" and said nothing", " lines that are not what claude prints"]) {
            Self::NotClaude
        } else {
            Self::Other
        }
    }

    /// Whether the command line is the cause: every start would fail in the same way, and nothing has begun.
    pub(crate) fn is_of_the_command_line(self) -> bool {
        matches!(self, Self::Mode | Self::Superuser | Self::Arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_claude_says_tells_the_cause() {
        for (said, cause) in [
            ("error: unknown option '--nonsense'", StartRefusal::Arguments),
            ("error: option '--max-turns <turns>' argument 'x' is invalid. must be a number", StartRefusal::Arguments),
            (
                "error: option '--permission-mode <mode>' argument 'yolo' is invalid. Allowed choices are …",
                StartRefusal::Mode,
            ),
            ("Error: Settings file not found: /nope.json", StartRefusal::Arguments),
            (
                "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
                StartRefusal::Superuser,
            ),
            ("Not logged in · Please run /login", StartRefusal::Login),
            ("There's an issue with the selected model (x). It may not exist.", StartRefusal::Model),
            ("No conversation found with session ID: x", StartRefusal::Session),
            ("ENOSPC: no space left on device, open '/home/u/.claude/projects/x.jsonl'", StartRefusal::Room),
            ("Error: Disk quota exceeded (os error 122)", StartRefusal::Room),
            ("claude ended with exit code 0 and said nothing", StartRefusal::NotClaude),
            ("API Error: 400", StartRefusal::Other),
        ] {
            assert_eq!(StartRefusal::from_message(said), cause, "{said}");
        }
    }
}
