//! A line of an import before it is checked.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::attribute::Value;
use crate::service::mutate::write::RawIdentity;
use crate::timestamp::Timestamp;
use polynym_identifier::RawIdentifier;

/// A user in a line.
#[derive(Debug)]
pub struct RawUser<'a> {
    /// The id; may be empty.
    pub user_id: &'a str,
    /// The display name.
    pub display_name: &'a str,
    /// The identities. An error concerns one identity.
    pub identities: Vec<Result<RawImportedIdentity<'a>, Error>>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
    /// The state.
    pub state: RawState<'a>,
    /// The time when it was created, if the line has it.
    pub create_time: Option<Timestamp>,
    /// The time when it last changed, if the line has it.
    pub update_time: Option<Timestamp>,
    /// The internal part of an exported user.
    pub internals: Option<RawInternals<'a>>,
    /// The versions of the rules of the identities, in order; may be empty.
    pub rules_versions: &'a [u32],
    /// The version of the phone metadata of the exporting server; may be empty.
    pub phone_metadata: &'a str,
}

/// An identity in a line.
#[derive(Debug)]
pub struct RawImportedIdentity<'a> {
    /// The identity. Any kind may have a display form.
    pub raw: RawIdentity<'a>,
    /// The time when it was linked, if the line has it.
    pub link_time: Option<Timestamp>,
}

/// The state in a line.
#[derive(Clone, Copy, Debug)]
pub enum RawState<'a> {
    /// None: a new user is active.
    Absent,
    /// Active.
    Active,
    /// Disabled.
    Disabled,
    /// Deleted, with the times in the line.
    Deleted {
        /// The time when it was deleted.
        delete_time: Option<Timestamp>,
        /// The time when it will be purged.
        purge_time: Option<Timestamp>,
    },
    /// Merged into the user with this id.
    Merged(&'a str),
}

/// The internal part of an exported user.
#[derive(Debug, Default)]
pub struct RawInternals<'a> {
    /// Whether a deleted user is disabled when it is restored.
    pub disabled: bool,
    /// The handles that reserve their look-alikes.
    pub guarded_handles: Vec<&'a str>,
    /// The keys that are held for the user.
    pub holds: Vec<RawHold<'a>>,
    /// The users that were merged into it.
    pub merged: Vec<&'a str>,
    /// The data to undo a merge.
    pub undo: Option<Box<RawUndo<'a>>>,
    /// The parts that undoing a merge could not restore.
    pub not_restored: Vec<RawNotRestored<'a>>,
}

/// A hold in a line.
#[derive(Debug)]
pub struct RawHold<'a> {
    /// The held identifier, or the skeleton of a handle.
    pub held: Result<RawIdentifier<'a>, &'a str>,
    /// The time when it ends.
    pub until: Timestamp,
    /// The version of the rules of its key; 0 for the present one.
    pub rules_version: u32,
}

/// The data to undo a merge.
#[derive(Debug)]
pub struct RawUndo<'a> {
    /// The time when the undo window ends.
    pub until: Timestamp,
    /// The merged user before the merge.
    pub user: RawUser<'a>,
    /// The display name before and after.
    pub display_name: Option<(String, String)>,
    /// The attributes before and after.
    pub attributes: BTreeMap<String, (Option<Value>, Value)>,
    /// The identities that are no longer the primary ones of their kinds.
    pub unmarked: Vec<RawIdentifier<'a>>,
}

/// A part that undoing a merge could not restore.
#[derive(Debug)]
pub enum RawNotRestored<'a> {
    /// An identity.
    Identity(RawIdentifier<'a>),
    /// The primary's display name.
    DisplayName,
    /// An attribute of the primary.
    Attribute(&'a str),
}
