//! The users with exactly the identifiers or the id in a text.

use locality_uuid::LocalityId;

use super::reading::Readings;
use super::request::FindRequest;
use super::way::{Reading, Search, Way};
use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{ResolveOptions, UserById};
use crate::stores::View;
use polynym_identifier::{IdentityKey, RawIdentifier, Rules};

/// A user, with the reasons why it is found.
#[derive(Clone, Debug)]
pub struct FoundUser {
    /// The user.
    pub user: EncodedUser,
    /// The readings that find it, the likeliest first.
    pub reasons: Vec<Reading>,
    /// The user that was found, if it was merged into this one.
    pub merged_from: Option<LocalityId>,
}

/// The users with the identifiers or the id.
#[derive(Default)]
pub(super) struct ExactMatches {
    pub(super) users: Vec<FoundUser>,
    /// The identifiers that nobody owns.
    pub(super) misses: usize,
    /// The reason why a user cannot be read.
    pub(super) failure: Option<Error>,
}

/// The search for the users of a text.
pub(super) struct Finding<'f> {
    pub(super) directory: &'f Directory,
    pub(super) context: &'f RequestContext<'f>,
    pub(super) rules: Rules,
    pub(super) readings: Readings<'f>,
    pub(super) request: FindRequest<'f>,
}

impl Finding<'_> {
    /// The users with the identifiers or the id, each once.
    pub(super) async fn exact_matches(&self) -> Result<ExactMatches, Error> {
        let identifiers = &self.readings.identifiers;
        let raw: Vec<_> = identifiers.iter().map(|(_, raw)| Some(*raw)).collect();
        let options =
            ResolveOptions { show_disabled: true, view: self.view(), ..ResolveOptions::default() };
        let owners = match raw[..] {
            [] => Vec::new(),
            _ => self.directory.batch_resolve(&self.context.tenant, &raw, options).await?.0,
        };
        let (mut exact, mut unowned) = (ExactMatches::default(), Vec::new());
        for ((reading, raw), owner) in identifiers.iter().zip(owners) {
            match owner {
                Ok(owner) => self.add(&mut exact.users, owner.user, reading.clone(), None)?,
                Err(Error::IdentityNotFound) => unowned.push((reading.clone(), *raw)),
                Err(Error::Invalid { .. }) => {}
                Err(error) => exact.failure = Some(error),
            }
        }
        exact.misses = unowned.len();
        if !self.request.identifiers_only {
            self.add_others(&mut exact, unowned).await?;
        }
        Ok(exact)
    }

    /// Adds the users for whom identifiers are held, the deleted and the hidden owners of others,
    /// and the user of the id.
    async fn add_others(
        &self,
        exact: &mut ExactMatches,
        identifiers: Vec<(Reading, RawIdentifier<'_>)>,
    ) -> Result<(), Error> {
        let tenant = &self.context.tenant;
        let (readings, keys): (Vec<_>, Vec<_>) = identifiers
            .into_iter()
            .filter_map(|(reading, raw)| {
                let identifier = self.rules.parse(raw).ok()?;
                Some((reading, IdentityKey::new(tenant.as_str(), &identifier)))
            })
            .unzip();
        let claims = match keys[..] {
            [] => Vec::new(),
            _ => self.directory.backend.reads.claims(&keys).await?,
        };
        let owners = readings.into_iter().zip(claims);
        let owners = owners.filter_map(|(reading, claim)| self.owner(reading, &claim?));
        let (readings, ids): (Vec<_>, Vec<_>) = owners.chain(self.readings.id.clone()).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let users = self.directory.get_present(self.context, &ids, self.view()).await?;
        for (reading, user) in readings.into_iter().zip(users) {
            match user {
                Ok(Some(UserById { user, merged_from })) => {
                    self.add(&mut exact.users, user, reading, merged_from)?;
                }
                Ok(None) => {}
                Err(error) => exact.failure = Some(error.into()),
            }
        }
        Ok(())
    }

    /// The user who has a claim, or for whom it is held.
    fn owner(&self, reading: Reading, claim: &Claim) -> Option<(Reading, LocalityId)> {
        let way = match claim.hold {
            Some(until) if self.context.now.is_past(until) => return None,
            Some(_) => Way::Held,
            None => Way::Identifier,
        };
        Some((Reading { way, ..reading }, claim.owner.filter(|_| !claim.guard)?))
    }

    /// Adds a user with all its reasons. If it is there already, adds the reason.
    fn add(
        &self,
        found: &mut Vec<FoundUser>,
        user: EncodedUser,
        reading: Reading,
        merged_from: Option<LocalityId>,
    ) -> Result<(), Error> {
        let wanted = id(&user)?;
        if let Some(known) = found.iter_mut().find(|known| known.user.has_id(wanted)) {
            let first_search = known.reasons.iter().position(|reason| !reason.is_exact());
            known.reasons.insert(first_search.unwrap_or(known.reasons.len()), reading);
            known.merged_from = known.merged_from.or(merged_from);
            return Ok(());
        }
        let reasons = [reading].into_iter().chain(self.readings.searches_of(&user)?).collect();
        found.push(FoundUser { user, reasons, merged_from });
        Ok(())
    }

    /// The part of users to read: searches for attributes test them.
    pub(super) fn view(&self) -> View {
        let has_attributes = |search: &Search| search.reading.way == Way::Attribute;
        match self.readings.searches.iter().any(has_attributes) {
            true => View::Full,
            false => self.request.view,
        }
    }
}

/// The id of a user who was found.
///
/// # Errors
/// [`Error::Internal`] if the record is damaged.
pub(super) fn id(user: &EncodedUser) -> Result<LocalityId, Error> {
    user.id().map_err(|error| Error::Internal(Box::new(error)))
}
