//! Commands that Claude Code, or agent-cli itself, runs for an agent. They are not for people: they read a question from
//! standard input and print the answer.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use rustix::fs::OFlags;

use crate::claude::processes::guard::{self, Guarded};
use crate::claude::tools::hook_input::HookAnswer;
use crate::claude::tools::permission_server;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_json;
use crate::runtime::protocol::{
    Asking, HookResponse, Patience, ProtocolError, Typed, hook, message_delivery, permission,
};
use crate::runtime::requests::reply_check;
use crate::store::{Caller, StateDir};

/// Writes an error to the frame's log, because `claude` does not show the standard error of these commands.
fn note(context: &Context, caller: Caller, command: &str, error: &CliError) {
    let log = context.store().ok().and_then(|store| store.dir().open_errors(caller.frame).ok());
    if let Some(mut log) = log {
        let _ = writeln!(log, "agent-cli {command}: {error}");
    }
}

/// Refuses to read from a person's terminal, because the input would never end.
fn expect_a_program(command: &str) -> Result<(), CliError> {
    refuse_terminal(&io::stdin(), &format!("agent-cli {command} reads from another program, not from a terminal"))
}

/// Refuses to let a person wait at a terminal for a command that is not for people.
pub(crate) fn refuse_terminal(stream: &impl IsTerminal, why: &str) -> Result<(), CliError> {
    if !stream.is_terminal() {
        return Ok(());
    }
    Err(CliError::usage(why).hint("agent-cli --help lists the commands for people"))
}

/// Run claude, and end it with its runner or with the lease of this host
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Guard {
    /// The process id of the runner
    runner: u32,

    /// The file that says until when it may run; without it, this process becomes claude and ends with its parent
    #[arg(long)]
    until: Option<PathBuf>,

    /// Since when the host had its lease
    #[arg(long, default_value_t, allow_negative_numbers = true)]
    since: i64,

    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The exit status that shells report for a process that was killed.
const KILLED: i32 = 137;

impl Guard {
    pub(crate) fn run(self, _: &Context) -> Result<ExitStatus, CliError> {
        let Self { runner, until, since, command } = self;
        let mut program = Command::new(command.first().map_or(OsStr::new(""), OsString::as_os_str));
        program.args(command.iter().skip(1));
        let ended = match until {
            Some(until) => guard::run(Guarded { runner, until, since, command: program }),
            None => guard::tether(runner, program).map_or(Ok(None), Err),
        };
        let ended = ended.map_err(|error| CliError::failed(format!("claude cannot be started: {error}")))?;
        // As if it had been killed: it has done nothing, and can be started again.
        std::process::exit(ended.map_or(KILLED, guard::exit_code))
    }
}

/// Print the result of a request: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct HookResult {
    /// It failed: print it as an error
    #[arg(long)]
    failed: bool,

    /// The file with the result
    file: PathBuf,
}

impl HookResult {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // The permission rules let agents call this command with any arguments.
        let dir = StateDir::new(&context.place()?)?;
        let Some((frame, file)) = dir.result_of(&self.file) else {
            return Err(CliError::usage(format!("{} is not the result of a request", self.file.display())));
        };
        if context.caller.is_some_and(|caller| caller.frame != frame) {
            return Err(CliError::usage(format!("{} is a result of another agent", self.file.display())));
        }
        let print = |mut to: Box<dyn Write>| {
            // The agent could put a link to any file there.
            let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
            let mut file = File::options().read(true).custom_flags(flags).open(&file)?;
            io::copy(&mut file, &mut to)?;
            to.flush()
        };
        let printed = if self.failed { print(Box::new(io::stderr())) } else { print(Box::new(io::stdout())) };
        printed.map_err(|error| CliError::failed(format!("the result cannot be printed: {error}")))?;
        Ok(if self.failed { ExitStatus::Failed } else { ExitStatus::Ok })
    }
}

/// Decide on calls that need an approval: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct PermissionTool {
    #[command(flatten)]
    patience: PatienceOptions,
}

impl PermissionTool {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        expect_a_program("permission")?;
        let asking = context.asking()?.map(|asking| Asking { patience: self.patience.patience(), ..asking });
        let mut input = BufReader::new(io::stdin());
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            if read.map_err(|error| CliError::failed(format!("cannot read what claude asks: {error}")))? == 0 {
                break;
            }
            let answer = permission_server::respond(line.trim_ascii_end(), |call| {
                permission::decide(asking.as_ref(), call, |caller, error| {
                    note(context, caller, "permission", &error.into());
                })
            });
            if let Some(answer) = answer {
                print_json(&answer)?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}

/// Check a reply against a schema: for agent-cli, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CheckReply {}

impl CheckReply {
    pub(crate) fn run(self, _: &Context) -> Result<ExitStatus, CliError> {
        expect_a_program("check-reply")?;
        let served = reply_check::serve(io::stdin().lock(), io::stdout().lock());
        served.map_err(|error| CliError::failed(format!("the reply cannot be checked: {error}")))?;
        Ok(ExitStatus::Ok)
    }
}

/// Answer a hook of Claude Code: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Hook {
    /// After calls: give the agent its messages
    #[arg(long)]
    messages: bool,
    /// Before commands: only refuse a request inside a larger one
    #[arg(long, conflicts_with = "messages")]
    embedded: bool,
    #[command(flatten)]
    patience: PatienceOptions,
}

#[derive(Debug, Args)]
struct PatienceOptions {
    /// How many seconds a request may wait for its result before it is suspended
    #[arg(long, default_value_t = 0)]
    linger: u64,
    /// Unless so many agents of all chains run
    #[arg(long, requires = "linger")]
    parallel_total: Option<u32>,
}

impl PatienceOptions {
    fn patience(&self) -> Patience {
        Patience { time: Duration::from_secs(self.linger), parallel_total: self.parallel_total }
    }
}

impl Hook {
    /// Answers the hook. `parse` parses the command line of a command that an agent calls.
    pub(crate) fn run(self, context: &Context, parse: impl FnOnce(&[String]) -> Typed) -> Result<ExitStatus, CliError> {
        expect_a_program("hook")?;
        let Some(caller) = context.caller else { return Ok(ExitStatus::Ok) };
        let answered = self.answer(context, parse).unwrap_or_else(|error| {
            note(context, caller, "hook", &error);
            HookAnswer::Pass.into()
        });
        if let Some(answer) = answered.answer.to_json() {
            print_json(&answer)?;
        }
        answered.printed().unwrap_or_else(|error| note(context, caller, "hook", &error.into()));
        Ok(ExitStatus::Ok)
    }

    fn answer(&self, context: &Context, parse: impl FnOnce(&[String]) -> Typed) -> Result<HookResponse, CliError> {
        let Some(asking) = context.asking()? else { return Ok(HookAnswer::Pass.into()) };
        let asking = Asking { patience: self.patience.patience(), ..asking };
        let mut input = Vec::new();
        let read = io::stdin().read_to_end(&mut input);
        read.map_err(|error| CliError::failed(format!("failed to read the hook's input: {error}")))?;
        let answered = match self {
            Self { messages: true, .. } => message_delivery::answer(&asking, &input),
            Self { embedded: true, .. } => hook::refuse_embedded(&asking, &input),
            _ => hook::answer(&asking, &input, parse),
        };
        answered.map_err(|error| match error {
            ProtocolError::Runtime(error) => error.into(),
            ProtocolError::Request(error) => CliError::usage(error),
        })
    }
}
