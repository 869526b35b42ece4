//! A command that is taken for a request has the words that the shells on this machine make of it.
//!
//! Whenever agent-cli claims to know the words of a command, each shell runs the command with a stand-in for agent-cli that
//! prints its arguments, its directory and its standard input.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "support/executable.rs"]
#[allow(dead_code, reason = "others take more of it")]
mod executable;

use agent_cli::records::{Recognised, Surroundings, recognise};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use executable::write_executable;

/// More cases than usual can be asked for with `PROPTEST_CASES`.
const CASES: u32 = 64;
/// The exit status of the stand-in, to notice a command that does more than run it.
const STATUS: i32 = 3;
const STAND_IN: &str = "#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\"\npwd -P\nprintf '\\0'\ncat\nprintf '\\0'\nexit 3\n";

#[test]
fn tricky_requests_are_read_as_shells_read_them() {
    for place in Place::all() {
        for command in [
            "agent-cli ask x",
            "\n\t agent-cli   ask\tx \n\n",
            "agent-cli ask 'Who'\\''s there? (a|b) & more; it costs $5 *now*'",
            r#"agent-cli ask "Who's there? (a|b) & more; \$5 {a,b} ~ # !""#,
            r#"agent-cli ask "\a \\ \" \` \$PWD \n""#,
            r"agent-cli ask \a\\\ \'\$\~\*\#\;",
            "agent-cli ask '' \"\" ''\"\" a''b",
            "agent-cli ask a\\\nb \\\n c \"d\\\ne\" 'f\\\ng'",
            "agent-cli ask x \\\n",
            "agent-cli ask x\\\n",
            "agent-\\\ncli ask x",
            "agent-cli ask \"one\n\n  two\" 'three\n'",
            "agent-cli ask \"a $ b 5$, 6$. ($) '$'\" 7$ $",
            "agent-cli ask ~ ~/x ~/'a b' '~' \"~\" \\~ \\\n~/y",
            "agent-cli ask \"$HOME\" \"${HOME}x\" \"$HOME/y\" \"a${PWD}b\" \"$PWD-$PWD\"",
            "agent-cli ask $HOME ${PWD}",
            "agent-cli ask --a=b a=b a:b @x %1 +x , a=\"$HOME\"",
            "agent-cli ask übung \"naïve – “so”\" 手順.md",
            "agent-cli ask 'a\rb' \"\u{1b}[1m\" 'tab\there'",
            "./agent-cli spawn x.md",
            "'./agent-cli' spawn x.md",
            "\"$PWD\"/agent-cli spawn x.md",
            "\"${PWD}/agent-cli\" spawn x.md",
            "$PWD/agent-cli spawn x.md",
            "~/agent-cli -v spawn x.md",
            "\"$HOME\"/agent-cli --verbose wait --for 3d",
            "agent-cli ask x 2>&1",
            "agent-cli ask x 2>/dev/null; # why",
            "2>> /dev/null agent-cli ask '#' </dev/null",
            "# first\n\nagent-cli ask x;\n# last",
            "cd sub && agent-cli ask x \"$HOME\"",
            "cd sub\ncd .. ; cd './sub/deep er'&&\n agent-cli ask ../x",
            "cd .././ && cd ~ && agent-cli ask x",
            "cd / && ~/agent-cli ask x",
            "agent-cli ask - <<'EOF' 2>&1\n $x `y` \\z 'it'\n\nEOF\n",
            "cd sub && agent-cli ask - <<EOF # why\none \"two\"\nEOF\n\n",
            "agent-cli ask x <<-\"EOF\" - y\n\t\t a\n\tb\n\tEOF",
            "agent-cli ask \"a $(cat <<'EOF'\nit's (a) \"b\" $x `y` \\ z\n\nEOF\n) b\" c",
            "agent-cli ask \"$(cat <<EOF\none\nEOF\n)\"",
        ] {
            let known = place.compare(command);
            // Outside of quotes a value may fall apart, which depends on the place.
            let depends = command.contains(" $HOME ") || command.starts_with("$PWD");
            assert!(known || depends && !place.is_plain, "{command:?} is a request");
        }
    }
}

#[test]
fn whatever_is_taken_for_a_request_is_read_as_shells_read_it() {
    let places = Place::all();
    let cases = env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    // A failure prints the command, which should be added to the table above.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&command(), |command| {
        for place in &places {
            place.compare(&command);
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Commands that look like requests. Most of them are, because only those are compared.
fn command() -> impl Strategy<Value = String> {
    let program = prop::sample::select(vec![
        "agent-cli ", "./agent-cli ", "\"$PWD\"/agent-cli ", "~/agent-cli ", "agent-cli -v ", "'agent'-\"cli\"\t",
        "\nagent-cli \\\n", "cd sub && agent-cli ", "cd ./sub/..; agent-cli ", "cd ..\ncd /\n~/agent-cli ",
        "# a\nagent-cli 2>/dev/null ", "<<'E' agent-cli ",
    ]);
    let words = prop::collection::vec(prop::collection::vec(piece(), 0..4), 0..5);
    let end = prop_oneof![8 => Just(""), 1 => Just("\n"), 1 => Just(" \n "), 1 => Just("\\\n"), 1 => odd()];
    (program, words, end).prop_map(|(program, words, end)| {
        let words: Vec<String> = words.into_iter().map(|pieces| pieces.concat()).collect();
        format!("{program}ask {}{end}", words.join(" "))
    })
}

/// A part of a word.
fn piece() -> impl Strategy<Value = String> {
    let inside = prop::sample::select(vec![
        "a", " ", "\n", "*", "?", "~", "#", "!", ";", "|", "&", "(", ")", "<", ">", "{a,b}", "[a]", "é", "=", ":", "-",
        "%", "^", "/", ",", ".", "\t", "\r", "\\\\", "\\\n", "\\a", "]", "–",
    ]);
    let inside = || prop::collection::vec(inside.clone(), 0..5).prop_map(|parts| parts.concat());
    let special = prop::sample::select(vec![
        "'", "\\\"", "\\$", "\\`", "$HOME", "${HOME}", "$PWD", "${PWD}", "$ ", "$.", "$,", "$", "\\", "$PWDx",
        "${HOME}x", "$PWD\\\n", "$(a)", "`", "$1", "$'a'", "${PWD}[1]", "$HOME:h", "$\\\nPWD", "$P\\\nWD",
    ]);
    let plain = prop::sample::select(vec![
        "a", "b-c", "--d", "=", ":", "/", ".", ",", "%", "+", "@", "_", "é", "~", "~/", "\\\n", "\\ ", "\\\\", "\\'",
        "\\\"", "\\$", "\\*", "\\~", "\\é", "\\a", "$HOME", "${HOME}", "$PWD", "$", "\\\t", "\\#",
    ]);
    prop_oneof![
        3 => inside().prop_map(|inside| format!("'{inside}'")),
        3 => inside().prop_map(|inside| format!("\"{inside}\"")),
        3 => (inside(), special, inside()).prop_map(|(before, special, after)| format!("\"{before}{special}{after}\"")),
        5 => plain.prop_map(str::to_owned),
        1 => odd().prop_map(str::to_owned),
    ]
}

/// Parts that are rarely found in a request.
fn odd() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "|", "; ", "&", "&& a", "\n", "\na", "$(a)", "`a`", "*", "?", "[a]", "{a,b}", ">x", "<x", "<<a\na\n", " # a",
        "#", "!", "'", "\"", "\\", "$x", "$1", "$'a'", "$\"a\"", "(", ")", "^", "~a", " ~+", "\r", "\u{a0}",
        "\u{3000}", " a=~/b", "$((1))", "=a", " 2>&1", " 2>/dev/null", ";", " # a\n", " <<E\na\nE\n", " <<'E'\n$x\nE",
        " </dev/null", " 2>&1 # a", " \"$(cat <<'E'\n'\nE\n)\"",
    ])
}

/// Where commands run: a working and a home directory, both with the stand-in.
struct Place {
    _folder: TempDir,
    pwd: PathBuf,
    home: PathBuf,
    is_plain: bool,
}

impl Place {
    /// A place where nothing needs quotes, and one where everything does.
    fn all() -> [Self; 2] {
        [Self::new("pwd", "home"), Self::new("it's  a [p]*wd $HOME \\x", "~ h\"o\"me; #")]
    }

    fn new(pwd: &str, home: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let [pwd_path, home_path] = [pwd, home].map(|name| {
            let path = top.join(name);
            fs::create_dir(&path).unwrap();
            let stand_in = path.join("agent-cli");
            write_executable(&stand_in, STAND_IN);
            path
        });
        fs::create_dir_all(pwd_path.join("sub/deep er")).unwrap();
        Self { _folder: folder, is_plain: pwd == "pwd", pwd: pwd_path, home: home_path }
    }

    /// Runs `command` in every shell if it is taken for a request, and checks its words. Returns whether it was.
    fn compare(&self, command: &str) -> bool {
        let surroundings = Surroundings { pwd: self.pwd.to_str().unwrap(), home: self.home.to_str().unwrap() };
        let Recognised::Request(call) = recognise(command, &surroundings) else { return false };
        for (shell, options) in shells() {
            let output = Command::new(&shell)
                .args(options)
                .args(["-c", command])
                .current_dir(&self.pwd)
                .env_clear()
                .env("LC_ALL", "C.UTF-8")
                .env("PWD", &self.pwd)
                .env("HOME", &self.home)
                .env("PATH", format!("{}:/usr/bin:/bin", self.pwd.display()))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let context = || format!("{command:?} in {} by {}: {output:?}", self.pwd.display(), shell.display());
            assert_eq!(output.status.code(), Some(STATUS), "{}", context());
            let printed = String::from_utf8(output.stdout.clone()).unwrap();
            let mut words: Vec<&str> = printed.split('\0').collect();
            assert_eq!(words.pop(), Some(""), "{}", context());
            assert_eq!(words.pop(), Some(call.input.as_deref().unwrap_or_default()), "{}", context());
            let directory = words.pop().and_then(|line| line.strip_suffix('\n')).map(PathBuf::from);
            let expected = call.directory.as_ref().map_or(self.pwd.as_path(), Path::new);
            assert_eq!(directory, fs::canonicalize(expected).ok(), "{}", context());
            // A bare name is shown as the path where it was found.
            if call.program.contains('/') {
                assert_eq!(words[0], call.program, "{}", context());
            }
            assert_eq!(words[1..], call.arguments, "{}", context());
        }
        true
    }
}

/// The shells that Claude Code may use and this machine has, with options.
fn shells() -> Vec<(PathBuf, &'static [&'static str])> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let installed = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    // Many users of zsh set these, and Claude Code keeps them.
    const OF_USERS: [&str; 8] = ["-o", "rcquotes", "-o", "autopushd", "-o", "shwordsplit", "-o", "cdablevars"];
    [("sh", &[][..]), ("bash", &[]), ("dash", &[]), ("zsh", &[]), ("zsh", &OF_USERS)]
        .into_iter()
        .filter_map(|(name, options)| Some((installed(name)?, options)))
        .collect()
}
