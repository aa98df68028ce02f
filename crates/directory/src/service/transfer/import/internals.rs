//! Parses the internal part of an exported user.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::attribute;
use crate::model::imported_user::OnConflict;
use crate::model::limits::Limits;
use crate::model::merge_report::NotRestored;
use crate::model::policies::{MAX_PERIOD, MAX_UNDO_WINDOW};
use crate::model::record::{Guarded, Hold, MergeSnapshot, UserInternals};
use crate::model::unknown::Unknown;
use crate::mutation::size;
use crate::service::lookup::read::parse;
use crate::service::mutate::write::check_text;
use crate::service::parse::parse_user_id;
use crate::service::transfer::import::line::Parser;
use crate::service::transfer::import::raw::{RawHold, RawInternals, RawNotRestored, RawUndo};
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind, RawIdentifier};

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
        Ok(self.rules.guard(&handle).map(|guard| Guarded { handle, guard }))
    }

    pub fn hold(&self, raw: &RawHold<'_>) -> Result<Hold, Error> {
        let (field, tenant) = ("internals.holds", self.tenant.as_str());
        let rules = self.earlier_rules(raw.rules_version).unwrap_or(self.rules);
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

    /// The undo data of a merge. The user had the same `merged` users before it.
    fn undo(&self, raw: &RawUndo<'_>, merged: &[LocalityId]) -> Result<MergeSnapshot, Error> {
        let before = self.user(&raw.user, OnConflict::Reject)?;
        let missing = || Error::invalid(Invalid::UserId, "internals.undo.user", "has no id");
        let id = before.id.ok_or_else(missing)?;
        let field = "internals.undo.unmarked";
        self.check_undo(raw)?;
        let mut record = before.user.record(id, self.tenant, self.now);
        record.internals.merged = merged.to_vec();
        let unmarked = raw.unmarked.iter().map(|raw| self.recorded(field, *raw));
        Ok(MergeSnapshot {
            until: raw.until,
            before: record,
            display_name: raw.display_name.clone(),
            attributes: raw.attributes.clone(),
            unmarked: unmarked.collect::<Result<_, _>>()?,
        })
    }

    /// Checks the parts of the primary in undo data, which an unmerge restores.
    fn check_undo(&self, raw: &RawUndo<'_>) -> Result<(), Error> {
        self.check_within("internals.undo.end_time", raw.until, MAX_UNDO_WINDOW)?;
        for name in raw.display_name.iter().flat_map(|(before, after)| [before, after]) {
            check_text("internals.undo.display_name", name)?;
        }
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        for (name, (old, new)) in &raw.attributes {
            before.extend(old.clone().map(|old| (name.clone(), old)));
            after.insert(name.clone(), new.clone());
        }
        for attributes in [&before, &after] {
            attribute::check(attributes, "internals.undo.attributes")?;
            self.check_count("attributes", self.limits.attributes, attributes.len())?;
            self.check_count("bytes", self.limits.bytes, size::attributes(attributes))?;
        }
        self.check_count("primary identities", Kind::ALL.len(), raw.unmarked.len())
    }

    fn check_count(&self, what: &'static str, limit: usize, count: usize) -> Result<(), Error> {
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
