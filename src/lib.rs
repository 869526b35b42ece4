//! `agent-cli` runs chains of headless Claude Code agents that can pause for minutes or weeks.
//!
//! `docs/architecture.md` describes the modules and follows two commands through them, `docs/protocol.md` what callers and agents
//! see, `docs/recovery.md` what a crash can do, and `docs/claude-code.md` the facts about Claude Code that all of this relies on.
//!
//! # Glossary
//!
//! | word | meaning |
//! | --- | --- |
//! | chain, root, tree | what a person started: a root and every agent below it. `Tree` is the type; text for people says "chain" |
//! | agent, frame | one agent of a chain, and its record: task, working directory, launch options and state. Its id never changes. People read "agent", the code says `Frame` |
//! | group | a frame without an agent: several agents that one command started. It waits for them and joins their replies |
//! | attempt | one `claude` process for a frame |
//! | session, transcript | a conversation of Claude Code, and the JSONL file that it is stored in |
//! | checkpoint | the kept copy of an agent's session, which the next attempt forks |
//! | fork | a session that starts with everything in the checkpoint, under the same id. The checkpoint is never written to |
//! | baseline | the conversation that `--fork-from` starts a frame with |
//! | request | what an agent asks for: `spawn`, `ask`, `wait`, or an approval |
//! | suspended call | a tool call that `claude` stored before it exited, and that returns the result of a request later |
//! | signal | a word on a line of its own with which an agent pauses or is woken: `SGN_PEND_STARTED`, `SGN_RESUME`, … |
//! | reply | the text that an agent ends with |
//! | delivery | handing a result to an agent, and the record that it was handed over |
//! | decision | what the end of an attempt means for the session and the frame |
//! | admission | whether limits let an attempt begin now |
//! | backoff | a growing pause after errors |
//! | stale files | files that changed while an agent waited |
//! | lease | the right to run a frame: a file lock that belongs to whoever has the frame's output file open |
//! | salvage | what can be continued from after a process died |
//! | orphans | processes or files that outlived their owner |
//! | status | how a chain stands: done, waiting, failed or interrupted |
//! | finding | what `doctor` or `fsck` reports |
//! | failpoint | a named durable step at which tests make the program die |
//!
//! # Invariants
//!
//! * Imports point one way: `main → cli → runtime → {claude, store} → core`. [`core`] has no I/O, clock, environment or async,
//!   [`claude`] has no state of its own, no SQL leaves [`store`], and [`cli`] makes no decisions about frames.
//! * The state machine in [`core::chain::state`] is the only place where a frame changes its state, live and in recovery.
//! * [`core::attempt::decision`] alone decides whether a session is kept, discarded or lost.
//! * An attempt is recorded before its process starts, and its outcome before anything is done about it.
//! * An agent has one session for its life. Checkpoints are forked, never written to, so an attempt that is not kept leaves the
//!   session, tasks, plans and subagents as they were. What woke an agent counts as delivered once that attempt is kept.
//! * Nobody waits for a lease, except for that of a `claude` that was just ended after its turn. The leased file is never
//!   renamed or deleted while its frame exists.
//! * Every write is one immediate transaction, and no transaction waits for a process. The transaction that records an attempt
//!   also decides whether the limits admit it, for all processes alike.
//! * A copy of a transcript contains its whole conversation: [`claude::transcript::rewrite`] makes every copy and checks this.
//! * Launch options, above all the model, are recorded with the frame and passed to every attempt.
//! * An agent's rights follow from what `claude` has printed. No transcript and no hook input adds a mode or a rule.
//! * Standard output carries the result of a command and nothing else.
//! * Every durable step outside `core` passes through [`failpoint`], so that tests can make it fail.
//!
//! # Left out on purpose
//!
//! * A daemon or a heartbeat: whoever calls `resume` does the work, and the lock of a dead process disappears with it.
//! * Processes of a waiting chain, and processes that stay in an agent's tool call after the request is recorded.
//! * Async code for polls, requests and lists: only running agents needs it.
//! * Decisions by process id: ids are recorded for people.
//! * The `subtype` of a result: some errors call themselves a success, so the last `is_error` decides.
//! * Retries inside a run, and sleeping: what failed without effect is retried by the next `resume`, and a pause is a record.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod claude;
pub mod cli;
pub mod core;
pub mod failpoint;
pub mod runtime;
pub mod store;
