//! The errors of an archive that is refused.

use crate::core::housekeeping::archive::BadArchive;
use crate::store::error::StoreError;
use crate::store::housekeeping::archive::error::ArchiveError;

pub(in crate::store) fn refused(why: BadArchive) -> StoreError {
    ArchiveError::from(why).into()
}

/// The archive is not what was written.
pub(in crate::store) fn damaged(why: &str) -> StoreError {
    refused(BadArchive::Damaged(why.to_owned()))
}
