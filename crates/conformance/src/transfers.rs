//! Imports and exports.

mod exporting;
mod importing;
mod link_model;
mod merge_links;
mod reimporting;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(exporting::a_snapshot_does_not_change),
        case(exporting::an_imported_tenant_keeps_all_fields),
        case(importing::an_imported_user_keeps_all_fields),
        case(importing::a_line_is_imported_once),
        case(importing::conflicting_identities_are_skipped),
        case(importing::one_of_many_imports_of_a_line_succeeds),
        case(importing::a_batch_imports_each_line_as_if_alone),
        case(importing::a_dry_run_imports_nothing),
        case(importing::a_line_of_a_trial_follows_the_earlier_ones),
        case(importing::ownerless_holds_are_exported_and_imported),
        case(link_model::links_agree_with_a_model),
        case(merge_links::a_line_names_only_users_that_name_it_back),
        case(merge_links::undo_data_belongs_to_the_merged_user),
        case(merge_links::merged_users_and_primaries_come_in_any_order),
        case(merge_links::lines_form_no_circle),
        case(merge_links::a_listed_user_of_another_tenant_is_never_changed),
        case(merge_links::a_listed_user_who_was_not_merged_stays),
        case(reimporting::an_update_sets_what_the_line_has),
        case(reimporting::a_replacement_removes_what_the_line_lacks),
        case(reimporting::a_filling_line_leaves_what_the_user_has),
        case(reimporting::a_line_changes_only_the_user_that_it_names),
        case(reimporting::policies_hold_for_lines),
    ]
}
