//! What agents do and did, for everybody who watches: nothing here changes a record or a conversation.

pub(crate) mod now;
mod output;
