//! Sending notices: recipients become users, each with a result of its own, and the notice goes to
//! those who do not have it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::Found;
use crate::error::{Error, Invalid};
use crate::model::attribute::{self, Value};
use crate::model::notice::{Notice, NoticeContent};
use crate::model::timestamp::Timestamp;
use crate::model::user::{Fields, State};
use crate::mutation::IdempotencyKey;
use crate::mutation::size;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{FULL, ResolveOptions, UserRef, parse};
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::mutate::write::{check_text, idempotency_key, is_shown};
use crate::service::parse::parse_user_id;
use crate::stores::View;
use crate::stores::{Delivery, InboxLimits};
use polynym_identifier::RawIdentifier;

/// The most recipients of a notice.
const RECIPIENTS: usize = 1_000;
/// The most bytes of a notice's text, and the most attributes and bytes of them.
const BODY_BYTES: usize = 16 << 10;
const ATTRIBUTES: usize = 20;
const ATTRIBUTE_BYTES: usize = 4 << 10;
/// Recipients that are looked up in one batch.
const BATCH: usize = 100;
/// Inboxes that are looked for at once when a notice is sent again.
const AT_ONCE: usize = 8;

/// A request to send a notice.
#[derive(Clone, Debug)]
pub struct SendRequest<'r> {
    /// The recipients.
    pub recipients: Vec<UserRef<'r>>,
    /// A line that says what it is about.
    pub subject: &'r str,
    /// The text.
    pub body: &'r str,
    /// Further data.
    pub attributes: BTreeMap<String, Value>,
    /// When it goes from the inboxes, if that is said.
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
    /// [`Error::NoInboxes`], [`Error::TenantNotFound`], [`Error::Unavailable`];
    /// [`Error::OutcomeUnknown`], where some recipients may have it. The errors of single
    /// recipients are in the answer.
    pub async fn send_notice(
        &self,
        context: &RequestContext<'_>,
        request: SendRequest<'_>,
    ) -> Result<SentNotice, Error> {
        let line = MutationLog::of(context, None);
        let sent = self.send(context, request).await;
        line.log_outcome(&sent);
        sent
    }

    async fn send(
        &self,
        context: &RequestContext<'_>,
        request: SendRequest<'_>,
    ) -> Result<SentNotice, Error> {
        check(context, &request)?;
        let policies = self.policies(&context.tenant).await?;
        let key = self.notice_key(context, &request).await?;
        let mut results = self.recipients(context, &request.recipients).await?;

        let (id, now, clock_uncertain) =
            (self.ids.next_id(), context.now.time, context.now.clock_uncertain);
        let (id, is_repeated) = match &key {
            Some(key) => self.backend.inboxes.begin_notice(key, id, now).await?,
            None => (id, false),
        };
        let sent_before = id.timestamp_millis().filter(|_| is_repeated);
        let sent_before = sent_before.and_then(|millis| i64::try_from(millis).ok());
        let mut users: BTreeSet<_> = results.iter().flatten().copied().collect();
        if is_repeated {
            for holder in self.holders(context, id, &users).await? {
                users.remove(&holder);
            }
        }

        let content = NoticeContent {
            sender: context.caller.to_owned(),
            subject: request.subject.to_owned(),
            body: request.body.to_owned(),
            attributes: request.attributes,
        };
        let send_time = sent_before.map_or(now, Timestamp::from_millis);
        let notice = Notice { id, send_time, expire_time: request.expire_time, content };
        let users: Vec<_> = users.into_iter().collect();
        let limits = InboxLimits::of(&policies);
        let delivery = Delivery { notice, users: users.clone(), limits, clock_uncertain };
        let delivered = match users.is_empty() {
            true => Vec::new(),
            false => self.backend.inboxes.deliver(Arc::new(delivery)).await?,
        };
        let gone = users.iter().zip(delivered).filter(|(_, delivered)| !delivered);
        let gone: BTreeSet<_> = gone.map(|(user, _)| *user).collect();
        for result in &mut results {
            if result.as_ref().is_ok_and(|user| gone.contains(user)) {
                *result = Err(Error::UserNotFound);
            }
        }
        Ok(SentNotice { id, results })
    }

    /// Those of the users who have a notice, or whose merged users have it.
    async fn holders(
        &self,
        context: &RequestContext<'_>,
        notice: LocalityId,
        users: &BTreeSet<LocalityId>,
    ) -> Result<Vec<LocalityId>, Error> {
        let store = &*self.backend.inboxes;
        let inboxes = users.iter().map(|user| async {
            let inboxes = store.inboxes(&context.tenant, *user).await?.unwrap_or_default();
            Ok::<_, Error>(inboxes.into_iter().map(|inbox| (inbox, *user)).collect::<Vec<_>>())
        });
        let inboxes: Vec<_> =
            stream::iter(inboxes.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        let owners: HashMap<_, _> = inboxes.into_iter().flatten().collect();
        let inboxes: Vec<_> = owners.keys().copied().collect();
        let holders = store.holders(notice, &inboxes).await?;
        Ok(holders.iter().filter_map(|inbox| owners.get(inbox).copied()).collect())
    }

    /// The users that recipients name, in their order. A merged user stands for the one that it was
    /// merged into; one that is disabled has its inbox.
    async fn recipients(
        &self,
        context: &RequestContext<'_>,
        recipients: &[UserRef<'_>],
    ) -> Result<Vec<Result<LocalityId, Error>>, Error> {
        let mut results = Vec::with_capacity(recipients.len());
        for (n, batch) in recipients.chunks(BATCH).enumerate() {
            let first = n * BATCH;
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

    /// The users that are named by their ids.
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
        let good: Vec<_> = ids.iter().flatten().copied().collect();
        let mut users = Vec::with_capacity(good.len());
        // An answer has room for some.
        while users.len() < good.len() {
            let more = self.get_present(context, &good[users.len()..], View::Basic).await?;
            if more.is_empty() {
                return Err(FULL);
            }
            users.extend(more);
        }
        let mut users = users.into_iter();
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

    /// The users that are named by identifiers.
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
            // An answer has room for some: the others are looked up again.
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
        let mut hash = Fields::default();
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
    /// The identifier; none where it is named by its id.
    const fn identifier(&self) -> Option<Option<RawIdentifier<'r>>> {
        match self {
            UserRef::Id(_) => None,
            UserRef::Owner(raw) => Some(*raw),
        }
    }
}

/// The result of the `n`th recipient, whose fault names it.
fn in_recipient(n: usize, result: Result<LocalityId, Error>) -> Result<LocalityId, Error> {
    result.map_err(|error| match error {
        Error::Invalid { what, field, message } if !field.starts_with("recipients") => {
            Error::invalid(what, format!("recipients[{n}].identifier"), message)
        }
        other => other,
    })
}

/// Checks what needs no look-up.
fn check(context: &RequestContext<'_>, request: &SendRequest<'_>) -> Result<(), Error> {
    let fault = |field: &str, rule: &str| Err(Error::invalid(Invalid::Field, field, rule));
    let count = request.recipients.len();
    if count == 0 {
        return fault("recipients", "is empty: name at least one");
    }
    if count > RECIPIENTS {
        return Err(Error::BatchTooLarge { limit: RECIPIENTS, count });
    }
    if request.subject.is_empty() {
        return fault("notice.subject", "is missing");
    }
    check_text("notice.subject", request.subject)?;
    if request.body.len() > BODY_BYTES {
        return fault("notice.body", "at most 16 KiB");
    }
    let is_text = |c: char| matches!(c, '\t' | '\n' | '\r') || is_shown(&c);
    if !request.body.chars().all(is_text) {
        return fault("notice.body", "no control characters but tabs and the ends of lines");
    }
    attribute::check(&request.attributes, "notice.attributes")?;
    let is_large = size::attributes(&request.attributes) > ATTRIBUTE_BYTES;
    if request.attributes.len() > ATTRIBUTES || is_large {
        return fault("notice.attributes", "at most 20, and at most 4 KiB together");
    }
    if request.expire_time.is_some_and(|time| time <= context.now.time) {
        return fault("notice.expire_time", "lies in the past");
    }
    Ok(())
}
