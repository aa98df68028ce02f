//! Events: the changes of a user by one mutation, as the user's history records them.

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::tenant::Tenant;
use super::user::{Identity, State};
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// The change of one user by one mutation.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The tenant of the user.
    pub tenant: Tenant,
    /// The user.
    pub user: LocalityId,
    /// The number of the event within its user's history, from 1. Assigned by the store when it
    /// writes the event; 0 before.
    pub sequence: u64,
    /// The time of the mutation: the same for all users that it changes.
    pub time: Timestamp,
    /// The call that requested it.
    pub origin: Origin,
    /// The kind of the change.
    pub kind: EventKind,
    /// The differences.
    pub changes: ChangeSet,
}

impl Event {
    /// Whether it belongs to events of this kind: an import, and the undoing of an operation, do
    /// what other calls do one by one.
    pub fn is_of(&self, kind: EventKind) -> bool {
        let is_composite =
            self.kind == EventKind::UserImported || self.origin.method == Origin::UNDO;
        self.kind == kind || is_composite && self.changes.kinds().contains(&kind)
    }

    /// The keys of the identities that the user lost.
    pub fn lost_keys(&self) -> impl Iterator<Item = IdentityKey> {
        self.changes
            .lost_identities()
            .map(|identity| IdentityKey::new(self.tenant.as_str(), &identity.identifier))
    }
}

/// The event with this number in a list from the newest to the oldest.
pub fn of_sequence(events: &[Event], sequence: u64) -> Option<&Event> {
    let index = events.binary_search_by(|event| sequence.cmp(&event.sequence)).ok()?;
    events.get(index)
}

/// The call behind a mutation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The caller; [`Origin::SERVER`] for the server's own jobs.
    pub caller: String,
    /// The method.
    pub method: String,
    /// The id of the request, if it has one.
    pub request_id: Option<LocalityId>,
    /// The caller's reason; may be empty.
    pub reason: String,
    /// The id of the operation that the call belongs to; may be empty.
    pub operation_id: String,
}

impl Origin {
    /// The caller of the server's own jobs.
    pub const SERVER: &str = "polynym";
    /// The method that undoes operations. Its events have the id of the operation that they undo.
    pub const UNDO: &str = "UndoOperation";

    /// A job of the server, by name.
    pub fn server(job: &str) -> Self {
        Self { caller: Self::SERVER.to_owned(), method: job.to_owned(), ..Self::default() }
    }
}

/// Hands the kinds of events to a macro. The API has a change and a type of each name.
macro_rules! event_kinds {
    ($to:ident) => {
        $to! {
            /// The history began after the user's creation: the user as it was then.
            HistoryBegun
            /// The user was created.
            UserCreated
            /// The user was created or changed by an import.
            UserImported
            /// Its display name or attributes changed.
            UserUpdated
            /// It was disabled.
            UserDisabled
            /// It was enabled.
            UserEnabled
            /// It was deleted.
            UserDeleted
            /// It was restored.
            UserRestored
            /// The user and another were merged.
            UserMerged
            /// The merge of the user and another was undone.
            UserUnmerged
            /// It got an identity, or a verification or a name for an existing one.
            IdentityLinked
            /// An identity was unlinked from it.
            IdentityUnlinked
            /// An identity replaced another.
            IdentityReplaced
            /// An identity moved from one user to another.
            IdentityMoved
            /// An identity was marked as verified, or as not verified.
            IdentityVerified
            /// An identity moved to another user, who verified it.
            IdentityTakenOver
            /// An identity was normalised by later rules.
            IdentityRenormalized
            /// A hold of the user ended before its time.
            HoldReleased
            /// One of its identities became the primary one of its kind. Stored as a link.
            IdentityMadePrimary
        }
    };
}
pub(crate) use event_kinds;

macro_rules! kinds_enum {
    ($($(#[$doc:meta])* $kind:ident)*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }
    };
}
event_kinds!(kinds_enum);

/// The differences between a user before and after a mutation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSet {
    /// The display name and attributes that differ, in the order of their paths.
    pub fields: Vec<FieldChange>,
    /// The identities that differ, in the user's order.
    pub identities: Vec<IdentityChange>,
    /// The state before, if the user existed, and after, if they differ.
    pub state: Option<(Option<State>, State)>,
    /// The holds that begin or end.
    pub holds: Vec<HoldChange>,
    /// The other user of a merge, a move or a takeover.
    pub other_user: Option<LocalityId>,
    /// Whether values of a purged user were removed.
    pub is_redacted: bool,
}

impl EventKind {
    /// The kind of an event that is stored as this kind and has these changes.
    pub fn of_stored(self, changes: &ChangeSet) -> Self {
        match self {
            Self::IdentityLinked if changes.are_of_primary() => Self::IdentityMadePrimary,
            other => other,
        }
    }

    /// The kind as which it is stored, which servers of all versions can read.
    pub const fn stored(self) -> Self {
        match self {
            Self::IdentityMadePrimary => Self::IdentityLinked,
            other => other,
        }
    }

    /// Whether it is of a merge, or of the undoing of one.
    pub const fn is_merge(self) -> bool {
        matches!(self, Self::UserMerged | Self::UserUnmerged)
    }
}

impl ChangeSet {
    /// The kinds of the events of calls that make these changes of an existing user one by one.
    pub fn kinds(&self) -> Vec<EventKind> {
        let state = self.state.and_then(|(before, after)| match (before?, after) {
            (State::Deleted { .. }, State::Active | State::Disabled) => {
                Some(EventKind::UserRestored)
            }
            (_, State::Active) => Some(EventKind::UserEnabled),
            (_, State::Disabled) => Some(EventKind::UserDisabled),
            (_, State::Deleted { .. }) => Some(EventKind::UserDeleted),
            (_, State::Merged { .. }) => None,
        });
        let is_created = self.state.is_some_and(|(before, _)| before.is_none());
        let identities = self.identities.iter().filter(|_| !is_created);
        let identities = identities.filter_map(IdentityChange::kind);
        let fields = self.fields.first().filter(|_| !is_created).map(|_| EventKind::UserUpdated);
        let holds =
            self.holds.iter().any(|hold| hold.after.is_none() && self.identities.is_empty());
        let hold = holds.then_some(EventKind::HoldReleased);
        state.into_iter().chain(identities).chain(fields).chain(hold).collect()
    }

    /// Whether a primary mark goes from one of the user's identities to another, and nothing else
    /// changes.
    fn are_of_primary(&self) -> bool {
        let has_others = !self.fields.is_empty() || self.state.is_some() || !self.holds.is_empty();
        let gains = |change: &IdentityChange| change.kind() == Some(EventKind::IdentityMadePrimary);
        !has_others
            && self.identities.iter().any(gains)
            && self.identities.iter().all(IdentityChange::is_of_primary)
    }

    /// Whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.identities.is_empty()
            && self.state.is_none()
            && self.holds.is_empty()
    }

    /// The identities that the user lost.
    pub fn lost_identities(&self) -> impl Iterator<Item = &Identity> {
        let lost = self.identities.iter().filter(|change| change.after.is_none());
        lost.filter_map(|change| change.before.as_ref())
    }
}

/// A field of a user that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// `display_name`, or `attributes.` and the attribute's name.
    pub path: String,
    /// The value before, if any.
    pub before: Option<RecordedValue>,
    /// The value after, if any.
    pub after: Option<RecordedValue>,
}

/// A value as recorded in an event.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedValue {
    /// The value.
    Whole(Value),
    /// The size in bytes and the XXH3 hash of a large value.
    Digest(u64, u64),
    /// A value of a purged user.
    Redacted,
}

/// An identity of a user that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentityChange {
    /// The identity before, if the user had it.
    pub before: Option<Identity>,
    /// The identity after, if the user has it.
    pub after: Option<Identity>,
}

impl IdentityChange {
    /// The kind of the event of a call that makes this change alone. None if the identity only
    /// loses its primary mark, which another one then has.
    fn kind(&self) -> Option<EventKind> {
        Some(match (&self.before, &self.after) {
            (Some(_), None) => EventKind::IdentityUnlinked,
            (Some(old), Some(new)) if old.verification != new.verification => {
                EventKind::IdentityVerified
            }
            (Some(_), Some(new)) if self.is_of_primary() => {
                return new.primary.then_some(EventKind::IdentityMadePrimary);
            }
            _ => EventKind::IdentityLinked,
        })
    }

    /// Whether only the primary mark differs.
    fn is_of_primary(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return false };
        before.primary != after.primary
            && Identity { primary: after.primary, ..before.clone() } == *after
    }
}

/// A hold of a user that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldChange {
    /// The key that is held.
    pub key: IdentityKey,
    /// The end of the hold before, if any.
    pub before: Option<Timestamp>,
    /// The end of the hold after, if any.
    pub after: Option<Timestamp>,
}
