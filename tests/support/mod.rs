//! What the tests with the real Claude Code share: the program itself, a scripted Messages API, a scripted model that follows the
//! convention for chains, and a home folder.
//!
//! Tests say `mod support;`, examples and benches `#[path = "../tests/support/mod.rs"] mod support;`.
#![allow(dead_code, reason = "each user takes what it needs")]
#![allow(unused_imports, reason = "each user takes what it needs")]
#![allow(unused_macros, reason = "each user takes what it needs")]
#![allow(unreachable_pub, reason = "every user is a crate root of its own")]

mod cargo;
mod claude_package;
mod conversation;
mod dialect;
mod executable;
pub(crate) mod extent;
mod follower;
pub(crate) mod marked;
mod messages_api;
mod part;
mod pattern;
mod real;
pub(crate) mod script;
mod server;
mod shell;
mod turn;
mod versions;
mod wire;

pub(crate) use cargo::cargo;
pub use claude_package::claude;
pub use conversation::{Conversation, Item, without_line_numbers};
pub(crate) use executable::{copy_executable, write_executable};
pub use follower::follow;
pub(crate) use marked::{Kind, processes_of, victims};
pub use messages_api::{MessagesApi, RecordedRequest, ServedTokens};
pub(crate) use pattern::{Pattern, as_shell};
pub use real::RealHome;
pub use turn::{Hold, ToolCall, Turn};
pub use versions::{NEWEST, OLDER, in_a_whole_run, once, with_each_version, with_each_version_before_a_release};
pub(crate) use versions::{
    on_every_version, on_every_version_before_a_release, on_every_version_of_a_whole_run, on_the_newest_version,
};
