//! Which results an attempt was given and its agent did not see.

use crate::claude::stream::digest::Digest;
use crate::core::id::RequestId;
use crate::core::requests::request::{Delivery, Wish};

/// The requests whose results the agent did not see, though their call was resumed to return them: a user's hook that
/// denies, rewrites or suspends the call has the last word, and so has a rule against the command that returns it.
///
/// `shown`: those whose call has returned them, whatever a user's hook has let the agent see of that.
pub(super) fn unseen(told: &[Delivery], digest: &Digest, shown: &[RequestId]) -> Vec<RequestId> {
    let suspended_again = digest.result.as_ref().and_then(|result| result.deferred_call.as_ref());
    let returned = digest.returned.as_ref();
    let of_call = |delivery: &&Delivery| returned.is_some_and(|back| delivery.call.as_ref() == Some(&back.call));
    // What an approved call returns is the tool's own.
    let results = || told.iter().filter(|delivery| !matches!(delivery.wish, Wish::Permission { .. }));
    let is_seen = results().filter(of_call).all(|delivery| returned.is_some_and(|back| delivery.result.is_in(back)));
    let unseen = results().filter(|delivery| !shown.contains(&delivery.request)).filter(|delivery| {
        let again = suspended_again.is_some() && delivery.call.as_ref() == suspended_again;
        again || (!is_seen && of_call(delivery))
    });
    unseen.map(|delivery| delivery.request).collect()
}
