//! The contract of a [`Backend`] as code: cases that every store passes unchanged, each on a store
//! of its own that is empty at first, and a [`model`] for random operations. What is particular to
//! one store is tested beside that store.

mod assertions;
mod concurrency;
mod counting;
mod decoded;
mod defining;
mod deleting;
mod duplicates;
mod exporting;
mod fixture;
mod holding;
mod importing;
mod invariants;
mod isolation;
mod linking;
mod lookalikes;
mod made_up;
mod merging;
mod merging_concurrently;
pub mod model;
mod naming;
mod notices;
mod paging;
mod purging;
mod quantity;
mod reading;
mod renormalizing;
mod replacing;
mod requests;
mod resending;
mod searching;
mod shortening;
mod states;
pub mod step;
mod survival;
mod tenants;
mod transferring;
mod unmerging;
mod updating;
mod usage;
mod verifying;
mod watching;

use std::any::type_name;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt};
use polynym_directory::Backend;

use fixture::Fixture;

/// The fault that a case found, in words for the person who mends it.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A place for one store. It is empty when made, and keeps the store's data.
#[async_trait]
pub trait StoreFactory: Send + Sync {
    /// Opens the store that is here. Callers have it open once at most.
    ///
    /// # Errors
    /// A [`Failure`] that says why it cannot be opened.
    async fn open(&self) -> Result<Backend, Failure>;
}

type Run = Box<dyn FnOnce(Fixture) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// One thing that a store must do.
pub struct Case {
    name: &'static str,
    run: Run,
}

impl Case {
    /// The name, as `linking::link_again_changes_nothing`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the case on the store of a place that nothing has used yet.
    ///
    /// # Errors
    /// A [`Failure`] that says what the store did wrong.
    pub async fn run(self, place: Arc<dyn StoreFactory>) -> Result<(), Failure> {
        (self.run)(Fixture::new(place).await?).await
    }
}

/// A case is named after its function, so that neither can be renamed alone.
fn case<F, R>(run: F) -> Case
where
    F: FnOnce(Fixture) -> R + Send + 'static,
    R: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let path = type_name::<F>();
    let name = path.rmatch_indices("::").nth(1).map_or(path, |(at, _)| &path[at + 2..]);
    Case { name, run: Box::new(move |fixture| run(fixture).boxed()) }
}

/// All cases. A case that is not listed here does not compile: it would be dead code.
pub fn cases() -> Vec<Case> {
    let groups = [
        of_reads(),
        of_searches(),
        of_changes(),
        of_requests(),
        of_lives(),
        of_merges(),
        of_tenants(),
        of_imports(),
        of_duplicates(),
        of_inboxes_usage_and_events(),
    ];
    groups.into_iter().flatten().collect()
}

fn of_reads() -> Vec<Case> {
    vec![
        case(reading::every_kind_and_value_comes_back),
        case(reading::display_stays_as_typed),
        case(reading::nobody_owns_what_was_never_linked),
        case(reading::unknown_ids_are_absent),
        case(reading::extremes_come_back),
        case(isolation::tenants_share_nothing),
        case(isolation::no_change_reaches_another_tenant),
        case(isolation::nothing_in_a_life_reaches_another_tenant),
        case(isolation::an_id_is_given_once),
        case(isolation::separators_in_values_keep_keys_apart),
        case(isolation::spellings_of_one_identifier_collide),
        case(quantity::identities_are_limited),
        case(quantity::attributes_are_limited),
        case(quantity::a_lowered_limit_only_stops_growth),
        case(quantity::a_batch_is_answered_in_order),
        case(quantity::large_users_come_back),
        case(naming::names_of_any_script_come_back),
        case(naming::a_name_stays_where_no_user_has_it),
        case(naming::a_tenant_has_a_bounded_number_of_names),
        case(naming::a_dry_run_adds_no_name),
        case(naming::a_tenant_that_is_made_again_begins_anew),
        case(naming::names_that_many_add_at_once_have_one_token_each),
        case(survival::everything_survives_closing),
        case(survival::requests_survive_closing),
        case(survival::an_open_store_says_so),
    ]
}

fn of_searches() -> Vec<Case> {
    vec![
        case(defining::an_index_follows_the_definition),
        case(defining::values_of_a_defined_type_are_taken),
        case(defining::values_to_be_found_by_are_limited),
        case(searching::values_of_each_type_have_one_order),
        case(searching::a_search_shows_the_last_change),
        case(searching::identities_lead_a_search),
        case(searching::tenants_do_not_find_each_others_users),
        case(searching::random_filters_find_what_the_reference_finds),
        case(searching::who_does_not_change_is_found_once_while_others_change),
        case(paging::pages_of_a_directory_have_who_matches_once),
    ]
}

fn of_changes() -> Vec<Case> {
    vec![
        case(counting::a_counter_is_written_along_with_a_user),
        case(linking::link_gives_an_identity),
        case(linking::link_again_changes_nothing),
        case(linking::link_of_anothers_is_refused),
        case(linking::unlink_frees_the_identifier),
        case(linking::unlink_of_what_is_not_owned_is_refused),
        case(linking::changes_of_nobody_are_refused),
        case(linking::each_kind_keeps_one_primary),
        case(replacing::replace_moves_in_one_step),
        case(replacing::replace_does_not_pass_on_a_verification),
        case(replacing::replace_by_another_spelling_changes_the_display),
        case(replacing::replace_by_an_identity_of_ones_own_drops_the_old_one),
        case(replacing::replace_by_another_kind_keeps_one_primary_a_kind),
        case(replacing::replace_that_is_refused_changes_nothing),
        case(replacing::two_users_can_swap_by_way_of_a_third_name),
        case(replacing::replace_is_never_seen_half_done),
        case(replacing::what_moves_between_users_never_resolves_to_a_stranger),
        case(updating::update_sets_what_the_mask_names),
        case(updating::what_changes_nothing_leaves_time_and_etag),
        case(updating::verify_sets_and_clears),
        case(updating::an_etag_is_enforced),
        case(updating::times_never_go_back),
        case(updating::changes_in_one_millisecond_have_an_order),
        case(unmerging::what_was_linked_anew_in_the_same_millisecond_stays),
        case(tenants::changes_of_a_tenant_in_one_millisecond_have_an_order),
        case(verifying::a_verified_identity_takes_the_place_of_another),
        case(verifying::a_verified_identity_takes_no_verified_one),
        case(verifying::a_new_user_takes_from_several),
        case(verifying::the_mark_of_the_primary_identity_can_be_moved_and_kept),
        case(verifying::the_last_identity_can_be_kept),
    ]
}

fn of_requests() -> Vec<Case> {
    vec![
        case(requests::a_repeated_create_makes_one_user),
        case(requests::a_repeated_change_happens_once),
        case(requests::a_request_id_names_one_request),
        case(requests::requests_with_other_keys_are_others),
        case(requests::a_request_is_remembered_for_a_day),
        case(requests::forgetting_spares_what_was_sent_again),
        case(requests::a_refused_request_is_not_remembered),
        case(requests::one_request_at_once_many_times_happens_once),
        case(resending::what_is_sent_again_at_once_happens_once),
        case(resending::what_is_sent_again_after_a_later_change_happens_once),
        case(resending::what_is_sent_again_after_a_merge_happens_once),
        case(resending::what_is_sent_again_after_a_purge_happens_once),
        case(concurrency::one_identifier_goes_to_one_of_many),
        case(concurrency::one_of_many_creates_has_what_they_share),
        case(concurrency::links_of_one_user_all_land),
        case(concurrency::of_many_changes_with_one_etag_one_happens),
        case(concurrency::a_refused_mutation_among_others_leaves_nothing),
        case(concurrency::names_that_everyone_wants_have_one_owner),
        case(concurrency::a_caller_that_goes_away_leaves_all_or_nothing),
    ]
}

fn of_lives() -> Vec<Case> {
    vec![
        case(states::disable_and_enable_change_the_state_alone),
        case(states::a_deleted_user_owns_what_it_owned_and_can_come_back),
        case(states::who_was_disabled_comes_back_disabled),
        case(states::a_deleted_user_is_not_changed),
        case(states::states_of_nobody_are_refused),
        case(states::who_is_to_be_purged_by_now_is_gone),
        case(states::purge_leaves_nothing_but_what_is_held_for_nobody),
        case(states::purge_needs_no_deletion_and_can_be_sent_again),
        case(states::deleted_users_are_purged_when_their_time_comes),
        case(states::those_that_are_due_come_in_pages),
        case(states::a_repeated_change_of_state_happens_once),
        case(states::of_many_deletions_one_happens),
        case(holding::what_is_given_up_is_held_for_its_owner),
        case(holding::a_hold_ends_to_the_millisecond),
        case(holding::who_takes_back_after_the_hold_is_one_among_others),
        case(holding::a_replaced_identifier_is_held_like_an_unlinked_one),
        case(holding::other_policies_leave_a_hold_as_it_is),
        case(holding::a_hold_can_be_ended),
        case(holding::what_is_held_for_nobody_can_be_released),
        case(holding::holds_of_a_user_are_limited),
        case(holding::what_one_tenant_holds_is_free_in_another),
        case(holding::among_many_the_former_owner_gets_it_back),
        case(lookalikes::of_two_that_look_alike_the_first_wins),
        case(lookalikes::a_guard_resolves_to_nobody),
        case(lookalikes::ascii_handles_reserve_nothing_else),
        case(lookalikes::a_guard_goes_with_its_handle),
        case(lookalikes::a_guard_is_held_like_its_handle),
        case(lookalikes::a_tenant_can_do_without_guards),
        case(lookalikes::look_alikes_of_another_tenant_do_not_matter),
    ]
}

fn of_merges() -> Vec<Case> {
    vec![
        case(shortening::what_a_shorter_retention_does_not_keep_is_removed),
        case(purging::a_purge_goes_on_until_no_event_has_the_name),
        case(purging::a_dry_run_of_a_purge_needs_no_second_one),
        case(merging::a_merged_user_is_part_of_the_primary),
        case(merging::the_secondary_can_win),
        case(merging::a_merge_can_be_made_to_fail),
        case(merging::a_preview_tells_what_a_merge_would_do),
        case(merging::bad_merges_are_refused),
        case(merging::a_merged_user_is_not_changed),
        case(merging::a_repeated_merge_happens_once),
        case(merging::chains_of_merges_lead_to_one_user),
        case(merging::purging_a_primary_purges_what_is_part_of_it),
        case(merging::a_disabled_user_can_be_merged),
        case(merging::what_was_held_for_the_secondary_is_held_for_the_primary),
        case(merging_concurrently::of_two_merges_into_each_other_one_happens),
        case(merging_concurrently::a_merge_and_a_purge_at_once_leave_nothing_behind),
        case(merging_concurrently::merges_among_other_changes_keep_identifiers_apart),
        case(unmerging::an_undone_merge_leaves_both_as_they_were),
        case(unmerging::an_unmerge_survives_closing_and_gives_back_the_state),
        case(unmerging::later_changes_are_reported),
        case(unmerging::a_merge_is_undone_once),
        case(unmerging::a_dry_run_undoes_nothing),
        case(unmerging::an_undo_ends_with_its_time),
        case(unmerging::a_repeated_unmerge_happens_once),
        case(unmerging::a_chain_is_undone_from_its_end),
        case(unmerging::holds_go_back_with_their_user),
        case(transferring::a_moved_identity_is_the_other_users_at_once),
        case(transferring::what_cannot_be_moved_stays),
        case(transferring::a_repeated_move_happens_once),
    ]
}

fn of_imports() -> Vec<Case> {
    vec![
        case(importing::a_user_is_imported_as_it_is),
        case(importing::a_line_is_imported_once),
        case(importing::what_others_have_is_passed_over),
        case(importing::of_many_imports_of_one_line_one_happens),
        case(importing::many_lines_are_imported_as_each_would_be),
        case(importing::a_dry_run_imports_nothing),
        case(importing::holds_without_an_owner_are_exported_and_imported),
        case(exporting::a_view_is_of_one_moment),
        case(exporting::a_tenant_is_imported_as_it_is),
    ]
}

fn of_inboxes_usage_and_events() -> Vec<Case> {
    vec![
        case(notices::inboxes_agree_with_the_model),
        case(notices::a_request_keeps_its_first_notice),
        case(notices::a_purged_user_has_no_inbox),
        case(usage::each_batch_is_added_once),
        case(watching::a_feed_goes_on_after_each_event),
        case(watching::a_feed_without_events_answers_in_time),
    ]
}

fn of_duplicates() -> Vec<Case> {
    vec![
        case(duplicates::users_of_one_mailbox_are_found_in_states_that_count),
        case(duplicates::what_is_held_and_in_attributes_counts),
        case(duplicates::little_memory_finds_the_same_pairs),
        case(duplicates::of_a_large_group_the_first_users_are_compared),
    ]
}

fn of_tenants() -> Vec<Case> {
    vec![
        case(tenants::a_tenant_is_made_and_changed),
        case(tenants::an_etag_of_a_tenant_is_enforced),
        case(tenants::a_repeated_change_of_a_tenant_happens_once),
        case(tenants::a_dry_run_changes_no_tenant),
        case(tenants::tenants_are_listed_by_name),
        case(deleting::a_tenant_goes_with_all_that_is_in_it),
        case(deleting::a_mark_can_be_taken_back),
        case(deleting::a_tenant_that_is_not_marked_stays),
        case(deleting::keys_are_those_of_one_tenant),
        case(renormalizing::an_old_identity_moves_to_the_present_rules),
        case(renormalizing::an_old_identity_that_collides_stays),
        case(renormalizing::a_dry_run_moves_nothing),
        case(renormalizing::moving_gives_a_handle_its_guard),
        case(renormalizing::a_scan_meets_every_user_of_a_tenant_once),
    ]
}
