//! Questions that agents post as files, and answers in files: the published pattern of `pending` and `answered` folders.

pub(crate) mod answered;
pub(crate) mod fields;
pub(crate) mod marker;
pub(crate) mod pending;
