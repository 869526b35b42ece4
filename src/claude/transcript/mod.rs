//! Transcripts: their paths, their content, and how they are copied.
//!
//! A kept transcript is never written to. An attempt continues from a copy, and there are three kinds of copies:
//!
//! | when | what is changed | by |
//! | --- | --- | --- |
//! | a suspended call can return its result by itself: it is the only one of its message, a command can print the result unchanged, and hooks run | nothing; a hook gives the result when the session is resumed | the transcript is not copied |
//! | results are given to suspended calls in any other case | a result replaces each mark; then a prompt follows | [`insert_results`] |
//! | a call was denied so that a person could be asked, and the person has decided | what followed the call is left out, and the call is marked as suspended | [`reopen`] |
//!
//! Both changes are made with [`rewrite`], the only place in which lines are left out, replaced or added. It links the line
//! after a removed one to the line before it, and checks with [`ancestry`] that the copy has the whole conversation: Claude
//! Code would silently leave out everything that is not connected.

pub(crate) mod ancestry;
pub(crate) mod insert_results;
pub(crate) mod last_request;
pub(crate) mod locate;
pub(crate) mod others;
pub(crate) mod reopen;
pub(crate) mod rewrite;
pub(crate) mod salvaged_transcript;
pub(crate) mod session_facts;
pub(crate) mod turn;
