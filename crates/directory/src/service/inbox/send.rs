//! Sends notices: resolves each recipient to a user, and delivers the notice to users who do not
//! have it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::Found;
use crate::error::{Error, Invalid};
use crate::model::attribute::{self, Value};
use crate::model::notice::{Notice, NoticeContent};
use crate::model::user::{FieldHasher, State};
use crate::mutation::IdempotencyKey;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{FULL, ResolveOptions, UserRef, parse};
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::mutate::write::idempotency_key;
use crate::service::parse::parse_user_id;
use crate::size;
use crate::stores::View;
use crate::stores::{BegunNotice, Delivery, InboxLimits};
use crate::tenant_cache::KnownTenant;
use crate::text::{check_text, is_displayable, place_of};
use crate::timestamp::Timestamp;
use polynym_identifier::RawIdentifier;

/// The recipients of a notice.
const MAX_RECIPIENTS: usize = 1_000;
/// The bytes of a notice's text, the number of its attributes, and their bytes.
const MAX_BODY_BYTES: usize = 16 << 10;
const MAX_ATTRIBUTES: usize = 20;
const MAX_ATTRIBUTE_BYTES: usize = 4 << 10;
/// Recipients that are looked up in one batch.
const LOOKUP_BATCH: usize = 100;
/// Users whose inboxes are looked up concurrently when a request is repeated.
const CONCURRENT_LOOKUPS: usize = 8;

/// A request to send a notice.
#[derive(Clone, Debug)]
pub struct SendRequest<'r> {
    /// The recipients.
    pub recipients: Vec<UserRef<'r>>,
    /// The subject line.
    pub subject: &'r str,
    /// The text.
    pub body: &'r str,
    /// Further data.
    pub attributes: BTreeMap<String, Value>,
    /// The time when the notice leaves the inboxes.
    pub expire_time: Option<Timestamp>,
}

/// A notice that was sent.
#[derive(Debug)]
pub struct SentNotice {
    /// The notice's id.
    pub id: LocalityId,
    /// For each recipient, in order, the user who has the notice.
    pub results: Vec<Result<LocalityId, Error>>,
}

impl Directory {
    /// Sends a notice to users.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::BatchTooLarge`], [`Error::RequestIdReused`],
    /// [`Error::TenantNotFound`], [`Error::Unavailable`];
    /// [`Error::OutcomeUnknown`] if some recipients may have the notice. The answer has the errors
    /// of single recipients.
    pub async fn send_notice(
        &self,
        context: &RequestContext<'_>,
        request: SendRequest<'_>,
    ) -> Result<SentNotice, Error> {
        let log = MutationLog::from_context(context, None);
        let outcome = self.send(context, request).await;
        log.write_outcome(&outcome);
        outcome
    }

    async fn send(
        &self,
        context: &RequestContext<'_>,
        request: SendRequest<'_>,
    ) -> Result<SentNotice, Error> {
        check(&request)?;
        let KnownTenant { since, policies, .. } = self.known_tenant(&context.tenant).await?;
        let key = self.notice_key(context, &request).await?;
        let mut results = self.recipients(context, &request.recipients).await?;

        let now = context.now.time;
        let has_expired = request.expire_time.is_some_and(|time| time <= now);
        let (id, first_time) = self.begin(context, key.as_ref(), since, has_expired).await?;
        if has_expired {
            return Ok(SentNotice { id, results });
        }
        let send_time = first_time.unwrap_or(now);
        let mut users: BTreeSet<_> = results.iter().flatten().copied().collect();
        if first_time.is_some() {
            for holder in self.holders(context, (id, send_time), &users).await? {
                users.remove(&holder);
            }
            users =
                self.without_full(users, send_time, InboxLimits::from_policies(&policies)).await?;
        }

        let content = NoticeContent {
            sender: context.caller.to_owned(),
            subject: request.subject.to_owned(),
            body: request.body.to_owned(),
            attributes: request.attributes,
        };
        let delivery = Arc::new(Delivery {
            notice: Notice { id, send_time, expire_time: request.expire_time, content },
            users: users.into_iter().collect(),
            limits: InboxLimits::from_policies(&policies),
            clock_uncertain: context.now.clock_uncertain,
        });
        let delivered = match delivery.users.is_empty() {
            true => Vec::new(),
            false => self.backend.inboxes.deliver(delivery.clone()).await?,
        };
        for (user, _) in delivery.users.iter().zip(delivered).filter(|(_, delivered)| !delivered) {
            for result in results.iter_mut().filter(|result| matches!(result, Ok(id) if id == user))
            {
                *result = Err(Error::UserNotFound);
            }
        }
        Ok(SentNotice { id, results })
    }

    /// The id of the notice and, if the request is a retry, the time of the first. A notice that
    /// has expired was sent before, or is refused.
    async fn begin(
        &self,
        context: &RequestContext<'_>,
        key: Option<&IdempotencyKey>,
        tenant_since: Timestamp,
        has_expired: bool,
    ) -> Result<BegunNotice, Error> {
        let new_id = (!has_expired).then(|| self.notice_ids.next_id());
        let inboxes = &self.backend.inboxes;
        let begun = match key {
            Some(key) => inboxes.begin_notice(key, tenant_since, new_id, context.now).await?,
            None => new_id.map(|id| (id, None)),
        };
        begun.ok_or_else(|| Error::invalid(Invalid::Field, "notice.expire_time", "is in the past"))
    }

    /// The users whose inboxes are not full of notices that were sent after `time`. A full one has
    /// had the notice, and later ones pushed it out, or has no room for it.
    async fn without_full(
        &self,
        users: BTreeSet<LocalityId>,
        time: Timestamp,
        limits: InboxLimits,
    ) -> Result<BTreeSet<LocalityId>, Error> {
        let checks = users.into_iter().map(|user| async move {
            let is_full = self.is_full_since(user, time, limits).await?;
            Ok::<_, Error>((!is_full).then_some(user))
        });
        let checked = stream::iter(checks.collect::<Vec<_>>()).buffered(CONCURRENT_LOOKUPS);
        checked.try_filter_map(|user| async move { Ok(user) }).try_collect().await
    }

    /// Whether an inbox is full of notices that were sent after `time`.
    async fn is_full_since(
        &self,
        user: LocalityId,
        time: Timestamp,
        limits: InboxLimits,
    ) -> Result<bool, Error> {
        let oldest = self.backend.inboxes.oldest(user, limits.count).await?;
        Ok(oldest.is_some_and(|oldest| oldest.send_time > time))
    }

    /// The users who have a notice, in their own inbox or in that of a merged user.
    async fn holders(
        &self,
        context: &RequestContext<'_>,
        (notice, send_time): (LocalityId, Timestamp),
        users: &BTreeSet<LocalityId>,
    ) -> Result<Vec<LocalityId>, Error> {
        let store = &*self.backend.inboxes;
        let lookups = users.iter().map(|user| async {
            let inboxes = store.inboxes(&context.tenant, *user).await?.unwrap_or_default();
            Ok::<_, Error>(inboxes.into_iter().map(|inbox| (inbox, *user)).collect::<Vec<_>>())
        });
        let found: Vec<_> = stream::iter(lookups.collect::<Vec<_>>())
            .buffered(CONCURRENT_LOOKUPS)
            .try_collect()
            .await?;
        let owners: HashMap<_, _> = found.into_iter().flatten().collect();
        let inboxes: Vec<_> = owners.keys().copied().collect();
        let holders = store.holders(notice, send_time, &inboxes).await?;
        Ok(holders.iter().filter_map(|inbox| owners.get(inbox).copied()).collect())
    }

    /// The user of each recipient, in order. A merged user is replaced by the user that it was
    /// merged into; a disabled user has an inbox.
    async fn recipients(
        &self,
        context: &RequestContext<'_>,
        recipients: &[UserRef<'_>],
    ) -> Result<Vec<Result<LocalityId, Error>>, Error> {
        let mut results = Vec::with_capacity(recipients.len());
        for (n, batch) in recipients.chunks(LOOKUP_BATCH).enumerate() {
            let first = n * LOOKUP_BATCH;
            let mut by_id = self.users_by_id(context, first, batch).await?.into_iter();
            let mut owners = self.owners_of(context, batch).await?.into_iter();
            results.extend(batch.iter().enumerate().map(|(n, recipient)| {
                let result = match recipient {
                    UserRef::Id(_) => by_id.next(),
                    UserRef::Owner(_) => owners.next(),
                };
                let missing = || Err(Error::Internal("a recipient without a result".into()));
                in_recipient(first + n, result.unwrap_or_else(missing))
            }));
        }
        Ok(results)
    }

    /// The users of the recipients that are ids.
    async fn users_by_id(
        &self,
        context: &RequestContext<'_>,
        first: usize,
        recipients: &[UserRef<'_>],
    ) -> Result<Vec<Result<LocalityId, Error>>, Error> {
        let id = |(n, recipient): (usize, &UserRef<'_>)| match recipient {
            UserRef::Id(id) => {
                Some(parse_user_id(&format!("recipients[{}].user_id", first + n), id))
            }
            UserRef::Owner(_) => None,
        };
        let ids: Vec<_> = recipients.iter().enumerate().filter_map(id).collect();
        let valid: Vec<_> = ids.iter().flatten().copied().collect();
        let mut found = Vec::with_capacity(valid.len());
        // A truncated answer omits the last users.
        while found.len() < valid.len() {
            let more = self.get_present(context, &valid[found.len()..], View::Basic).await?;
            if more.is_empty() {
                return Err(FULL);
            }
            found.extend(more);
        }
        let mut users = found.into_iter();
        let result = |id: Result<LocalityId, Error>| {
            id?;
            let user = users.next().ok_or(Error::UserNotFound)??.ok_or(Error::UserNotFound)?.user;
            let id = user.id().map_err(|error| Error::Internal(error.into()))?;
            match user.state() {
                State::Active | State::Disabled => Ok(id),
                State::Deleted { .. } => Err(Error::UserDeleted { user: id }),
                State::Merged { .. } => Err(Error::UserNotFound),
            }
        };
        Ok(ids.into_iter().map(result).collect())
    }

    /// The users of the recipients that are identifiers.
    async fn owners_of(
        &self,
        context: &RequestContext<'_>,
        recipients: &[UserRef<'_>],
    ) -> Result<Vec<Result<LocalityId, Error>>, Error> {
        let raw: Vec<_> = recipients.iter().filter_map(UserRef::identifier).collect();
        if raw.is_empty() {
            return Ok(Vec::new());
        }
        let options =
            ResolveOptions { show_disabled: true, view: View::Basic, ..ResolveOptions::default() };
        let mut results = Vec::with_capacity(raw.len());
        while results.len() < raw.len() {
            let rest = &raw[results.len()..];
            let batch = &rest[..rest.len().min(self.limits.batch.max(1))];
            let (found, _) = self.batch_resolve(&context.tenant, batch, options).await?;
            // A truncated answer omits the last owners: the next round looks them up.
            let is_answered =
                |found: &Result<Found, Error>| !matches!(found, Err(Error::AnswerFull { .. }));
            let answered = found.into_iter().take_while(is_answered);
            let before = results.len();
            results.extend(
                answered
                    .map(|found| found?.user.id().map_err(|error| Error::Internal(error.into()))),
            );
            if results.len() == before {
                return Err(FULL);
            }
        }
        Ok(results)
    }

    /// The idempotency key of a request, if it has an id.
    async fn notice_key(
        &self,
        context: &RequestContext<'_>,
        request: &SendRequest<'_>,
    ) -> Result<Option<IdempotencyKey>, Error> {
        let Some(key) = idempotency_key(context)? else { return Ok(None) };
        let rules = self.rules_to_change().await?;
        let mut hash = FieldHasher::default();
        for recipient in &request.recipients {
            match recipient {
                UserRef::Id(id) => hash.bytes(id.to_ascii_lowercase().as_bytes()),
                UserRef::Owner(raw) => match parse(rules, "identifier", *raw) {
                    Ok(identifier) => {
                        hash.bytes(identifier.kind().as_str().as_bytes());
                        hash.bytes(identifier.canonical().as_bytes());
                    }
                    Err(_) => hash.bytes(raw.as_ref().map_or("", RawIdentifier::typed).as_bytes()),
                },
            }
        }
        hash.bytes(request.subject.as_bytes());
        hash.bytes(request.body.as_bytes());
        for (name, value) in &request.attributes {
            hash.bytes(name.as_bytes());
            hash.value(value);
        }
        hash.number(0, request.expire_time.map_or(0, |time| time.as_millis() as u64));
        Ok(Some(IdempotencyKey { key, request_hash: hash.digest() }))
    }
}

impl<'r> UserRef<'r> {
    /// The identifier; none if the reference is an id.
    const fn identifier(&self) -> Option<Option<RawIdentifier<'r>>> {
        match self {
            UserRef::Id(_) => None,
            UserRef::Owner(raw) => Some(*raw),
        }
    }
}

/// The result of the `n`th recipient, with its path in errors.
fn in_recipient(n: usize, result: Result<LocalityId, Error>) -> Result<LocalityId, Error> {
    result.map_err(|error| match error {
        Error::Invalid { what, field, message } if !field.starts_with("recipients") => {
            Error::invalid(what, format!("recipients[{n}].identifier"), message)
        }
        other => other,
    })
}

/// Checks a request, as far as that needs no look-up.
fn check(request: &SendRequest<'_>) -> Result<(), Error> {
    let error = |field: &str, rule: &str| Err(Error::invalid(Invalid::Field, field, rule));
    let count = request.recipients.len();
    if count == 0 {
        return error("recipients", "is empty: name at least one");
    }
    if count > MAX_RECIPIENTS {
        return Err(Error::BatchTooLarge { limit: MAX_RECIPIENTS, count });
    }
    if request.subject.is_empty() {
        return error("notice.subject", "is missing");
    }
    check_text("notice.subject", request.subject)?;
    if request.body.len() > MAX_BODY_BYTES {
        return error("notice.body", "at most 16 KiB");
    }
    let is_forbidden = |c| !matches!(c, '\t' | '\n' | '\r') && !is_displayable(&c);
    if let Some(place) = place_of(request.body, is_forbidden) {
        let rule = format!("no control characters other than tabs and line ends: {place}");
        return error("notice.body", &rule);
    }
    attribute::check(&request.attributes, "notice.attributes")?;
    let bytes = size::attributes(&request.attributes);
    if request.attributes.len() > MAX_ATTRIBUTES || bytes > MAX_ATTRIBUTE_BYTES {
        return error("notice.attributes", "at most 20, and at most 4 KiB together");
    }
    Ok(())
}
