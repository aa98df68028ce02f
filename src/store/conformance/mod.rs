//! The contract of [`Store`] as code: cases that every store passes unchanged, each on a store of its own that is empty
//! at first, and a [`model`] for random operations. What is particular to one store is tested beside that store.

mod concurrency;
mod decoded;
mod ensure;
mod fixture;
mod invariants;
mod isolation;
mod linking;
pub mod model;
mod quantity;
mod reading;
mod replacing;
mod requests;
pub mod step;
mod survival;
mod updating;

use std::any::type_name;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt};

use crate::directory::Store;
use fixture::Fixture;

/// What a case found wrong, in words for the person who mends it.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Where one store can be. It is empty when made, and keeps what its store keeps.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the store that is here. Callers have it open once at most.
    ///
    /// # Errors
    /// A [`Failure`] that says why it cannot be opened.
    async fn open(&self) -> Result<Arc<dyn Store>, Failure>;
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
    pub async fn run(self, place: Arc<dyn Place>) -> Result<(), Failure> {
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
    vec![
        case(reading::every_kind_and_value_comes_back),
        case(reading::display_stays_as_typed),
        case(reading::nobody_owns_what_was_never_linked),
        case(reading::unknown_ids_are_absent),
        case(reading::extremes_come_back),
        case(isolation::tenants_share_nothing),
        case(isolation::no_change_reaches_another_tenant),
        case(isolation::an_id_is_given_once),
        case(isolation::separators_in_values_keep_keys_apart),
        case(isolation::spellings_of_one_identifier_collide),
        case(linking::link_gives_an_identity),
        case(linking::link_again_changes_nothing),
        case(linking::link_of_anothers_is_refused),
        case(linking::unlink_frees_the_identifier),
        case(linking::unlink_of_what_is_not_owned_is_refused),
        case(linking::changes_of_nobody_are_refused),
        case(linking::primaries_settle),
        case(replacing::replace_moves_in_one_step),
        case(replacing::replace_does_not_pass_on_a_verification),
        case(replacing::replace_by_another_spelling_changes_the_display),
        case(replacing::replace_by_an_identity_of_ones_own_drops_the_old_one),
        case(replacing::replace_by_another_kind_settles_primaries),
        case(replacing::replace_that_is_refused_changes_nothing),
        case(replacing::two_users_can_swap_by_way_of_a_third_name),
        case(replacing::replace_is_never_seen_half_done),
        case(replacing::what_moves_between_users_never_resolves_to_a_stranger),
        case(updating::update_sets_what_the_mask_names),
        case(updating::what_changes_nothing_leaves_time_and_etag),
        case(updating::verify_sets_and_clears),
        case(updating::an_etag_is_enforced),
        case(updating::times_never_go_back),
        case(quantity::identities_are_limited),
        case(quantity::attributes_are_limited),
        case(quantity::a_lowered_limit_only_stops_growth),
        case(quantity::a_batch_is_answered_in_order),
        case(quantity::large_users_come_back),
        case(requests::a_repeated_create_makes_one_user),
        case(requests::a_repeated_change_happens_once),
        case(requests::a_request_id_names_one_request),
        case(requests::requests_with_other_keys_are_others),
        case(requests::a_request_is_remembered_for_a_day),
        case(requests::forgetting_spares_what_was_sent_again),
        case(requests::a_refused_request_is_not_remembered),
        case(requests::one_request_at_once_many_times_happens_once),
        case(concurrency::one_identifier_goes_to_one_of_many),
        case(concurrency::one_of_many_creates_has_what_they_share),
        case(concurrency::links_of_one_user_all_land),
        case(concurrency::of_many_changes_with_one_etag_one_happens),
        case(concurrency::a_refused_mutation_among_others_leaves_nothing),
        case(concurrency::names_that_everyone_wants_have_one_owner),
        case(concurrency::a_caller_that_goes_away_leaves_all_or_nothing),
        case(survival::everything_survives_closing),
        case(survival::requests_survive_closing),
        case(survival::an_open_store_says_so),
    ]
}
