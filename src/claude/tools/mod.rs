//! Tools and hooks of Claude Code that this program answers.

pub mod ask_user_question;
pub mod denied;
pub mod exit_plan_mode;
pub mod hook;
pub mod permission_server;
pub mod schedule;
