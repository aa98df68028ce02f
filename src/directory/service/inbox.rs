//! Reading inboxes, and marking and deleting what is in them. A user sees its own inbox together
//! with those of the users that were merged into it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use super::Directory;
use super::context::RequestContext;
use super::mutation_line::MutationLine;
use super::search::page_size;
use crate::directory::error::{Error, Invalid};
use crate::directory::inbox::{InboxChange, InboxEntry, InboxLimits, InboxStore};
use crate::directory::model::timestamp::Timestamp;
use crate::directory::search::sealed;
use crate::directory::store::{ANSWER_BYTES, View};

/// Entries that are read at once, and reads of one inbox for a page: after those it ends early.
const READ_AT_ONCE: usize = 100;
const READS: usize = 20;
/// The most notices that are marked by their ids.
const MARKS: usize = 1_000;

/// A request for notices.
#[derive(Clone, Debug)]
pub struct NoticesRequest<'r> {
    /// The user's id.
    pub user_id: &'r str,
    /// Whether those that were read are left out.
    pub unread_only: bool,
    /// The most notices; 0 for the default.
    pub page_size: i32,
    /// The token of the page, or nothing for the first.
    pub page_token: &'r str,
}

/// A page of notices.
#[derive(Clone, Debug, PartialEq)]
pub struct NoticePage {
    /// The notices, the latest first.
    pub entries: Vec<InboxEntry>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
}

impl Directory {
    /// The same directory, with a store of inboxes.
    #[must_use]
    pub fn with_inboxes(self, inboxes: Arc<dyn InboxStore>) -> Self {
        Self { inboxes: Some(inboxes), ..self }
    }

    /// A page of a user's notices.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::TenantNotFound`],
    /// [`Error::NoInboxes`], [`Error::Unavailable`].
    pub async fn notices(
        &self,
        context: &RequestContext<'_>,
        request: NoticesRequest<'_>,
    ) -> Result<NoticePage, Error> {
        let size = page_size(request.page_size)?;
        let users = self.inboxes_of(context, request.user_id).await?;
        let query = query_hash(context, &request, &users);
        let now = context.now.time;
        let places = match request.page_token {
            "" => BTreeMap::new(),
            token => decode_token(token, query, now)?,
        };
        let limits = self.inbox_limits(context).await?;
        let reader = |user: &LocalityId| InboxReader {
            user: *user,
            place: places.get(user).copied(),
            waiting: VecDeque::new(),
            reads: 0,
            has_ended: false,
        };
        let mut readers: Vec<_> = users.iter().map(reader).collect();

        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < size && bytes < ANSWER_BYTES / 2 {
            for reader in &mut readers {
                reader.fill(self.inbox_store()?, limits, &request, size, now).await?;
            }
            if readers.iter().any(InboxReader::is_exhausted) {
                break;
            }
            let Some(entry) = take_latest(&mut readers) else { break };
            bytes += size_of(&entry);
            entries.push(entry);
        }
        let is_last = readers.iter().all(|reader| reader.has_ended && reader.waiting.is_empty());
        let next = (!is_last).then(|| encode_token(&readers, query, now));
        Ok(NoticePage { entries, next_page_token: next.unwrap_or_default() })
    }

    /// The number of a user's notices that are not read.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::TenantNotFound`],
    /// [`Error::NoInboxes`], [`Error::Unavailable`].
    pub async fn count_unread(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
    ) -> Result<usize, Error> {
        let users = self.inboxes_of(context, user_id).await?;
        let mut unread = BTreeSet::new();
        for user in users {
            let shown = self.shown(context, user).await?.into_iter();
            unread.extend(shown.filter(|(_, read)| !read).map(|(id, _)| id));
        }
        Ok(unread.len())
    }

    /// Marks notices of a user as read.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NoticeNotFound`],
    /// [`Error::TenantNotFound`], [`Error::NoInboxes`], [`Error::Unavailable`],
    /// [`Error::OutcomeUnknown`].
    pub async fn mark_read(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
        notice_ids: &[String],
        up_to: Option<Timestamp>,
    ) -> Result<(), Error> {
        let fault = |field: &str, rule: &str| Err(Error::invalid(Invalid::Field, field, rule));
        if notice_ids.is_empty() == up_to.is_none() {
            return fault("notice_ids", "set either these or `up_to_time`");
        }
        if notice_ids.len() > MARKS {
            return Err(Error::BatchTooLarge { limit: MARKS, count: notice_ids.len() });
        }
        let ids = notice_ids.iter().enumerate();
        let ids = ids.map(|(n, id)| parse_notice_id(&format!("notice_ids[{n}]"), id));
        let ids: Vec<_> = ids.collect::<Result<_, _>>()?;

        let users = self.inboxes_of(context, user_id).await?;
        let line = MutationLine::of(context, users.first().copied());
        let field = |n| format!("notice_ids[{n}]");
        let marked = match up_to {
            Some(time) => self.mark_up_to(&users, time).await,
            None => self.change_notices(context, &users, &ids, field, InboxChange::Read).await,
        };
        line.log_outcome(&marked);
        marked
    }

    async fn mark_up_to(&self, users: &[LocalityId], time: Timestamp) -> Result<(), Error> {
        for user in users {
            self.inbox_store()?.change_inbox(*user, InboxChange::ReadUpTo(time)).await?;
        }
        Ok(())
    }

    /// Deletes a notice of a user.
    ///
    /// # Errors
    /// Those of [`Directory::mark_read`].
    pub async fn delete_notice(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
        notice_id: &str,
    ) -> Result<(), Error> {
        let id = parse_notice_id("notice_id", notice_id)?;
        let users = self.inboxes_of(context, user_id).await?;
        let line = MutationLine::of(context, users.first().copied());
        let (field, change) = (|_| "notice_id".to_owned(), |_| InboxChange::Delete(id));
        let deleted = self.change_notices(context, &users, &[id], field, change).await;
        line.log_outcome(&deleted);
        deleted
    }

    /// Changes notices, all of which must be shown, in each of the inboxes that has any.
    async fn change_notices(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        ids: &[LocalityId],
        field: impl Fn(usize) -> String,
        change: impl Fn(Vec<LocalityId>) -> InboxChange,
    ) -> Result<(), Error> {
        let (mut found, mut holders) = (BTreeSet::new(), Vec::new());
        for user in users {
            let shown = self.shown(context, *user).await?;
            let own: Vec<_> = ids.iter().copied().filter(|id| shown.contains_key(id)).collect();
            found.extend(own.iter().copied());
            if !own.is_empty() {
                holders.push((*user, own));
            }
        }
        if let Some(n) = ids.iter().position(|id| !found.contains(id)) {
            return Err(Error::NoticeNotFound { field: field(n) });
        }
        for (user, own) in holders {
            self.inbox_store()?.change_inbox(user, change(own)).await?;
        }
        Ok(())
    }

    /// The notices that one inbox shows, and whether each was read.
    async fn shown(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
    ) -> Result<BTreeMap<LocalityId, bool>, Error> {
        let limits = self.inbox_limits(context).await?;
        let count = usize::try_from(limits.count).unwrap_or(usize::MAX);
        let part = self.inbox_store()?.inbox(user, None, count, false).await?;
        let shown = part.shown(limits, context.now.time);
        Ok(shown.filter_map(|entry| Some((entry.notice?.id, entry.read))).collect())
    }

    /// The users whose inboxes a user sees.
    async fn inboxes_of(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
    ) -> Result<Vec<LocalityId>, Error> {
        let user = self.get(context, user_id, View::Basic).await?.user;
        let id = user.id().map_err(|error| Error::Internal(error.into()))?;
        let inboxes = self.inbox_store()?.inboxes(&context.tenant, id).await?;
        inboxes.ok_or(Error::UserNotFound)
    }

    async fn inbox_limits(&self, context: &RequestContext<'_>) -> Result<InboxLimits, Error> {
        Ok(InboxLimits::of(&*self.policies(&context.tenant).await?))
    }

    pub(super) fn inbox_store(&self) -> Result<&dyn InboxStore, Error> {
        self.inboxes.as_deref().ok_or_else(|| Error::Internal("the store has no inboxes".into()))
    }
}

/// One inbox on its way to a page.
struct InboxReader {
    user: LocalityId,
    /// The position before which the next notice is; none at the beginning.
    place: Option<u64>,
    waiting: VecDeque<InboxEntry>,
    reads: usize,
    has_ended: bool,
}

impl InboxReader {
    /// Reads on until a notice waits, or there are no more.
    async fn fill(
        &mut self,
        store: &dyn InboxStore,
        limits: InboxLimits,
        request: &NoticesRequest<'_>,
        size: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let count = size.clamp(READ_AT_ONCE / 2, READ_AT_ONCE);
        while self.waiting.is_empty() && !self.has_ended && self.reads < READS {
            self.reads += 1;
            let part = store.inbox(self.user, self.place, count, true).await?;
            self.has_ended = part.entries.len() < count;
            let last = part.entries.last().map(|entry| entry.position);
            let wanted = |entry: &InboxEntry| !(request.unread_only && entry.read);
            self.waiting.extend(part.shown(limits, now).filter(wanted));
            if self.waiting.is_empty() {
                self.place = last.or(self.place);
            }
        }
        Ok(())
    }

    /// Whether it may not read on, though there may be more.
    fn is_exhausted(&self) -> bool {
        self.waiting.is_empty() && !self.has_ended
    }

    fn latest(&self) -> Option<(Timestamp, LocalityId)> {
        let notice = self.waiting.front()?.notice.as_ref()?;
        Some((notice.send_time, notice.id))
    }

    fn take(&mut self) -> Option<InboxEntry> {
        let entry = self.waiting.pop_front()?;
        self.place = Some(entry.position);
        Some(entry)
    }
}

/// Takes the latest notice, once where several inboxes have it.
fn take_latest(readers: &mut [InboxReader]) -> Option<InboxEntry> {
    let latest = readers.iter().filter_map(InboxReader::latest).max()?;
    let with_it = readers.iter_mut().filter(|reader| reader.latest() == Some(latest));
    let taken: Vec<_> = with_it.filter_map(InboxReader::take).collect();
    taken.into_iter().next()
}

fn size_of(entry: &InboxEntry) -> usize {
    let content = entry.notice.as_ref().map(|notice| &notice.content);
    content.map_or(0, |content| content.subject.len() + content.body.len() + ATTRIBUTE_ROOM)
}

/// The room for attributes and times that each notice counts.
const ATTRIBUTE_ROOM: usize = 4 << 10;

fn parse_notice_id(field: &str, text: &str) -> Result<LocalityId, Error> {
    let message = "a notice's id is a UUID in its 36-character text form";
    text.parse().map_err(|_| Error::invalid(Invalid::Field, field, message))
}

/// A hash of the user, the tenant and the filter, which a page token must match.
fn query_hash(
    context: &RequestContext<'_>,
    request: &NoticesRequest<'_>,
    users: &[LocalityId],
) -> u64 {
    let mut hash = Xxh3::new();
    users.iter().take(1).for_each(|user| hash.update(user.as_bytes()));
    hash.update(&[request.unread_only.into()]);
    hash.update(context.tenant.as_str().as_bytes());
    hash.digest()
}

#[derive(Clone, PartialEq, Message)]
struct TokenRecord {
    #[prost(fixed64, tag = "1")]
    query: u64,
    #[prost(int64, tag = "2")]
    issued: i64,
    /// The inboxes that were begun.
    #[prost(bytes = "vec", repeated, tag = "3")]
    users: Vec<Vec<u8>>,
    /// For each of them, the position before which the next notice is.
    #[prost(uint64, repeated, tag = "4")]
    places: Vec<u64>,
}

/// The seed of the checksum of tokens.
const SEED: u64 = 0x706f_6c79_6e79_6d05;

fn encode_token(readers: &[InboxReader], query: u64, now: Timestamp) -> String {
    let begun = readers.iter().filter_map(|reader| Some((reader.user, reader.place?)));
    let (users, places) = begun.map(|(user, place)| (user.as_bytes().to_vec(), place)).unzip();
    let record = TokenRecord { query, issued: now.as_millis(), users, places };
    sealed::seal(record.encode_to_vec(), SEED)
}

/// The places of a token that belongs to this query.
fn decode_token(
    token: &str,
    query: u64,
    now: Timestamp,
) -> Result<BTreeMap<LocalityId, u64>, Error> {
    let fault = |rule: &str| Error::invalid(Invalid::PageToken, "page_token", rule);
    let record = sealed::open(token, SEED).and_then(|bytes| TokenRecord::decode(&*bytes).ok());
    let record = record.ok_or_else(|| {
        fault("is none that an answer of this method gave: begin again without one")
    })?;
    if record.query != query {
        return Err(fault("is of another list: the other fields must be those of the first page"));
    }
    if sealed::has_expired(record.issued, now) {
        return Err(fault("has expired after a day: begin again without one"));
    }
    let id = |bytes: Vec<u8>| <[u8; 16]>::try_from(bytes).ok().map(LocalityId::from);
    let places = record.users.into_iter().zip(record.places);
    Ok(places.filter_map(|(user, place)| Some((id(user)?, place))).collect())
}
