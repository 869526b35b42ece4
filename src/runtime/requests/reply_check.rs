//! Checks replies against schemas, both written by agents: in a process of its own with limits, because a schema of a few lines can
//! take any amount of time and memory.

use std::env;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::core::agent::reply_schema::{Check, Checked, ReplySchema, ReplyShape};

/// The command that does it.
pub(crate) const COMMAND: &str = "check-reply";

/// In seconds of computing.
const MOST_TIME: u64 = 2;
/// In bytes, where the system counts it.
const MOST_MEMORY: u64 = 1 << 30;

const GAVE_UP: &str = "the schema takes too much time or memory to check";

/// Why a schema cannot be used; `None`: it can.
pub(crate) fn trouble(schema: &ReplySchema) -> io::Result<Option<String>> {
    Ok(apart(&Check { schema: schema.clone(), reply: None })?.err())
}

/// The shape of an agent's last message.
pub(crate) fn shape(schema: Option<&ReplySchema>, reply: &str) -> io::Result<ReplyShape> {
    let Some(schema) = schema else { return Ok(ReplyShape::Free) };
    let checked = apart(&Check { schema: schema.clone(), reply: Some(reply.to_owned()) })?;
    Ok(checked.unwrap_or_else(|why| ReplyShape::Misfit(vec![why])))
}

/// Computes what is asked on standard input, as the process with limits.
pub(crate) fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let limit = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Cpu, MOST_TIME)?;
    limit(Resource::Core, 0)?;
    // Not every system can limit this.
    let _ = limit(Resource::As, MOST_MEMORY);
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
    let mut process = Command::new(own_program()?)
        .arg(COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let written = match process.stdin.take() {
        Some(mut stdin) => {
            serde_json::to_writer(&mut stdin, check).map_err(io::Error::from).and_then(|()| stdin.flush())
        }
        None => Ok(()),
    };
    let output = process.wait_with_output()?;
    match Check::answer_from_json(&output.stdout) {
        Some(answer) if output.status.success() => Ok(answer),
        _ => written.and(Ok(Err(GAVE_UP.to_owned()))),
    }
}

/// On Linux it is found even if a newer version has replaced it.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { env::current_exe() }
}
