//! The output of the command that a resumed call runs instead.

use crate::session::{REQUEST, Session, run_instead};
use crate::support::{Turn, on_every_version};

on_every_version!(
    output_is_the_result_to_the_byte_but_for_blanks_around_it,
    output_of_more_than_30000_characters_is_put_into_a_file,
);

fn output_is_the_result_to_the_byte_but_for_blanks_around_it(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let inner =
        "  @x \"q\" 'a' `b` $HOME \\n\r\n\ttab\u{7} \u{1b}[31m\u{1F382}\u{2028}\n\n--help\nSGN_PEND_STARTED (x)";
    let cases = [
        (inner.to_owned(), inner),
        (format!("\n \n{inner} \n\n"), inner),
        (String::new(), "(Bash completed with no output)"),
    ];
    for (output, expected) in cases {
        let file = session.write("output", &output);
        session.decide(&run_instead(&format!("/bin/cat '{}'", file.display())));
        assert_eq!(session.resume().tool_result(), (expected, false));
    }
}

fn output_of_more_than_30000_characters_is_put_into_a_file(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let file = session.write("output", "");
    session.decide(&run_instead(&format!("/bin/cat '{}'", file.display())));
    let most = "0123456789abcde\n".repeat(1875).trim_end().to_owned() + "f";
    assert_eq!(most.len(), 30_000);
    session.write("output", &most);
    assert_eq!(session.resume().tool_result(), (most.as_str(), false));
    session.write("output", &format!("{most}g"));
    let run = session.resume();
    assert!(run.tool_result().0.starts_with("<persisted-output>\nOutput too large (29.3KB)."), "{run:?}");
}
