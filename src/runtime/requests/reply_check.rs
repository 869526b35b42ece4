//! Checks replies against schemas, both written by agents: in a separate process with limits, because a short schema can take
//! any amount of time and memory.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::core::agent::reply_schema::{Check, Checked, ReplySchema, ReplyShape};

/// The command that runs the check.
pub(crate) const COMMAND: &str = "check-reply";

/// In seconds of CPU time.
const MOST_TIME: u64 = 2;
/// In bytes, where the system counts it.
const MOST_MEMORY: u64 = 1 << 30;

const GAVE_UP: &str = "the schema takes too much time or memory to check";

/// Why a schema cannot be used; `None`: it can.
pub(crate) fn trouble(schema: &ReplySchema) -> io::Result<Option<String>> {
    Ok(apart(&Check::new(schema, None))?.err())
}

/// The shape of an agent's last message.
pub(crate) fn shape(schema: Option<&ReplySchema>, reply: &str) -> io::Result<ReplyShape> {
    let Some(schema) = schema else { return Ok(ReplyShape::Free) };
    let checked = apart(&Check::new(schema, Some(reply)))?;
    Ok(checked.unwrap_or_else(|why| ReplyShape::Misfit(vec![why])))
}

/// Computes the check that is given on standard input, as the process with limits.
pub(crate) fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let limit = |resource, soft: u64, hard: u64| {
        // Only a privileged process may raise one.
        let most = getrlimit(resource).maximum.map_or(hard, |most| most.min(hard));
        setrlimit(resource, Rlimit { current: Some(soft.min(most)), maximum: Some(most) })
    };
    limit(Resource::Cpu, MOST_TIME, MOST_TIME + 1)?;
    limit(Resource::Core, 0, 0)?;
    // Not every system can limit this.
    let _ = limit(Resource::As, MOST_MEMORY, MOST_MEMORY);
    let mut asked = Vec::new();
    input.read_to_end(&mut asked)?;
    let check = Check::from_json(&asked).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    serde_json::to_writer(&mut output, &check.compute())?;
    output.flush()
}

fn apart(check: &Check) -> io::Result<Checked> {
    // The program of a unit test has no such command.
    if cfg!(test) {
        return Ok(check.compute());
    }
    // With a low limit of the system, or little memory, SIGKILL is how the check meets its own limits. One may also come from elsewhere.
    match in_process(check)? {
        Ran::Killed => match in_process(check)? {
            Ran::Killed => Ok(Err(GAVE_UP.to_owned())),
            Ran::Answered(answer) => Ok(answer),
        },
        Ran::Answered(answer) => Ok(answer),
    }
}

/// How a check in a process of its own has ended.
enum Ran {
    Answered(Checked),
    Killed,
}

fn in_process(check: &Check) -> io::Result<Ran> {
    // A Ctrl-C at this moment says nothing about the reply.
    let mut process = Command::new(own_program()?)
        .arg(COMMAND)
        .env_clear()
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = process.stdin.take() {
        // A process that has ended says why below.
        let _ = stdin.write_all(&serde_json::to_vec(check)?);
    }
    let Output { status, stdout, .. } = process.wait_with_output()?;
    match Check::answer_from_json(&stdout) {
        Some(answer) if status.success() => Ok(Ran::Answered(answer)),
        _ if has_met_a_limit(status) => Ok(Ran::Answered(Err(GAVE_UP.to_owned()))),
        _ if status.signal() == Some(Signal::KILL.as_raw()) => Ok(Ran::Killed),
        _ => Err(io::Error::other(format!("{COMMAND} has ended with {status}"))),
    }
}

/// Whether the check ended itself. A signal from elsewhere says nothing about the reply.
fn has_met_a_limit(status: ExitStatus) -> bool {
    const PANICKED: i32 = 101;
    let ends = [Signal::XCPU, Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::TRAP];
    status.code() == Some(PANICKED)
        || status.signal().is_some_and(|signal| ends.iter().any(|end| end.as_raw() == signal))
}

/// On Linux it is found even if a newer version has replaced it.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { env::current_exe() }
}
