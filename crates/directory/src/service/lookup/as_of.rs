//! Look-ups of the owner of an identifier at a given time: the present owner if it linked the
//! identifier before that time, or else a former owner.

use std::collections::HashMap;

use bytes::Bytes;
use locality_uuid::LocalityId;
use prost::Message;
use tokio::task::yield_now;

use crate::clock::Now;
use crate::encoded::encode::identity_message;
use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::error::{Error, Invalid};
use crate::model::claim::Claim;
use crate::model::ownership::{EndedOwnerships, OwnerAt};
use crate::model::tenant::Tenant;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{FULL, YIELD_EVERY, parse};
use crate::stores::{Backend, ItemResult, View};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier, Rules};

/// Attempts of a look-up: it is repeated if an owner changes between its reads.
pub(super) const MAX_ATTEMPTS: usize = 5;
/// The reads of a look-up: of claims, of ended ownerships, and of users.
const READS: u32 = 3;

/// An owner, and the identity that it had; none if it still has it.
type Owner = (LocalityId, Option<Bytes>);
type Users = HashMap<LocalityId, ItemResult<EncodedUser>>;
type Outcomes = Vec<Result<Found, Error>>;

impl Directory {
    /// The present state of the user who owned an identifier at `time`, and the number of reads.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::IdentityNotFound`], [`Error::HistoryExpired`],
    /// [`Error::TenantNotFound`], [`Error::RulesChanging`], [`Error::Unavailable`].
    pub async fn resolve_as_of(
        &self,
        context: &RequestContext<'_>,
        raw: Option<RawIdentifier<'_>>,
        time: Timestamp,
        view: View,
    ) -> Result<(Found, u32), Error> {
        let field = |_| "identifier".to_owned();
        let (mut outcomes, reads) = self.owners_at(context, &[raw], time, view, field).await?;
        let outcome = outcomes.pop().unwrap_or(Err(Error::IdentityNotFound));
        Ok((outcome?, reads))
    }

    /// The outcome for each of several identifiers at `time`, in order, and the number of reads.
    ///
    /// # Errors
    /// Those of [`Directory::resolve_as_of`] that concern the whole batch;
    /// [`Error::BatchTooLarge`].
    pub async fn batch_resolve_as_of(
        &self,
        context: &RequestContext<'_>,
        raw: &[Option<RawIdentifier<'_>>],
        time: Timestamp,
        view: View,
    ) -> Result<(Outcomes, u32), Error> {
        self.check_batch(raw.len())?;
        self.owners_at(context, raw, time, view, |n| format!("identifiers[{n}]")).await
    }

    async fn owners_at(
        &self,
        context: &RequestContext<'_>,
        raw: &[Option<RawIdentifier<'_>>],
        time: Timestamp,
        view: View,
        field: impl Fn(usize) -> String,
    ) -> Result<(Outcomes, u32), Error> {
        let now = context.now.time;
        if time > now {
            return Err(Error::invalid(Invalid::Field, "as_of", "lies in the future"));
        }
        let policies = self.policies(&context.tenant).await?;
        let earliest = policies.history_begins(context.now.earliest());
        if time < earliest {
            return Err(Error::HistoryExpired { earliest });
        }
        let rules = self.rules_to_change().await?;
        let mut forms = Vec::with_capacity(raw.len());
        for (n, raw) in raw.iter().enumerate() {
            if n > 0 && n % YIELD_EVERY == 0 {
                yield_now().await;
            }
            forms.push(FormsAt::new(rules, field(n), *raw));
        }
        let tenant = context.tenant.as_str();
        let key = |form: &Identifier| IdentityKey::new(tenant, form);
        let keys: Vec<_> = forms.iter().flat_map(FormsAt::all).map(key).collect();
        let at = (&context.tenant, context.now);
        for _ in 0..MAX_ATTEMPTS {
            if let Some(owners) = owners_at(&self.backend, at, &keys, time, view).await? {
                let mut owners = owners.into_iter();
                return Ok((
                    forms.into_iter().map(|form| form.outcome(&mut owners)).collect(),
                    READS,
                ));
            }
        }
        Err(Error::Unavailable("identities change owners faster than they can be read".into()))
    }
}

/// The forms of an identifier in a look-up: before its store was upgraded, it had one of earlier
/// rules.
pub(super) struct FormsAt<'r> {
    raw: Option<RawIdentifier<'r>>,
    /// By the present rules.
    pub(super) present: Result<Identifier, Error>,
    earlier: Vec<Identifier>,
}

impl<'r> FormsAt<'r> {
    pub(super) fn new(rules: Rules, field: String, raw: Option<RawIdentifier<'r>>) -> Self {
        let present = parse(rules, field, raw);
        let mut earlier = raw.map(|raw| rules.earlier_forms(raw)).unwrap_or_default();
        // The form of another kind that the rules still have is that of another identifier.
        earlier.retain(|form| form.kind() == Kind::Url || !rules.has(form));
        Self { raw, present, earlier }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Identifier> {
        self.present.iter().chain(&self.earlier)
    }

    /// Whether the identifier names this form of a user that typed `display`.
    pub(super) fn is_named(&self, form: &Identifier, display: &str) -> bool {
        self.raw.is_none_or(|raw| form.is_named_by(raw, display))
    }

    /// The outcome of the first form that has an owner. `owners` has the outcome of each form.
    fn outcome(
        self,
        owners: &mut impl Iterator<Item = Result<Found, Error>>,
    ) -> Result<Found, Error> {
        let mut outcome = match self.present {
            Ok(_) => owners.next().unwrap_or(Err(FULL)),
            Err(rejected) => Err(rejected),
        };
        for form in &self.earlier {
            let earlier = owners.next().unwrap_or(Err(FULL));
            let is_open = matches!(outcome, Err(Error::IdentityNotFound | Error::Invalid { .. }));
            let is_named = match (&earlier, self.raw) {
                (Ok(found), Some(raw)) => form.is_named_by(raw, found.display()),
                (earlier, _) => !matches!(earlier, Err(Error::IdentityNotFound)),
            };
            if is_open && is_named {
                outcome = earlier;
            }
        }
        outcome
    }
}

/// The present state of the owner of each key at `time`. None if an owner changed between the
/// reads: repeat the look-up.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn owners_at(
    backend: &Backend,
    (tenant, now): (&Tenant, Now),
    keys: &[IdentityKey],
    time: Timestamp,
    view: View,
) -> Result<Option<Outcomes>, Error> {
    // Claims first: a user who loses a key after this read is among the ended ownerships.
    let mut reads = backend.reads.in_order().await?;
    let claims = reads.claims(keys).await?;
    let ended = reads.ended_ownerships(keys).await?;
    let owners: Vec<_> =
        claims.into_iter().zip(&ended).map(|(claim, ended)| owner(claim, ended, time)).collect();
    let ids: Vec<_> = owners.iter().flatten().map(|(id, _)| *id).collect();
    let read = reads.get(tenant, &ids, view).await?;
    let users: Users = ids.into_iter().zip(read).collect();
    let is_present = |found: &Found| !found.user.state().is_purge_due(now);

    let mut outcomes = Vec::with_capacity(keys.len());
    for (key, owner) in keys.iter().zip(owners) {
        let outcome = match owner {
            Ok(owner) => match found_owner(key, owner, &users, time) {
                Some(found) => found,
                None => return Ok(None),
            },
            Err(error) => Err(error),
        };
        outcomes.push(
            outcome.and_then(|found| found.filter(is_present).ok_or(Error::IdentityNotFound)),
        );
    }
    Ok(Some(outcomes))
}

/// The owner of a key at `time`. The link time of a present owner is not checked yet.
fn owner(claim: Option<Claim>, ended: &EndedOwnerships, time: Timestamp) -> Result<Owner, Error> {
    let owner = match ended.at(time) {
        OwnerAt::Past(past) => {
            let identity = past.identity.as_ref().map(|own| identity_message(own).encode_to_vec());
            past.user.zip(identity).map(|(user, identity)| (user, Some(identity.into())))
        }
        OwnerAt::Present => claim.and_then(|claim| claim.resolves_to()).map(|owner| (owner, None)),
        OwnerAt::Nobody => None,
        OwnerAt::Forgotten { earliest } => return Err(Error::HistoryExpired { earliest }),
    };
    owner.ok_or(Error::IdentityNotFound)
}

/// The owner of a key. None if the current owner no longer has the key.
fn found_owner(
    key: &IdentityKey,
    (id, identity): Owner,
    users: &Users,
    time: Timestamp,
) -> Option<Result<Option<Found>, Error>> {
    let user = match users.get(&id) {
        None => return Some(Err(FULL)),
        Some(Err(error)) => return Some(Err(error.clone().into())),
        Some(Ok(user)) => user.clone(),
    };
    let found = match identity {
        Some(identity) => return Some(Ok(user.map(|user| Found { user, identity }))),
        None => Found::new(user?, key)?,
    };
    Some(match found.import_time().filter(|imported| time < *imported) {
        Some(earliest) => Err(Error::HistoryExpired { earliest }),
        None => Ok(Some(found).filter(|found| found.link_time() <= time)),
    })
}
