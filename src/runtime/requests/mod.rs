//! Carries out agents' requests.

pub(crate) mod adopt;
pub(crate) mod agent_lookup;
pub(crate) mod agent_request;
pub(crate) mod answer_files;
mod file_content;
pub(crate) mod fork;
pub(crate) mod place;
pub(crate) mod posted;
pub(crate) mod question_files;
pub(crate) mod reply_check;
pub(crate) mod spawn_request;
