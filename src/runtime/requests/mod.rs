//! Carries out what agents ask for.

pub mod adopt;
pub mod agent_lookup;
pub mod agent_request;
pub mod fork;
pub mod record;
