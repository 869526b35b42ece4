//! Carries out what agents ask for.

pub(crate) mod adopt;
pub(crate) mod agent_lookup;
pub(crate) mod agent_request;
pub(crate) mod fork;
pub(crate) mod record;
