//! The details of errors that have several reasons.

use super::Category::{self, AlreadyExists, FailedPrecondition, NotFound, ResourceExhausted};

/// The kind of a malformed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// An identifier breaks a rule of its kind, or is missing.
    Identifier,
    /// The same identifier occurs twice.
    DuplicateIdentifier,
    /// A user's id is not a UUID.
    UserId,
    /// A tenant's name.
    Tenant,
    /// A request id is not a UUID.
    RequestId,
    /// An update mask names a field that cannot be updated.
    UpdateMask,
    /// An attribute's name or value.
    Attribute,
    /// A tenant's policy is out of range.
    Policy,
    /// A filter breaks a rule of its language, or exceeds a limit.
    Filter,
    /// A page token that the method never gave.
    PageToken,
    /// A resume token that no watch gave.
    ResumeToken,
    /// A text, time or number that is out of range.
    Field,
}

impl Invalid {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Identifier => "IDENTIFIER_INVALID",
            Self::DuplicateIdentifier => "IDENTIFIER_DUPLICATE",
            Self::UserId => "USER_ID_INVALID",
            Self::Tenant => "TENANT_INVALID",
            Self::RequestId => "REQUEST_ID_INVALID",
            Self::UpdateMask => "UPDATE_MASK_INVALID",
            Self::Attribute => "ATTRIBUTE_INVALID",
            Self::Policy => "POLICY_INVALID",
            Self::Filter => "FILTER_INVALID",
            Self::PageToken => "PAGE_TOKEN_INVALID",
            Self::ResumeToken => "RESUME_TOKEN_INVALID",
            Self::Field => "FIELD_INVALID",
        }
    }
}

/// The reason why a bulk change cannot be started, stopped or shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BulkError {
    /// It does not exist.
    #[error("there is no such bulk change, or it was removed 30 days after its end")]
    NotFound,
    /// A different one has its id.
    #[error("another bulk change has this id: use a new one")]
    Exists,
    /// It cannot be undone, because it runs or still changes its last users.
    #[error("the bulk change is running: stop it, and wait until its last users have changed")]
    Running,
    /// It cannot be resumed, because it is being undone.
    #[error("the bulk change is being undone: resume it once that has ended")]
    Undoing,
    /// The tenant has too many running ones.
    #[error("{limit} bulk changes are running in this tenant: wait until one ends, or stop one")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl BulkError {
    pub(super) const fn categorize(self) -> (Category, &'static str) {
        match self {
            Self::NotFound => (NotFound, "BULK_CHANGE_NOT_FOUND"),
            Self::Exists => (AlreadyExists, "BULK_CHANGE_EXISTS"),
            Self::Running => (FailedPrecondition, "BULK_CHANGE_RUNNING"),
            Self::Undoing => (FailedPrecondition, "BULK_CHANGE_UNDOING"),
            Self::TooMany { .. } => (ResourceExhausted, "TOO_MANY_BULK_CHANGES"),
        }
    }
}

/// The reason why a delivery cannot be created, changed or shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// It does not exist.
    #[error("there is no such delivery")]
    NotFound,
    /// A different one has its id.
    #[error("another delivery has this id: use a new one")]
    Exists,
    /// The tenant has too many.
    #[error("the tenant has {limit} deliveries: delete one")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Events of too many users would wait.
    #[error(
        "events of more than {limit} users would wait: begin later, or wait until the receiver \
         has taken others"
    )]
    TooManyHeld {
        /// The limit.
        limit: usize,
    },
}

impl DeliveryError {
    pub(super) const fn categorize(self) -> (Category, &'static str) {
        match self {
            Self::NotFound => (NotFound, "DELIVERY_NOT_FOUND"),
            Self::Exists => (AlreadyExists, "DELIVERY_EXISTS"),
            Self::TooMany { .. } => (ResourceExhausted, "TOO_MANY_DELIVERIES"),
            Self::TooManyHeld { .. } => (ResourceExhausted, "TOO_MANY_HELD_USERS"),
        }
    }
}

/// The reason why an operation cannot be undone for a user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUndone {
    /// The user was changed after the operation: by these, the last one first. Empty if the history
    /// does not tell.
    #[error("somebody changed the user since")]
    ChangedSince(Vec<Blocker>),
    /// The history lacks values that the user had before the operation.
    #[error("the history does not have all that the user had before")]
    ValuesNotKept,
}

impl NotUndone {
    /// A user is not as the operation left it, and its history does not say why.
    pub(crate) const UNEXPLAINED: Self = Self::ChangedSince(Vec::new());

    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::ChangedSince(_) => "CHANGED_SINCE",
            Self::ValuesNotKept => "VALUES_NOT_KEPT",
        }
    }
}

/// Changes after an operation, by a caller and as part of an operation or of none. They have to be
/// undone first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The id of the operation; may be empty.
    pub operation_id: String,
    /// The caller.
    pub caller: String,
    /// The method of the last of these changes.
    pub method: String,
}
