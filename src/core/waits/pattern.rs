//! Regular expressions that people and agents give.

use regex::bytes::{Regex, RegexBuilder};

/// The longest pattern, in bytes.
const MOST_PATTERN: usize = 4_096;
/// The largest compiled pattern, in bytes: `(a{1000}){1000}` is refused.
const MOST_COMPILED: usize = 1024 * 1024;

/// Why a regular expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPattern {
    #[error("{what}, at character {character}{line}")]
    Syntax { what: String, character: usize, line: String },
    #[error("it has more than {MOST_PATTERN} bytes")]
    TooLong,
    #[error("it is too large")]
    TooLarge,
}

/// Compiles a pattern. It matches anywhere in a text, and `^` and `$` are the beginning and the end of the whole text, unless it
/// says `(?m)`.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, BadPattern> {
    if pattern.len() > MOST_PATTERN {
        return Err(BadPattern::TooLong);
    }
    if let Err(error) = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern) {
        let (what, at) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start),
            _ => return Err(BadPattern::TooLarge),
        };
        let line = if pattern.contains('\n') { format!(" of line {}", at.line) } else { String::new() };
        return Err(BadPattern::Syntax { what, character: at.column, line });
    }
    RegexBuilder::new(pattern).size_limit(MOST_COMPILED).build().map_err(|_| BadPattern::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pattern: &str) -> String {
        compiled(pattern).unwrap_err().to_string()
    }

    #[test]
    fn the_place_of_a_mistake_is_named() {
        assert_eq!(refused("done(ok"), "unclosed group, at character 5");
        assert_eq!(refused("ä["), "unclosed character class, at character 2");
        assert_eq!(refused("a\n*b\n("), "unclosed group, at character 1 of line 3");
        assert_eq!(refused(r"(a)\1"), "backreferences are not supported, at character 4");
    }

    #[test]
    fn a_pattern_that_would_take_too_much_memory_is_refused() {
        assert_eq!(refused("(?:a{1000}){1000}"), "it is too large");
        assert_eq!(refused(&"a".repeat(5_000)), "it has more than 4096 bytes");
    }

    #[test]
    fn texts_that_are_not_utf_8_are_searched() {
        assert!(compiled("done").unwrap().is_match(b"\xff\xfe done"));
        assert!(compiled(r"(?-u)\xff").unwrap().is_match(b"\xff"));
        assert!(!compiled("^done$").unwrap().is_match(b"not\ndone\n"));
        assert!(compiled("(?m)^done$").unwrap().is_match(b"not\ndone\n"));
    }
}
