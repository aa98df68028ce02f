//! The contract of a [`Backend`](polynym_directory::Backend) as code: cases that every store
//! passes unchanged, each on an empty store of its own, and a [`model`] for random operations.
//! Tests of one store alone are beside that store.

mod bulk;
mod delivery;
mod feed;
mod fixture;
mod inboxes;
mod lives;
mod merges;
pub mod model;
mod mutations;
mod reads;
mod searches;
pub mod step;
mod tenants;
mod transfers;
pub mod undoing;
mod usage;

pub use fixture::case::Case;
pub use fixture::factory::{Failure, StoreFactory};

use fixture::case::case;

/// All cases. A case that is not listed does not compile: it would be dead code.
pub fn cases() -> Vec<Case> {
    let rooms = [
        reads::cases(),
        searches::cases(),
        mutations::cases(),
        lives::cases(),
        merges::cases(),
        tenants::cases(),
        transfers::cases(),
        vec![
            case(inboxes::inboxes_agree_with_the_model),
            case(inboxes::a_request_keeps_its_first_notice),
            case(inboxes::a_request_of_a_deleted_tenant_has_no_notice),
            case(inboxes::a_purged_user_has_no_inbox),
            case(bulk::one_server_runs_a_bulk_change),
            case(bulk::a_tenant_runs_few_bulk_changes_at_once),
            case(bulk::bulk_changes_are_removed),
            case(bulk::a_bulk_change_says_for_what_it_waits),
            case(bulk::a_bulk_change_is_undone_once_its_users_rest),
            case(bulk::a_user_changes_if_it_matches_and_once),
            case(bulk::a_server_without_the_lease_changes_nobody),
            case(bulk::runs::servers_change_each_user_once),
            case(bulk::runs::a_caller_without_rights_changes_nobody),
            case(bulk::runs::an_id_is_used_again_for_another_bulk_change),
            case(bulk::runs::listed_users_change),
            case(bulk::undoings::a_bulk_change_undoes_an_operation),
            case(bulk::undoings::an_operation_is_undone_once),
            case(bulk::undoings::an_undoing_and_its_bulk_change_exclude_each_other),
            case(bulk::undoings::what_cannot_be_undone_in_bulk_is_refused),
            case(bulk::undoings::an_undoing_needs_the_rights_of_its_caller),
            case(delivery::one_server_delivers),
            case(delivery::a_paused_delivery_is_not_taken),
            case(delivery::changes_of_a_delivery_keep_each_other),
            case(delivery::events_are_delivered_again_beside_those_that_wait),
            case(delivery::a_tenant_has_few_deliveries),
            case(undoing::undone_operations_agree_with_a_model),
            case(usage::each_batch_is_added_once),
            case(usage::a_removed_tenant_has_no_counters),
            case(feed::a_feed_resumes_after_each_event),
            case(feed::an_idle_feed_answers_in_time),
            case(feed::a_feed_has_the_events_of_its_tenant),
            case(feed::a_user_created_again_has_all_events),
            case(feed::a_write_without_an_event_sends_none),
            case(feed::events_have_the_names_of_attributes),
        ],
    ];
    rooms.into_iter().flatten().collect()
}
