//! The rules and view models of the page and of the MCP server: who may use them, what people are shown there, and what has changed
//! since. Nothing of HTML, HTTP or the protocol.

pub(crate) mod chain_list;
pub(crate) mod conversation;
pub(crate) mod dialog;
pub(crate) mod live_view;
pub(crate) mod news;
pub(crate) mod page_addresses;
pub(crate) mod page_guard;
pub(crate) mod task;
pub(crate) mod timeline;
