//! A stand-in for `claude`, for the tests of the command line.
//!
//! It takes the arguments that `agent-cli` gives to `claude -p`, keeps transcripts where Claude Code keeps them, forks
//! and refuses sessions as it does, and prints events of the shapes that 2.1.330 prints. Its model is an interpreter:
//! the first prompt names a file, and every line of that file is a step (see [`script`]). What was done is remembered in
//! the transcript alone, so a fork carries on exactly where its checkpoint stopped.
//!
//! It runs the PreToolUse and PostToolBatch hooks of `--settings` and of the user's settings, and a call that they defer ends it as it ends
//! Claude Code (see [`hooks`], [`deferral`]). Where the user's settings have `disableAllHooks`, it runs none.
//!
//! | variable | what it does |
//! | --- | --- |
//! | `STAND_IN_LOG` | a file that gets a line for every start and every end |
//! | `STAND_IN_VERSION` | the version that is imitated: before 2.1.89 no call can be deferred |
//! | `STAND_IN_REFUSES` | an error that comes before any work, whatever the instructions say |
//! | `STAND_IN_WANTS_A_PROMPT` | an error that comes whenever there is no prompt |
//! | `STAND_IN_HOLDS_LINES` | how many lines of its transcript are written late |
//! | `STAND_IN_HAS_NO_ROOM` | when it is set, its transcript stays empty, and it does not mind |
//! | `STAND_IN_DIES_AT_ITS_END` | when it is set, it is killed when it has printed its result, and has not written what was held back |
//! | `STAND_IN_LINGERS` | a gate at which it waits when a call was deferred, before it ends |
//! | `STAND_IN_CACHES` | how many tokens of each message are written to the prompt cache |
//! | `STAND_IN_SUMMARY` | `never`: it writes no summary, `late`: only when it is asked again, `after COMMAND`: it tries to run that first |
//! | `STAND_IN_WINDOW` | how many tokens its model takes |
//! | `STAND_IN_IS_DEAF` | when it is set, SIGINT and SIGTERM are ignored |
//!
//! It proves the logic of `agent-cli`. That Claude Code behaves like this is for the tests with the real one to prove.

mod agent;
mod arguments;
mod bash;
mod beside;
mod deferral;
mod events;
mod hooks;
mod log;
mod memory;
mod plan;
#[path = "../support/script.rs"]
mod script;
mod sections;
mod summary;
mod transcript;
mod turn;
mod version;

use std::env;
use std::io::{self, Read};
use std::panic;
use std::process::{self, ExitCode};

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::log::Log;

fn main() -> ExitCode {
    die_of_a_full_disk();
    match imitate() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// If what it prints has no room, it is killed: its runner must not take this for the words of an agent.
fn die_of_a_full_disk() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if panicked.to_string().contains("No space left on device") {
            process::abort();
        }
        before(panicked);
    }));
}

fn imitate() -> Result<ExitCode> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == bash::SHELL) {
        return Err(bash::become_shell(&args.remove(1)));
    }
    if args == ["--version"] {
        Log::open()?.version(&args)?;
        println!("{} (Claude Code)", version::version());
        return Ok(ExitCode::SUCCESS);
    }
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt).context("the prompt is not UTF-8")?;
    let mut log = Log::open()?;
    if args.iter().any(|arg| arg == "--session-id=none") {
        // Somebody asks whether it takes its arguments.
        Arguments::parse(&args)?;
    }
    log.start(&args, &prompt)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(agent::run(Arguments::parse(&args)?, prompt, &mut log));
    log.end()?;
    code
}
