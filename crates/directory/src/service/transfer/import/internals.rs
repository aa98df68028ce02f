//! Parses the internal part of an exported user.

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::imported_user::OnConflict;
use crate::model::merge_report::NotRestored;
use crate::model::record::{Guarded, Hold, MergeSnapshot, UserInternals};
use crate::model::unknown::Unknown;
use crate::service::lookup::read::parse;
use crate::service::parse::parse_user_id;
use crate::service::transfer::import::line::Parser;
use crate::service::transfer::import::raw::{RawHold, RawInternals, RawNotRestored, RawUndo};
use polynym_identifier::{Guard, IdentityKey, RawIdentifier};

/// The bytes of a skeleton: more than any handle's.
const MAX_SKELETON_BYTES: usize = 1_024;

impl Parser<'_> {
    pub fn internals(&self, raw: &RawInternals<'_>) -> Result<UserInternals, Error> {
        let guards = raw.guarded_handles.iter().map(|handle| self.guarded(handle));
        let holds = raw.holds.iter().map(|hold| self.hold(hold));
        let merged = self.merged_users(&raw.merged)?;
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

    /// The guard of a handle; none if the rules no longer guard it.
    fn guarded(&self, handle: &str) -> Result<Option<Guarded>, Error> {
        let raw = RawIdentifier::Handle(handle);
        let handle = parse(self.rules, "internals.guarded_handles", Some(raw))?;
        Ok(handle.guard().map(|guard| Guarded { handle, guard }))
    }

    pub fn hold(&self, raw: &RawHold<'_>) -> Result<Hold, Error> {
        let (field, tenant) = ("internals.holds", self.tenant.as_str());
        let (key, guard) = match raw.held {
            Ok(identifier) => {
                (IdentityKey::new(tenant, &parse(self.rules, field, Some(identifier))?), false)
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
        let rules_version = self.rules.version();
        Ok(Hold { key, until: raw.until, guard, rules_version })
    }

    /// The ids of merged users. A mutation reads all of them, so their limit is checked before.
    fn merged_users(&self, ids: &[&str]) -> Result<Vec<LocalityId>, Error> {
        let (limit, count) = (self.limits.merged, ids.len());
        if count > limit {
            return Err(Error::TooMany { what: "users merged into it", limit, count });
        }
        let field = |n| format!("internals.merged_user_ids[{n}]");
        ids.iter().enumerate().map(|(n, id)| parse_user_id(&field(n), id)).collect()
    }

    /// The undo data of a merge. The user had the same `merged` users before it.
    fn undo(&self, raw: &RawUndo<'_>, merged: &[LocalityId]) -> Result<MergeSnapshot, Error> {
        let before = self.user(&raw.user, OnConflict::Reject)?;
        let missing = || Error::invalid(Invalid::UserId, "internals.undo.user", "has no id");
        let id = before.id.ok_or_else(missing)?;
        let field = "internals.undo.unmarked";
        let mut record = before.user.record(id, self.tenant, self.now);
        record.internals.merged = merged.to_vec();
        let unmarked = raw.unmarked.iter().map(|raw| parse(self.rules, field, Some(*raw)));
        Ok(MergeSnapshot {
            until: raw.until,
            before: record,
            display_name: raw.display_name.clone(),
            attributes: raw.attributes.clone(),
            unmarked: unmarked.collect::<Result<_, _>>()?,
        })
    }

    fn not_restored(&self, raw: &RawNotRestored<'_>) -> Result<NotRestored, Error> {
        Ok(match raw {
            RawNotRestored::Identity(raw) => {
                NotRestored::Identity(parse(self.rules, "internals.not_restored", Some(*raw))?)
            }
            RawNotRestored::DisplayName => NotRestored::DisplayName,
            RawNotRestored::Attribute(name) => NotRestored::Attribute((*name).to_owned()),
        })
    }
}
