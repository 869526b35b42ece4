//! Who may use the page.

pub(super) mod guard;
pub(super) mod sessions;
