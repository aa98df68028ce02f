//! Events: the changes of a user that one mutation made, as the user's history keeps them.

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::tenant::Tenant;
use super::timestamp::Timestamp;
use super::user::{Identity, State};
use polynym_identifier::IdentityKey;

/// The change of one user by one mutation.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The tenant of the user.
    pub tenant: Tenant,
    /// The user.
    pub user: LocalityId,
    /// The number of the event among those of its user: 1, 2, 3 and so on. A store gives it when it
    /// writes the event; 0 before that.
    pub sequence: u64,
    /// The time of the mutation: the same for all users that it changes.
    pub time: Timestamp,
    /// The call that asked for it.
    pub origin: Origin,
    /// The kind of the change.
    pub kind: EventKind,
    /// The differences.
    pub changes: ChangeSet,
}

impl Event {
    /// The keys of the identities that it takes from its user.
    pub fn lost_keys(&self) -> impl Iterator<Item = IdentityKey> {
        let lost = self.changes.identities.iter().filter(|change| change.after.is_none());
        let lost = lost.filter_map(|change| change.before.as_ref());
        lost.map(|own| IdentityKey::new(self.tenant.as_str(), &own.identifier))
    }
}

/// The event of this number among events that are in order, the newest first.
pub fn of_sequence(events: &[Event], sequence: u64) -> Option<&Event> {
    let place = events.binary_search_by(|event| sequence.cmp(&event.sequence)).ok()?;
    events.get(place)
}

/// The call behind a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The caller; [`Origin::SERVER`] for what a server does by itself.
    pub caller: String,
    /// The method.
    pub method: String,
    /// The id of the request, if it has one.
    pub request_id: Option<LocalityId>,
}

impl Origin {
    /// The caller of what a server does by itself.
    pub const SERVER: &str = "polynym";

    /// A job of the server, by name.
    pub fn server(job: &str) -> Self {
        Self { caller: Self::SERVER.to_owned(), method: job.to_owned(), request_id: None }
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The user was there already when its history began: it was so until then.
    HistoryBegun,
    /// The user was created.
    UserCreated,
    /// The user was created by an import.
    UserImported,
    /// Its display name or attributes changed.
    UserUpdated,
    /// It was disabled.
    UserDisabled,
    /// It was enabled.
    UserEnabled,
    /// It was deleted.
    UserDeleted,
    /// It was restored.
    UserRestored,
    /// The user and another were merged.
    UserMerged,
    /// The merge of the user and another was undone.
    UserUnmerged,
    /// It got an identity, or one that it has got a verification, a name or the primary mark.
    IdentityLinked,
    /// An identity was unlinked from it.
    IdentityUnlinked,
    /// An identity took the place of another.
    IdentityReplaced,
    /// An identity went from one user to another.
    IdentityMoved,
    /// An identity was marked as verified, or as not verified.
    IdentityVerified,
    /// An identity went to another user, who had it verified.
    IdentityTakenOver,
    /// An identity was normalised by later rules.
    IdentityRenormalized,
    /// A hold of the user ended before its time.
    HoldReleased,
}

/// The differences between a user before and after a mutation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSet {
    /// The display name and attributes that differ, in the order of their paths.
    pub fields: Vec<FieldChange>,
    /// The identities that differ, in the order in which the user has or had them.
    pub identities: Vec<IdentityChange>,
    /// The state before, if there was a user, and after, where they differ.
    pub state: Option<(Option<State>, State)>,
    /// The holds that begin or end.
    pub holds: Vec<HoldChange>,
    /// The other user of a merge, a move or a take-over.
    pub other_user: Option<LocalityId>,
    /// Whether values of a user who was purged since were removed.
    pub is_redacted: bool,
}

impl ChangeSet {
    /// Whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.identities.is_empty()
            && self.state.is_none()
            && self.holds.is_empty()
    }
}

/// A field of a user that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// `display_name`, or `attributes.` and the attribute's name.
    pub path: String,
    /// The value before; none where there was none.
    pub before: Option<RecordedValue>,
    /// The value after; none where there is none.
    pub after: Option<RecordedValue>,
}

/// A value as an event has it.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedValue {
    /// The value.
    Whole(Value),
    /// Of a large value: its size in bytes, and its XXH3 hash.
    Digest(u64, u64),
    /// A value of a user who was purged since.
    Redacted,
}

/// An identity of a user that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentityChange {
    /// The identity before; none where the user did not have it.
    pub before: Option<Identity>,
    /// The identity after; none where the user does not have it.
    pub after: Option<Identity>,
}

/// A hold of a user that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldChange {
    /// The key that is held.
    pub key: IdentityKey,
    /// The end of the hold before; none where there was none.
    pub before: Option<Timestamp>,
    /// The end of the hold after; none where there is none.
    pub after: Option<Timestamp>,
}
