//! `store upgrade` on a folder that no server has open. One transaction takes the schema to a newer
//! version, and rewrites what has another form there. Identities are moved to later rules one by
//! one: until all are moved, only servers that support both rules open the store.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Fault, OpenError};
use crate::file::opener::{Open, Opener};
use crate::options::Options;
use crate::schema::tables::{META, META_MOVING, META_RULES, META_SCHEMA};
use crate::schema::versions::{NO_VERSION, Versions, versions};
use crate::setup::integrity::CACHE_BYTES;
use crate::store::Embedded;
use crate::version::{Supported, VERSION};
use polynym_directory::{StoredRules, move_all, service::renormalization::move_all::Moved};
use polynym_identifier::Rules;

/// The versions to which a store is upgraded, with the rules of normalisation.
#[derive(Clone, Copy)]
struct Target {
    supported: Supported,
    rules: Rules,
}

/// Upgrades the store in `folder`, which must exist and not be in use, to the versions of this
/// program. Reports each step to `progress` in a sentence. Blocks.
///
/// # Errors
/// [`OpenError`]. Another run resumes the upgrade.
pub async fn upgrade(folder: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    upgrade_to(folder, VERSION, Rules::PRESENT, progress).await
}

/// Upgrades the store to this version of the schema and to these rules of normalisation. Blocks.
///
/// # Errors
/// [`OpenError`]. Another run resumes the upgrade.
pub async fn upgrade_to(
    folder: &Path,
    schema: u64,
    rules: Rules,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let supported = Supported { schema, rules: rules.version() };
    let mut found = change_versions(folder, supported, |_| None)?;
    if found.schema < schema {
        progress(&format!("upgrading schema version {} to {schema}", found.schema));
        found = change_versions(folder, supported, |found| Some(Versions { schema, ..found }))?;
    }

    if found.rules.version < supported.rules {
        let target = Target { supported, rules };
        move_to(folder, target, found.rules.next.is_none(), progress).await?;
        found = change_versions(folder, supported, |_| None)?;
    }

    let (folder, rules) = (folder.display(), found.rules.version);
    progress(&format!(
        "{folder} is a store of schema version {schema} and rules version {rules} now"
    ));
    Ok(())
}

/// Moves all identities to these rules, or none if some cannot be moved.
async fn move_to(
    folder: &Path,
    target: Target,
    is_new: bool,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let Target { supported, rules } = target;
    if is_new {
        move_identities(folder, target, true, progress).await?;
        let moving = |found: StoredRules| StoredRules { next: Some(rules.version()), ..found };
        change_versions(folder, supported, |found| {
            Some(Versions { rules: moving(found.rules), ..found })
        })?;
    }
    move_identities(folder, target, false, progress).await?;
    let moved = StoredRules::new(rules.version());
    change_versions(folder, supported, |found| Some(Versions { rules: moved, ..found }))?;
    Ok(())
}

async fn move_identities(
    folder: &Path,
    Target { supported, rules }: Target,
    dry_run: bool,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let store = Embedded::open_supporting(folder, Options::default(), supported)?;
    let outcome = if dry_run { "can be moved" } else { "were moved" };
    let report = |moved: Moved| progress(&moved.text(outcome));
    let problems = move_all(Arc::new(store).backend(), rules, dry_run, &report)
        .await
        .map_err(|error| OpenError::damaged(folder, error))?;
    for problem in &problems {
        progress(&problem.to_string());
    }

    match problems.len() {
        0 => Ok(()),
        count => Err(OpenError::Unmovable { folder: folder.to_owned(), count }),
    }
}

/// Changes the versions of the store if `change` returns others. Returns the versions.
fn change_versions(
    folder: &Path,
    supported: Supported,
    change: impl Fn(Versions) -> Option<Versions>,
) -> Result<Versions, OpenError> {
    let mut opener = Opener::new(folder, CACHE_BYTES).supporting(supported);
    let open = opener.open_existing()?;
    let found = versions(&open.database)
        .map_err(|error| opener.damaged(error))?
        .ok_or_else(|| opener.damaged(NO_VERSION))?;
    let Some(changed) = change(found) else { return Ok(found) };
    write(&open, changed).map_err(|fault| opener.damaged(fault))?;
    Ok(changed)
}

/// Writes the versions. What a schema changes in the tables belongs in this transaction.
fn write(open: &Open, versions: Versions) -> Result<(), Fault> {
    let transaction = open.database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_SCHEMA, versions.schema)?;
        meta.insert(META_RULES, u64::from(versions.rules.version))?;
        match versions.rules.next {
            Some(next) => drop(meta.insert(META_MOVING, u64::from(next))?),
            None => drop(meta.remove(META_MOVING)?),
        }
    }

    open.commit(transaction)
}
