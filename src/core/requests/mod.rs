//! What agents ask for, and what people answer.

pub mod agent_command;
pub(crate) mod approval;
pub mod cron_expression;
pub mod plan;
pub mod question;
pub mod request;
pub mod returned;
pub mod scheduled;
