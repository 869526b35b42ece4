//! `agent-cli` runs chains of headless Claude Code agents that can pause for minutes or weeks.
//!
//! An agent is a `claude -p` process. It can start other agents, ask a person, or wait for something outside. Then it exits,
//! and no process runs until the result is available.
//!
//! `docs/architecture.md` says where everything is in the code and what always holds, `docs/protocol.md` what callers and
//! agents see, `docs/recovery.md` what a crash can do, and `docs/claude-code.md` lists the facts about Claude Code that all of
//! this relies on.
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
//! | misfit | a reply that does not fit the JSON Schema of its agent's replies |
//! | delivery | handing a result to an agent, and the record that it was handed over |
//! | decision | what the end of an attempt means for the session and the frame |
//! | admission | whether limits let an attempt begin now |
//! | backoff | a growing pause after errors |
//! | stale files | files that changed while an agent waited |
//! | lease | the right to run a frame: a file lock held by every process that has the frame's output file open |
//! | salvage | the part of a conversation that survives the death of its process |
//! | orphans | processes or files that outlived their owner |
//! | stop | what ends an agent from outside, with everything below it. A pause is one that can be continued |
//! | message | a text for an agent from outside: from a person or an agent above. An instruction is one that continues a finished agent |
//! | notification | a report of an event that a person subscribed to: kept in the outbox until a command of theirs was run |
//! | server, host | PostgreSQL, which can record chains instead of a file of the state directory; and a state directory that uses it, whose files are those of the chains that were started there |
//! | copy, object storage | a file of an agent that the server has for other hosts; and a bucket or directory that has the content of copies |
//! | status | the state of a chain: done, waiting, failed or interrupted |
//! | finding | what `doctor` or `fsck` reports |
//! | failpoint | a named durable step at which tests make the program die |

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod app;
mod claude;
mod cli;
mod core;
pub mod failpoint;
mod local_zone;
mod mcp;
mod page;
pub mod records;
mod runtime;
mod store;

pub use cli::run;
