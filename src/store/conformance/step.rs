//! The steps of a run against the [`model`](super::model): data alone, so that a failing run can be made shorter.

use std::collections::{BTreeMap, BTreeSet};

use super::Failure;
use super::fixture::{draft, identifier};
use crate::directory::{Change, Draft, DraftIdentity, Timestamp, Update, Value, Verification};

/// What users can own here: few, so that they meet, and some in two spellings.
pub const NAMES: [&str; 12] = [
    "email:joe@example.com",
    "email:Joe@EXAMPLE.com",
    "email:eve@example.com",
    "handle:joe",
    "handle:@JOE",
    "handle:eve",
    "handle:é",
    "phone:+14155552300",
    "phone:+1 (415) 555-2300",
    "social:github/1",
    "social:github/1,1",
    "url:https://example.com/joe",
];
pub(super) const TENANTS: [&str; 2] = ["default", "default-2"];
pub(super) const ATTRIBUTES: [&str; 4] = ["a", "a.b", "b", "c"];

/// One operation, told in numbers that mean something whatever happened before.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// Which of the users so far it is done to; one more than there are stands for nobody.
    pub user: usize,
    /// In which tenant.
    pub tenant: usize,
    /// Which etag it carries.
    pub etag: Etag,
    /// The request id that it carries, and the fingerprint.
    pub request: Option<(u8, u64)>,
    /// How many identities, and attributes, a user may have.
    pub room: usize,
    /// How many milliseconds after the step before; a clock can step back.
    pub elapsed: i64,
}

/// What a [`Step`] does. Names are positions in [`NAMES`].
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
    /// Links.
    Link(usize),
    /// Unlinks.
    Unlink(usize),
    /// Replaces the first by the second.
    Replace(usize, usize),
    /// Says that it is verified, or that it is not.
    Verify(usize, bool),
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

impl Action {
    /// The change of a user that this stands for; none where it is not about a user.
    pub(super) fn change(&self, now: Timestamp) -> Result<Option<Change>, Failure> {
        let verification = Verification { time: now, by: "model".to_owned() };
        let update = |mask: &str, name: String, attributes| -> Result<Change, Failure> {
            Ok(Change::Update(Update::from_mask(Some(&[mask.to_owned()]), name, attributes)?))
        };
        Ok(Some(match self {
            Action::Create(names, primary) => {
                let identities = drafts(names, *primary)?;
                Change::Create(Draft { identities, ..Draft::default() })
            }
            Action::Rename(name) => update("display_name", name.to_string(), BTreeMap::new())?,
            Action::Set(n, value) => update(&format!("attributes.{}", ATTRIBUTES[*n]), String::new(), set(*n, *value))?,
            Action::SetAll(numbers) => update("attributes", String::new(), all(numbers))?,
            Action::Link(n) => Change::Link(draft(NAMES[*n])?),
            Action::Unlink(n) => Change::Unlink(identifier(NAMES[*n])?),
            Action::Replace(old, new) => Change::Replace(identifier(NAMES[*old])?, draft(NAMES[*new])?),
            Action::Verify(n, yes) => Change::Verify(identifier(NAMES[*n])?, yes.then_some(verification)),
            Action::Reopen => return Ok(None),
        }))
    }
}

/// The identities of a new user, each once, the last of them marked where this is asked for.
fn drafts(names: &[usize], primary: bool) -> Result<Vec<DraftIdentity>, Failure> {
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
