//! The rows of the part of a store that is verified.

use locality_uuid::LocalityId;
use redb::{AccessGuard, ReadOnlyTable, ReadTransaction, StorageError};

use crate::error::Fault;
use crate::schema::tables::{ENDED, TENANT_USERS, USERS};
use polynym_directory::{EndedOwnerships, Tenant, encoded::event::decode_ended};
use polynym_identifier::IdentityKey;
use polynym_store_common::integrity::Scope;

/// Bytes by keys of bytes.
type BytesTable = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Bytes = AccessGuard<'static, &'static [u8]>;
/// The id of a user, and its record.
type UserRecord = (LocalityId, Bytes);
/// The ended ownerships of a key.
type EndedRow = (IdentityKey, EndedOwnerships);
/// Users with their records.
pub type UserRecords = Box<dyn Iterator<Item = Result<UserRecord, Fault>> + Send>;

/// The users of a part with their records, ascending by id.
pub fn user_records(transaction: &ReadTransaction, scope: &Scope) -> Result<UserRecords, Fault> {
    let (users, part) = (transaction.open_table(USERS)?, scope.clone());
    if let Some(tenant) = &scope.tenant {
        let ids = tenant_users(transaction, tenant)?;
        let record = move |id: Result<LocalityId, Fault>| {
            let id = id?;
            Ok(users.get(id.as_bytes())?.map(|record| (id, record)))
        };
        let is_in_part = move |id: &Result<LocalityId, Fault>| {
            id.as_ref().map_or(true, |id| part.has(id.as_bytes()))
        };
        return Ok(Box::new(ids.filter(is_in_part).filter_map(move |id| record(id).transpose())));
    }
    let rows = users.range::<&[u8; 16]>(..)?.map(|row| {
        let (id, record) = row?;
        Ok((LocalityId::from(*id.value()), record))
    });
    let is_in_part = move |row: &Result<UserRecord, Fault>| {
        row.as_ref().map_or(true, |(id, _)| part.has(id.as_bytes()))
    };
    Ok(Box::new(rows.filter(is_in_part)))
}

/// The ids of the users of a tenant.
pub fn tenant_users(
    transaction: &ReadTransaction,
    tenant: &Tenant,
) -> Result<impl Iterator<Item = Result<LocalityId, Fault>> + Send + use<>, Fault> {
    let (name, first, last) = (tenant.as_str(), [0; 16], [u8::MAX; 16]);
    let rows = transaction.open_table(TENANT_USERS)?.range((name, &first)..=(name, &last))?;
    Ok(rows.map(|row| Ok(LocalityId::from(*row?.0.value().1))))
}

/// The rows of a part, in a table by identity keys.
pub fn rows_of_keys(
    table: &BytesTable,
    scope: &Scope,
) -> Result<impl Iterator<Item = Result<(Bytes, Bytes), StorageError>> + Send + use<>, Fault> {
    let rows = match &scope.tenant {
        None => table.range::<&[u8]>(..)?,
        Some(tenant) => {
            let [start, end] = IdentityKey::range(tenant.as_str());
            table.range(start.as_bytes()..end.as_bytes())?
        }
    };
    let part = scope.clone();
    Ok(rows.filter(move |row| row.as_ref().map_or(true, |(key, _)| part.has(key.value()))))
}

/// The ended ownerships of a part, by their keys.
pub fn ended_rows(
    transaction: &ReadTransaction,
    scope: &Scope,
) -> Result<impl Iterator<Item = Result<EndedRow, Fault>> + Send + use<>, Fault> {
    let rows = rows_of_keys(&transaction.open_table(ENDED)?, scope)?;
    Ok(rows.map(|row| {
        let (stored, ended) = row?;
        let text = String::from_utf8(stored.value().to_vec()).ok();
        let key = text.and_then(IdentityKey::from_stored);
        let key = key.ok_or_else(|| Fault::damaged("an ended ownership without a key"))?;
        Ok((key, decode_ended(ended.value()).map_err(Fault::damaged)?))
    }))
}
