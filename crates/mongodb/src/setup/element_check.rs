//! The check of the elements by which users are searched, and of the times of events. MongoDB
//! maintains the index; a document has its entries beside the user from whose fields they are
//! derived.

use locality_uuid::LocalityId;
use mongodb::bson::RawDocument;
use tokio::time::Instant;

use crate::database::collections::Collections;
use crate::mutation::commit_gate::CommitGate;
use crate::schema::attributes::{ATTRIBUTES, field_array, parted};
use crate::schema::fields::TAIL;
use crate::schema::tail::{Tail, has_times_of};
use crate::schema::user::StoredUser;
use polynym_directory::Error;
use polynym_store_common::integrity::{IndexFault, index_repair};

/// The fault of a user whose elements differ from its fields, or whose times differ from its
/// history. Users that cannot be read have other faults.
pub fn index_fault(document: &RawDocument) -> Option<IndexFault> {
    let stored = StoredUser::read(document).ok()?;
    let (fields, _) = parted(document.get(ATTRIBUTES).ok()?).ok()?;
    let user = stored.decode_without_attributes().ok()?.user;
    let tail = Tail::of(document.get(TAIL).ok()?).ok()?;
    let has_times = tail.count == 0 || has_times_of(document, &tail.events);
    let differs = user.id == stored.id && (field_array(&user) != fields || !has_times);
    differs.then_some(IndexFault::Missing(stored.id))
}

/// The user that lacks elements.
pub const fn missing(fault: &IndexFault) -> Option<LocalityId> {
    match fault {
        IndexFault::Missing(user) => Some(*user),
        IndexFault::Stray(..) => None,
    }
}

/// Stores the user of a document again.
pub async fn repair_elements(
    collections: &Collections,
    document: &RawDocument,
) -> Result<(), Error> {
    let user = StoredUser::read(document)?.decode_without_attributes()?.user;
    let tenant = collections.tenant(&user.tenant).await?;
    let repair = index_repair(user.tenant, user.id, tenant);
    let gate = CommitGate::new(Instant::now() + collections.timeout);
    collections.mutate(&repair, &gate).await.map(|_| ())
}
