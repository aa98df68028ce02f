//! Users with their whole histories, read many at once for `store verify`.

use std::collections::{BTreeSet, HashMap};

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::options::FindOptions;

use crate::client::error::Fault;
use crate::database::collections::{Collections, LONG_READ};
use crate::database::ordered::OrderedFinds;
use crate::history::read::EventPage;
use crate::schema::bson::{by_id, id_of, id_value, read_fields, required};
use crate::schema::fields::{ID, JOURNAL, TAIL};
use crate::schema::tail::{Bucket, Tail, buckets_up_to};
use crate::schema::tenant::read_tenant;
use crate::schema::user::StoredUser;
use polynym_directory::{PageLimit, TenantRecord, User};
use polynym_store_common::integrity::{Past, Presence};

/// The users whose buckets one find reads.
const USERS_AT_ONCE: usize = 64;
/// The buckets of one reply.
const BUCKETS_AT_ONCE: usize = 1_000;

/// Users with the ends of their histories, or why they cannot be read.
type Users = HashMap<LocalityId, Result<(User, Tail), Fault>>;

impl Collections {
    /// The first users with their histories, in the order of their ids, which differ: those up to
    /// the one with which they have `max_events` events together, and at least one.
    pub async fn pasts(
        &self,
        finds: &mut OrderedFinds,
        ids: &[LocalityId],
        max_events: u64,
    ) -> Result<Vec<Presence<Past>>, Fault> {
        self.version_guard.versions()?;
        let mut users = self.users_with_tails(finds, ids).await?;
        let ids = first_of(ids, &users, max_events);
        users.retain(|id, _| ids.contains(id));
        let tenants = self.tenants_of(finds, &users).await?;
        let mut buckets = self.buckets_of(finds, &users).await?;
        let mut pasts = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(user) = users.remove(id) else {
                pasts.push(Presence::Absent);
                continue;
            };
            let past = match user {
                Ok((user, tail)) => {
                    let tenant = tenants.get(user.tenant.as_str());
                    self.past(user, &tail, buckets.remove(id).unwrap_or_default(), tenant).await
                }
                Err(fault) => Err(fault),
            };
            pasts.push(match past {
                Err(Fault::Damaged(_)) => Presence::Unreadable,
                past => Presence::Present(past?),
            });
        }
        Ok(pasts)
    }

    /// A user with the events of its tail and of its buckets.
    async fn past(
        &self,
        user: User,
        tail: &Tail,
        mut buckets: Vec<(Vec<u8>, RawDocumentBuf)>,
        tenant: Option<&TenantRecord>,
    ) -> Result<Past, Fault> {
        let mut page = EventPage::new(&user.tenant, user.id, tail.count, PageLimit::unlimited());
        self.add(&mut page, &tail.events).await?;
        buckets.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        for (_, bucket) in buckets {
            self.add(&mut page, &Bucket::found_events(&bucket, &user.tenant)?).await?;
        }
        let events = page.events;
        Ok(Past::new(user, events, tenant))
    }

    async fn users_with_tails(
        &self,
        finds: &mut OrderedFinds,
        ids: &[LocalityId],
    ) -> Result<Users, Fault> {
        let filter = by_id(ids.iter().copied().map(id_value).collect());
        let found = finds.find_documents(&self.users, filter, find_of(ids.len())).await?;
        let stored: Vec<_> = found.iter().map(|document| read_user(document)).collect();
        let (names, read) =
            self.known_names_of(stored.iter().flatten().map(|(user, _)| user)).await;
        read?;
        let named = |(user, tail): (StoredUser, Tail)| Ok((names.record(&user)?.user, tail));
        let users = found.iter().zip(stored);
        users.map(|(document, user)| Ok((id_of(document)?, user.and_then(named)))).collect()
    }

    /// The tenants of users, by their names.
    async fn tenants_of(
        &self,
        finds: &mut OrderedFinds,
        users: &Users,
    ) -> Result<HashMap<String, TenantRecord>, Fault> {
        let names: BTreeSet<_> =
            users.values().flatten().map(|(user, _)| user.tenant.as_str()).collect();
        let (count, ids) = (names.len(), names.into_iter().map(Bson::from).collect());
        let filter = by_id(ids);
        let found = finds.find_documents(&self.tenants, filter, find_of(count)).await?;
        let tenant = |document: &RawDocumentBuf| {
            let tenant = read_tenant(document)?;
            Ok((tenant.name.as_str().to_owned(), tenant))
        };
        found.iter().map(tenant).collect()
    }

    /// The buckets of users that have events outside of their tails, by the users, each with its
    /// id.
    async fn buckets_of(
        &self,
        finds: &mut OrderedFinds,
        users: &Users,
    ) -> Result<HashMap<LocalityId, Vec<(Vec<u8>, RawDocumentBuf)>>, Fault> {
        let has_buckets = |tail: &Tail| tail.count > tail.events.len() as u64;
        let filters: Vec<Document> = users
            .values()
            .flatten()
            .filter(|(_, tail)| has_buckets(tail))
            .map(|(user, tail)| buckets_up_to(user.id, tail.count))
            .collect();
        let (journal, mut buckets) = (self.collection(JOURNAL), HashMap::<_, Vec<_>>::new());
        for filters in filters.chunks(USERS_AT_ONCE) {
            let any = doc! { "$or": filters };
            for bucket in finds.find_documents(&journal, any, find_of(BUCKETS_AT_ONCE)).await? {
                let [id] = read_fields(&bucket, [ID])?;
                let id = required(ID, id, RawBsonRef::as_binary)?.bytes.to_vec();
                let user = id.first_chunk::<16>().copied().map(LocalityId::from);
                let user = user.ok_or_else(|| Fault::damaged("a part of a history has no user"))?;
                buckets.entry(user).or_default().push((id, bucket));
            }
        }
        Ok(buckets)
    }
}

fn read_user(document: &RawDocument) -> Result<(StoredUser, Tail), Fault> {
    let [tail] = read_fields(document, [TAIL])?;
    Ok((StoredUser::read(document)?, Tail::of(tail)?))
}

/// The first ids, up to the one with which the users have `max_events` events together.
fn first_of<'i>(ids: &'i [LocalityId], users: &Users, max_events: u64) -> &'i [LocalityId] {
    let mut events = 0_u64;
    let count = ids.iter().take_while(|id| {
        let is_read = events < max_events;
        let tail = users.get(*id).and_then(|user| user.as_ref().ok()).map(|(_, tail)| tail);
        events = events.saturating_add(tail.map_or(0, |tail| tail.count));
        is_read
    });
    &ids[..count.count().max(1).min(ids.len())]
}

/// The options of a find of about this number of documents.
fn find_of(documents: usize) -> FindOptions {
    FindOptions::builder().batch_size(documents as u32 + 1).max_time(LONG_READ).build()
}
