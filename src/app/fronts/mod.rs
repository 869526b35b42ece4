//! Rules and view models that the page and the MCP server share: access checks, content for people, and changes since then.
//! They contain no HTML, HTTP or protocol details.

pub(crate) mod chain_list;
pub(crate) mod conversation;
pub(crate) mod dialog;
pub(crate) mod live_view;
pub(crate) mod news;
pub(crate) mod page_addresses;
pub(crate) mod page_guard;
pub(crate) mod task;
pub(crate) mod timeline;
