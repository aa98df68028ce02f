//! The contract of [`Store`] as code: cases that every store passes unchanged, each on a store of its own that is empty
//! at first, and a [`model`] for random operations. What is particular to one store is tested beside that store.

mod ensure;
mod fixture;
mod isolation;
mod linking;
mod reading;

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
    ]
}
