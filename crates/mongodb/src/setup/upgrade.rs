//! `store upgrade`: upgrades a store to the newest versions while servers run. It first changes the
//! document of versions: programs that support the new versions use them once they have read it.
//! Then it changes the validators, so that MongoDB rejects writes of other programs. In between it
//! moves identities to later rules. Steps are idempotent: another run completes an upgrade that was
//! interrupted.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, doc};
use tokio::time::sleep;

use crate::client::connect::{connect, disconnect};
use crate::client::error::OpenError;
use crate::client::options::Options;
use crate::client::supported::Supported;
use crate::command::write::WriteCommand;
use crate::database::operations::Mongo;
use crate::schema::fields::{META, META_NEXT_RULES_VERSION};
use crate::schema::versions::{LEASE, Versions};
use crate::setup::cluster::STEP_TIMEOUT;
use crate::setup::init::complete;
use polynym_directory::{move_all, service::renormalization::move_all::Moved};
use polynym_identifier::Rules;

/// The delay between the announcement of new versions and their use: by then each server has read
/// them, or reads them before it answers.
const ANNOUNCEMENT_TIME: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// Upgrades the store in the database that `uri` names to the versions of this program, and reports
/// each step to `progress` in a sentence.
///
/// # Errors
/// [`OpenError`]. If a step fails, another run continues from there.
pub async fn upgrade(uri: &str, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    upgrade_to(uri, Supported::PRESENT.schema, Rules::PRESENT, progress).await
}

/// Upgrades it to this version of the schema and to these rules of normalisation.
///
/// # Errors
/// [`OpenError`]. If a step fails, another run continues from there.
pub async fn upgrade_to(
    uri: &str,
    schema: i64,
    rules: Rules,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let database = connect(uri).await?;
    let supported = Supported { schema, rules: rules.version() };
    let upgrade = Upgrade { uri, database: &database, supported, rules, progress };
    let upgraded = upgrade.run().await;
    disconnect(&database).await;
    upgraded
}

const CHANGED_CONCURRENTLY: &str =
    "the versions of the store have changed meanwhile, as by another upgrade: run this again";

struct Upgrade<'u> {
    uri: &'u str,
    database: &'u Database,
    supported: Supported,
    rules: Rules,
    progress: &'u (dyn Fn(&str) + Sync),
}

impl Upgrade<'_> {
    async fn run(&self) -> Result<(), OpenError> {
        let schema = self.supported.schema;
        // First complete the store in its old versions: servers that support the new ones rely on
        // it.
        let mut versions = self.complete().await?;
        if versions.schema < schema {
            self.set_versions(versions, Versions { schema, ..versions }).await?;
            (self.progress)(&format!(
                "schema version {schema}: programs that support it now use it"
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

    /// Moves all identities to the new rules. Changes nothing if some cannot be moved.
    async fn move_identities(&self, mut versions: Versions) -> Result<Versions, OpenError> {
        let store = Mongo::open_supporting(self.uri, Options::default(), self.supported);
        let store = Arc::new(store.await?);
        let moved = async {
            if versions.moving.is_none() {
                self.move_identities_of(&store, true).await?;
                let moving = Some(self.rules.version());
                self.set_versions(versions, Versions { moving, ..versions }).await?;
                (self.progress)("identities are being moved: nothing names identifiers meanwhile");
            }
            versions = self.complete().await?;
            sleep(ANNOUNCEMENT_TIME).await;
            // Identities that cannot be moved may have been added since the first dry run. From now
            // on none are added.
            if let Err(error) = self.move_identities_of(&store, true).await {
                self.set_versions(versions, Versions { moving: None, ..versions }).await?;
                self.complete().await?;
                return Err(error);
            }
            self.move_identities_of(&store, false).await?;
            self.set_versions(
                versions,
                Versions { rules: self.rules.version(), moving: None, ..versions },
            )
            .await?;
            self.complete().await
        };
        let outcome = moved.await;
        store.close().await;
        outcome
    }

    async fn move_identities_of(&self, store: &Arc<Mongo>, dry_run: bool) -> Result<(), OpenError> {
        let result = if dry_run { "can be moved" } else { "were moved" };
        let report = |moved: Moved| (self.progress)(&moved.text(result));
        let moved = move_all(store.backend(), self.rules, dry_run, &report).await;
        let problems = moved.map_err(failed)?;
        for problem in &problems {
            (self.progress)(&problem.to_string());
        }

        match problems.len() {
            0 => Ok(()),
            count => Err(OpenError::Unmovable { database: self.database.name().to_owned(), count }),
        }
    }

    /// Creates the missing parts of the store in its versions, and returns these.
    async fn complete(&self) -> Result<Versions, OpenError> {
        let versions = Versions::supported_in(self.database, self.supported).await?;
        complete(self.database, versions, self.progress).await?;
        Ok(versions)
    }

    /// Changes the versions, if they are still `from`. The epoch rises with them.
    async fn set_versions(&self, from: Versions, to: Versions) -> Result<(), OpenError> {
        let to = Versions { epoch: from.epoch + 1, ..to };
        let mut unchanged = from.document();
        unchanged.entry(META_NEXT_RULES_VERSION.to_owned()).or_insert(Bson::Null);
        let mut change = doc! { "$set": to.document() };
        if to.moving.is_none() {
            change.insert("$unset", doc! { META_NEXT_RULES_VERSION: true });
        }

        let update = WriteCommand::update(META, &unchanged, &change).map_err(failed)?;
        match update.run(self.database, STEP_TIMEOUT).await.map_err(failed)? {
            0 => Err(OpenError::Failed(CHANGED_CONCURRENTLY.to_owned())),
            _ => Ok(()),
        }
    }
}

fn failed(error: impl ToString) -> OpenError {
    OpenError::Failed(error.to_string())
}
