//! `store upgrade`: takes a store to the newest versions, while servers go on. First its document
//! of versions is changed: programs that support the new versions use them from when they have read
//! it. Then the validators are, and MongoDB refuses what others still write. Identities are moved
//! to later rules in between. Each step can be taken again, so an upgrade that was broken off is
//! finished by the next.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use tokio::time::sleep;

use super::collections::Collections;
use super::connect::{connect, disconnect};
use super::error::OpenError;
use super::init::{InitOptions, complete};
use super::schema::{META, MOVING};
use super::supported::{JOURNALED, Supported, TOKENS};
use super::versions::{Fence, LEASE, Versions};
use super::{Mongo, Options};
use crate::directory::service::renormalization::move_all::move_all;
use crate::identifier::Rules;

/// The pause between the announcement of a move of identities and its begin: by then each server
/// has read it, or reads it before it answers.
const ANNOUNCED: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// Upgrades the store in the database that `uri` names to the versions of this program, and reports
/// each step to `progress` in a sentence.
///
/// # Errors
/// [`OpenError`]. Where a step fails, another run goes on from there.
pub async fn upgrade(uri: &str, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    upgrade_to(uri, Rules::PRESENT, progress).await
}

/// Takes it to the newest schema and to these rules of normalisation.
///
/// # Errors
/// [`OpenError`]. Where a step fails, another run goes on from there.
pub async fn upgrade_to(
    uri: &str,
    rules: Rules,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let database = connect(uri).await?;
    let supported = Supported { rules: rules.version(), ..Supported::PRESENT };
    let upgrade = Upgrade { uri, database: &database, supported, rules, progress };
    let upgraded = upgrade.run().await;
    disconnect(&database).await;
    upgraded
}

/// The time limit of one step over users.
const SLOW: Duration = Duration::from_secs(60);

struct Upgrade<'u> {
    uri: &'u str,
    database: &'u Database,
    supported: Supported,
    rules: Rules,
    progress: &'u (dyn Fn(&str) + Sync),
}

impl Upgrade<'_> {
    async fn run(&self) -> Result<(), OpenError> {
        let newest = self.supported.schema;
        // The store gets all that it lacks in its old versions first: servers that support the new
        // ones rely on it.
        let mut versions = self.complete().await?;
        for schema in [TOKENS.min(newest), JOURNALED.min(newest), newest] {
            if versions.schema >= schema {
                continue;
            }
            if versions.has_tokens() && !versions.is_searchable() {
                self.rewrite_users(versions).await?;
            }
            if versions.has_journal() && !versions.has_begun_histories() {
                self.begin_histories(versions).await?;
            }
            self.raise(versions, Versions { schema, ..versions }).await?;
            (self.progress)(&format!(
                "schema version {schema}: programs that support it use it from now on"
            ));
            versions = self.complete().await?;
        }

        if versions.rules < self.rules.version() {
            versions = self.move_identities(versions).await?;
        }
        let (name, Versions { schema, rules, .. }) = (self.database.name(), versions);
        (self.progress)(&format!(
            "database {name} is a store of schema version {schema} and rules version {rules} now"
        ));

        Ok(())
    }

    /// Stores the attributes of all users by tokens. Servers do so with each user that they write.
    async fn rewrite_users(&self, versions: Versions) -> Result<(), OpenError> {
        // Servers that have not read the new versions yet write the old form for as long.
        sleep(ANNOUNCED).await;
        let fence = Fence::new(self.supported, versions);
        let collections = Collections::new(self.database.clone(), SLOW, false, fence);
        let (mut users, mut after) = (0, Bson::MinKey);
        loop {
            let rewritten = collections.rewrite_users(&after, versions).await;
            let rewritten = rewritten.map_err(|fault| OpenError::Failed(fault.to_string()))?;
            let Some((last, count)) = rewritten else { return Ok(()) };
            (users, after) = (users + count, last);
            (self.progress)(&format!("{users} users have attributes that can be searched"));
        }
    }

    /// Has the histories of all tenants begin now. Servers write them in this epoch.
    async fn begin_histories(&self, versions: Versions) -> Result<(), OpenError> {
        let fence = Fence::new(self.supported, versions);
        let collections = Collections::new(self.database.clone(), SLOW, false, fence);
        let begun = collections.begin_histories(versions).await;
        begun.map_err(|fault| OpenError::Failed(fault.to_string()))?;
        (self.progress)("the histories of all tenants begin now");
        Ok(())
    }

    /// Moves all identities to the new rules. Nothing is changed where some cannot be.
    async fn move_identities(&self, mut versions: Versions) -> Result<Versions, OpenError> {
        let store = Mongo::open_supporting(self.uri, Options::default(), self.supported).await?;
        let store = Arc::new(store);
        let moved = async {
            if versions.moving.is_none() {
                self.run_over(&store, true).await?;
                let moving = Some(self.rules.version());
                self.raise(versions, Versions { moving, ..versions }).await?;
                (self.progress)("identities are being moved: nothing names identifiers meanwhile");
            }
            versions = self.complete().await?;
            sleep(ANNOUNCED).await;
            // Identities may have come since the first look that cannot be moved beside others.
            // From here on none comes.
            if let Err(error) = self.run_over(&store, true).await {
                self.raise(versions, Versions { moving: None, ..versions }).await?;
                self.complete().await?;
                return Err(error);
            }
            self.run_over(&store, false).await?;
            self.raise(
                versions,
                Versions { rules: self.rules.version(), moving: None, ..versions },
            )
            .await?;
            self.complete().await
        };
        let moved = moved.await;
        store.close().await;

        moved
    }

    async fn run_over(&self, store: &Arc<Mongo>, dry_run: bool) -> Result<(), OpenError> {
        let what = if dry_run { "can be moved" } else { "were moved" };
        let say =
            |users, moved| (self.progress)(&format!("{users} users, {moved} identities {what}"));
        let problems = move_all(store.backend(), self.rules, dry_run, &say).await;
        let problems = problems.map_err(|error| OpenError::Failed(error.to_string()))?;
        for problem in &problems {
            (self.progress)(&problem.to_string());
        }

        match problems.len() {
            0 => Ok(()),
            count => Err(OpenError::Unmovable { database: self.database.name().to_owned(), count }),
        }
    }

    /// Makes what the store lacks in its versions, which are the outcome.
    async fn complete(&self) -> Result<Versions, OpenError> {
        let versions = Versions::supported_in(self.database, self.supported).await?;
        complete(self.database, versions, &InitOptions { spread: false }, self.progress).await?;
        Ok(versions)
    }

    /// Changes the versions, where they are still `from`. The epoch rises with them.
    async fn raise(&self, from: Versions, to: Versions) -> Result<(), OpenError> {
        let to = Versions { epoch: from.epoch + 1, ..to };
        let mut unchanged = from.document();
        unchanged.entry(MOVING.to_owned()).or_insert(Bson::Null);
        let mut change = doc! { "$set": to.document() };
        if to.moving.is_none() {
            change.insert("$unset", doc! { MOVING: true });
        }

        let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let meta = self.database.collection::<Document>(META);
        meta.update_one(unchanged, change).write_concern(majority).await?;
        Ok(())
    }
}
