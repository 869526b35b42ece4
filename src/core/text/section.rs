//! A section of a text file that belongs to agent-cli, between two lines with HTML comments. Everything outside of it is kept to
//! the byte.

const BEGIN: &str = "<!-- begin agent-cli:";
const END: &str = "<!-- end agent-cli -->";
/// In the first marker of a file that contained nothing before.
const WITH_FILE: &str = "with this file";

/// A text, divided at its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section<'a> {
    /// What comes before, with the line break that separates it from the section.
    before: &'a str,
    /// The line with the first marker, with its line break.
    begin: &'a str,
    pub(crate) body: &'a str,
    /// The second marker, with its line break if there is one.
    end: &'a str,
    after: &'a str,
}

/// Markers that do not enclose exactly one section. Each names a line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenMarkers {
    #[error("the section of agent-cli that begins in line {0} has no end")]
    NoEnd(usize),
    #[error("line {0} ends a section of agent-cli that does not begin")]
    NoBegin(usize),
    #[error("line {0} begins a second section of agent-cli")]
    Second(usize),
}

/// What the first marker says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author<'a> {
    /// The command that wrote the section.
    pub(crate) writes: &'a str,
    /// The command that removes it.
    pub(crate) removes: &'a str,
}

impl<'a> Section<'a> {
    /// The section in a text, if there is one.
    pub(crate) fn find(text: &'a str) -> Result<Option<Self>, BrokenMarkers> {
        let (mut begin, mut found): (Option<(usize, usize, usize)>, Option<Self>) = (None, None);
        let (mut at, mut example) = (0, 0);
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            // Some editors put a byte order mark before the first line.
            let (start, marker) = (at, line.trim_start_matches('\u{feff}').trim_start());
            at += line.len();
            if start < example {
                continue;
            }
            if let (None, Some(length)) = (begin, example_length(&text[start..])) {
                example = start + length;
            } else if marker.starts_with(BEGIN) {
                if begin.is_some() || found.is_some() {
                    return Err(BrokenMarkers::Second(number));
                }
                begin = Some((number, start, at));
            } else if let Some(rest) = marker.strip_prefix(END) {
                let Some((_, of_begin, of_body)) = begin.take() else { return Err(BrokenMarkers::NoBegin(number)) };
                // A text that was appended to a file without a final line break stays.
                let end = if rest.trim().is_empty() { at } else { at - rest.len() };
                found = Some(Self {
                    before: &text[..of_begin],
                    begin: &text[of_begin..of_body],
                    body: &text[of_body..start],
                    end: &text[start..end],
                    after: &text[end..],
                });
            }
        }
        match begin {
            Some((number, ..)) => Err(BrokenMarkers::NoEnd(number)),
            None => Ok(found),
        }
    }

    /// Whether the file was created for the section.
    pub(crate) fn came_with_its_file(&self) -> bool {
        self.begin.contains(WITH_FILE)
    }

    /// The text with another body.
    pub(crate) fn with_body(&self, body: &str) -> String {
        let body = body.replace('\n', line_break(self.begin));
        [self.before, self.begin, &body, self.end, self.after].concat()
    }

    /// The text without the section, as it was before [`add`].
    pub(crate) fn removed(&self) -> String {
        let before = self.before.strip_suffix(line_break(self.begin)).unwrap_or(self.before);
        // What was added behind the section since then must not continue the last line.
        let is_apart = before.is_empty() || before.ends_with('\n') || self.after.is_empty();
        let is_apart = is_apart || self.after.starts_with(['\n', '\r']);
        [if is_apart { before } else { self.before }, self.after].concat()
    }
}

/// The length of the code block that a text begins with, if a whole section is in it, as in an explanation of the markers.
fn example_length(text: &str) -> Option<usize> {
    let fence = |line: &str| {
        let line = line.trim();
        let of = line.chars().next().filter(|first| "`~".contains(*first))?;
        let rest = line.trim_start_matches(of);
        (line.len() - rest.len() >= 3).then(|| (of, line.len() - rest.len(), rest.is_empty()))
    };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    let (of, count, _) = fence(first)?;
    let (mut length, mut markers) = (first.len(), (false, false));
    for line in lines {
        length += line.len();
        match fence(line) {
            Some((closing, long, true)) if closing == of && long >= count => {
                return (markers == (true, true)).then_some(length);
            }
            _ if line.trim_start().starts_with(BEGIN) => markers.0 = true,
            _ if line.trim_start().starts_with(END) => markers.1 = markers.0,
            _ => {}
        }
    }
    None
}

/// A text with a section at its end; `None`: of a new file. Its line breaks are those of the text, which has a final one if it had
/// one before.
pub(crate) fn add(text: Option<&str>, author: Author<'_>, body: &str) -> String {
    let (with_file, text) = (text.is_none(), text.unwrap_or_default());
    let newline = line_break(text);
    let (first, last) = match text {
        "" => ("", newline),
        text if text.ends_with('\n') => (newline, newline),
        _ => (newline, ""),
    };
    let Author { writes, removes } = author;
    let also = if with_file { format!(" {WITH_FILE}") } else { String::new() };
    let body = body.replace('\n', newline);
    format!("{text}{first}{BEGIN} {writes} wrote this, {removes} removes it{also} -->{newline}{body}{END}{last}")
}

/// The line breaks of a text: those of its first line.
fn line_break(text: &str) -> &'static str {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.ends_with("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AUTHOR: Author<'_> = Author { writes: "init", removes: "uninit" };

    fn added(text: &str, body: &str) -> String {
        add(Some(text), AUTHOR, body)
    }

    fn removed(text: &str) -> String {
        Section::find(text).unwrap().unwrap().removed()
    }

    #[test]
    fn a_section_in_a_code_block_is_an_example() {
        let example = format!("# How\n\n```html\n{BEGIN} wrote this -->\nours\n{END}\n```\n");
        assert_eq!(Section::find(&example), Ok(None));
        let both = add(Some(&example), AUTHOR, "body\n");
        assert_eq!(Section::find(&both).unwrap().unwrap().removed(), example);
        // The fence of an unclosed code block does not pair with one in the section.
        let open = add(Some("````\ntext\n"), AUTHOR, "```\ncode\n```\n````\nmore\n````\n");
        assert!(Section::find(&open).unwrap().is_some());
        let marked = format!("\u{feff}{BEGIN} wrote this -->\nours\n{END}\n");
        assert!(Section::find(&marked).unwrap().is_some());
    }

    #[test]
    fn a_section_follows_after_an_empty_line() {
        assert_eq!(
            added("# Mine\n", "words\n"),
            "# Mine\n\n<!-- begin agent-cli: init wrote this, uninit removes it -->\nwords\n<!-- end agent-cli -->\n"
        );
        assert_eq!(
            add(None, AUTHOR, "words\n"),
            "<!-- begin agent-cli: init wrote this, uninit removes it with this file -->\nwords\n<!-- end agent-cli -->\n"
        );
        assert!(Section::find(&add(None, AUTHOR, "")).unwrap().unwrap().came_with_its_file());
        assert!(!Section::find(&added("", "")).unwrap().unwrap().came_with_its_file());
    }

    #[test]
    fn what_was_added_around_a_section_stays() {
        let text = added("a", "words\n");
        assert_eq!(removed(&format!("{text}b")), "a\nb");
        assert_eq!(removed(&format!("{text}\nb\n")), "a\nb\n");
        let text = added("a\n", "words\n");
        assert_eq!(removed(&format!("{text}\nb\n")), "a\n\nb\n");
        assert_eq!(removed(&format!("{text}b\n")), "a\nb\n");
        assert_eq!(removed(&text.replace("a\n\n", "")), "", "and what was removed does not come back");
    }

    #[test]
    fn a_marker_may_be_indented_and_end_in_blanks() {
        let text = added("a\n", "words\n").replace("<!--", "  <!--").replace("-->\n", "--> \t\n");
        assert_eq!(Section::find(&text).unwrap().unwrap().body, "words\n");
        assert_eq!(removed(&text), "a\n");
    }

    #[test]
    fn markers_that_enclose_nothing_are_named_by_their_lines() {
        let (begin, end) = (format!("{BEGIN} -->\n"), format!("{END}\n"));
        for (text, error) in [
            (format!("a\n{begin}b\n"), BrokenMarkers::NoEnd(2)),
            (format!("a\n{end}b\n"), BrokenMarkers::NoBegin(2)),
            (format!("{end}{begin}"), BrokenMarkers::NoBegin(1)),
            (format!("{begin}{end}{end}"), BrokenMarkers::NoBegin(3)),
            (format!("{begin}{begin}{end}"), BrokenMarkers::Second(2)),
            (format!("{begin}{end}a\n{begin}{end}"), BrokenMarkers::Second(4)),
        ] {
            assert_eq!(Section::find(&text), Err(error), "{text}");
        }
        assert_eq!(Section::find("a <!-- begin agent-cli: in a line -->\n"), Ok(None));
    }

    proptest! {
        #[test]
        fn what_is_added_can_be_removed_without_a_trace(
            text in "([a-z`<!# \t\\-]{0,4}(\n|\r\n|\r|\u{feff})?){0,6}",
            body in "([a-z]{0,3}\n){0,3}",
            other in "([a-z]{0,3}\n){0,3}",
        ) {
            let with = added(&text, &body);
            prop_assert_eq!(removed(&with), text.clone());
            let section = Section::find(&with).unwrap().unwrap();
            prop_assert_eq!(section.with_body(&body), with.clone(), "the same again changes nothing");
            prop_assert_eq!(section.body.replace("\r\n", "\n"), body);
            prop_assert_eq!(with.ends_with('\n'), text.is_empty() || text.ends_with('\n'));
            let changed = section.with_body(&other);
            prop_assert_eq!(removed(&changed), text.clone());
            prop_assert!(with.starts_with(&text));
            let breaks: Vec<_> = text.split_inclusive('\n').take(1).filter(|line| line.ends_with('\n')).collect();
            if breaks.iter().all(|line| line.ends_with("\r\n")) && !breaks.is_empty() {
                prop_assert_eq!(with[text.len()..].matches('\n').count(), with[text.len()..].matches("\r\n").count());
            }
        }

        #[test]
        fn any_text_is_read(text in "(<!-- begin agent-cli: -->|<!-- end agent-cli -->|a|\n|\r\n|\u{e9}){0,8}") {
            if let Ok(Some(section)) = Section::find(&text) {
                prop_assert_eq!(section.with_body(&section.body.replace("\r\n", "\n")).len() >= section.removed().len(), true);
                prop_assert_eq!([section.before, section.begin, section.body, section.end, section.after].concat(), text.clone());
            }
        }
    }
}
