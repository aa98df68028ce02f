//! Changes of one user, alone, repeated and concurrent.

mod concurrency;
mod counting;
mod linking;
mod replacing;
mod requests;
mod resending;
mod updating;
mod verifying;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    [changes(), verifications()].into_iter().flatten().collect()
}

fn changes() -> Vec<Case> {
    vec![
        case(concurrency::one_of_many_links_gets_the_identifier),
        case(concurrency::one_of_many_creates_gets_the_shared_identifier),
        case(concurrency::concurrent_links_of_one_user_all_succeed),
        case(concurrency::one_of_many_changes_with_one_etag_succeeds),
        case(concurrency::a_concurrent_refused_mutation_changes_nothing),
        case(concurrency::contested_names_have_one_owner),
        case(concurrency::a_cancelled_call_changes_all_or_nothing),
        case(counting::a_counter_is_written_along_with_a_user),
        case(linking::link_adds_an_identity),
        case(linking::link_again_changes_nothing),
        case(linking::link_of_a_taken_identifier_is_refused),
        case(linking::unlink_frees_the_identifier),
        case(linking::unlink_of_an_unowned_identifier_is_refused),
        case(linking::changes_of_unknown_users_are_refused),
        case(linking::each_kind_keeps_one_primary),
        case(replacing::replace_takes_the_position_of_the_old_identity),
        case(replacing::replace_drops_the_verification),
        case(replacing::replace_by_another_spelling_changes_the_display),
        case(replacing::replace_by_an_owned_identity_drops_the_old_one),
        case(replacing::replace_by_another_kind_keeps_one_primary_a_kind),
        case(replacing::a_refused_replace_changes_nothing),
        case(replacing::two_users_can_swap_names_via_a_third),
        case(replacing::replace_is_atomic_for_readers),
        case(replacing::a_moving_identifier_resolves_to_its_owners_only),
        case(requests::a_repeated_create_makes_one_user),
        case(requests::a_repeated_change_happens_once),
        case(requests::a_request_id_names_one_request),
        case(requests::request_keys_differ_by_tenant_method_and_caller),
        case(requests::a_request_is_remembered_for_a_day),
        case(requests::expiry_keeps_renewed_requests),
        case(requests::a_refused_request_is_not_remembered),
        case(requests::concurrent_repeats_happen_once),
        case(resending::an_immediate_repeat_happens_once),
        case(resending::a_repeat_after_an_undo_happens_once),
        case(resending::a_repeat_after_a_merge_happens_once),
        case(resending::a_repeat_after_a_purge_happens_once),
        case(updating::update_sets_the_fields_of_the_mask),
        case(updating::no_op_changes_keep_time_and_etag),
        case(updating::verify_sets_and_clears),
        case(updating::an_etag_is_enforced),
        case(updating::times_never_go_back),
        case(updating::changes_in_one_millisecond_have_an_order),
    ]
}

fn verifications() -> Vec<Case> {
    vec![
        case(verifying::a_verified_link_takes_over_an_unverified_identity),
        case(verifying::a_verified_link_takes_over_no_verified_identity),
        case(verifying::a_new_user_takes_over_from_several),
        case(verifying::an_old_phone_goes_to_the_user_who_verifies_it),
        case(verifying::a_renewed_verification_keeps_a_phone),
        case(verifying::policies_can_keep_the_primary_identity),
        case(verifying::policies_can_keep_the_last_identity),
    ]
}
