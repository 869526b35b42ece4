//! The output of `claude`: its end, denied calls, and jobs that no hook recorded.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::claude::attempt_ending;
use crate::claude::environment::config_dir::config_dir;
use crate::claude::options::limits_left;
use crate::claude::processes::process::ProcessExit;
use crate::claude::stream::background_work::{Jobs, Made};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::{denials, output_reader};
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::scheduling;
use crate::claude::transcript::reopen::NOT_RUN;
use crate::claude::transcript::{locate, turn};
use crate::core::agent::denied_call::Denied;
use crate::core::attempt::ending::{Ending, Objection};
use crate::core::chain::frame::Frame;
use crate::core::text::escape;
use crate::core::waits::scheduled::Scheduled;
use crate::local_zone::local_zone;
use crate::runtime::conclude::limits_used;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Lease, Requests, Store};

/// Larger error output adds nothing new.
const MOST_ERROR_OUTPUT: u64 = 16 * 1024;

/// The output of an attempt, and what it says about the attempt's end.
pub(super) struct Printed {
    pub(super) digest: Digest,
    pub(super) ending: Ending,
    /// Whether its process was ended from outside.
    pub(super) was_killed: bool,
    /// Whether this program ended the agent's background work.
    pub(super) was_ended: bool,
}

impl Printed {
    /// The output of an attempt whose process has ended, completed from its transcript if the process was ended too
    /// early to print everything.
    pub(super) fn read(
        store: &Store,
        frame: &Frame,
        attempt: &Attempt,
        exit: ProcessExit,
        lease: &Lease,
    ) -> Result<Self, RuntimeError> {
        let mut digest = read_output(lease, attempt)?;
        let errors = read_errors(store, attempt)?;
        if exit.is_stopped() || exit.was_killed() {
            digest.withdraw_beginning();
        }
        if digest.result.is_none() || !digest.tasks.is_empty() {
            let written = transcript_of(frame, attempt).map(|transcript| turn::read(&transcript)).transpose();
            let written = written.map_err(while_trying("read the transcript"))?.unwrap_or_default();
            digest.complete(
                &written,
                exit == ProcessExit::Ended || exit.is_stopped(),
                exit.was_killed() && !exit.is_stopped(),
            );
        }
        // Its runner was killed, too. A stop that a person ordered is recorded.
        let is_by_hook = digest.result.as_ref().is_some_and(|result| result.stopped_by_hook);
        let is_over_budget = || store.dir().stops_for_budget(frame.id);
        let exit =
            if exit == ProcessExit::Unknown && is_by_hook && is_over_budget() { ProcessExit::OverBudget } else { exit };
        let ending = match attempt_ending::classify(&digest, exit, &errors) {
            Ending::Error(why) | Ending::Refused { why, .. } if limits_used::is_chain_spent(store, frame, &why)? => {
                Ending::OverBudget { worked: digest.worked }
            }
            Ending::Error(why) => Ending::Error(limits_left::as_given(&why, &frame.launch.args)),
            other => other,
        };
        Ok(Self { digest, ending, was_killed: exit.was_killed(), was_ended: exit == ProcessExit::Ended })
    }

    /// What is known about an attempt on a host that is lost: nothing. Its agent may have done anything.
    pub(super) fn on_lost_host(host: &str) -> Self {
        let how = format!(
            "the host {}, on which you worked, was lost; check what you have done there before you repeat it",
            escape::one_line(host)
        );
        let ending = Ending::Died { worked: true, how };
        let digest = Digest { spoke: true, worked: true, ..Digest::default() };
        Self { digest, ending, was_killed: true, was_ended: false }
    }

    /// The output of an attempt whose process could not be started.
    pub(super) fn nothing(why: String) -> Self {
        // It was not started, because a limit is used up.
        let ending = match limits_left::raised(&why) {
            Some(_) => Ending::Error(why),
            None => Ending::Refused { why, objection: Objection::Start },
        };
        Self { digest: Digest::default(), ending, was_killed: false, was_ended: false }
    }
}

/// Where the conversation of an attempt is.
pub(super) fn transcript_of(frame: &Frame, attempt: &Attempt) -> Option<PathBuf> {
    locate::find(&config_dir(&frame.launch)?, &frame.cwd, attempt.session)
}

fn read_output(lease: &Lease, attempt: &Attempt) -> Result<Digest, RuntimeError> {
    let read = || output_reader::read(BufReader::new(lease.printed(attempt.output_from)?));
    read().map_err(while_trying(READ_PRINTED))
}

fn read_errors(store: &Store, attempt: &Attempt) -> Result<String, RuntimeError> {
    let read = || -> io::Result<String> {
        let mut text = Vec::new();
        let file = open_at(&store.dir().errors(attempt.frame), attempt.errors_from)?;
        file.take(MOST_ERROR_OUTPUT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(while_trying("read the error log")),
    }
}

fn open_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

/// The jobs that an attempt has created, so that its agent's reply does not count before they are due.
pub(super) fn made(jobs: &Jobs) -> Vec<Scheduled> {
    let job = |Made { input, response }: &Made| scheduling::job(input, response, Timestamp::now(), &local_zone());
    jobs.made.iter().filter_map(job).filter(Scheduled::can_be_given).collect()
}

/// The denied calls. Calls that a person is asked about are recorded with the answer.
pub(super) fn denied(store: &Store, frame: &Frame, digest: &Digest) -> Result<Vec<Denied>, RuntimeError> {
    let mut listed = Vec::new();
    for denial in digest.denials.listed() {
        let may_be_made_again = denial.denied.said.starts_with(NOT_RUN) || denial.denied.tool == ASK_USER_QUESTION;
        if !may_be_made_again && store.requests(Requests::OfCall(frame.id, &denial.call))?.is_empty() {
            listed.push(denial);
        }
    }
    Ok(denials::recorded(listed, &digest.asking_hooks))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::claude::stream::output_reader;
    use crate::core::agent::launch::Launch;
    use crate::core::requests::request::RequestKind;
    use crate::store::testing::{self, attempt, new};
    use crate::store::{Attempts, NewFrame};

    const WORKED: &str = r#"{"type":"system","subtype":"init"}
{"type":"assistant","message":{"content":[{"type":"text","text":"Jan 1st"}]}}
"#;
    const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Jan 1st"}"#;

    /// Reads the output of an attempt that began after earlier attempts had printed 7 bytes, and 3 bytes of errors.
    fn printed(output: &str, errors: Option<&str>, exit: ProcessExit) -> Printed {
        let (temp, store) = testing::store();
        let launch = Launch { config_dir: Some(temp.path().join("config")), ..Launch::default() };
        let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
        store.begin(root, &attempt(Vec::new())).unwrap();
        let lease = Lease::try_take(store.dir(), root).unwrap().unwrap();
        fs::write(store.dir().output(root), format!("before\n{output}")).unwrap();
        if let Some(errors) = errors {
            fs::write(store.dir().errors(root), format!("old{errors}")).unwrap();
        }
        let (frame, attempt) =
            (store.frame(root).unwrap().unwrap(), store.attempts(Attempts::RunningOf(root)).unwrap());
        Printed::read(&store, &frame, &attempt[0], exit, &lease).unwrap()
    }

    fn why(printed: &Printed) -> &str {
        match &printed.ending {
            Ending::Refused { why, .. } | Ending::Error(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_that_was_ended_before_it_took_the_result_of_its_call_has_done_nothing() {
        let again =
            r#"{"type":"result","is_error":false,"stop_reason":"tool_deferred","deferred_tool_use":{"id":"t1"}}"#;
        let ending = |output: &str, exit| printed(output, None, exit).ending;
        assert_eq!(ending(again, ProcessExit::Code(0)), Ending::Suspended, "it did not take it");
        for exit in [ProcessExit::Signal(9), ProcessExit::Unknown, ProcessExit::Ended] {
            assert!(matches!(ending(again, exit), Ending::Died { worked: false, .. }), "{exit:?}");
        }
        assert_eq!(ending(again, ProcessExit::Stopped), Ending::Stopped { worked: false });
        assert_eq!(
            ending(&format!("{WORKED}{again}"), ProcessExit::Signal(9)),
            Ending::Suspended,
            "at a call of its own"
        );
    }

    #[test]
    fn what_claude_says_on_standard_error_is_why_it_refused() {
        assert_eq!(why(&printed("", Some("error: unknown option\n"), ProcessExit::Code(1))), "error: unknown option");
        let long = printed("", Some(&"x".repeat(100_000)), ProcessExit::Code(1));
        assert!(why(&long).len() < 20_000, "{}", why(&long).len());
        // The file may not exist.
        assert!(!why(&printed("", None, ProcessExit::Code(1))).is_empty());
    }

    #[test]
    fn only_the_output_of_this_attempt_counts() {
        let replied = printed(&format!("{WORKED}{RESULT}\n"), None, ProcessExit::Code(0));
        assert_eq!((&replied.ending, replied.digest.broken_lines), (&Ending::Reply("Jan 1st".into()), 0));
        assert!(!replied.was_killed && !replied.was_ended);
    }

    #[test]
    fn how_the_process_ended_is_kept_with_what_it_printed() {
        for (exit, was_killed, was_ended) in [
            (ProcessExit::Code(1), false, false),
            (ProcessExit::Ended, true, true),
            (ProcessExit::Signal(9), true, false),
        ] {
            let printed = printed(WORKED, None, exit);
            assert_eq!((printed.was_killed, printed.was_ended), (was_killed, was_ended), "{exit:?}");
        }
        let nothing = Printed::nothing("no such file".to_owned());
        assert_eq!((why(&nothing), nothing.was_killed, nothing.was_ended), ("no such file", false, false));
    }

    #[test]
    fn the_transcript_completes_only_what_was_ended_from_outside() {
        // Without a transcript the output cannot be completed: the turn has no reply.
        let ended = printed(WORKED, None, ProcessExit::Ended);
        assert!(ended.digest.result.is_none() && !matches!(ended.ending, Ending::Reply(_)));
    }

    #[test]
    fn a_denied_call_is_listed_unless_it_may_be_made_again_or_a_person_is_asked() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let asked = RequestKind::Permission { tool: "Bash".into(), input: json!({}), reason: None, place: None };
        store.request(caller, Some("asked"), &[asked]).unwrap();
        let frame = store.frame(caller.frame).unwrap().unwrap();
        let calls = [
            ("denied", "Bash", "not this"),
            ("silent", "Write", ""),
            ("asked", "Bash", "not this"),
            ("beside", "Bash", NOT_RUN),
            ("question", ASK_USER_QUESTION, "nobody can be asked"),
        ];
        let result = |(call, _, said): &(&str, &str, &str)| json!({"type": "tool_result", "tool_use_id": call, "is_error": true, "content": said});
        let listed = |(call, tool, _): &(&str, &str, &str)| json!({"tool_use_id": call, "tool_name": tool, "tool_input": {"command": call}});
        let results = json!({"type": "user", "message": {"content": calls.iter().map(result).collect::<Vec<Value>>()}});
        let end = json!({"type": "result", "permission_denials": calls.iter().map(listed).collect::<Vec<Value>>()});
        let digest = output_reader::read(format!("{results}\n{end}\n").as_bytes()).unwrap();
        let found = denied(&store, &frame, &digest).unwrap();
        assert_eq!(found.iter().map(|denied| denied.input.as_str()).collect::<Vec<_>>(), ["denied", "silent"]);
    }
}
