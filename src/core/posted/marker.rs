//! The lines with which an agent says that it has posted questions.

use crate::core::text::escape::shortened;

const MARKER: &str = "QUESTION_POSTED:";

/// The ids in the last lines of a reply, in their order. An agent that posts several questions writes a line for each.
pub(crate) fn posted(reply: &str) -> Vec<String> {
    const MOST: usize = 20;
    let lines = reply.lines().rev().map(|line| line.trim().trim_matches(['`', '*', '_']).trim());
    let ids = lines.filter(|line| !line.is_empty()).map_while(|line| line.strip_prefix(MARKER));
    let mut ids: Vec<String> = ids.take(MOST).map(|id| shortened(id.trim().trim_matches(['`', '*']))).collect();
    ids.reverse();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_count() {
        for (reply, ids) in [
            ("I wait.\n\nQUESTION_POSTED:q1\n", &["q1"][..]),
            ("QUESTION_POSTED: q1", &["q1"]),
            ("**QUESTION_POSTED:q1**", &["q1"]),
            ("`QUESTION_POSTED:q1`\n\n`QUESTION_POSTED:q2`", &["q1", "q2"]),
            ("QUESTION_POSTED:q1\nQUESTION_POSTED:q1", &["q1"]),
            ("QUESTION_POSTED:../../etc/passwd", &["../../etc/passwd"]),
            ("QUESTION_POSTED:q1\nI go on.", &[]),
            ("I would write QUESTION_POSTED:q1", &[]),
            ("", &[]),
        ] {
            assert_eq!(posted(reply), ids, "{reply:?}");
        }
    }
}
