//! A store keeps everything when it is closed and opened again.

use polynym_directory::{Error, Mutation};

use super::Failure;
use super::assertions::{equal, refused, taken};
use super::fixture::{Fixture, link, replace, request, unlink};

pub async fn everything_survives_closing(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["email:joe@example.com", "handle:joe"]).await?;
    let eve = f.create(&["email:eve@example.com", "handle:eve"]).await?;
    let joe = f.change(&joe, replace("handle:joe", "handle:joseph")?).await?;
    let eve = f.change(&eve, unlink("handle:eve")?).await?;
    let f = f.reopen().await?;
    f.is_kept(&joe).await?;
    f.is_kept(&eve).await?;
    f.free(&["handle:joe", "handle:eve"]).await?;
    taken(f.change(&eve, link("handle:joseph")?).await, &joe, "identifier")?;
    let eve = f.change(&eve, link("handle:joe")?).await?;
    let f = f.reopen().await?.reopen().await?;
    f.is_kept(&joe).await?;

    f.is_kept(&eve).await
}

pub async fn requests_survive_closing(f: Fixture) -> Result<(), Failure> {
    let creation = Mutation { request: request("key", 1), ..f.creation(&["handle:joe"])? };
    let user = f.mutate(creation.clone()).await?;
    let f = f.reopen().await?;
    let again = Mutation { kind: f.creation(&["handle:joe"])?.kind, ..creation };
    equal(&f.mutate(again.clone()).await?, &user, "the answer to a request of before")?;
    let reused = Mutation { request: request("key", 2), ..again };
    refused(f.mutate(reused).await, &Error::RequestIdReused)?;
    f.is_kept(&user).await
}

pub async fn an_open_store_says_so(f: Fixture) -> Result<(), Failure> {
    f.store.reads.check().await?;
    let f = f.reopen().await?;
    Ok(f.store.reads.check().await?)
}
