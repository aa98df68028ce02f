//! The events of changes, with what a change itself does not have: the names of attributes, large
//! events, which are in the journal, and the tenant of an update. Each is read at once for several
//! changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::times::Times;
use crate::feed::changes::{Change, StreamToken};
use crate::schema::bson::{by_id, id_of, id_value, read_fields, required};
use crate::schema::event::{last_token, restore_names};
use crate::schema::fields::{ID, JOURNAL, TENANT};
use crate::schema::tail::Bucket;
use polynym_directory::{
    Event, Tenant, encoded::event::decode_event, encoded::event::event_message,
};
use polynym_store_common::attribute_names::KnownNames;
use polynym_store_common::unreadable::report_unreadable;
use prost::Message;

/// The memory of an event beside its texts, by the growth of a server with a watch.
const EVENT_BYTES: usize = 3_500;

/// The events that a change has added.
pub struct AddedEvents {
    /// The events, in order.
    pub events: Vec<Arc<Event>>,
    /// The size of their messages.
    pub bytes: usize,
    /// The memory that they take, about.
    pub memory: usize,
    /// The token after the change.
    pub token: StreamToken,
}

/// Parts of changes that were read from the store.
struct Parts {
    tenants: HashMap<LocalityId, Tenant>,
    /// The stored events of documents of the journal, by the documents' ids.
    buckets: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Collections {
    /// The events of changes, in their order.
    pub async fn complete(&self, changes: Vec<Change>) -> Result<Vec<AddedEvents>, Fault> {
        let parts = self.read_parts(&changes).await?;
        let events = |change: &Change| parts.events(change);
        let mut all: Vec<_> = changes.iter().map(events).collect();
        self.name_all(&mut all).await?;
        let each = changes.into_iter().zip(all);
        Ok(each.map(|(change, events)| AddedEvents::new(events, change.token)).collect())
    }

    async fn read_parts(&self, changes: &[Change]) -> Result<Parts, Fault> {
        let time = changes.iter().map(|change| change.time).max();
        let incomplete = changes.iter().filter(|change| change.tenant.is_none());
        let users = incomplete.map(|change| id_value(change.user)).collect();
        let large = changes.iter().filter_map(|change| change.tail.added_bucket(change.user));
        let (mut tenants, mut buckets) = (HashMap::new(), HashMap::new());
        for user in self.find_since(&self.users, users, time).await? {
            match read_tenant_of(&user) {
                Ok(tenant) => drop(tenants.insert(id_of(&user)?, tenant)),
                Err(fault) => report_unreadable(id_of(&user).ok(), &fault),
            }
        }
        for bucket in self.find_since(&self.collection(JOURNAL), large.collect(), time).await? {
            let [id] = read_fields(&bucket, [ID])?;
            let id = required(ID, id, RawBsonRef::as_binary)?.bytes.to_vec();
            match Bucket::events(&bucket) {
                Ok(events) => drop(buckets.insert(id, events)),
                Err(fault) => report_unreadable(None, &fault),
            }
        }
        Ok(Parts { tenants, buckets })
    }

    /// The documents with these ids, as of `time` or later. On a cluster a commit becomes visible
    /// on one shard before another: such a read waits for it.
    async fn find_since(
        &self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
        time: Option<Timestamp>,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = Times::since(time).session(&self.client).await?;
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let find = from.find(by_id(ids)).selection_criteria(primary).max_time(self.timeout);
        let mut found = find.read_concern(ReadConcern::majority()).session(&mut session).await?;
        Ok(found.stream(&mut session).try_collect().await?)
    }

    /// Restores the names of attributes.
    async fn name_all(&self, changes: &mut [Vec<Event>]) -> Result<(), Fault> {
        let mut tokens = BTreeMap::new();
        for event in changes.iter().flatten() {
            let Some(last) = last_token([event]) else { continue };
            let greatest = tokens.entry(event.tenant.as_str().to_owned()).or_insert(last);
            *greatest = last.max(*greatest);
        }
        let names = match self.names_up_to(&tokens).await {
            Err(fault @ Fault::Damaged(_)) => {
                report_unreadable(None, &fault);
                HashMap::new()
            }
            names => names?,
        };
        let unknown = KnownNames::default();
        for event in changes.iter_mut().flatten() {
            let names = names.get(event.tenant.as_str()).map_or(&unknown, |names| names);
            restore_names(std::slice::from_mut(event), names);
        }
        Ok(())
    }
}

fn read_tenant_of(user: &RawDocument) -> Result<Tenant, Fault> {
    let [tenant] = read_fields(user, [TENANT])?;
    Tenant::parse(required(TENANT, tenant, RawBsonRef::as_str)?).map_err(Fault::damaged)
}

impl AddedEvents {
    fn new(events: Vec<Event>, token: StreamToken) -> Self {
        let bytes = events.iter().map(|event| event_message(event).encoded_len()).sum();
        let memory = events.len() * EVENT_BYTES + bytes;
        Self { events: events.into_iter().map(Arc::new).collect(), bytes, memory, token }
    }
}

impl Parts {
    /// The events that a change has added. None if the user was purged since: nothing may be known
    /// of it.
    fn events(&self, change: &Change) -> Vec<Event> {
        let tenant = change.tenant.as_ref().or_else(|| self.tenants.get(&change.user));
        let stored = match change.tail.added_bucket(change.user) {
            Some(Bson::Binary(id)) => self.buckets.get(&id.bytes).map_or(&[][..], Vec::as_slice),
            _ => change.tail.added_events(),
        };
        let Some(tenant) = tenant else { return Vec::new() };
        let decode = |event: &Vec<u8>| {
            let decoded = decode_event(tenant, change.user, event);
            decoded.inspect_err(|error| report_unreadable(Some(change.user), error)).ok()
        };
        stored.iter().filter_map(decode).collect()
    }
}
