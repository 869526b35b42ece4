//! The command line, environment and settings of a `claude` process.

pub mod command;
pub mod environment;
pub mod permission_rules;
pub mod recorded;
pub mod settings;
pub mod user_hooks;
pub mod variables;
