//! The JSON output of every command. The schemas in `docs/schema` are generated from these types.
//!
//! A view is gathered from the store. Every front shows the same views: as text, as JSON or as a page.

pub(crate) mod agent;
pub(crate) mod agent_detail;
pub(crate) mod chain;
pub(crate) mod chain_status;
pub(crate) mod cost;
pub(crate) mod denied;
pub(crate) mod estimate;
pub(crate) mod exchange;
#[cfg(test)]
mod json_schemas;
pub(crate) mod outcome;
pub(crate) mod question;
pub(crate) mod settings;
