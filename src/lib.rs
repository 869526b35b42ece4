//! `agent-cli` runs chains of headless Claude Code agents that may pause for minutes or weeks.
//!
//! An agent is a `claude -p` process. It may ask for other agents, ask a person, or wait for something outside; then
//! it ends its turn, and nothing runs until what it waits for is there. This page says where things are in the code
//! and what always holds. What a caller sees is in `docs/protocol.md`, what a crash can do in `docs/recovery.md`, and
//! the facts about Claude Code that all of it rests on in `docs/claude-code.md`.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | group | a frame without an agent: it waits for its members, which one command asked for, and joins their replies |
//! | frame | one agent: its task, working directory, launch options and state. Its id never changes |
//! | root, tree | a frame without a parent; the root and all frames below it |
//! | session, transcript | a conversation of Claude Code, and the file that it keeps it in |
//! | checkpoint | the kept copy of an agent's session as it stood after an attempt. The next attempt continues from it |
//! | baseline | a conversation that a frame's session begins with |
//! | fork | a session that begins with all of the checkpoint, under the same id. The checkpoint itself is never written to |
//! | attempt | one `claude` process for a frame. What it makes of the session is kept as the next checkpoint, discarded, or lost: its process died before it was written |
//! | request | a command of this program that an agent calls: `spawn`, `ask`, `wait`, `resume` |
//! | wait, reply | what a paused frame waits for; the text that an agent ends with |
//! | lease | the right to run a frame, held by the operating system for whoever has the frame's output file open |
//! | harvest | concluding an attempt whose runner is gone |
//! | signal | a word on a line of its own with which an agent pauses, or is woken |
//!
//! # Map
//!
//! ```text
//! main ──> cli ──> runtime ──> claude ──> core
//!                     └──────> store ───> core
//! ```
//!
//! Imports go in the direction of the arrows and over several of them, never back. `claude` and `store` do not know
//! each other. All but `core` pass their durable steps through [`failpoint`].
//!
//! | module | holds | has no |
//! | --- | --- | --- |
//! | [`core`] | the rules, as pure functions: [`core::chain::state`] (the states of a frame), [`core::attempt::decision`] (what the end of an attempt does), [`core::attempt::meaning`] (what its words mean), [`core::chain::runnable`] (which frame is next), [`core::chain::group`] (several agents of one command), [`core::chain::admission`] (what keeps it from starting), [`core::chain::backoff`] (waits that only time ends), [`core::attempt::signal`], [`core::attempt::prompt`], [`core::attempt::delivery`] (how results are given), [`core::agent::situation`] (what an agent has besides its conversation), [`core::agent::starting_mode`] (in which permission mode an attempt begins), [`core::requests::agent_command`] (which commands are requests), [`core::agent::launch`] (how an agent is started), [`core::agent::overrides`] (what a child may not have), [`core::agent::worktree`] (what is told of an agent's git worktree), [`core::attempt::stale_files`] (what an agent is told of its files), [`core::attempt::stopping`] (how an agent is stopped), [`core::attempt::rest`] (how long `claude` may go on when its agent's turn is over), [`core::housekeeping::fsck`] (what is wrong with a state directory), [`core::housekeeping::archive`] (the file that carries a chain elsewhere) | I/O, clock, environment, async |
//! | [`claude`] | all that is peculiar to Claude Code: the program and its version, command line and environment, hooks and settings, process, output ([`claude::stream::digest`]), transcripts | state of its own |
//! | [`store`] | what outlives a process: the database, the state directory, the lease, the kept copies of transcripts, whole trees that come and go | `claude`, SQL that leaves it |
//! | [`runtime`] | the loop that drives a tree, attempts and their conclusion, requests, polls, adoption | terminal, arguments |
//! | [`cli`] | one file a command, messages, exit statuses | decisions about frames |
//! | [`failpoint`] | the name of every durable step, and how a test makes it fail there; nothing in a release | rules |
//!
//! # The life of a `spawn`
//!
//! 1. `cli::chain::spawn` checks the file and the directory, finds `claude`, and records a root in the state `ready`.
//! 2. [`runtime::run::scheduler`] asks [`core::chain::runnable`] which frames can run. At first that is the root.
//! 3. `runtime::run::attempt` takes the frame's lease, looks again whether the frame may run, puts a missing transcript
//!    back, records the attempt, makes room for its fork, and only then starts `claude`. Its standard output is the
//!    leased file, its standard input an unnamed file with the prompt.
//! 4. The agent calls `agent-cli spawn` or `ask` in a tool call. `claude` asks `agent-cli hook` (`runtime::protocol::hook`) first, which
//!    recognises the request ([`core::requests::agent_command`]), records it, and has the call suspended: `claude` ends with the call open. A
//!    request that is not suspended runs as a program: it finds frame and attempt in its environment, records the request,
//!    prints the signal and is gone, and the agent ends its turn. Questions that the agent asks with Claude Code's own tool
//!    come the same way. About calls that need an approval `claude` asks `agent-cli permission` (`runtime::protocol::permission`).
//! 5. `runtime::conclude` gathers what is known of the attempt: how it ended ([`core::attempt::ending`]), what it asked for, what can be
//!    continued from ([`core::attempt::salvage`]: what was printed need not have been written). [`core::attempt::decision::decide`]
//!    says what becomes of the session and the frame. The transcript is copied, the decision recorded in one transaction, and after
//!    that a discarded transcript is deleted.
//! 6. Back to 2. The new child can run now that its parent has ended its turn. When a child is done, its parent can
//!    run, and its call returns the child's reply, or its prompt brings it ([`core::attempt::delivery`]). The deepest go
//!    first.
//! 7. When nothing can run, [`runtime::run::status`] says how the tree stands, and `cli::report::chain_status` prints it.
//!
//! # The life of a poll
//!
//! `agent-cli resume ID` of a waiting tree opens the database, reads one tree, looks at the files and times that it
//! waits for, and tries the lease of frames that are marked as running. [`runtime::run::status::poll`] is all of that: it
//! starts no process and no async runtime. Only when it finds that something can run, or that only a command can tell,
//! `resume` drives the tree as above.
//!
//! # What always holds
//!
//! * A frame changes its state in [`core::chain::state::FrameState::after`] and nowhere else, live or in recovery.
//! * Whether a session is kept, discarded or lost is decided in [`core::attempt::decision`] and nowhere else.
//! * An attempt is recorded before its process starts, and its outcome before anything is done about it.
//! * An agent has one session for its life. A checkpoint is forked, never written to: an attempt that is not kept leaves the session,
//!   tasks, plans and subagents as they were. What woke an agent counts as delivered when its attempt is kept.
//! * Nobody waits for a lease, but for that of a `claude` that was just ended because its turn was over, and the leased file is never renamed or deleted as long as its frame is there.
//! * Every write is one immediate transaction, and nothing in it waits for a process.
//! * Whether a limit lets an attempt begin is decided in the transaction that records it, for all processes alike.
//! * A copy of a transcript has all of its conversation: [`claude::transcript::rewrite`] makes every such copy, and looks.
//! * Launch options are recorded with the frame and given at every attempt, the model above all.
//! * What an agent may do is read off what `claude` has printed. No transcript and no input of a hook gives it a mode or a rule.
//! * Standard output carries the result of a command and nothing else.
//!
//! # What is missing on purpose
//!
//! * No daemon and no heartbeat. Whoever calls `resume` does the work, and the lock of a dead process is gone with it.
//! * No process while a tree waits, and none in an agent's tool call for longer than it takes to record a request.
//! * No SQL outside [`store`], which offers whole transactions only: another database can take its place.
//! * No async on the path of a poll, of a request or of a list. Only driving needs it.
//! * No meaning in the `subtype` of a result. `is_error` of the last one decides: some errors call themselves a
//!   success.
//! * No process ids in decisions. They are recorded for people.
//! * No retries inside a run: what changed nothing once is left to the next `resume`. A pause is a wait on record, never a
//!   sleeping process.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod claude;
pub mod cli;
pub mod core;
pub mod failpoint;
pub mod runtime;
pub mod store;
