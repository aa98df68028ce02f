//! The steps of a run against the [`model`](super::model): plain data, so that a failing run can be
//! shrunk.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    ConflictPolicy, MutationKind, NewIdentity, NewUser, Policies, Timestamp, Update, UserChange,
    Value, Verification,
};
use polynym_identifier::Kind;

use super::fixture::factory::Failure;
use super::fixture::{DAY, draft, identifier};

/// The identifiers: few, so that they conflict, some in two spellings, some lookalikes.
pub const NAMES: [&str; 16] = [
    "email:joe@example.com",
    "email:Joe@EXAMPLE.com",
    "email:eve@example.com",
    "handle:joe",
    "handle:@JOE",
    "handle:eve",
    "handle:é",
    "handle:scope",
    "handle:ѕсоре",
    "handle:ёхо",
    "handle:ëxo",
    "phone:+14155552300",
    "phone:+1 (415) 555-2300",
    "social:github/1",
    "social:github/1,1",
    "url:https://example.com/joe",
];
pub(super) const TENANTS: [&str; 2] = ["default", "default-2"];
pub(super) const ATTRIBUTES: [&str; 4] = ["a", "a.b", "b", "c"];
/// The number of policies to choose from.
pub const POLICIES: usize = 4;

/// One random operation. Its numbers are taken modulo the existing users.
#[derive(Clone, Debug)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The index of the user among those created so far; one past the end is an unknown user.
    pub user: usize,
    /// The index of the tenant.
    pub tenant: usize,
    /// The etag.
    pub etag: Etag,
    /// The request id and hash.
    pub request: Option<(u8, u64)>,
    /// The limit of each kind of entry of a user.
    pub room: usize,
    /// The number of the policies.
    pub policies: usize,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Milliseconds since the previous step; a clock can step back.
    pub elapsed: i64,
}

/// The action of a [`Step`]. Names are positions in [`NAMES`]; users are numbered like
/// [`Step::user`].
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates a user with these names; the flag marks the last as primary.
    Create(Vec<usize>, bool),
    /// Sets the display name.
    Rename(u8),
    /// Sets an attribute, or removes it.
    Set(usize, Option<i64>),
    /// Sets all attributes at once.
    SetAll(Vec<usize>),
    /// Links; the flags are verified and primary.
    Link(usize, bool, bool),
    /// Unlinks.
    Unlink(usize),
    /// Replaces the first by the second.
    Replace(usize, usize),
    /// Marks the identity as verified or as unverified.
    Verify(usize, bool),
    /// Disables.
    Disable,
    /// Enables.
    Enable,
    /// Deletes.
    Delete,
    /// Undeletes.
    Undelete,
    /// Purges.
    Purge,
    /// Expires.
    Tend,
    /// Merges another user into this one.
    Merge(usize, ConflictPolicy),
    /// Undoes such a merge.
    Unmerge(usize),
    /// Moves a name from another user to this one.
    Move(usize, usize),
    /// Releases a hold.
    Release(usize),
    /// Closes the store and opens it again.
    Reopen,
}

/// The etag that a mutation carries.
#[derive(Clone, Copy, Debug)]
pub enum Etag {
    /// None.
    Any,
    /// The present one.
    Current,
    /// The one after the creation.
    First,
    /// An invalid one.
    Wrong,
}

/// The policies with this number. No two windows end close together: steps take about a day or
/// less than a second.
pub(super) fn policies(n: usize) -> Policies {
    let hold = BTreeMap::from([(Kind::Handle, 2 * DAY), (Kind::Email, 4 * DAY)]);
    let windows = |restore, undo| Policies {
        restore_window: restore,
        undo_window: undo,
        ..Policies::default()
    };

    match n {
        0 => Policies { holds: BTreeMap::new(), ..windows(3 * DAY, 2 * DAY) },
        1 => Policies { holds: hold, ..windows(3 * DAY, 6 * DAY) },
        2 => Policies {
            holds: hold,
            verified_wins: true,
            phone_takeover_after: 3 * DAY / 2,
            keep_primary: true,
            ..windows(6 * DAY, 2 * DAY)
        },
        _ => Policies {
            holds: hold,
            allow_lookalikes: true,
            keep_last: true,
            ..windows(DAY / 2, Duration::ZERO)
        },
    }
}

impl Action {
    /// The mutation of `user`; none to reopen the store. `other` returns a user by its number.
    pub(super) fn kind(
        &self,
        now: Timestamp,
        user: LocalityId,
        other: impl Fn(usize) -> LocalityId,
    ) -> Result<Option<MutationKind>, Failure> {
        let verification = Verification { time: now, by: "model".to_owned() };
        let update = |mask: &str, name: String, attributes| -> Result<UserChange, Failure> {
            Ok(UserChange::Update(Update::from_mask(Some(&[mask.to_owned()]), name, attributes)?))
        };
        let change = match self {
            Action::Create(names, primary) => {
                let identities = drafts(names, *primary)?;
                UserChange::Create(NewUser { identities, ..NewUser::default() })
            }
            Action::Rename(number) => {
                let name = Some(number).filter(|number| **number > 0).map(ToString::to_string);
                update("display_name", name.unwrap_or_default(), BTreeMap::new())?
            }
            Action::Set(n, value) => {
                update(&format!("attributes.{}", ATTRIBUTES[*n]), String::new(), set(*n, *value))?
            }
            Action::SetAll(numbers) => update("attributes", String::new(), all(numbers))?,
            Action::Link(n, verified, primary) => UserChange::Link(NewIdentity {
                verification: verified.then_some(verification),
                primary: *primary,
                ..draft(NAMES[*n])?
            }),
            Action::Unlink(n) => UserChange::Unlink(identifier(NAMES[*n])?),
            Action::Replace(old, new) => {
                UserChange::Replace(identifier(NAMES[*old])?, draft(NAMES[*new])?)
            }
            Action::Verify(n, yes) => {
                UserChange::Verify(identifier(NAMES[*n])?, yes.then_some(verification))
            }
            Action::Disable => UserChange::Disable,
            Action::Enable => UserChange::Enable,
            Action::Delete => UserChange::Delete,
            Action::Undelete => UserChange::Undelete,
            Action::Purge => UserChange::Purge,
            Action::Tend => UserChange::Expire,
            Action::Merge(user, policy) => UserChange::Merge(other(*user), *policy),
            Action::Unmerge(user) => UserChange::Unmerge(other(*user)),
            Action::Move(user, n) => UserChange::Move(other(*user), identifier(NAMES[*n])?),
            Action::Release(n) => {
                return Ok(Some(MutationKind::ReleaseHold(identifier(NAMES[*n])?)));
            }
            Action::Reopen => return Ok(None),
        };

        Ok(Some(MutationKind::User(user, change)))
    }

    /// Whether the action changes a user that exists already.
    pub(super) const fn is_of_known_user(&self) -> bool {
        !matches!(self, Action::Create(..) | Action::Release(_))
    }
}

/// The distinct identities of a new user; `primary` marks the last.
fn drafts(names: &[usize], primary: bool) -> Result<Vec<NewIdentity>, Failure> {
    let mut drafts = names.iter().map(|n| draft(NAMES[*n])).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    drafts.retain(|draft| seen.insert(draft.identifier.clone()));
    if let Some(last) = drafts.last_mut() {
        last.primary = primary;
    }
    Ok(drafts)
}

/// The attribute with this number, if it has a value.
pub(super) fn set(n: usize, value: Option<i64>) -> BTreeMap<String, Value> {
    value.into_iter().map(|value| (ATTRIBUTES[n].to_owned(), Value::Int(value))).collect()
}

/// The attributes with these numbers.
pub(super) fn all(numbers: &[usize]) -> BTreeMap<String, Value> {
    numbers.iter().map(|n| (ATTRIBUTES[*n].to_owned(), Value::Bool(true))).collect()
}
