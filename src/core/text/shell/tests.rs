//! The words of shell commands, as the shells see them.

use proptest::prelude::*;

use super::*;

const HERE: Surroundings<'_> = Surroundings { pwd: "/srv/my project", home: "/home/dev" };

fn words(command: &str) -> Option<Vec<String>> {
    split(command, &HERE).map(|simple| simple.words)
}

#[test]
fn words_are_split_as_a_shell_would() {
    let table: [(&str, &[&str]); 16] = [
        ("a  b\tc\n", &["a", "b", "c"]),
        ("\n  a b", &["a", "b"]),
        ("a 'b c' \"d e\" f\\ g", &["a", "b c", "d e", "f g"]),
        ("a '' \"\" b''c", &["a", "", "", "bc"]),
        ("a 'it'\\''s' \"it's\"", &["a", "it's", "it's"]),
        (r#"a "\$ \` \" \\ \n \'""#, &["a", r#"$ ` " \ \n \'"#]),
        (r"a 'x\ty' x\ty", &["a", r"x\ty", "xty"]),
        ("a b\\\nc \\\n d \"e\\\nf\" 'g\\\nh'", &["a", "bc", "d", "ef", "g\\\nh"]),
        (
            "a \"$PWD/x\" \"${HOME}/y\" $HOME/z ${HOME}",
            &["a", "/srv/my project/x", "/home/dev/y", "/home/dev/z", "/home/dev"],
        ),
        ("~/a ~ ~/'b c'", &["/home/dev/a", "/home/dev", "/home/dev/b c"]),
        ("a '~' \"~/b\" \\~", &["a", "~", "~/b", "~"]),
        ("a '$PWD `b` $(c) *'", &["a", "$PWD `b` $(c) *"]),
        ("a \"5$ or $, ('$')\" 5$", &["a", "5$ or $, ('$')", "5$"]),
        (
            "a \"Who's there? (a|b) & more; #1 !{x,y} *now* <z>\"",
            &["a", "Who's there? (a|b) & more; #1 !{x,y} *now* <z>"],
        ),
        ("a \"two\n\nlines\"", &["a", "two\n\nlines"]),
        ("a --x=y übung.md", &["a", "--x=y", "übung.md"]),
    ];
    for (command, expected) in table {
        assert_eq!(
            words(command).as_deref(),
            Some(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{command:?}"
        );
    }
}

#[test]
fn what_needs_a_shell_has_no_words() {
    for command in [
        "", " \n", "a | b", "a; b", ";a", "a && b", "a || b", "a & b", "a&", "a\nb", "(a)", "{ a; }", "! a", "a $(b)",
        "a `b`", "a \"`b`\"", "a \"$(b)\"", "a $b", "a \"$5\"", "a $PWDX", "a ${PWD:-x}", "a ${#HOME}", "a ${}",
        "a $((1))", "a $[1]", "a \"$$\"", "a $@", "a $'b'", "a $\"b\"", "a $PWD", "a \"$PWD\\\nX\"", "a \"$PWDé\"",
        "a \"$PWD[1]\"", "a \"$HOME:h\"", "a *", "a b?", "a [b]", "a {b,c}", "a >b", "a; 2>&1", "</dev/null\na",
        "<<E\nb\nE\na", "a <b", "a b#c", "a !", "a ^b", "a 'b", "a 'b''c'", "a \"b", "a b\\", "a \"b\\", "a ~b",
        "a ~+", "a ~\"\"/b", "a b~", "a --b=~/c", "a =b", "a ''=b", "a \0", "a '\0'", "a\rb", "a \u{a0}b",
    ] {
        assert_eq!(words(command), None, "{command:?}");
    }
}

#[test]
fn a_value_that_is_not_known_is_not_guessed() {
    let nowhere = Surroundings { pwd: "", home: "/" };
    assert_eq!(split("a \"$PWD\"", &nowhere), None);
    assert_eq!(split("cd b && a", &nowhere), None);
    assert_eq!(split("~/a", &nowhere), None);
    assert_eq!(split("a $HOME", &nowhere).unwrap().words, ["a", "/"]);
}

#[test]
fn words_of_commands_that_people_paste_are_quoted_where_a_shell_needs_it() {
    for word in ["", "=ls", "it's", "a b", "*", "~/x", "#", "Bash(git:*)"] {
        assert_eq!(shell_word(word), quoted(word));
    }
    for word in ["a", "--x=y", "/a/b.md", "+1", "@f", "50%"] {
        assert_eq!(shell_word(word), word);
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text: String, pwd: String, home: String) {
        let _ = split(&text, &Surroundings { pwd: &pwd, home: &home });
    }

    #[test]
    fn text_like_a_command_is_read(text in "[ab $PWDHOME{}~/'\"\\\\\n\t=*;|&()é]{0,40}") {
        let _ = words(&text);
    }

    #[test]
    fn quoted_words_come_back(list in prop::collection::vec("[^\u{0}\u{1}\u{7f}]*", 1..6)) {
        let command = list.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(&command), Some(list));
    }
}
