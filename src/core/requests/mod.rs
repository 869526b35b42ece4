//! What agents ask for, and what people answer.

pub mod agent_command;
pub mod answer;
pub(crate) mod approval;
pub mod choices;
pub mod cron_expression;
pub mod permit;
pub mod plan;
pub mod request;
pub mod returned;
pub mod scheduled;
pub mod state;
