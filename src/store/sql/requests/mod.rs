//! The rows of requests, from the call to the delivery.

pub(crate) mod agent_creation;
pub(crate) mod attach;
pub(crate) mod calls;
pub(crate) mod groups;
pub(crate) mod handoffs;
pub(crate) mod jobs;
pub(crate) mod questions;
pub(crate) mod request_records;
pub(crate) mod results;
pub(crate) mod withdraw;
