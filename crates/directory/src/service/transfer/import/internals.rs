//! Parses the internal part of an exported user.

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::limits::Limits;
use crate::model::attribute;
use crate::model::imported_user::OnConflict;
use crate::model::merge_report::NotRestored;
use crate::model::policies::{MAX_PERIOD, MAX_UNDO_WINDOW};
use crate::model::record::{Guarded, Hold, MergeSnapshot, UserInternals};
use crate::model::unknown::Unknown;
use crate::service::lookup::read::parse;
use crate::service::parse::parse_user_id;
use crate::service::transfer::import::line::Parser;
use crate::service::transfer::import::raw::{RawHold, RawInternals, RawNotRestored, RawUndo};
use crate::size;
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind, RawIdentifier, Rules};

/// The bytes of a skeleton: more than any handle's.
const MAX_SKELETON_BYTES: usize = 1_024;

impl Parser<'_> {
    pub fn internals(&self, raw: &RawInternals<'_>) -> Result<UserInternals, Error> {
        let guards = raw.guarded_handles.iter().map(|handle| self.guarded(handle));
        let holds = raw.holds.iter().map(|hold| self.hold(hold));
        self.check_counts(raw)?;
        let merged_field = |n| format!("internals.merged_user_ids[{n}]");
        let merged = raw.merged.iter().enumerate();
        let merged: Vec<_> =
            merged.map(|(n, id)| parse_user_id(&merged_field(n), id)).collect::<Result<_, _>>()?;
        let undo = raw.undo.as_ref().map(|undo| self.undo(undo, &merged).map(Box::new));
        let not_restored = raw.not_restored.iter().map(|part| self.not_restored(part));
        Ok(UserInternals {
            disabled: raw.disabled,
            guards: guards.filter_map(Result::transpose).collect::<Result<_, _>>()?,
            holds: holds.collect::<Result<_, _>>()?,
            undo: undo.transpose()?,
            merged,
            not_restored: not_restored.collect::<Result<_, _>>()?,
            unknown: Unknown::default(),
        })
    }

    fn check_counts(&self, raw: &RawInternals<'_>) -> Result<(), Error> {
        let Limits { identities, attributes, holds, merged, .. } = self.limits;
        let held = raw.holds.iter().filter(|hold| hold.until > self.now).count();
        self.check_count("identifiers held for it", holds, held)?;
        self.check_count("guarded handles", identities, raw.guarded_handles.len())?;
        let parts = identities.saturating_add(attributes).saturating_add(1);
        self.check_count("parts that were not restored", parts, raw.not_restored.len())?;
        // A mutation reads all of them.
        self.check_count("users merged into it", merged, raw.merged.len())
    }

    /// The guard of a handle; none if the rules no longer guard it.
    fn guarded(&self, handle: &str) -> Result<Option<Guarded>, Error> {
        let raw = RawIdentifier::Handle(handle);
        let handle = parse(self.rules, "internals.guarded_handles", Some(raw))?;
        Ok(handle.guard().map(|guard| Guarded { handle, guard }))
    }

    pub fn hold(&self, raw: &RawHold<'_>) -> Result<Hold, Error> {
        let (field, tenant) = ("internals.holds", self.tenant.as_str());
        let rules = self.rules_of_hold(raw);
        let (key, guard) = match raw.held {
            Ok(identifier) => {
                (IdentityKey::new(tenant, &parse(rules, field, Some(identifier))?), false)
            }
            Err(skeleton) => {
                let has_length = (1..=MAX_SKELETON_BYTES).contains(&skeleton.len());
                if !has_length || skeleton.contains(|c: char| c.is_control() || c.is_whitespace()) {
                    return Err(Error::invalid(Invalid::Field, field, "is not a skeleton"));
                }
                let guard = Guard::from_skeleton(skeleton.to_owned());
                (IdentityKey::of_guard(tenant, &guard), true)
            }
        };
        self.check_within(field, raw.until, MAX_PERIOD)?;
        Ok(Hold { key, until: raw.until, guard, rules_version: rules.version() })
    }

    /// The rules of a hold: those of its version, or the latest that have its form. Exports of
    /// version 0.1.0 have no versions.
    fn rules_of_hold(&self, raw: &RawHold<'_>) -> Rules {
        let has = |rules: &Rules| {
            let parsed = raw.held.map(|identifier| (rules.parse(identifier), identifier));
            matches!(parsed, Ok((Ok(form), stored)) if form.canonical() == stored.typed())
        };
        match (raw.rules_version, raw.held) {
            (0, Ok(identifier)) if self.rules.parse(identifier).is_err() => {
                self.older().find(has).unwrap_or(self.rules)
            }
            (version, _) => self.earlier_rules(version).unwrap_or(self.rules),
        }
    }

    /// The undo data of a merge. The user had the same `merged` users before it.
    fn undo(&self, raw: &RawUndo<'_>, merged: &[LocalityId]) -> Result<MergeSnapshot, Error> {
        let before = self.user(&raw.user, OnConflict::Reject)?;
        let missing = || Error::invalid(Invalid::UserId, "internals.undo.user", "has no id");
        let id = before.id.ok_or_else(missing)?;
        let field = "internals.undo.unmarked";
        self.check_within("internals.undo.end_time", raw.until, MAX_UNDO_WINDOW)?;
        self.check_count("primary identities", Kind::ALL.len(), raw.unmarked.len())?;
        let mut record = before.user.record(id, self.tenant, self.now);
        record.internals.merged = merged.to_vec();
        let unmarked = raw.unmarked.iter().map(|raw| self.recorded(field, *raw));
        let undo = MergeSnapshot {
            until: raw.until,
            before: record,
            display_name: raw.display_name.clone(),
            attributes: raw.attributes.clone(),
            unmarked: unmarked.collect::<Result<_, _>>()?,
        };
        self.check_undo(&undo)?;
        Ok(undo)
    }

    /// Checks the values of undo data, which an unmerge restores.
    fn check_undo(&self, undo: &MergeSnapshot) -> Result<(), Error> {
        undo.check()?;
        for attributes in &undo.primary_attributes() {
            self.check_count("attributes", self.limits.attributes, attributes.len())?;
            self.check_count("bytes", self.limits.bytes, size::attributes(attributes))?;
        }
        Ok(())
    }

    /// Rejects more than `limit` parts.
    pub fn check_count(&self, what: &'static str, limit: usize, count: usize) -> Result<(), Error> {
        if count > limit { Err(Error::TooMany { what, limit, count }) } else { Ok(()) }
    }

    /// The identifier of an identity in a record of a merge, which may be of earlier rules.
    fn recorded(&self, field: &str, raw: RawIdentifier<'_>) -> Result<Identifier, Error> {
        parse(self.rules, field, Some(raw))
            .or_else(|rejected| self.rules.earlier_forms(raw).into_iter().next().ok_or(rejected))
    }

    fn not_restored(&self, raw: &RawNotRestored<'_>) -> Result<NotRestored, Error> {
        Ok(match raw {
            RawNotRestored::Identity(raw) => {
                NotRestored::Identity(self.recorded("internals.not_restored", *raw)?)
            }
            RawNotRestored::DisplayName => NotRestored::DisplayName,
            RawNotRestored::Attribute(name) if attribute::is_name(name) => {
                NotRestored::Attribute((*name).to_owned())
            }
            RawNotRestored::Attribute(_) => {
                let field = "internals.not_restored";
                return Err(Error::invalid(Invalid::Attribute, field, attribute::NAME_RULE));
            }
        })
    }
}
