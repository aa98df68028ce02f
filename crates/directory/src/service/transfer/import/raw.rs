//! A line of an import as a caller gives it, before it is checked.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::attribute::Value;
use crate::model::timestamp::Timestamp;
use crate::service::mutate::write::RawIdentity;
use polynym_identifier::RawIdentifier;

/// A user as a line gives it.
#[derive(Debug)]
pub struct RawUser<'a> {
    /// The id, or nothing.
    pub user_id: &'a str,
    /// A name to show to people.
    pub display_name: &'a str,
    /// The identities. An error is that of one identity.
    pub identities: Vec<Result<RawImportedIdentity<'a>, Error>>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
    /// The state.
    pub state: RawState<'a>,
    /// When it was created, if the line says it.
    pub create_time: Option<Timestamp>,
    /// When it last changed, if the line says it.
    pub update_time: Option<Timestamp>,
    /// What an export has beside it.
    pub internals: Option<RawInternals<'a>>,
}

/// An identity as a line gives it.
#[derive(Debug)]
pub struct RawImportedIdentity<'a> {
    /// The identity. Its display is as the line has it, for all kinds.
    pub raw: RawIdentity<'a>,
    /// When it was linked, if the line says it.
    pub link_time: Option<Timestamp>,
}

/// The state as a line gives it.
#[derive(Clone, Copy, Debug)]
pub enum RawState<'a> {
    /// In use.
    Active,
    /// Shut out for now.
    Disabled,
    /// Deleted, with the times that the line says.
    Deleted {
        /// Since when.
        delete_time: Option<Timestamp>,
        /// When it is to be purged.
        purge_time: Option<Timestamp>,
    },
    /// Part of the user with this id.
    Merged(&'a str),
}

/// What an export has beside a user.
#[derive(Debug, Default)]
pub struct RawInternals<'a> {
    /// Whether a deleted user is disabled when it comes back.
    pub disabled: bool,
    /// The handles that reserve what looks like them.
    pub guarded_handles: Vec<&'a str>,
    /// The keys that are held for the user.
    pub holds: Vec<RawHold<'a>>,
    /// The users that are part of it.
    pub merged: Vec<&'a str>,
    /// How to undo a merge.
    pub undo: Option<Box<RawUndo<'a>>>,
    /// What it did not get back.
    pub not_restored: Vec<RawNotRestored<'a>>,
}

/// A hold as a line gives it.
#[derive(Debug)]
pub struct RawHold<'a> {
    /// What is held: an identifier, or the skeleton of a handle.
    pub held: Result<RawIdentifier<'a>, &'a str>,
    /// When it ends.
    pub until: Timestamp,
}

/// How to undo a merge.
#[derive(Debug)]
pub struct RawUndo<'a> {
    /// Until when.
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

/// A part that undoing a merge could not give back.
#[derive(Debug)]
pub enum RawNotRestored<'a> {
    /// An identity.
    Identity(RawIdentifier<'a>),
    /// The primary's display name.
    DisplayName,
    /// An attribute of the primary.
    Attribute(&'a str),
}
