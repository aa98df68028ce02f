//! Parts of the users of a tenant, with those that cannot be read.

use locality_uuid::LocalityId;

use crate::search::Position;

/// A part of the users of a tenant, in an order. One damaged record stops nobody who reads many
/// users: its user is named, and the others follow.
#[derive(Clone, Debug)]
pub struct Scanned<T, P = LocalityId> {
    /// The users in order, and the ids of those whose records cannot be read.
    pub users: Vec<Result<T, LocalityId>>,
    /// The position after which the next part begins; none at the end. A part may have fewer users
    /// than were asked for, even none, and not be the last.
    pub next: Option<P>,
}

impl<T, P> Default for Scanned<T, P> {
    fn default() -> Self {
        Self { users: Vec::new(), next: None }
    }
}

impl<T, P> Scanned<T, P> {
    /// Adds a user, unless it cannot be read.
    pub fn push(&mut self, id: LocalityId, user: Option<T>) {
        self.users.push(user.ok_or(id));
    }

    /// The users that can be read.
    pub fn readable(&self) -> impl Iterator<Item = &T> + Clone {
        self.users.iter().filter_map(|user| user.as_ref().ok())
    }

    /// The users that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = LocalityId> {
        self.users.iter().filter_map(|user| user.as_ref().err().copied())
    }

    /// The part with converted users.
    #[must_use]
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> Scanned<U, P> {
        let users = self.users.into_iter().map(|user| user.map(&mut convert)).collect();
        Scanned { users, next: self.next }
    }

    /// The users that can be read.
    pub fn into_readable(self) -> impl Iterator<Item = T> {
        self.users.into_iter().filter_map(Result::ok)
    }
}

impl<T> Scanned<T> {
    /// The part as that of a search in the order of ids.
    pub fn by_id(self) -> Scanned<T, Position> {
        let next = self.next.map(|id| Position { value: None, id });
        Scanned { users: self.users, next }
    }
}
