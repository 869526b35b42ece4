//! What agents ask for, and what people answer.

pub(crate) mod agent_command;
pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod cron_expression;
pub(crate) mod permit;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod request;
pub(crate) mod returned;
pub(crate) mod scheduled;
pub(crate) mod state;
