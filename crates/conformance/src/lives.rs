//! States of users, holds and the history that is left of them.

mod auditing;
mod holding;
mod lookalikes;
mod purging;
mod purposes;
mod shortening;
mod states;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(auditing::newest_events_are_those_of_histories),
        case(holding::an_unlinked_identifier_is_held_for_its_owner),
        case(holding::a_hold_ends_to_the_millisecond),
        case(holding::an_expired_hold_gives_no_priority),
        case(holding::a_replaced_identifier_is_held_like_an_unlinked_one),
        case(holding::policies_do_not_change_existing_holds),
        case(holding::a_hold_can_be_released),
        case(holding::ownerless_holds_can_be_released),
        case(holding::holds_of_a_user_are_limited),
        case(holding::holds_belong_to_one_tenant),
        case(holding::the_former_owner_wins_a_race),
        case(lookalikes::the_first_of_two_lookalikes_wins),
        case(lookalikes::a_guard_does_not_resolve),
        case(lookalikes::ascii_handles_have_no_guard),
        case(lookalikes::a_guard_is_removed_with_its_handle),
        case(lookalikes::a_guard_is_held_like_its_handle),
        case(lookalikes::policies_can_allow_lookalikes),
        case(lookalikes::lookalikes_belong_to_one_tenant),
        case(purging::a_purge_continues_until_no_event_has_the_name),
        case(purging::a_purge_notices_changes_in_between),
        case(purging::a_dry_run_of_a_purge_takes_one_round),
        case(purposes::events_keep_the_reason_and_the_operation),
        case(shortening::a_shorter_retention_removes_old_events),
        case(states::disable_and_enable_change_the_state_alone),
        case(states::a_deleted_user_keeps_its_identities),
        case(states::undelete_restores_the_disabled_state),
        case(states::a_deleted_user_is_not_changed),
        case(states::state_changes_of_unknown_users_are_refused),
        case(states::expired_users_are_not_found),
        case(states::purge_leaves_only_ownerless_holds),
        case(states::purge_works_in_every_state_and_can_be_repeated),
        case(states::deleted_users_are_purged_at_their_purge_time),
        case(states::expired_users_are_listed_in_pages),
        case(states::a_repeated_change_of_state_happens_once),
        case(states::one_of_many_deletions_succeeds),
    ]
}
