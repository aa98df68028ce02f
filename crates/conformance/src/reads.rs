//! Reads, the tenants that they must keep apart, and what survives a restart.

mod isolation;
mod naming;
mod quantity;
mod reading;
mod survival;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(isolation::tenants_share_nothing),
        case(isolation::changes_stay_in_their_tenant),
        case(isolation::lifecycle_changes_stay_in_their_tenant),
        case(isolation::a_user_id_is_used_once),
        case(isolation::separators_in_values_keep_keys_apart),
        case(isolation::spellings_of_one_identifier_collide),
        case(naming::names_of_any_script_come_back),
        case(naming::an_unused_name_stays_listed),
        case(naming::a_tenant_has_a_bounded_number_of_names),
        case(naming::a_dry_run_adds_no_name),
        case(naming::a_recreated_tenant_starts_empty),
        case(naming::concurrent_additions_of_a_name_share_one_id),
        case(quantity::identities_are_limited),
        case(quantity::attributes_are_limited),
        case(quantity::a_lowered_limit_only_stops_growth),
        case(quantity::a_batch_is_answered_in_order),
        case(quantity::large_users_come_back),
        case(reading::every_kind_and_value_comes_back),
        case(reading::display_stays_as_typed),
        case(reading::unlinked_identifiers_have_no_owner),
        case(reading::unknown_ids_are_absent),
        case(reading::extremes_come_back),
        case(survival::everything_survives_closing),
        case(survival::requests_survive_closing),
        case(survival::an_open_store_passes_its_check),
    ]
}
