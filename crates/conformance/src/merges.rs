//! Merges, their undoing, and moves of single identities.

mod merging;
mod merging_concurrently;
mod transferring;
mod unmerging;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(merging::a_merged_user_is_part_of_the_primary),
        case(merging::the_secondary_can_win),
        case(merging::conflicts_can_fail_a_merge),
        case(merging::a_preview_shows_the_result_of_a_merge),
        case(merging::bad_merges_are_refused),
        case(merging::a_merged_user_is_not_changed),
        case(merging::a_repeated_merge_happens_once),
        case(merging::chains_of_merges_lead_to_one_user),
        case(merging::purging_a_primary_purges_its_secondaries),
        case(merging::a_disabled_user_can_be_merged),
        case(merging::holds_of_the_secondary_move_to_the_primary),
        case(merging_concurrently::one_of_two_opposite_merges_succeeds),
        case(merging_concurrently::a_concurrent_merge_and_purge_are_serialized),
        case(merging_concurrently::concurrent_merges_and_links_keep_the_invariants),
        case(transferring::a_moved_identity_has_its_new_owner_at_once),
        case(transferring::bad_moves_are_refused),
        case(transferring::a_repeated_move_happens_once),
        case(unmerging::relinked_identities_stay_with_the_primary),
        case(unmerging::an_unmerge_restores_both_users),
        case(unmerging::an_unmerge_after_a_restart_restores_the_state),
        case(unmerging::later_changes_are_reported),
        case(unmerging::a_merge_is_undone_once),
        case(unmerging::a_dry_run_undoes_nothing),
        case(unmerging::the_undo_window_ends),
        case(unmerging::a_repeated_unmerge_happens_once),
        case(unmerging::a_chain_is_undone_from_its_end),
        case(unmerging::holds_return_to_the_secondary),
    ]
}
