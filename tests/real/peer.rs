//! The published convention of claude-code-async-chain, with this program replacing its `agent-cli`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use uuid::Uuid;

use crate::chain::{Chain, Said};
use crate::support::{MessagesApi, claude, follow, on_every_version_of_a_whole_run};

/// The content of its CLAUDE.md, in our words: the same key words, files and commands.
const CONVENTION: &str = "\
# Words

- `_ask_ \"{q}\"`: write `$PWD/question.md` with `Q: {q}` and `A:` below it, then _terminate_ \"SGN_PEND_STARTED\"
- `_run_ {cmd}`: with Bash
- `_spawn_ {f}.md`: _run_ `$PWD/agent-cli spawn $PWD/{f}.md`
- `_terminate_ \"{msg}\"`: end your turn with exactly that

# Signals

- a sub-agent said SGN_PEND_STARTED ({id}): _remember_ the id and _terminate_ \"SGN_PEND_STARTED\"
- it said SGN_PEND_ONGOING: _terminate_ \"SGN_PEND_ONGOING\"
- you hear SGN_RESUME: if you have replied, reply the same; if you asked, _terminate_ with the answer in question.md or
  \"SGN_PEND_ONGOING\"; if your sub-agent waits, _run_ `$PWD/agent-cli resume {id}`
";
const QUESTION: &str = "Q: When is your birthday?\nA:";

on_every_version_of_a_whole_run!(its_convention_works_unchanged, a_session_at_the_top_that_is_not_ours_is_adopted);

fn project(version: &str) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(follow));
    chain.home.write("CLAUDE.md", CONVENTION);
    chain.birthday();
    symlink(env!("CARGO_BIN_EXE_agent-cli"), chain.home.project().join("agent-cli")).unwrap();
    chain
}

fn question(chain: &Chain) -> String {
    fs::read_to_string(chain.home.project().join("question.md")).unwrap()
}

fn its_convention_works_unchanged(version: &str) {
    let chain = project(version);
    // Its requests are suspended before Claude Code checks permissions; only `question.md` needs one.
    let root = chain.started(&["spawn", "ins1.md", "--permission-mode", "acceptEdits"]);
    assert_eq!(question(&chain), QUESTION);
    let (asked, transcripts) = (chain.api.count(), chain.home.transcripts());
    assert_eq!(asked, 9);

    // Only its agent can tell whether the file has an answer: it is asked, alone, and leaves nothing behind.
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    let requests = chain.api.requests();
    let sessions = requests[asked..].iter().map(|request| request.session().unwrap()).collect::<HashSet<_>>();
    assert_eq!((requests.len() - asked, sessions.len()), (2, 1));
    assert_eq!(chain.home.transcripts(), transcripts);

    chain.home.write("question.md", &format!("{QUESTION} Jan 1st\n"));
    let polled = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    let end = chain.api.count();
    assert_eq!(end - polled, 5);
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), end);
}

fn a_session_at_the_top_that_is_not_ours_is_adopted(version: &str) {
    let chain = project(version);
    // The commands of the convention cannot name a permission mode, and a session that is adopted does not tell its own.
    let settings = chain.home.home().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#).unwrap();
    let session = Uuid::new_v4().to_string();
    let instructions = chain.home.project().join("ins1.md");
    let mut top = chain.home.command(claude(version));
    top.args(["-p", "--session-id", &session])
        .arg(format!("Read {} and follow its instructions.", instructions.display()))
        .env("AGENT_CLI_CLAUDE", claude(version))
        .env("AGENT_CLI_STATE_DIR", chain.state())
        .stdin(Stdio::null());
    let said = Said::from(top.output().unwrap());
    assert_eq!(said.out, "SGN_PEND_STARTED\n", "{said:?}");
    assert_eq!(question(&chain), QUESTION);

    let resume = ["resume", &session];
    let paused = chain.ok(&resume);
    assert!(paused.starts_with("SGN_PEND_"), "{paused}");
    assert_eq!(chain.ok(&resume), "SGN_PEND_ONGOING\n");
    chain.home.write("question.md", &format!("{QUESTION} Jan 1st\n"));
    assert_eq!(chain.ok(&resume), "Jan 1st\n");
    assert_eq!(chain.ok(&resume), "Jan 1st\n");
}
