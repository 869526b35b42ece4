//! What agents ask for, and what people answer.

pub(crate) mod agent_command;
pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod convention;
pub(crate) mod cron_expression;
pub(crate) mod lingering;
pub(crate) mod proposed_plan;
pub(crate) mod question_form;
pub(crate) mod request;
pub(crate) mod request_state;
pub(crate) mod spawn_result;
