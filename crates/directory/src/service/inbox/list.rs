//! Reading inboxes, and marking and deleting what is in them. A user sees its own inbox together
//! with those of the users that were merged into it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Invalid};
use crate::model::timestamp::Timestamp;
use crate::search::sealed;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::search::page_size;
use crate::stores::{ANSWER_BYTES, View};
use crate::stores::{InboxChange, InboxEntry, InboxLimits, Inboxes};

/// Entries that are read at once, and reads of one inbox for a page: after those it ends early.
pub(crate) const READ_AT_ONCE: usize = 100;
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
        let after = match request.page_token {
            "" => None,
            token => Some(decode_token(token, query, now)?),
        };
        let (entries, next) = match users.as_slice() {
            [user] => self.page_of_one(context, *user, &request, size, after).await?,
            users => self.page_of_many(context, users, &request, size, after).await?,
        };
        let next = next.map(|place| encode_token(place, query, now));
        Ok(NoticePage { entries, next_page_token: next.unwrap_or_default() })
    }

    /// A page of one inbox, in the order in which the notices came, and where the next begins.
    async fn page_of_one(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
        request: &NoticesRequest<'_>,
        size: usize,
        after: Option<Place>,
    ) -> Result<(Vec<InboxEntry>, Option<Place>), Error> {
        let (limits, now) = (self.inbox_limits(context).await?, context.now.earliest());
        let place = match after {
            None => None,
            Some(Place::InOne(position)) => Some(position),
            Some(Place::InMany(..)) => return Err(other_list()),
        };
        let waiting = VecDeque::new();
        let mut reader = InboxReader { user, place, waiting, reads: 0, has_ended: false };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < size && bytes < ANSWER_BYTES / 2 {
            reader.fill(&*self.backend.inboxes, limits, request, size, now).await?;
            let Some(entry) = reader.take() else { break };
            bytes += size_of(&entry);
            entries.push(entry);
        }
        let is_last = reader.has_ended && reader.waiting.is_empty();
        Ok((entries, reader.place.filter(|_| !is_last).map(Place::InOne)))
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
        let line = MutationLog::of(context, users.first().copied());
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
            self.backend.inboxes.change_inbox(*user, InboxChange::ReadUpTo(time)).await?;
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
        let line = MutationLog::of(context, users.first().copied());
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
            self.backend.inboxes.change_inbox(user, change(own)).await?;
        }
        Ok(())
    }

    /// The notices that one inbox shows, and whether each was read.
    async fn shown(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
    ) -> Result<BTreeMap<LocalityId, bool>, Error> {
        let shown = self.listing(context, user).await?.into_iter();
        Ok(shown.filter_map(|entry| Some((entry.notice?.id, entry.read))).collect())
    }

    /// The entries that one inbox shows, without the contents.
    pub(crate) async fn listing(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
    ) -> Result<Vec<InboxEntry>, Error> {
        let limits = self.inbox_limits(context).await?;
        let count = usize::try_from(limits.count).unwrap_or(usize::MAX);
        let part = self.backend.inboxes.inbox(user, None, count, false).await?;
        Ok(part.shown(limits, context.now.earliest()).collect())
    }

    /// The users whose inboxes a user sees.
    async fn inboxes_of(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
    ) -> Result<Vec<LocalityId>, Error> {
        let user = self.get(context, user_id, View::Basic).await?.user;
        let id = user.id().map_err(|error| Error::Internal(error.into()))?;
        let inboxes = self.backend.inboxes.inboxes(&context.tenant, id).await?;
        inboxes.ok_or(Error::UserNotFound)
    }

    async fn inbox_limits(&self, context: &RequestContext<'_>) -> Result<InboxLimits, Error> {
        Ok(InboxLimits::of(&*self.policies(&context.tenant).await?))
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
        inboxes: &dyn Inboxes,
        limits: InboxLimits,
        request: &NoticesRequest<'_>,
        size: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let count = size.clamp(READ_AT_ONCE / 2, READ_AT_ONCE);
        while self.waiting.is_empty() && !self.has_ended && self.reads < READS {
            self.reads += 1;
            let part = inboxes.inbox(self.user, self.place, count, true).await?;
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

    fn take(&mut self) -> Option<InboxEntry> {
        let entry = self.waiting.pop_front()?;
        self.place = Some(entry.position);
        Some(entry)
    }
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

/// A hash of the inboxes, the tenant and the filter, which a page token must match.
fn query_hash(
    context: &RequestContext<'_>,
    request: &NoticesRequest<'_>,
    users: &[LocalityId],
) -> u64 {
    let mut hash = Xxh3::new();
    users.iter().for_each(|user| hash.update(user.as_bytes()));
    hash.update(&[request.unread_only.into()]);
    hash.update(context.tenant.as_str().as_bytes());
    hash.digest()
}

/// The place in a list after which a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A position in the one inbox.
    InOne(u64),
    /// The last notice of the page before, and when it was sent.
    InMany(Timestamp, LocalityId),
}

#[derive(Clone, PartialEq, Message)]
struct TokenRecord {
    #[prost(fixed64, tag = "1")]
    query: u64,
    #[prost(int64, tag = "2")]
    issued: i64,
    #[prost(uint64, optional, tag = "3")]
    position: Option<u64>,
    #[prost(int64, tag = "4")]
    send_time: i64,
    #[prost(bytes = "vec", tag = "5")]
    notice: Vec<u8>,
}

/// The seed of the checksum of tokens.
const SEED: u64 = 0x706f_6c79_6e79_6d05;

fn encode_token(place: Place, query: u64, now: Timestamp) -> String {
    let record = TokenRecord { query, issued: now.as_millis(), ..TokenRecord::default() };
    let record = match place {
        Place::InOne(position) => TokenRecord { position: Some(position), ..record },
        Place::InMany(time, notice) => {
            let (send_time, notice) = (time.as_millis(), notice.as_bytes().to_vec());
            TokenRecord { send_time, notice, ..record }
        }
    };
    sealed::seal(record.encode_to_vec(), SEED)
}

/// The place of a token that belongs to this query.
fn decode_token(token: &str, query: u64, now: Timestamp) -> Result<Place, Error> {
    let fault = |rule: &str| Error::invalid(Invalid::PageToken, "page_token", rule);
    let none = || fault("is none that an answer of this method gave: begin again without one");
    let record = sealed::open(token, SEED).and_then(|bytes| TokenRecord::decode(&*bytes).ok());
    let record = record.ok_or_else(none)?;
    if record.query != query {
        return Err(other_list());
    }
    if sealed::has_expired(record.issued, now) {
        return Err(fault("has expired after a day: begin again without one"));
    }
    if let Some(position) = record.position {
        return Ok(Place::InOne(position));
    }
    let notice: [u8; 16] = record.notice.try_into().map_err(|_| none())?;
    Ok(Place::InMany(Timestamp::from_millis(record.send_time), notice.into()))
}

/// The error of a token of another list. The list is another once users are merged or come apart.
pub(crate) fn other_list() -> Error {
    let rule = "is of another list: the other fields must be those of the first page";
    Error::invalid(Invalid::PageToken, "page_token", rule)
}
