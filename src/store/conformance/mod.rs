//! Tests what a database behind the traits must do. Each test gets a function that opens the store of a directory, and uses
//! only the traits. A database implementation runs all tests with [`conformance!`](crate::store::conformance::conformance).

use std::path::Path;

use tempfile::TempDir;

use crate::store::handle::Store;

pub(crate) mod hosts;
pub(crate) mod lingering;
pub(crate) mod people;
pub(crate) mod running;
pub(crate) mod upkeep;

/// Opens the store of a directory, which is created if it does not exist. Several can be open at once.
pub(crate) type Open = fn(&Path) -> Store;

fn fresh(open: Open) -> (TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = open(&temp.path().join("state"));
    (temp, store)
}

/// Tests a database: `conformance!(open)`.
macro_rules! conformance {
    ($open:path) => {
        $crate::store::conformance::conformance! { $open;
            running: a_chain_is_created_whole_or_not_at_all, the_reply_of_a_handoff_is_the_reply_of_its_caller, results_are_objects_for_who_asks_for_json,
                one_runner_begins_an_attempt, limits_apply_in_the_transaction_that_begins,
                an_attempt_that_is_not_kept_asks_nothing, an_ended_attempt_counts_with_its_cost, results_are_delivered_once,
                a_result_that_changed_is_not_delivered, detached_chains_share_what_is_limited,
            a_summary_ends_a_session, calls_that_are_not_open_are_withdrawn, a_wait_ends_with_its_condition,
                a_frame_is_put_off_and_tried_again, what_happened_is_logged_in_order;
            lingering: a_call_that_lingers_returns_its_result_in_its_own_attempt, the_request_of_a_call_becomes_that_of_a_program;
            people: the_first_answer_counts, questions_are_listed_by_directory, ids_are_found_by_their_beginning,
                chains_are_listed_by_kind_and_directory, a_chain_can_be_changed, messages_are_given_once,
                a_stop_reaches_everything_below, an_event_is_sent_once, a_subscription_ends;
            upkeep: others_are_noticed, a_chain_is_removed_unless_it_has_changed, files_without_an_agent_are_found,
                a_chain_is_exported_and_imported, the_records_are_sound, programs_are_remembered_until_they_change,
                worktrees_are_known_with_who_works_in_them;
            hosts: a_lease_is_seen_by_other_hosts_until_it_ends, a_drained_host_begins_nothing, rights_are_given_and_taken_away,
                a_chain_is_taken_with_its_files_and_what_comes_late_is_refused, a_forgotten_host_leaves_its_chains_to_others;
        }
    };
    ($open:path; $($group:ident: $($test:ident),+;)+) => {
        $(mod $group {
            use super::*;
            $(#[test]
            fn $test() {
                $crate::store::conformance::$group::$test($open);
            })+
        })+
    };
}
pub(crate) use conformance;
