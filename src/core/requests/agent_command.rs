//! A shell command that is exactly one request to this program.
//!
//! Only such a command can be suspended: its words are known before it runs, and only its result is visible. Any other
//! command runs unchanged, and `agent-cli` in it answers as a program.

pub(crate) use crate::core::text::shell::Surroundings;
use crate::core::text::shell::split;

/// The request in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program, as the command names it: a bare name or a path.
    pub program: String,
    /// Its arguments, including global options and the name of the request.
    pub arguments: Vec<String>,
    /// Which request it is.
    pub verb: Verb,
}

/// The requests that an agent may make by command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `agent-cli spawn`.
    Spawn,
    /// `agent-cli ask`.
    Ask,
    /// `agent-cli wait`.
    Wait,
    /// `agent-cli resume`.
    Resume,
    /// `agent-cli answer`: not a request for agents. It is recognised so that it can be refused.
    Answer,
}

/// The request that `command` is. `None` if it is anything else, or more than that.
#[must_use]
pub fn recognise(command: &str, surroundings: &Surroundings<'_>) -> Option<Call> {
    let mut arguments = split(command, surroundings)?;
    let program = arguments.remove(0);
    // With an equals sign it may be an assignment whose value only looks like a program's path.
    let is_own = program.rsplit('/').next() == Some(NAME) && !program.contains('=');
    let verb = arguments.get(global_options(&arguments))?;
    let verb = is_own.then(|| Verb::named(verb)).flatten()?;
    Some(Call { program, arguments, verb })
}

/// This program's file name.
const NAME: &str = "agent-cli";

/// The number of option words before the name of a request.
fn global_options(arguments: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += match word.as_str() {
            "-v" | "--verbose" | "-q" | "--quiet" => 1,
            "--color" => 2,
            word if word.starts_with("--color=") => 1,
            _ => break,
        };
    }
    at
}

impl Verb {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "spawn" => Self::Spawn,
            "ask" => Self::Ask,
            "wait" => Self::Wait,
            "resume" => Self::Resume,
            "answer" => Self::Answer,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::text::shell::quoted;

    fn call(command: &str) -> Option<Call> {
        recognise(command, &Surroundings { pwd: "/srv/project", home: "/home/dev" })
    }

    #[test]
    fn the_program_may_be_named_in_any_way() {
        for (command, program) in [
            ("agent-cli ask x", "agent-cli"),
            ("./agent-cli ask x", "./agent-cli"),
            ("bin/agent-cli ask x", "bin/agent-cli"),
            ("/opt/bin/agent-cli ask x", "/opt/bin/agent-cli"),
            ("$PWD/agent-cli ask x", "/srv/project/agent-cli"),
            ("\"$PWD\"/agent-cli ask x", "/srv/project/agent-cli"),
            ("\"${PWD}/agent-cli\" ask x", "/srv/project/agent-cli"),
            ("~/bin/agent-cli ask x", "/home/dev/bin/agent-cli"),
            ("'agent-cli' ask x", "agent-cli"),
            ("\n agent-cli \\\n  ask x\n", "agent-cli"),
        ] {
            let expected = Call { program: program.into(), arguments: vec!["ask".into(), "x".into()], verb: Verb::Ask };
            assert_eq!(call(command), Some(expected), "{command:?}");
        }
    }

    #[test]
    fn the_requests_are_known() {
        for (command, verb) in [
            ("agent-cli spawn a.md b.md", Verb::Spawn),
            ("agent-cli spawn --prompt \"Say: 'hi'\" --fork-from 4f2c1a90", Verb::Spawn),
            ("agent-cli -v ask 'Who?'", Verb::Ask),
            ("agent-cli --verbose wait --for 3d", Verb::Wait),
            ("agent-cli --quiet ask x", Verb::Ask),
            ("agent-cli -q --color never --color=auto ask x", Verb::Ask),
            ("agent-cli resume 4f2c1a90", Verb::Resume),
            ("agent-cli answer 4f2c1a90 yes", Verb::Answer),
            ("agent-cli ask", Verb::Ask),
            ("agent-cli spawn --help", Verb::Spawn),
        ] {
            assert_eq!(call(command).map(|call| call.verb), Some(verb), "{command:?}");
        }
    }

    #[test]
    fn what_is_more_or_less_than_a_request_is_none() {
        for command in [
            "agent-cli",
            "agent-cli -v",
            "agent-cli ls",
            "agent-cli questions",
            "agent-cli help spawn",
            "agent-cli --help",
            "agent-cli --color ask",
            "agent-cli --silent ask x",
            "agent-cli -- ask x",
            "agent-cli '' ask x",
            "agent-cli/ ask x",
            "my-agent-cli ask x",
            "agent-cli2 ask x",
            "agent-cli.sh ask x",
            "echo agent-cli ask x",
            "exec agent-cli ask x",
            "env X=1 agent-cli ask x",
            "time agent-cli ask x",
            "X=1 agent-cli ask x",
            "X=/bin/agent-cli ask x",
            "agent-cli spawn x.md | tee log",
            "cd sub && agent-cli ask x",
            "agent-cli ask x; echo done",
            "agent-cli ask x;",
            "agent-cli ask x\nagent-cli ask y",
            "agent-cli ask x > log",
            "agent-cli ask x &",
            "agent-cli ask \"$(cat question.md)\"",
            "agent-cli ask \"it costs $5 *now*\"",
            "agent-cli ask x # why",
            "for f in a b; do agent-cli spawn $f; done",
        ] {
            assert_eq!(call(command), None, "{command:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text: String, tail: String) {
            let _ = call(&text);
            let _ = call(&format!("agent-cli ask {tail}"));
        }

        #[test]
        fn quoted_arguments_come_back(list in prop::collection::vec("[^\u{0}\u{1}\u{7f}]*", 0..6)) {
            let words = ["agent-cli", "spawn"].map(str::to_owned).into_iter().chain(list);
            let command = words.clone().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
            let call = call(&command);
            prop_assert_eq!(call.map(|call| call.arguments), Some(words.skip(1).collect::<Vec<_>>()));
        }
    }
}
