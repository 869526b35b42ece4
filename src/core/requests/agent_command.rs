//! The requests to this program in a shell command.
//!
//! Only a command that is exactly one request can be suspended: its words are known before it runs, and only its result is
//! visible. A request anywhere else would return before its result is available, and the rest of the command would continue
//! without it.

pub(crate) use crate::core::text::shell::Surroundings;
use crate::core::text::shell::split;

mod embedded;
pub(crate) mod verb;

use verb::{NAME, Verb, global_options};

/// The requests in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// It makes none.
    Nothing,
    /// It is exactly one.
    Request(Call),
    /// It makes a request, or may make one, and contains more; or only a shell knows its words. `None`: only a shell knows
    /// which one.
    Embedded(Option<Verb>),
}

/// The request in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program, as the command names it: a bare name or a path.
    pub program: String,
    /// Its arguments, including global options and the name of the request.
    pub arguments: Vec<String>,
    /// Which request it is.
    pub verb: Verb,
    /// Where it runs, if the command changes the directory before it.
    pub directory: Option<String>,
    /// Its standard input, if the command provides it.
    pub input: Option<String>,
}

impl Call {
    /// Its words, including the program.
    pub(crate) fn words(&self) -> Vec<String> {
        [std::slice::from_ref(&self.program), &self.arguments].concat()
    }
}

/// The request that `command` makes.
pub fn recognise(command: &str, surroundings: &Surroundings<'_>) -> Recognised {
    match whole(command, surroundings) {
        Some(call) => Recognised::Request(call),
        None => embedded::find(command).map_or(Recognised::Nothing, Recognised::Embedded),
    }
}

/// The request that `command` is.
fn whole(command: &str, surroundings: &Surroundings<'_>) -> Option<Call> {
    let simple = split(command, surroundings)?;
    let (program, arguments) = simple.words.split_first()?;
    // With an equals sign it may be an assignment whose value only looks like a program's path.
    let is_own = program.rsplit('/').next() == Some(NAME) && !program.contains('=');
    let verb = arguments.get(global_options(arguments))?;
    let verb = is_own.then(|| Verb::named(verb)).flatten()?;
    let (program, arguments) = (program.clone(), arguments.to_vec());
    Some(Call { program, arguments, verb, directory: simple.directory, input: simple.input })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::text::shell::quoted;

    const HERE: Surroundings<'_> = Surroundings { pwd: "/srv/project", home: "/home/dev" };

    fn call(command: &str) -> Option<Call> {
        match recognise(command, &HERE) {
            Recognised::Request(call) => Some(call),
            _ => None,
        }
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
            let (arguments, verb) = (vec!["ask".into(), "x".into()], Verb::Ask);
            let expected = Call { program: program.into(), arguments, verb, directory: None, input: None };
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
    fn what_is_beside_a_request_changes_nothing() {
        for (command, directory, input) in [
            ("agent-cli ask x 2>&1", None, None),
            ("agent-cli ask x 2>/dev/null;", None, None),
            ("2> /dev/null agent-cli ask </dev/null x # why", None, Some("")),
            ("# Ask first\nagent-cli ask x", None, None),
            ("cd sub && agent-cli ask x 2>&1", Some("/srv/project/sub"), None),
            ("cd ../other; cd ./a/b\n\nagent-cli ask x", Some("/srv/other/a/b"), None),
            ("cd ~ && agent-cli ask x", Some("/home/dev"), None),
            ("cd sub 2>/dev/null && agent-cli ask x </dev/null", Some("/srv/project/sub"), Some("")),
            ("agent-cli ask x <<'EOF'\none $two `three`\nEOF\n", None, Some("one $two `three`\n")),
            ("cd / && agent-cli ask x <<-EOF\n\tone\n\tEOF", Some("/"), Some("one\n")),
            ("agent-cli ask \"$(cat <<'EOF'\nx\nEOF\n)\"", None, None),
        ] {
            let call = call(command).unwrap_or_else(|| panic!("{command:?}"));
            assert_eq!(call.arguments, ["ask", "x"], "{command:?}");
            assert_eq!((call.directory.as_deref(), call.input.as_deref()), (directory, input), "{command:?}");
        }
        let inside = call("cd sub && agent-cli ask \"$PWD\"").unwrap();
        assert_eq!(inside.arguments, ["ask", "/srv/project/sub"]);
    }

    #[test]
    fn what_is_no_request_is_none() {
        for command in [
            "agent-cli", "agent-cli -v", "agent-cli ls", "agent-cli questions | head", "agent-cli help spawn",
            "agent-cli spawn --help | head", "agent-cli --help", "agent-cli --color ask", "agent-cli '' ask x",
            "agent-cli/ ask x", "my-agent-cli ask x", "agent-cli2 ask x", "agent-cli.sh ask x", "echo agent-cli ask x",
        ] {
            assert_eq!(recognise(command, &HERE), Recognised::Nothing, "{command:?}");
        }
    }

    #[test]
    fn what_is_more_than_a_request_is_known_as_such() {
        for command in [
            "agent-cli ask x\nagent-cli ask y", "agent-cli ask x > log", "agent-cli ask x &",
            "agent-cli ask \"$(cat question.md)\"", "agent-cli ask \"it costs $5 *now*\"", "X=1 agent-cli ask x",
            "X=/bin/agent-cli agent-cli ask x", "cd - && agent-cli ask x", "cd a/.. && agent-cli ask x",
            "cd sub || agent-cli ask x", "cd sub && agent-cli ask x && deploy", "cd && agent-cli ask x",
            "cd a b && agent-cli ask x", "agent-cli ask x 2>err", "agent-cli ask x <question.md",
            "agent-cli ask x <<EOF\n$HOME\nEOF", "agent-cli ask x <<EOF\nEOF\ndeploy", "agent-cli ask x <<EOF",
            "agent-cli ask x <<<y", "agent-cli ask \0",
        ] {
            assert_eq!(recognise(command, &HERE), Recognised::Embedded(Some(Verb::Ask)), "{command:?}");
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
