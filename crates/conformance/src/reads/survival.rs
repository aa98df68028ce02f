//! Data survives closing and reopening a store.

use polynym_directory::{Error, Mutation};

use crate::fixture::assertions::{equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, link, replace, request, unlink};

pub async fn everything_survives_closing(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["email:joe@example.com", "handle:joe"]).await?;
    let eve = f.create(&["email:eve@example.com", "handle:eve"]).await?;
    let joseph = f.change(&joe, replace("handle:joe", "handle:joseph")?).await?;
    let unlinked = f.change(&eve, unlink("handle:eve")?).await?;
    let f = f.reopen().await?;
    f.has(&joseph).await?;
    f.has(&unlinked).await?;
    f.free(&["handle:joe", "handle:eve"]).await?;
    taken(f.change(&unlinked, link("handle:joseph")?).await, &joseph, "identifier")?;
    let relinked = f.change(&unlinked, link("handle:joe")?).await?;
    let f = f.reopen().await?.reopen().await?;
    f.has(&joseph).await?;

    f.has(&relinked).await
}

pub async fn requests_survive_closing(f: Fixture) -> Result<(), Failure> {
    let creation = Mutation { request: request("key", 1), ..f.creation(&["handle:joe"])? };
    let user = f.mutate(creation.clone()).await?;
    let f = f.reopen().await?;
    let again = Mutation { kind: f.creation(&["handle:joe"])?.kind, ..creation };
    equal(&f.mutate(again.clone()).await?, &user, "the answer to an earlier request")?;
    let reused = Mutation { request: request("key", 2), ..again };
    refused(f.mutate(reused).await, &Error::RequestIdReused)?;
    f.has(&user).await
}

pub async fn an_open_store_passes_its_check(f: Fixture) -> Result<(), Failure> {
    f.store.reads.check().await?;
    Ok(f.reopen().await?.store.reads.check().await?)
}
