//! An entity that only these tests have: a counter that is written along with a user.

use polynym_directory::Mutation;

use crate::fixture::assertions::{equal, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, link};

/// A counter counts successful mutations only.
pub async fn a_counter_is_written_along_with_a_user(f: Fixture) -> Result<(), Failure> {
    let counted = |mutation| Mutation { counter: Some("links".to_owned()), ..mutation };
    let owner = f.mutate(counted(f.creation(&["handle:joe"])?)).await?;
    let other = f.create(&["handle:eve"]).await?;
    let refused = f.mutate(counted(f.mutation(other.id, link("handle:joe")?))).await;
    taken(refused, &owner, "identifier")?;
    f.mutate(counted(f.mutation(other.id, link("handle:new")?))).await?;
    f.mutate(Mutation { dry_run: true, ..counted(f.mutation(other.id, link("handle:dry")?)) })
        .await?;
    equal(&f.store.mutations.counter("links").await?, &2, "the counter")
}
