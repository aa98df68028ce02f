//! Reads inboxes, and marks and deletes notices. A user sees its own inbox and the inboxes of the
//! users that were merged into it.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Invalid};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::search::page_size;
use crate::stores::{ANSWER_BYTES, View};
use crate::stores::{InboxChange, InboxEntry, InboxLimits, Inboxes};
use crate::timestamp::Timestamp;
use crate::tokens::sealed::{SealedToken, TokenPayload, foreign_page_token};

/// Entries in one read.
pub(crate) const READ_BATCH: usize = 100;
/// Entries without content in one read.
const VISIT_BATCH: usize = 500;
/// Reads of one inbox for a page, which ends early after them.
const MAX_READS: usize = 20;
/// The notices in one request to mark them.
const MAX_MARKS: usize = 1_000;

/// A request for notices.
#[derive(Clone, Debug)]
pub struct NoticesRequest<'r> {
    /// The user's id.
    pub user_id: &'r str,
    /// Whether to omit notices that were read.
    pub unread_only: bool,
    /// The most notices; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
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
    /// [`Error::Unavailable`].
    pub async fn notices(
        &self,
        context: &RequestContext<'_>,
        request: NoticesRequest<'_>,
    ) -> Result<NoticePage, Error> {
        let size = page_size(request.page_size)?;
        let users = self.inboxes_of(context, request.user_id).await?;
        let query = query_hash(context, &request, &users);
        let (key, now) = (&self.backend.token_key, context.now.time);
        let after = SealedToken::open_page(key, request.page_token, query, now)?;
        let (entries, next) = match users.as_slice() {
            [user] => self.page_of_one(context, *user, &request, size, after).await?,
            users => self.page_of_many(context, users, &request, size, after).await?,
        };
        let next_page_token = next
            .map(|payload: InboxCursor| SealedToken { query, issued: now, payload }.seal(key))
            .unwrap_or_default();
        Ok(NoticePage { entries, next_page_token })
    }

    /// A page of one inbox, the latest first, and the cursor of the next page.
    async fn page_of_one(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
        request: &NoticesRequest<'_>,
        size: usize,
        after: Option<InboxCursor>,
    ) -> Result<(Vec<InboxEntry>, Option<InboxCursor>), Error> {
        let (limits, now) = (self.inbox_limits(context).await?, context.now.earliest());
        let after = after.map(|cursor| cursor.place()).transpose()?;
        let buffer = VecDeque::new();
        let mut reader = InboxReader { user, after, buffer, reads: 0, has_ended: false };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < size && bytes < ANSWER_BYTES / 2 {
            reader.fill(&*self.backend.inboxes, limits, request, size, now).await?;
            let Some(entry) = reader.next() else { break };
            bytes += size_estimate(&entry);
            entries.push(entry);
        }
        let is_last = reader.has_ended && reader.buffer.is_empty();
        Ok((entries, reader.after.filter(|_| !is_last).map(InboxCursor::after)))
    }

    /// The number of a user's unread notices.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::TenantNotFound`],
    /// [`Error::Unavailable`].
    pub async fn count_unread(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
    ) -> Result<usize, Error> {
        let users = self.inboxes_of(context, user_id).await?;
        let mut unread = BTreeSet::new();
        for user in users {
            let count = |entry: InboxEntry| {
                unread.extend(entry.notice.filter(|_| !entry.read).map(|notice| notice.id));
                ControlFlow::Continue(())
            };
            self.visit_entries(context, user, count).await?;
        }
        Ok(unread.len())
    }

    /// Marks notices of a user as read.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NoticeNotFound`],
    /// [`Error::TenantNotFound`], [`Error::Unavailable`],
    /// [`Error::OutcomeUnknown`].
    pub async fn mark_read(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
        notice_ids: &[String],
        up_to: Option<Timestamp>,
    ) -> Result<(), Error> {
        if notice_ids.is_empty() == up_to.is_none() {
            let rule = "set either these or `up_to_time`";
            return Err(Error::invalid(Invalid::Field, "notice_ids", rule));
        }
        if notice_ids.len() > MAX_MARKS {
            return Err(Error::BatchTooLarge { limit: MAX_MARKS, count: notice_ids.len() });
        }
        let field = |n| format!("notice_ids[{n}]");
        let ids = notice_ids
            .iter()
            .enumerate()
            .map(|(n, id)| parse_notice_id(&field(n), id))
            .collect::<Result<Vec<_>, _>>()?;

        let users = self.inboxes_of(context, user_id).await?;
        let log = MutationLog::from_context(context, users.first().copied());
        let outcome = match up_to {
            Some(time) => self.mark_up_to(&users, time).await,
            None => self.change_notices(context, &users, &ids, field, InboxChange::Read).await,
        };
        log.write_outcome(&outcome);
        outcome
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
        let log = MutationLog::from_context(context, users.first().copied());
        let (field, change) = (|_| "notice_id".to_owned(), |_| InboxChange::Delete(id));
        let outcome = self.change_notices(context, &users, &[id], field, change).await;
        log.write_outcome(&outcome);
        outcome
    }

    /// Changes notices, all of which must be visible, in each inbox that has any of them.
    async fn change_notices(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        ids: &[LocalityId],
        field: impl Fn(usize) -> String,
        change: impl Fn(Vec<LocalityId>) -> InboxChange,
    ) -> Result<(), Error> {
        let wanted: BTreeSet<_> = ids.iter().copied().collect();
        let (mut found, mut holders) = (BTreeSet::new(), Vec::new());
        for user in users {
            let mut own = Vec::new();
            let find = |entry: InboxEntry| {
                let id = entry.notice.map(|notice| notice.id);
                own.extend(id.filter(|id| wanted.contains(id)));
                // An inbox has a notice once.
                match own.len() == wanted.len() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            self.visit_entries(context, *user, find).await?;
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

    /// Visits the visible entries of one inbox, without content, the latest first, until `visit`
    /// breaks. Reads it in parts, so that other calls run in between.
    pub(crate) async fn visit_entries(
        &self,
        context: &RequestContext<'_>,
        user: LocalityId,
        mut visit: impl FnMut(InboxEntry) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let (limits, now) = (self.inbox_limits(context).await?, context.now.earliest());
        let (mut before, mut left) = (None, usize::try_from(limits.count).unwrap_or(usize::MAX));
        loop {
            let count = left.min(VISIT_BATCH);
            let part = self.backend.inboxes.inbox(user, before, count, false).await?;
            before = part.last().map(|entry| entry.position);
            left -= part.len();
            let is_last = part.len() < count || left == 0;
            let mut shown = part.into_iter().filter(|entry| limits.shows(entry, now));
            if shown.try_for_each(&mut visit).is_break() || is_last {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
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
        Ok(InboxLimits::from_policies(&*self.policies(&context.tenant).await?))
    }
}

/// A place in an inbox: behind an entry.
#[derive(Clone, Copy)]
struct Place {
    /// The position of the entry.
    position: u128,
    /// The number of entries up to it: an inbox shows a limited number of the latest.
    rank: u64,
}

/// Reads one inbox for a page.
struct InboxReader {
    user: LocalityId,
    /// The position to read on from; none at the beginning.
    after: Option<Place>,
    buffer: VecDeque<(Place, InboxEntry)>,
    reads: usize,
    has_ended: bool,
}

impl InboxReader {
    /// Reads until the buffer has a notice, or there are no more.
    async fn fill(
        &mut self,
        inboxes: &dyn Inboxes,
        limits: InboxLimits,
        request: &NoticesRequest<'_>,
        size: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        while self.buffer.is_empty() && !self.has_ended && self.reads < MAX_READS {
            self.reads += 1;
            let mut rank = self.after.map_or(0, |place| place.rank);
            let left = usize::try_from(limits.count.saturating_sub(rank)).unwrap_or(usize::MAX);
            if left == 0 {
                self.has_ended = true;
                break;
            }
            let count = size.clamp(READ_BATCH / 2, READ_BATCH).min(left);
            let before = self.after.map(|place| place.position);
            let part = inboxes.inbox(self.user, before, count, true).await?;
            self.has_ended = part.len() < count || count == left;
            for entry in part {
                rank += 1;
                let place = Place { position: entry.position, rank };
                if limits.shows(&entry, now) && !(request.unread_only && entry.read) {
                    self.buffer.push_back((place, entry));
                } else if self.buffer.is_empty() {
                    self.after = Some(place);
                }
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<InboxEntry> {
        let (place, entry) = self.buffer.pop_front()?;
        self.after = Some(place);
        Some(entry)
    }
}

fn size_estimate(entry: &InboxEntry) -> usize {
    let content = entry.notice.as_ref().map(|notice| &notice.content);
    content.map_or(0, |content| content.subject.len() + content.body.len() + ATTRIBUTE_BYTES)
}

/// The estimated bytes of the attributes and times of a notice.
const ATTRIBUTE_BYTES: usize = 4 << 10;

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

/// The cursor after which a page begins: a position in one inbox, or the last notice of the
/// previous page of several inboxes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InboxCursor {
    #[prost(int64, tag = "4")]
    send_time: i64,
    #[prost(bytes = "vec", tag = "5")]
    notice: Vec<u8>,
    #[prost(bytes = "vec", tag = "6")]
    position: Vec<u8>,
    #[prost(uint64, tag = "7")]
    rank: u64,
}

impl TokenPayload for InboxCursor {
    const KIND: u64 = 0x706f_6c79_6e79_6d05;
    const OTHER_QUERY: &'static str =
        "belongs to another list: the other fields must be those of the first page";
}

impl InboxCursor {
    fn after(Place { position, rank }: Place) -> Self {
        Self { position: position.to_be_bytes().to_vec(), rank, ..Self::default() }
    }

    /// The place behind the last entry of a page of one inbox.
    fn place(&self) -> Result<Place, Error> {
        let position = <[u8; 16]>::try_from(&*self.position).map_err(|_| foreign_page_token())?;
        Ok(Place { position: u128::from_be_bytes(position), rank: self.rank })
    }

    pub(crate) fn after_notice(send_time: Timestamp, id: LocalityId) -> Self {
        let (send_time, notice) = (send_time.as_millis(), id.as_bytes().to_vec());
        Self { send_time, notice, ..Self::default() }
    }

    /// The time when the last notice was sent, and its id.
    pub(crate) fn notice(&self) -> Result<(Timestamp, LocalityId), Error> {
        let id = <[u8; 16]>::try_from(&*self.notice).map_err(|_| foreign_page_token())?;
        Ok((Timestamp::from_millis(self.send_time), id.into()))
    }
}
