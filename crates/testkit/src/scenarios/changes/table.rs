//! The changes, and what must follow each.

use polynym_proto::v1::EventType as Type;

/// The reason of each change.
pub const REASON: &str = "because";

/// A change, and what must follow it. Users are numbered: Joe is 0, Eve 1, and a new user 2.
pub struct Change {
    /// The name of its row.
    pub row: &'static str,
    /// Whether Joe is disabled or deleted before, has a second handle, Eve is merged into him, or
    /// his handle is held.
    pub before: &'static str,
    /// The events: each has a user and a type.
    pub events: &'static [(usize, Type)],
    /// The notices of the rules.
    pub notices: &'static [(usize, &'static str)],
    /// The users that cannot become what they were, with the reason; none if all do.
    pub kept: &'static [(usize, &'static str)],
}

const fn change(row: &'static str, events: &'static [(usize, Type)]) -> Change {
    Change { row, before: "", events, notices: &[], kept: &[] }
}

/// A part of all names of the users.
pub const MARK: &str = "quetzal";

const MERGED: &str = "VALUES_NOT_KEPT";

/// All changes of users, in the order of their rows.
pub const CHANGES: &[Change] = &[
    change("CreateUser", &[(2, Type::UserCreated)]),
    change("UpdateUser", &[(0, Type::UserUpdated)]),
    change("LinkIdentity", &[(0, Type::IdentityLinked)]),
    Change {
        notices: &[(1, "identity_taken_over")],
        ..change("takeover", &[(0, Type::IdentityLinked), (1, Type::IdentityTakenOver)])
    },
    Change { before: "link", ..change("primary", &[(0, Type::IdentityMadePrimary)]) },
    change("UnlinkIdentity", &[(0, Type::IdentityUnlinked)]),
    change("ReplaceIdentity", &[(0, Type::IdentityReplaced)]),
    change("VerifyIdentity", &[(0, Type::IdentityVerified)]),
    change("MoveIdentity", &[(0, Type::IdentityMoved), (1, Type::IdentityMoved)]),
    Change {
        notices: &[(0, "user_disabled")],
        ..change("DisableUser", &[(0, Type::UserDisabled)])
    },
    Change { before: "disable", ..change("EnableUser", &[(0, Type::UserEnabled)]) },
    change("DeleteUser", &[(0, Type::UserDeleted)]),
    Change {
        before: "delete",
        notices: &[(0, "user_restored")],
        ..change("UndeleteUser", &[(0, Type::UserRestored)])
    },
    Change {
        // The inbox of a merged user is that of the primary.
        notices: &[(0, "user_merged"), (1, "user_merged")],
        kept: &[(0, MERGED), (1, "USER_MERGED")],
        ..change("MergeUsers", &[(0, Type::UserMerged), (1, Type::UserMerged)])
    },
    Change {
        before: "merge",
        kept: &[(0, MERGED), (1, MERGED)],
        ..change("UnmergeUsers", &[(0, Type::UserUnmerged), (1, Type::UserUnmerged)])
    },
    Change { before: "unlink", ..change("ReleaseHold", &[(0, Type::HoldReleased)]) },
    Change {
        notices: &[(0, "user_disabled")],
        ..change("bulk disable", &[(0, Type::UserDisabled)])
    },
    Change { before: "disable", ..change("bulk enable", &[(0, Type::UserEnabled)]) },
    change("bulk delete", &[(0, Type::UserDeleted)]),
    Change {
        before: "delete",
        notices: &[(0, "user_restored")],
        ..change("bulk undelete", &[(0, Type::UserRestored)])
    },
    change("bulk attributes", &[(0, Type::UserUpdated)]),
    change("ON_EXISTING_REJECT", &[(2, Type::UserImported)]),
    change("ON_EXISTING_SKIP", &[]),
    change("ON_EXISTING_UPDATE", &[(0, Type::UserImported)]),
    change("ON_EXISTING_REPLACE", &[(0, Type::UserImported)]),
    change("ON_EXISTING_FILL", &[(0, Type::UserImported)]),
    change("ON_CONFLICT_REJECT", &[]),
    change("ON_CONFLICT_SKIP_IDENTITY", &[(0, Type::UserImported)]),
];
