//! The steps of a run against the [`model`](super::model): data alone, so that a failing run can be
//! made shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    ConflictPolicy, MutationKind, NewIdentity, NewUser, Policies, Timestamp, Update, UserChange,
    Value, Verification,
};
use polynym_identifier::Kind;

use super::Failure;
use super::fixture::{DAY, draft, identifier};

/// The identifiers that users own here: few, so that they meet, some in two spellings, and some
/// that look alike.
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

/// One random operation. Its numbers are reduced to what exists at the time, so that each step has
/// a meaning.
#[derive(Clone, Debug)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The index of the user among those created so far; one past the end stands for a user that
    /// does not exist.
    pub user: usize,
    /// In which tenant.
    pub tenant: usize,
    /// Which etag it carries.
    pub etag: Etag,
    /// The request id that it carries, and the hash of the request.
    pub request: Option<(u8, u64)>,
    /// The limit of everything that a user has.
    pub room: usize,
    /// Under which policies.
    pub policies: usize,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Milliseconds after the step before; a clock can step back.
    pub elapsed: i64,
}

/// The action of a [`Step`]. Names are positions in [`NAMES`], other users are numbered like
/// [`Step::user`].
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates a user who owns these, the last of them as a primary identity where this is set.
    Create(Vec<usize>, bool),
    /// Sets the display name.
    Rename(u8),
    /// Sets an attribute, or removes it.
    Set(usize, Option<i64>),
    /// Sets all attributes at once.
    SetAll(Vec<usize>),
    /// Links, verified, and as the primary identity.
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
    /// Does what is due.
    Tend,
    /// Merges another user into this one.
    Merge(usize, ConflictPolicy),
    /// Undoes that.
    Unmerge(usize),
    /// Moves a name from another user to this one.
    Move(usize, usize),
    /// Ends a hold.
    Release(usize),
    /// Closes the store and opens it again.
    Reopen,
}

/// The etag that a mutation carries.
#[derive(Clone, Copy, Debug)]
pub enum Etag {
    /// None.
    Any,
    /// That of the user as it is.
    Current,
    /// That of the user when it was created.
    First,
    /// One that no user has.
    Wrong,
}

/// The policies with this number. No time ends near another: runs go forward by a little over a
/// day, or by next to nothing.
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
    /// The mutation that this stands for, of `user`; none if it changes nothing in the directory.
    /// `other` returns a user by its number.
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
            Action::Rename(name) => {
                let name = Some(name).filter(|name| **name > 0).map(ToString::to_string);
                update("display_name", name.unwrap_or_default(), BTreeMap::new())?
            }
            Action::Set(n, value) => {
                update(&format!("attributes.{}", ATTRIBUTES[*n]), String::new(), set(*n, *value))?
            }
            Action::SetAll(numbers) => update("attributes", String::new(), all(numbers))?,
            Action::Link(n, verified, primary) => {
                let verification = verified.then_some(verification);
                UserChange::Link(NewIdentity {
                    verification,
                    primary: *primary,
                    ..draft(NAMES[*n])?
                })
            }
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

/// The identities of a new user, each once, the last of them marked where this is asked for.
fn drafts(names: &[usize], primary: bool) -> Result<Vec<NewIdentity>, Failure> {
    let mut drafts = names.iter().map(|n| draft(NAMES[*n])).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    drafts.retain(|draft| seen.insert(draft.identifier.clone()));
    if let Some(last) = drafts.last_mut() {
        last.primary = primary;
    }
    Ok(drafts)
}

/// The attribute with this number, where it has a value.
pub(super) fn set(n: usize, value: Option<i64>) -> BTreeMap<String, Value> {
    value.into_iter().map(|value| (ATTRIBUTES[n].to_owned(), Value::Int(value))).collect()
}

/// The attributes with these numbers.
pub(super) fn all(numbers: &[usize]) -> BTreeMap<String, Value> {
    numbers.iter().map(|n| (ATTRIBUTES[*n].to_owned(), Value::Bool(true))).collect()
}
