//! The roles of callers.

use std::fmt;
use std::str::FromStr;

/// The rights of a caller. Each role has the rights of the previous roles, except that of a
/// monitor: of the others, only an admin reads metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads metrics, and calls nothing.
    Monitor,
    /// Looks users up.
    Resolver,
    /// Also searches users, and reads their histories, inboxes and events.
    Viewer,
    /// Also registers and changes users.
    Registrar,
    /// Also purges users and manages tenants.
    Admin,
}

impl Role {
    /// All roles, in ascending order.
    pub const ALL: [Self; 5] =
        [Self::Monitor, Self::Resolver, Self::Viewer, Self::Registrar, Self::Admin];

    /// The name of the role in the credentials file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Resolver => "resolver",
            Self::Viewer => "viewer",
            Self::Registrar => "registrar",
            Self::Admin => "admin",
        }
    }

    /// Whether it may read metrics.
    pub const fn reads_metrics(self) -> bool {
        matches!(self, Self::Monitor | Self::Admin)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            "the role must be monitor, resolver, viewer, registrar or admin".to_owned()
        })
    }
}
