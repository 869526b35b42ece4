//! The command line, with a stand-in for `claude`: every command, every message and every exit status.

#[path = "../support/contract.rs"]
mod contract;
#[path = "../support/executable.rs"]
mod executable;
mod gate;
mod invocation;
mod log;
#[path = "../support/marked.rs"]
#[allow(dead_code, reason = "others take more of it")]
mod marked;
mod names;
#[allow(dead_code, reason = "others take more of it")]
#[path = "../support/namespace.rs"]
mod namespace;
#[allow(dead_code, reason = "others take more of it")]
#[path = "../support/network.rs"]
mod network;
mod outcome;
mod page;
#[allow(dead_code, reason = "others take more of it")]
#[path = "../support/postgres.rs"]
mod postgres;
mod programs;
#[path = "../support/pty.rs"]
mod pty;
mod repository;
#[path = "../support/skewed_clock.rs"]
mod skewed_clock;
mod while_waiting;
mod world;

mod adoption;
mod afresh;
mod agent_decides;
mod answers;
mod approvals;
mod archive;
mod ask_in_file;
mod asking;
mod back_off;
mod beside;
mod browser;
mod budget;
mod chain;
mod chains;
mod claude_output;
mod claude_program;
mod completions;
mod config;
mod costs;
mod crash;
mod cron;
mod dashboard;
mod detached;
mod disk;
mod doctor;
mod early_answers;
mod environment;
mod estimate;
mod examples;
mod failures;
mod fan_out;
mod folders;
mod forgery;
mod fork_from;
mod fsck;
mod gc;
mod help;
mod history;
mod hostile_archive;
mod hosts;
mod ids;
mod import_trust;
mod in_background;
mod inbox;
mod inbox_kinds;
mod inbox_typing;
mod init;
mod instruction_files;
mod interruption;
mod json;
mod launch;
mod limits;
mod lingering;
mod lists;
mod live;
mod logs;
mod lost;
mod mcp;
mod meanwhile;
mod native_waits;
mod no_room;
mod not_suspended;
mod notification_examples;
mod notifications;
mod object_storage;
mod own_directory;
mod paging;
mod parallel;
mod plans;
mod pooler;
mod power_failure;
mod prompts;
mod question_files;
mod questions;
mod races;
mod reach;
mod repairs;
mod replaced_places;
mod replica;
mod replies;
mod reply_schemas;
mod resume_all;
mod retries;
mod rights;
mod server;
mod service;
mod several_requests;
mod state_directory;
mod steps;
mod stop;
mod stopping;
mod streams;
mod suspended;
mod tell;
mod terminal;
mod there_and_then;
mod together;
mod traces;
mod transcripts;
mod unwritten;
mod usage_limit;
mod waits;
mod watch;
mod went_on;
mod worktree_archive;
mod worktree_remotes;
mod worktrees;
