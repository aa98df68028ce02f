//! Tenants from creation to deletion, and identities of older rules.

mod deleting;
mod policies;
mod renormalizing;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(deleting::a_tenant_is_deleted_with_its_content),
        case(deleting::requests_of_a_deleted_tenant_are_void),
        case(deleting::a_tenants_own_requests_end_with_it),
        case(deleting::a_deletion_can_be_cancelled),
        case(deleting::an_unmarked_tenant_is_not_deleted),
        case(deleting::keys_are_those_of_one_tenant),
        case(policies::changes_of_a_tenant_in_one_millisecond_have_an_order),
        case(policies::a_tenant_is_created_and_changed),
        case(policies::an_etag_of_a_tenant_is_enforced),
        case(policies::a_repeated_change_of_a_tenant_happens_once),
        case(policies::a_dry_run_changes_no_tenant),
        case(policies::tenants_are_listed_by_name),
        case(renormalizing::an_old_identity_adopts_the_present_rules),
        case(renormalizing::a_moved_identity_has_an_event_and_is_found),
        case(renormalizing::an_old_identity_that_collides_stays),
        case(renormalizing::a_display_form_of_another_identifier_does_not_count),
        case(renormalizing::a_dry_run_renormalizes_nothing),
        case(renormalizing::renormalizing_adds_a_guard),
        case(renormalizing::a_scan_lists_each_user_of_a_tenant_once),
    ]
}
