//! Claude Code's files of a session are lost or damaged while a chain waits.

use std::fs;

use crate::chain::{Chain, Said};
use crate::support::{on_every_version, on_every_version_of_a_whole_run};

/// What is done to the transcripts, and in a word.
type Damage = (&'static str, fn(&Chain));

on_every_version!(a_transcript_that_is_lost_or_damaged_is_put_back,);

on_every_version_of_a_whole_run!(a_project_that_was_moved_away_can_be_moved_back,);

fn a_transcript_that_is_lost_or_damaged_is_put_back(version: &str) {
    let chain = Chain::new(version);
    let damages: [Damage; 4] = [
        ("gone", |chain| fs::remove_dir_all(chain.home.home().join(".claude/projects")).unwrap()),
        ("torn", |chain| damage(chain, |text| text.truncate(text.len() - 100))),
        ("emptied", |chain| damage(chain, Vec::clear)),
        ("not ended", |chain| damage(chain, |text| text.extend(b"{\"torn\":"))),
    ];
    let questions = damages.map(|(how, _)| format!("ask {how}?\n")).concat();
    chain.home.write("ins.md", &format!("{questions}reply {{result}}\n"));
    let root = chain.started(&["spawn", "ins.md"]);
    let last = damages.len() - 1;
    for (at, (how, damage)) in damages.iter().enumerate() {
        damage(&chain);
        chain.answer(how);
        let before = chain.api.count();
        let out = chain.ok(&["resume", &root]);
        let expected = if at == last { format!("{how}\n") } else { format!("SGN_PEND_STARTED ({root})\n") };
        assert_eq!(out, expected, "{how}");
        let resumed = chain.api.requests()[before].conversation();
        assert!(resumed.items().len() > 2 * (at + 2), "the conversation is not whole: {resumed:?}");
    }
}

fn damage(chain: &Chain, change: impl Fn(&mut Vec<u8>)) {
    for transcript in chain.home.transcripts() {
        let mut text = fs::read(&transcript).unwrap();
        change(&mut text);
        fs::write(transcript, text).unwrap();
    }
}

fn a_project_that_was_moved_away_can_be_moved_back(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("Jan 1st");
    let resume =
        || Said::from(chain.command().current_dir(chain.home.home()).args(["resume", &root]).output().unwrap());
    let elsewhere = chain.home.home().join("elsewhere");
    fs::rename(chain.home.project(), &elsewhere).unwrap();
    let said = resume();
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains("the working directory does not exist: "), "{said:?}");
    assert!(said.err.contains("or create it again"), "{said:?}");
    fs::rename(&elsewhere, chain.home.project()).unwrap();
    let said = resume();
    assert_eq!((said.code, said.out.as_str()), (Some(0), "Jan 1st\n"), "{said:?}");
}
