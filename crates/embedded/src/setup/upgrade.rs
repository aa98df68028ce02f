//! `store upgrade` on a folder that no server has open. One transaction upgrades the schema.
//! Identities are moved to later rules one by one: until all are moved, only servers that support
//! both rules open the store.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadableTable, WriteTransaction};

use crate::error::{Fault, OpenError};
use crate::file::opener::{Open, Opener};
use crate::lookup::snapshot::item_result;
use crate::options::Options;
use crate::schema::tables::{
    ATTRIBUTES, META, META_MOVING, META_RULES, META_SCHEMA, TENANT_USERS, TENANTS, USERS,
    create_inboxes, create_journal,
};
use crate::schema::user::{JournalHead, StoredUser, encode_user, encode_user_over};
use crate::schema::versions::{Versions, schema_version, versions};
use crate::search::index::Attributes;
use crate::setup::integrity::CACHE_BYTES;
use crate::store::Embedded;
use crate::version::{FORMS, INDEXED, JOURNALED, LISTED, SHARING, VERSION};
use polynym_directory::model::policies::Policies;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::model::tenant_record::TenantRecord;
use polynym_directory::search::Derived;
use polynym_directory::service::renormalization::move_all::{Moved, move_all};
use polynym_directory::stores::StoredRules;
use polynym_directory::timestamp::Timestamp;
use polynym_identifier::Rules;
use polynym_store_common::attribute_names::{AttributeNames, KnownNames};

/// The users of one step.
const PAGE_USERS: usize = 1_000;

/// The id of a user and its record.
type StoredRow = ([u8; 16], Vec<u8>);

/// Upgrades the store in `folder`, which must exist and not be in use, to the versions of this
/// program. Reports each step to `progress` in a sentence. Blocks.
///
/// # Errors
/// [`OpenError`]. Another run resumes the upgrade.
pub async fn upgrade(folder: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    upgrade_to(folder, Rules::PRESENT, progress).await
}

/// Upgrades the store to the newest schema and to these rules of normalisation. Blocks.
///
/// # Errors
/// [`OpenError`]. Another run resumes the upgrade.
pub async fn upgrade_to(
    folder: &Path,
    rules: Rules,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let mut found = change_versions(folder, rules, |_| None)?;
    if found.schema < VERSION {
        progress(&format!("upgrading schema version {} to {VERSION}", found.schema));
        found =
            change_versions(folder, rules, |found| Some(Versions { schema: VERSION, ..found }))?;
    }

    if found.rules.version < rules.version() {
        move_to(folder, rules, found.rules.next.is_none(), progress).await?;
        found = change_versions(folder, rules, |_| None)?;
    }

    let (folder, rules) = (folder.display(), found.rules.version);
    progress(&format!(
        "{folder} is a store of schema version {VERSION} and rules version {rules} now"
    ));
    Ok(())
}

/// Moves all identities to these rules, or none if some cannot be moved.
async fn move_to(
    folder: &Path,
    rules: Rules,
    is_new: bool,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    if is_new {
        move_identities(folder, rules, true, progress).await?;
        let moving = |found: StoredRules| StoredRules { next: Some(rules.version()), ..found };
        change_versions(folder, rules, |found| {
            Some(Versions { rules: moving(found.rules), ..found })
        })?;
    }
    move_identities(folder, rules, false, progress).await?;
    let moved = StoredRules::new(rules.version());
    change_versions(folder, rules, |found| Some(Versions { rules: moved, ..found }))?;
    Ok(())
}

async fn move_identities(
    folder: &Path,
    rules: Rules,
    dry_run: bool,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let store = Embedded::open_supporting(folder, Options::default(), rules.version())?;
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
    rules: Rules,
    change: impl Fn(Versions) -> Option<Versions>,
) -> Result<Versions, OpenError> {
    let mut opener = Opener::new(folder, CACHE_BYTES).supporting(rules.version());
    let open = opener.open_existing()?;
    let found = versions(&open.database)
        .map_err(|error| opener.damaged(error))?
        .ok_or_else(|| opener.damaged("it has no version"))?;
    let Some(changed) = change(found) else { return Ok(found) };
    write(&open, changed).map_err(|fault| opener.damaged(fault))?;
    Ok(changed)
}

/// Lists each tenant's users.
fn list_users(transaction: &WriteTransaction) -> Result<(), Fault> {
    let mut tenant_users = transaction.open_table(TENANT_USERS)?;
    for entry in transaction.open_table(USERS)?.iter()? {
        let (id, record) = entry?;
        // Skips damaged users.
        let Ok(tenant) = StoredUser::read(record.value()).and_then(|user| user.tenant()) else {
            continue;
        };
        tenant_users.insert((tenant, id.value()), ())?;
    }
    Ok(())
}

/// Stores the attributes of all users by ids, and indexes them.
fn index_users(transaction: &WriteTransaction) -> Result<(), Fault> {
    let cache = AttributeNames::default();
    let mut attributes = Attributes::open(transaction, &cache, Derived::Forms)?;
    let mut users = transaction.open_table(USERS)?;
    let (names, mut after) = (KnownNames::default(), None);
    loop {
        let page = users_after(&users, after)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);

        for (id, before) in page {
            // Skips damaged users.
            let decoded = StoredUser::read(&before).and_then(|user| user.decode(&names));
            let Ok(record) = decoded else { continue };
            let head = JournalHead::default();
            let since = created(transaction, &record.user.tenant)?;
            let (tenant, user) = (&record.user.tenant, std::iter::once(&record));
            let names = attributes.names.with_at_most(usize::MAX, tenant, since, user)?;
            let names = names.map_err(Fault::damaged)?;
            let stored = encode_user_over(&record, Some(&names), head, &before);
            let stored = stored.unwrap_or_else(|| encode_user(&record, Some(&names), head));
            users.insert(&id, stored.as_slice())?;
            attributes.index(None, Some(&record), &Policies::default())?;
        }
    }
}

/// Builds the index of attributes again, with the derived elements of the newest schema.
fn index_again(transaction: &WriteTransaction) -> Result<(), Fault> {
    transaction.delete_table(ATTRIBUTES)?;
    let cache = AttributeNames::default();
    let mut attributes = Attributes::open(transaction, &cache, Derived::Forms)?;
    let users = transaction.open_table(USERS)?;
    let mut after = None;
    loop {
        let page = users_after(&users, after)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);

        for (_, record) in page {
            let decode = |stored: StoredUser<'_>| stored.decode(&*attributes.names_for(&stored)?);
            // Skips damaged users.
            let Ok(record) = item_result(StoredUser::read(&record).and_then(decode))? else {
                continue;
            };
            let policies = policies(transaction, &record.user.tenant)?;
            attributes.index(None, Some(&record), &policies)?;
        }
    }
}

/// The next users after `after`, with their records.
fn users_after(
    users: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    after: Option<[u8; 16]>,
) -> Result<Vec<StoredRow>, Fault> {
    let start = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut page = Vec::with_capacity(PAGE_USERS);
    for row in users.range::<&[u8; 16]>((start, Bound::Unbounded))?.take(PAGE_USERS) {
        let (id, record) = row?;
        page.push((*id.value(), record.value().to_vec()));
    }
    Ok(page)
}

/// The policies of a tenant.
fn policies(transaction: &WriteTransaction, name: &Tenant) -> Result<Policies, Fault> {
    let tenants = transaction.open_table(TENANTS)?;
    let stored = tenants.get(name.as_str())?;
    let tenant = stored.and_then(|stored| TenantRecord::decode(stored.value()).ok());
    Ok(tenant.map(|tenant| tenant.policies).unwrap_or_default())
}

/// When a tenant was created. Creates the record of a tenant that never had policies.
fn created(transaction: &WriteTransaction, name: &Tenant) -> Result<Timestamp, Fault> {
    let mut tenants = transaction.open_table(TENANTS)?;
    if let Some(stored) = tenants.get(name.as_str())? {
        return Ok(TenantRecord::decode(stored.value()).map_err(Fault::damaged)?.since);
    }
    let tenant = TenantRecord::new(name.clone(), Timestamp::now());
    tenants.insert(name.as_str(), tenant.encode().as_slice())?;
    Ok(tenant.since)
}

/// Creates the journal. The history of each tenant begins now.
fn begin_history(transaction: &WriteTransaction) -> Result<(), Fault> {
    create_journal(transaction)?;
    let mut tenants = transaction.open_table(TENANTS)?;
    let mut begun = Vec::new();
    for entry in tenants.iter()? {
        let (name, stored) = entry?;
        // Skips damaged tenants.
        let Ok(mut tenant) = TenantRecord::decode(stored.value()) else { continue };
        tenant.policies.history_since = Some(Timestamp::now());
        begun.push((name.value().to_owned(), tenant));
    }
    for (name, tenant) in begun {
        tenants.insert(name.as_str(), tenant.encode().as_slice())?;
    }
    Ok(())
}

/// Upgrades the tables, and writes the versions.
fn write(open: &Open, versions: Versions) -> Result<(), Fault> {
    let transaction = open.database.begin_write()?;
    let found = schema_version(&transaction)?;
    if found < LISTED {
        list_users(&transaction)?;
    }
    if found < INDEXED && versions.schema >= INDEXED {
        index_users(&transaction)?;
    } else if found < FORMS && versions.schema >= FORMS {
        index_again(&transaction)?;
    }

    if found < JOURNALED && versions.schema >= JOURNALED {
        begin_history(&transaction)?;
    }
    // Notices keep the form in which they were delivered.
    if found < SHARING && versions.schema >= SHARING {
        create_inboxes(&transaction)?;
    }

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
