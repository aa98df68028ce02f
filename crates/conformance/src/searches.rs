//! Searches, the attributes that they use, and duplicates.

mod defining;
mod duplicates;
mod finding;
mod names;
mod paging;
mod searching;

use super::fixture::case::{Case, case};

/// The cases of these modules.
pub fn cases() -> Vec<Case> {
    vec![
        case(defining::an_index_follows_the_definition),
        case(defining::attribute_types_are_enforced),
        case(defining::indexed_values_are_limited),
        case(duplicates::users_of_one_mailbox_are_found),
        case(duplicates::holds_and_attributes_are_compared),
        case(duplicates::attributes_that_are_evidence_are_compared),
        case(duplicates::a_small_memory_limit_finds_the_same_pairs),
        case(duplicates::large_groups_are_compared_in_part),
        case(finding::texts_find_the_users_of_the_reference),
        case(paging::pages_list_each_match_once),
        case(searching::values_of_each_type_have_one_order),
        case(searching::a_search_shows_the_last_change),
        case(searching::identities_lead_a_search),
        case(searching::words_of_names_are_found),
        case(names::parts_of_names_are_found),
        case(names::spellings_of_texts_are_found),
        case(names::ends_of_addresses_are_found_in_capitals),
        case(names::words_that_names_have_are_known),
        case(searching::ends_of_domains_are_found),
        case(searching::tenants_do_not_find_each_others_users),
        case(searching::random_filters_agree_with_the_reference),
        case(searching::unchanged_users_are_found_once_during_writes),
    ]
}
