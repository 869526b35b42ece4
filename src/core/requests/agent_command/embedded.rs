//! Requests to this program inside a larger command: in a list, a pipe, a loop, a function, a substitution, after a command
//! that runs another one, or in a text that becomes a command.
//!
//! If in doubt, a command makes a request. A text that mentions one for people, as in `grep 'agent-cli ask' file`, makes none.

use crate::core::requests::agent_command::verb::{NAME, Verb, global_options};
use crate::core::text::script::{HOLE, Script, ScriptCommand};

/// The request that `command` makes or may make. `Some(None)`: only a shell knows which one.
pub(super) fn find(command: &str) -> Option<Option<Verb>> {
    if !command.contains(NAME) {
        return None;
    }
    let Some(script) = Script::read(command) else { return mentioned(command) };
    let found: Vec<Option<Verb>> = script
        .commands
        .iter()
        .filter_map(|command| own(command).or_else(|| of_another(command, &script)))
        .chain(of_texts(&script))
        .chain(of_variables(command, &script))
        .collect();
    // A request for a result may already have one.
    found.iter().find(|verb| **verb != Some(Verb::Resume)).or_else(|| found.first()).copied()
}

/// The request that a command is.
fn own(command: &ScriptCommand) -> Option<Option<Verb>> {
    let words = effective(&command.words);
    if !names_program(words.first()?) { None } else { verb_of(&words[1..]) }
}

/// The words without assignments and reserved words before them.
fn effective(words: &[String]) -> &[String] {
    const RESERVED: [&str; 13] =
        ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "coproc", "function"];
    let is_before = |word: &&String| RESERVED.contains(&word.as_str()) || is_assignment(word);
    &words[words.iter().take_while(is_before).count()..]
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn names_program(word: &str) -> bool {
    word.trim_matches(HOLE).rsplit('/').next() == Some(NAME)
}

/// The request that arguments of this program make.
fn verb_of(arguments: &[String]) -> Option<Option<Verb>> {
    let (verb, rest) = arguments.get(global_options(arguments)..)?.split_first()?;
    let asks_for_help = || rest.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h");
    match Verb::named(verb) {
        // The program refuses this to agents.
        Some(Verb::Answer) => None,
        Some(verb) => (!asks_for_help()).then_some(Some(verb)),
        None => verb.contains(HOLE).then_some(None),
    }
}

/// The request that a command makes through another program, whose arguments name it.
fn of_another(command: &ScriptCommand, script: &Script) -> Option<Option<Verb>> {
    let words = effective(&command.words);
    let at = words.iter().skip(1).position(|word| names_program(word)).map(|at| at + 1);
    let named = at.and_then(|at| match words[at + 1..] {
        [] if ["xargs", "parallel"].contains(&head(words)) => Some(None),
        _ => verb_of(&words[at + 1..]),
    });
    named.filter(|_| !only_shows(words) || is_run_as_text(command.pipeline, script))
}

/// The request in the words and texts that become commands.
fn of_texts(script: &Script) -> impl Iterator<Item = Option<Verb>> {
    let words = script.commands.iter().flat_map(|command| command.words.iter().map(|word| (word, command.pipeline)));
    let texts = words.chain(script.texts.iter().map(|text| (&text.text, text.pipeline)));
    texts.filter_map(|(text, pipeline)| {
        let verb = mentioned(text)?;
        let is_run = is_run_as_text(pipeline, script) || is_code(text) && is_around(pipeline, script, &INTERPRETERS);
        is_run.then_some(verb)
    })
}

/// The request that a variable may make, as in `A=agent-cli; $A ask x`.
fn of_variables(command: &str, script: &Script) -> Option<Option<Verb>> {
    let is_set = |command: &ScriptCommand, what: &dyn Fn(&str) -> bool| {
        let sets = ["for", "export", "local", "declare", "typeset", "readonly", "read", "set"];
        let sets = sets.contains(&head(&command.words));
        command.words.iter().any(|word| what(word) && (sets || is_assignment(word)))
    };
    let sets = |what: &dyn Fn(&str) -> bool| script.commands.iter().any(|command| is_set(command, what));
    let words = || script.commands.iter().map(|command| effective(&command.words));
    let unknown = || words().filter(|words| words.first().is_some_and(|first| is_unknown(first)));
    let named = unknown().find_map(|words| verb_of(&words[1..]));
    let may = unknown().next().is_some() && sets(&|word| word.contains(NAME))
        || words().any(runs_text) && sets(&|word| mentioned(word).is_some());
    named.or_else(|| may.then(|| mentioned(command).flatten()))
}

/// Whether only a shell knows the word.
fn is_unknown(word: &str) -> bool {
    word.contains([HOLE, '*', '?']) || word.contains('{') && word.contains(',')
}

/// Whether a command runs the content of the pipeline as text, or has it as an argument.
fn is_run_as_text(pipeline: usize, script: &Script) -> bool {
    let reads_commands = |words: &[String]| {
        let is_option = |word: &String| word.starts_with(['-', '+']);
        let has_file = words.iter().skip(1).any(|word| !is_option(word)) && !words.iter().any(|word| word == "-s");
        SHELLS.contains(&head(words)) && !has_file || READ_COMMANDS.contains(&head(words))
    };
    script.commands.iter().any(|command| reads_commands(effective(&command.words)))
        || script.around(pipeline).any(|around| {
            script.commands.iter().any(|command| command.pipeline == around && runs_text(effective(&command.words)))
        })
}

/// Whether a command may run one of its words as commands.
fn runs_text(words: &[String]) -> bool {
    let is_one = |word: &String| SHELLS.contains(&name_of(word)) || RUN_TEXT.contains(&name_of(word));
    !only_shows(words) && (words.iter().any(is_one) || words.first().is_some_and(|first| is_unknown(first)))
}

fn is_around(pipeline: usize, script: &Script, programs: &[&str]) -> bool {
    let is_one = |word: &String| programs.iter().any(|program| name_of(word).starts_with(program));
    script.around(pipeline).any(|around| {
        let of_it = script.commands.iter().filter(|command| command.pipeline == around);
        of_it.map(|command| effective(&command.words)).any(|words| !only_shows(words) && words.iter().any(is_one))
    })
}

/// Whether a text looks like a program that starts others.
fn is_code(text: &str) -> bool {
    ["system", "exec", "popen", "subprocess", "spawn(", "spawnSync(", "run(", "`"]
        .iter()
        .any(|call| text.contains(call))
}

/// Whether a command only shows, compares or stores its arguments.
fn only_shows(words: &[String]) -> bool {
    const SHOW: [&str; 44] = [
        "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "cat", "ls", "man", "which", "type", "whereis",
        "test", "[", "[[", "true", "false", ":", "head", "tail", "wc", "diff", "cmp", "less", "more", "sed", "tr",
        "cut", "sort", "uniq", "jq", "tee", "touch", "mkdir", "rm", "cp", "mv", "stat", "gh", "basename", "dirname",
        "cd",
    ];
    let runs = |word: &String| {
        ["bisect", "foreach", "--exec", "-x"].contains(&word.as_str())
            || word.starts_with("alias.")
            || word.starts_with("--exec=")
    };
    match head(words) {
        "git" => !words.iter().any(runs),
        "command" => words.get(1).is_some_and(|option| option == "-v" || option == "-V"),
        program => SHOW.contains(&program),
    }
}

const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "ash"];

/// Commands that run their arguments as commands.
const RUN_TEXT: [&str; 20] = [
    "eval", "source", ".", "alias", "trap", "su", "ssh", "watch", "parallel", "script", "tmux", "screen", "at",
    "batch", "crontab", "expect", "flock", "busybox", "make", "-S",
];

/// Commands that run the commands on their standard input.
const READ_COMMANDS: [&str; 6] = ["ssh", "at", "batch", "parallel", "crontab", "expect"];

/// Commands that run programs in languages other than a shell's.
const INTERPRETERS: [&str; 12] =
    ["python", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "osascript"];

fn head(words: &[String]) -> &str {
    words.first().map_or("", |first| name_of(first))
}

fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// The request that a text mentions, whatever the text is.
fn mentioned(text: &str) -> Option<Option<Verb>> {
    text.match_indices(NAME).find_map(|(at, _)| {
        let is_apart = |c: char| c.is_whitespace() || c.is_ascii_punctuation() && !"-_./".contains(c);
        let after = &text[at + NAME.len()..];
        let words = after.trim_start_matches(|c| c == HOLE || is_apart(c));
        if after.starts_with(|c: char| c != HOLE && !is_apart(c)) {
            return None;
        }
        if after[..after.len() - words.len()].contains(HOLE) {
            return Some(None);
        }
        let words: Vec<String> = words.split(is_apart).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let verb = words.get(global_options(&words))?;
        Verb::named(verb.trim_end_matches(['.', HOLE])).filter(|verb| *verb != Verb::Answer).map(Some)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASK: Option<Option<Verb>> = Some(Some(Verb::Ask));

    #[test]
    fn a_request_is_found_wherever_it_is() {
        for command in [
            "agent-cli ask 'Deploy?' && deploy",
            "agent-cli ask x || deploy",
            "agent-cli ask x; deploy",
            "agent-cli ask x\ndeploy",
            "agent-cli ask x | tee log",
            "echo | agent-cli -v ask x",
            "agent-cli ask x > log",
            "agent-cli ask x & wait",
            "if agent-cli ask x | grep -q no; then stay; else deploy; fi",
            "while ! agent-cli ask x; do :; done",
            "X=$(agent-cli ask x); deploy",
            "X=`agent-cli ask x` deploy",
            "deploy \"$(agent-cli ask 'x')\"",
            "f() { agent-cli ask x; }; f && deploy",
            "function f { agent-cli ask x; }; f",
            "(cd sub; agent-cli ask x)",
            "{ agent-cli ask x; } && deploy",
            "FOO=1 agent-cli ask x",
            "timeout 5 agent-cli ask x",
            "env X=1 /opt/bin/agent-cli --color never ask x",
            "command agent-cli ask x",
            "exec ./agent-cli ask x",
            "time agent-cli ask x",
            "nohup agent-cli ask x",
            "echo x | xargs agent-cli ask",
            "find . -exec agent-cli ask {} \\;",
            "bash -c 'agent-cli ask x && deploy'",
            "timeout 9 sh -c \"agent-cli ask x\"",
            "eval \"agent-cli ask x\"",
            "alias a='agent-cli ask x'; a",
            "trap 'agent-cli ask x' EXIT",
            "echo 'agent-cli ask x' | sh",
            "(echo agent-cli ask x) | bash -s",
            "bash <<'EOF'\nagent-cli ask x\nEOF",
            "cat <<EOF\n$(agent-cli ask x)\nEOF",
            "source <(echo agent-cli ask x)",
            "CMD='agent-cli ask x'; $CMD && deploy",
            "CMD='agent-cli ask x'; eval $CMD",
            "for c in 'agent-cli ask x'; do $c; done",
            "A=agent-cli; $A ask x && deploy",
            "A=(agent-cli ask x); \"${A[@]}\"",
            "set -- agent-cli ask x; \"$@\"",
            "$(which agent-cli) ask x && deploy",
            "\"$BIN/agent-cli\" ask x | cat",
            "${AGENT_CLI:-agent-cli} ask x",
            "{agent-cli,ask,x}",
            "python3 -c \"import os; os.system('agent-cli ask x')\"",
            "awk 'BEGIN { system(\"agent-cli ask x\") }'",
            "git bisect run agent-cli ask x",
            "watch agent-cli ask x",
            "case $1 in a) agent-cli ask x;; esac",
            "[[ -n $(agent-cli ask x) ]] && deploy",
            "agent-cli ls && agent-cli ask x",
            "agent-cli ask x 'unterminated",
            "agent-cli help ask; agent-cli ask --multiple x",
        ] {
            assert_eq!(find(command), ASK, "{command:?}");
        }
        for command in ["agent-cli $VERB x", "agent-cli \"$@\"", "xargs agent-cli", "bash -c \"agent-cli $V\""] {
            assert_eq!(find(command), Some(None), "{command:?}");
        }
        assert_eq!(find("agent-cli resume a | head"), Some(Some(Verb::Resume)));
        assert_eq!(find("agent-cli resume a; agent-cli ask x"), ASK);
    }

    #[test]
    fn a_mention_is_no_request() {
        for command in [
            "grep 'agent-cli ask' file",
            "grep -r agent-cli spawn.rs",
            "grep -rl 'agent-cli ask' . | xargs sed -i s/a/b/",
            "echo \"use agent-cli ask\"",
            "echo agent-cli ask",
            "echo 'agent-cli spawn x' >> CLAUDE.md",
            "git commit -m \"docs: agent-cli spawn\" && cargo test",
            "git commit -m \"$(cat <<'EOF'\nuse agent-cli spawn FILE\nEOF\n)\"",
            "cat > ins.md <<'EOF'\n1. _run_ `agent-cli ask \"x\"`\nEOF",
            "gh issue create --title 'agent-cli ask fails' --body \"it doesn't\"",
            "timeout 60 grep 'agent-cli ask' file",
            "sed -i 's/agent-cli ask/agent-cli wait/' f && bash test.sh",
            "jq '.x = \"agent-cli ask\"' f | tee g",
            "cargo run -- --text 'agent-cli ask'",
            "python3 -c 'print(\"agent-cli ask\")'",
            "command -v agent-cli",
            "which agent-cli && agent-cli --version",
            "agent-cli tell 4f2c 'agent-cli ask me' | cat",
            "agent-cli questions --json > asked; agent-cli answer $(cat id) allow",
            "agent-cli ask --help | head; agent-cli spawn -h",
            "ls agent-cli && cd agent-cli && ask x",
            "\"$EDITOR\" agent-cli.md",
            "[ \"$x\" = 'agent-cli ask' ] && y",
            "echo x # agent-cli ask y",
            "deploy && echo done",
        ] {
            assert_eq!(find(command), None, "{command:?}");
        }
    }

    /// A place where a shell runs `request`.
    fn embedded(request: &str, at: usize) -> String {
        match at {
            0 => format!("{request} && x"),
            1 => format!("x; {request}"),
            2 => format!("x \"$({request})\""),
            3 => format!("if {request}; then x; fi"),
            4 => format!("({request})"),
            5 => format!("{request} | x"),
            6 => format!("X=1 {request}"),
            7 => format!("x <<E\n$({request})\nE\n"),
            8 => format!("bash -c '{request}'"),
            9 => format!("f() {{ {request}; }}; f"),
            _ => format!("eval \"{request}\""),
        }
    }

    proptest! {
        #[test]
        fn a_request_is_found_in_any_nest(places in prop::collection::vec(0..11usize, 1..4), before in "x[a-z ]{0,9}(;|\n|&&)") {
            let nested = places.iter().fold("agent-cli ask x".to_owned(), |inner, at| match at {
                // Quotes cannot be nested like this.
                8 | 10 if inner.contains(['\'', '"']) => inner,
                at => embedded(&inner, *at),
            });
            prop_assert_eq!(find(&nested), ASK, "{}", nested);
            prop_assert_eq!(find(&format!("{before} {nested}")), ASK, "{}", nested);
        }

        #[test]
        fn any_text_is_judged(text in "(agent-cli|ask| |\\$|\\(|\\)|'|\"|`|;|&|<|\n|=|[a-z]){0,40}") {
            let _ = find(&text);
        }
    }
}
