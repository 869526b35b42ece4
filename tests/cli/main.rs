//! The command line, with a stand-in for `claude`: every command, every message and every exit status.

mod gate;
mod invocation;
mod log;
mod names;
mod outcome;
mod programs;
mod world;

mod adoption;
mod agent_decides;
mod answers;
mod chain;
mod claude_output;
mod claude_program;
mod crash;
mod failures;
mod folders;
mod fsck;
mod gc;
mod help;
mod ids;
mod instruction_files;
mod interruption;
mod json;
mod launch;
mod limits;
mod lists;
mod questions;
mod replies;
mod several_requests;
mod state_directory;
mod streams;
mod together;
mod transcripts;
mod usage_limit;
mod waits;
