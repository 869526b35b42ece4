//! A question in a file that a person answers by editing it: the question, a line that begins with `A:`, the answer.

use jiff::{SignedDuration, Timestamp};

use crate::core::requests::question_form::{Form, QuestionOption};

/// The mark before the answer, at the beginning of a line.
const MARK: &str = "A:";
/// A last line that says that the answer is complete.
const CLOSED: &str = "---";
/// An answer that is not closed is complete once its file has not changed for this long: editors save in several steps, and
/// some automatically while a person still thinks.
pub(crate) const QUIET: SignedDuration = SignedDuration::from_secs(10);

/// Why a file cannot be asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadText {
    #[error("it has no question")]
    NoQuestion,
    #[error("it already has an answer: it has to end with the question, or with a line `A:` and nothing after it")]
    Answered,
    #[error("a line of its context or options begins with `A:`, where an answer would: indent it")]
    Marked,
}

/// Why a file does not answer its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswerYet {
    #[error("has no line that begins with `A:` below the question")]
    NoMark,
    #[error("has nothing after `A:`")]
    Empty,
    #[error("no longer has the question that was asked, so nothing in it is an answer")]
    OtherQuestion,
}

/// What a person has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenAnswer<'a> {
    /// Without empty lines around it, and without blanks after the mark and at its end.
    pub(crate) answer: &'a str,
    /// Whether a line says that it is complete.
    pub(crate) closed: bool,
}

/// The question in the text of a file that an agent asks with.
pub(crate) fn question(text: &str) -> Result<&str, BadText> {
    let (question, after) = marks(text).last().map_or((text, ""), |at| (&text[..at], &text[at + MARK.len()..]));
    if !after.trim().is_empty() {
        return Err(BadText::Answered);
    }
    Some(question.trim_end()).filter(|question| !question.trim().is_empty()).ok_or(BadText::NoQuestion)
}

/// Checks that the answer to a question has one place in its file: the context must not contain the mark.
pub(crate) fn check(form: &Form) -> Result<(), BadText> {
    if marks(&in_full(form)).count() == marks(&form.question).count() { Ok(()) } else { Err(BadText::Marked) }
}

/// The text of a new file for a question, with room for the answer.
pub(crate) fn text(form: &Form) -> String {
    format!("{}\n\n{MARK} \n", in_full(form))
}

/// The question with everything that a person should know.
fn in_full(form: &Form) -> String {
    let mut parts = vec![form.question.trim_end().to_owned()];
    parts.extend(form.context.as_ref().map(|context| context.trim_end().to_owned()));
    if !form.options.is_empty() {
        let option = |option: &QuestionOption| match option.description.trim() {
            "" => format!("\n- {}", option.key),
            description => format!("\n- {}: {description}", option.key),
        };
        let these = if form.multiple { "one or more of these, with commas" } else { "one of these" };
        let how = format!("Answer with {these}{}:", if form.free_text { ", or with any text" } else { "" });
        parts.push(format!("{how}\n{}", form.options.iter().map(option).collect::<String>()));
    }
    parts.join("\n\n")
}

/// What a person has written below the question, in a file that its agent wrote or in a new one.
///
/// A changed question cannot be answered: the record would name another one.
pub(crate) fn written<'a>(text: &'a str, form: &Form) -> Result<WrittenAnswer<'a>, NoAnswerYet> {
    match written_below(text, &form.question) {
        Err(NoAnswerYet::OtherQuestion) => written_below(text, &in_full(form)),
        written => written,
    }
}

fn written_below<'a>(text: &'a str, question: &str) -> Result<WrittenAnswer<'a>, NoAnswerYet> {
    let lines = |text: &str| text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    // The question may have such lines itself.
    let Some(at) = marks(text).nth(marks(question).count()) else {
        return Err(if lines(text) == lines(question) { NoAnswerYet::NoMark } else { NoAnswerYet::OtherQuestion });
    };
    if lines(&text[..at]) != lines(question) {
        return Err(NoAnswerYet::OtherQuestion);
    }
    let after = answer_from(&text[at + MARK.len()..]);
    let before_last = after.rfind('\n').map_or(0, |at| at + 1);
    let closed = after[before_last..].trim() == CLOSED;
    let answer = if closed { after[..before_last].trim_end() } else { after };
    if answer.is_empty() { Err(NoAnswerYet::Empty) } else { Ok(WrittenAnswer { answer, closed }) }
}

/// The text after the mark. Below the line of the mark, blanks may be the indentation of the first line.
fn answer_from(after: &str) -> &str {
    let begins = after.len() - after.trim_start().len();
    let line = after[..begins].rfind('\n').map_or(begins, |at| at + 1);
    after[line..].trim_end()
}

/// When an answer that is not closed and has not changed since `quiet_since` counts; `None`: now.
pub(crate) fn counts_from(quiet_since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    Some(quiet_since.saturating_add(QUIET).unwrap_or(quiet_since)).filter(|counts| now < *counts)
}

/// The positions of lines that begin with the mark.
fn marks(text: &str) -> impl Iterator<Item = usize> {
    let mut begins = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = begins;
        begins += line.len();
        line.starts_with(MARK).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_question_is_everything_above_the_empty_mark() {
        for (text, expected) in [
            ("When?\n\nA:\n", Ok("When?")),
            ("When?\n", Ok("When?")),
            ("Which?\nA: apple\nB: pear\n\nA: \n\n", Ok("Which?\nA: apple\nB: pear")),
            ("Which?\nA: apple\nB: pear\n", Err(BadText::Answered)),
            ("When?\nA: now\n", Err(BadText::Answered)),
            ("\n \nA:\n", Err(BadText::NoQuestion)),
            ("", Err(BadText::NoQuestion)),
        ] {
            assert_eq!(question(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_answer_is_everything_below_it() {
        let when = "When?";
        let answer = |answer, closed| Ok(WrittenAnswer { answer, closed });
        for (text, question, expected) in [
            ("When?\n\nA: Jan 1st\n", when, answer("Jan 1st", false)),
            ("When?\nA:Jan 1st", when, answer("Jan 1st", false)),
            ("When?  \r\n\r\nA: Jan 1st\r\n", when, answer("Jan 1st", false)),
            ("When?\nA:\n\n  two\n\n  lines \n\n---\n", when, answer("  two\n\n  lines", true)),
            ("When?\nA:  \r\n\r\n\ttwo\r\nlines\r\n---\r\n", when, answer("\ttwo\r\nlines", true)),
            ("When?\nA: x\nA: y\n", when, answer("x\nA: y", false)),
            ("When?\nA: ---\n", when, Err(NoAnswerYet::Empty)),
            ("When?\nA: \n", when, Err(NoAnswerYet::Empty)),
            ("When?\n", when, Err(NoAnswerYet::NoMark)),
            ("", when, Err(NoAnswerYet::OtherQuestion)),
            ("When and where?\nA: x\n", when, Err(NoAnswerYet::OtherQuestion)),
            ("Which?\nA: apple\nA: 1\n", "Which?\nA: apple", answer("1", false)),
            ("Which?\nA: apple\n", "Which?\nA: apple", Err(NoAnswerYet::NoMark)),
            ("a\nWhen?\nA: x\n", when, Err(NoAnswerYet::OtherQuestion)),
        ] {
            assert_eq!(written(text, &Form::text(question)), expected, "{text:?}");
        }
    }

    #[test]
    fn a_new_file_names_the_options() {
        let option = |key: &str, description: &str| QuestionOption { key: key.into(), description: description.into() };
        let options = vec![option("yes", "at once"), option("no", "")];
        let form = Form { options, context: Some("It is late.\n".into()), ..Form::text("Deploy?") };
        let file = text(&form);
        assert_eq!(
            file,
            "Deploy?\n\nIt is late.\n\nAnswer with one of these, or with any text:\n\n- yes: at once\n- no\n\nA: \n"
        );
        let filled = file.replace("A: ", "A: yes");
        assert_eq!(written(&filled, &form), Ok(WrittenAnswer { answer: "yes", closed: false }));
    }

    #[test]
    fn an_answer_counts_once_its_file_is_quiet() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (now, expected) in [(100, Some(at(110))), (109, Some(at(110))), (110, None), (1_000, None)] {
            assert_eq!(counts_from(at(100), at(now)), expected);
        }
    }

    #[test]
    fn a_question_has_one_place_for_its_answer() {
        let option = |text: &str| vec![QuestionOption { key: "k".into(), description: text.into() }];
        for (form, expected) in [
            (Form::text("Which?\nA: apple"), Ok(())),
            (Form { context: Some("x\n  A: y".into()), ..Form::text("Deploy?") }, Ok(())),
            (Form { context: Some("A: yes\n---".into()), ..Form::text("Deploy?") }, Err(BadText::Marked)),
            (Form { options: option("x\nA: yes"), ..Form::text("Deploy?") }, Err(BadText::Marked)),
        ] {
            assert_eq!(check(&form), expected, "{form:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_into_a_new_file_comes_back(
            asked in "[a-zA:\n ]{0,20}[a-z]", typed in "[a-z][a-zA:\n ]{0,20}[a-z]",
        ) {
            let form = Form::text(&asked);
            let file = text(&form);
            prop_assert_eq!(question(&file), Ok(asked.as_str()));
            let filled = format!("{}{typed}\n", file.trim_end_matches('\n'));
            prop_assert_eq!(written(&filled, &form), Ok(WrittenAnswer { answer: &typed, closed: false }));
            prop_assert!(written(&file, &form).is_err());
        }
    }
}
