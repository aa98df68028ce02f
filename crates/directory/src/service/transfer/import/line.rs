//! Parses a line of an import, with the checks that need no store.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::limits::Limits;
use crate::model::attribute;
use crate::model::imported_user::reimport::LineField;
use crate::model::imported_user::{ImportedIdentity, ImportedUser, OnConflict};
use crate::model::new_user::{NewIdentity, field};
use crate::model::policies::{MAX_PERIOD, Policies};
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::mutation::renormalize::renormalized_form;
use crate::service::lookup::read::parse;
use crate::service::mutate::write::{RawIdentity, SKEW};
use crate::service::parse::parse_user_id;
use crate::service::transfer::import::LineReject;
use crate::service::transfer::import::raw::{RawImportedIdentity, RawState, RawUser};
use crate::text::{self, check_text, is_displayable};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};

/// The bytes of the display form of an identity.
const MAX_DISPLAY_BYTES: usize = 4_096;

/// The rules and the time by which lines are parsed.
pub struct Parser<'a> {
    pub rules: Rules,
    pub now: Timestamp,
    pub tenant: &'a Tenant,
    pub policies: &'a Policies,
    pub limits: Limits,
}

/// By what an exported identity was normalised.
struct Origin {
    /// The version of its rules, if the line has it.
    version: Option<u32>,
    /// Whether the line has the version of its phone metadata.
    has_metadata: bool,
}

/// A parsed line.
pub struct Parsed {
    pub id: Option<LocalityId>,
    pub user: ImportedUser,
    /// The identities to skip because they are invalid.
    pub rejects: Vec<LineReject>,
}

impl Parser<'_> {
    /// The user of a line.
    pub fn user(&self, raw: &RawUser<'_>, on_conflict: OnConflict) -> Result<Parsed, Error> {
        let id = match raw.user_id {
            "" => None,
            text => Some(parse_user_id("user.user_id", text)?),
        };
        if id.is_some_and(|id| *id.as_bytes() == [0; 16]) {
            return Err(Error::invalid(Invalid::UserId, "user.user_id", "is the nil UUID"));
        }
        self.check_count("identities", self.limits.identities, raw.identities.len())?;
        let display_name = text::name("user.display_name", raw.display_name)?;
        attribute::check(&raw.attributes, "user.attributes")?;
        check_past(self.now, "user.create_time", raw.create_time)?;
        check_past(self.now, "user.update_time", raw.update_time)?;
        let state = self.state(&raw.state)?;
        let (identities, rejects) = self.identities(raw, on_conflict)?;
        let skipped =
            rejects.iter().filter_map(|reject| Some(skipped_field(raw, reject.identity?)));
        if matches!(state, State::Merged { .. }) && !identities.is_empty() {
            let message = "a merged user has no identities";
            return Err(Error::invalid(Invalid::Field, "user.identities", message));
        }

        let internals = raw.internals.as_ref().map(|raw| self.internals(raw)).transpose()?;
        let user = ImportedUser {
            has_id: id.is_some(),
            display_name: display_name.into_owned(),
            identities,
            attributes: raw.attributes.clone(),
            state,
            has_state: !matches!(raw.state, RawState::Absent),
            create_time: raw.create_time,
            update_time: raw.update_time,
            internals,
            on_conflict,
            skipped: skipped.collect(),
            reimport: Arc::default(),
            is_found: false,
        };

        Ok(Parsed { id, user, rejects })
    }

    fn identities(
        &self,
        raw: &RawUser<'_>,
        on_conflict: OnConflict,
    ) -> Result<(Vec<ImportedIdentity>, Vec<LineReject>), Error> {
        let (mut identities, mut rejects) = (Vec::new(), Vec::new());
        let (mut seen, mut primaries) = (HashSet::new(), HashSet::new());
        for (index, identity) in raw.identities.iter().enumerate() {
            let origin = Origin {
                version: raw.rules_versions.get(index).copied(),
                has_metadata: !raw.phone_metadata.is_empty(),
            };
            let parsed = self.identity(index, identity, &origin).and_then(|identity| {
                check_unique(&identity, &seen, &primaries)?;
                Ok(identity)
            });
            match parsed {
                // People's files have an address twice, in two columns or spellings.
                Ok(identity) if is_repeated(&identity, &seen) => {}
                Ok(identity) => {
                    seen.insert(identity.new.identifier.clone());
                    if identity.new.primary {
                        primaries.insert(identity.new.identifier.kind());
                    }
                    identities.push(identity);
                }
                Err(error) if on_conflict == OnConflict::SkipIdentity => {
                    rejects.push(LineReject { identity: Some(index), error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((identities, rejects))
    }

    fn identity(
        &self,
        index: usize,
        raw: &Result<RawImportedIdentity<'_>, Error>,
        origin: &Origin,
    ) -> Result<ImportedIdentity, Error> {
        let field = field(index);
        let RawImportedIdentity { raw, link_time } = raw.as_ref().map_err(cloned)?;
        let (identifier, rules_version) = self.identifier(&field, raw, origin)?;
        let other = |name| field.replace("identifier", name);
        if let Some(verification) = &raw.verification {
            check_text(&other("verified_by"), &verification.by)?;
            check_past(self.now, &other("verify_time"), Some(verification.time))?;
        }
        check_past(self.now, &other("link_time"), *link_time)?;

        let own = match identifier.kind() {
            Kind::Social => text::name(&other("display"), raw.display)?,
            _ => raw.display.into(),
        };
        let typed = match raw.identifier.as_ref() {
            Some(raw) if own.is_empty() => raw.typed(),
            _ => &own,
        };
        if typed.len() > MAX_DISPLAY_BYTES {
            let message = "has at most 4,096 bytes";
            return Err(Error::invalid(Invalid::Field, other("display"), message));
        }

        let display: String = typed.chars().filter(is_displayable).collect();
        let is_spelt = raw.identifier.is_some_and(|raw| self.spells(&display, raw, &identifier));
        if !is_spelt {
            let message = "is the identifier as typed, and this spells another one: leave it out";
            return Err(Error::invalid(Invalid::Field, other("display"), message));
        }

        let new = NewIdentity {
            identifier,
            display,
            verification: raw.verification.clone(),
            primary: raw.primary,
            rules_version,
        };
        Ok(ImportedIdentity { index, new, link_time: *link_time })
    }

    /// Whether a display form spells the identifier, or did by older rules: those of the store that
    /// exported it. A number without its region may be any.
    fn spells(&self, display: &str, raw: RawIdentifier<'_>, identifier: &Identifier) -> bool {
        let Some(typed) = displayed(display, raw) else { return true };
        if typed == raw {
            return true;
        }
        match self.rules.parse(typed) {
            Ok(parsed) if parsed == *identifier => true,
            Err(_) if identifier.kind() == Kind::Phone => true,
            _ => self.older().any(|rules| has_stored(rules, typed, raw)),
        }
    }

    /// The earlier rules by which an identity without a version was exported: those that give its
    /// identifier for its display form, if the present rules give another one for one of both.
    fn exporting_rules(&self, raw: &RawIdentity<'_>) -> Option<Rules> {
        let identifier = raw.identifier.filter(|_| !raw.display.is_empty())?;
        let typed = displayed(raw.display, identifier)?;
        match (self.rules.parse(identifier), self.rules.parse(typed)) {
            (Ok(one), Ok(other)) if one == other => None,
            _ => self.older().find(|rules| has_stored(*rules, typed, identifier)),
        }
    }

    /// The rules before the present ones, newest first.
    pub fn older(&self) -> impl Iterator<Item = Rules> {
        (1..self.rules.version()).rev().filter_map(Rules::known)
    }

    /// Rejects times that lie further in the future than any policy allows. Clocks may differ by
    /// [`SKEW`].
    pub fn check_within(&self, field: &str, time: Timestamp, max: Duration) -> Result<(), Error> {
        if time <= self.now.plus(max).plus(SKEW) {
            return Ok(());
        }
        let days = max.as_secs() / (24 * 60 * 60);
        Err(Error::invalid(Invalid::Field, field, format!("is more than {days} days away")))
    }

    /// The identifier of an identity, and the version of its rules. One of earlier rules is moved
    /// to the present ones, like those of the store, and keeps its form if they reject it.
    fn identifier(
        &self,
        field: &str,
        raw: &RawIdentity<'_>,
        origin: &Origin,
    ) -> Result<(Identifier, u32), Error> {
        let present = self.rules.version();
        let earlier = match origin.version {
            Some(version) => self.earlier_rules(version),
            None => self.exporting_rules(raw),
        };
        if let Some(earlier) = earlier
            && let Some(Ok(stored)) = raw.identifier.map(|raw| earlier.parse(raw))
        {
            let version = earlier.version();
            return Ok(match renormalized_form(&stored, raw.display, version, self.rules) {
                Some(identifier) => (identifier, present),
                None => (stored, version),
            });
        }

        if let Some(identifier) = self.retyped(raw, origin) {
            return Ok((identifier, present));
        }
        let rejected = match parse(self.rules, field, raw.identifier) {
            Ok(identifier) => return Ok((identifier, present)),
            Err(error) => error,
        };
        let is_phone = matches!(raw.identifier, Some(RawIdentifier::Phone { .. }));
        let forms = raw.identifier.filter(|_| is_phone && origin.has_metadata);
        let forms = forms.map(|raw| self.rules.earlier_forms(raw)).unwrap_or_default();
        forms.into_iter().next_back().map(|number| (number, present)).ok_or(rejected)
    }

    /// The identifier as it was typed, by the present rules, if the rules of the line are older
    /// than those that this program knows: their canonical form may lack parts of it.
    fn retyped(&self, raw: &RawIdentity<'_>, origin: &Origin) -> Option<Identifier> {
        origin.version.filter(|version| *version < Rules::OLDEST)?;
        self.rules.parse(displayed(raw.display, raw.identifier?)?).ok()
    }

    /// The rules of a version before the present one.
    pub fn earlier_rules(&self, version: u32) -> Option<Rules> {
        Rules::known(version).filter(|rules| rules.version() < self.rules.version())
    }

    fn state(&self, raw: &RawState<'_>) -> Result<State, Error> {
        Ok(match *raw {
            RawState::Absent | RawState::Active => State::Active,
            RawState::Disabled => State::Disabled,
            RawState::Deleted { delete_time, purge_time } => {
                check_past(self.now, "user.delete_time", delete_time)?;
                let end_of_window = self.now.plus(self.policies.restore_window);
                let purge_time = purge_time.unwrap_or(end_of_window);
                self.check_within("user.purge_time", purge_time, MAX_PERIOD)?;
                State::Deleted { delete_time: delete_time.unwrap_or(self.now), purge_time }
            }
            RawState::Merged(into) => {
                State::Merged { into: parse_user_id("user.merged_into", into)? }
            }
        })
    }
}

/// The field of a line's identity that is invalid.
fn skipped_field(raw: &RawUser<'_>, index: usize) -> LineField {
    let identity = raw.identities.get(index).and_then(|identity| identity.as_ref().ok());
    let identifier = identity.and_then(|identity| identity.raw.identifier);
    identifier.map_or(LineField::Identities, |raw| LineField::Kind(raw.kind()))
}

/// A display form as a typed identifier of the same kind; none for accounts, whose display form is
/// a name.
fn displayed<'d>(display: &'d str, raw: RawIdentifier<'d>) -> Option<RawIdentifier<'d>> {
    Some(match raw {
        RawIdentifier::Email(_) => RawIdentifier::Email(display),
        RawIdentifier::Handle(_) => RawIdentifier::Handle(display),
        RawIdentifier::Url(_) => RawIdentifier::Url(display),
        RawIdentifier::Phone { region, .. } => RawIdentifier::Phone { number: display, region },
        RawIdentifier::Social { .. } => return None,
    })
}

/// Whether `rules` store typed text in this form.
fn has_stored(rules: Rules, typed: RawIdentifier<'_>, form: RawIdentifier<'_>) -> bool {
    rules.parse(typed).is_ok_and(|stored| stored.canonical() == form.typed())
}

/// Rejects times in the future. Clocks may differ by [`SKEW`].
pub fn check_past(now: Timestamp, field: &str, time: Option<Timestamp>) -> Result<(), Error> {
    match time {
        Some(time) if time > now.plus(SKEW) => {
            Err(Error::invalid(Invalid::Field, field, "is in the future"))
        }
        _ => Ok(()),
    }
}

fn check_unique(
    identity: &ImportedIdentity,
    seen: &HashSet<Identifier>,
    primaries: &HashSet<Kind>,
) -> Result<(), Error> {
    let new = &identity.new;
    if seen.contains(&new.identifier) && !is_repeated(identity, seen) {
        let message = "the same identifier occurs before, in this or another spelling";
        return Err(Error::invalid(Invalid::DuplicateIdentifier, field(identity.index), message));
    }
    if new.primary && primaries.contains(&new.identifier.kind()) {
        let path = format!("user.identities[{}].primary", identity.index);
        let message = "only one identity of a kind can be primary";
        return Err(Error::invalid(Invalid::Field, path, message));
    }
    Ok(())
}

/// Whether an identity occurs before and adds nothing to it.
fn is_repeated(identity: &ImportedIdentity, seen: &HashSet<Identifier>) -> bool {
    let ImportedIdentity { new, link_time, .. } = identity;
    seen.contains(&new.identifier)
        && !new.primary
        && new.verification.is_none()
        && link_time.is_none()
}

/// A copy of an error of a malformed identity.
fn cloned(error: &Error) -> Error {
    match error {
        Error::Invalid { what, field, message } => {
            Error::invalid(*what, field.clone(), message.clone())
        }
        other => Error::Internal(other.to_string().into()),
    }
}
