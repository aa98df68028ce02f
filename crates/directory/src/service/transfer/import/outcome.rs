//! Drafts of lines, and the outcomes of lines.

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::imported_user::{Effect, Imported, ImportedUser};
use crate::model::tenant::Tenant;
use crate::mutation::read_set::{MutationReport, Outcome};
use crate::mutation::{Mutation, UserChange};

/// A line that is about to be imported.
pub(super) struct Draft {
    /// Its mutation.
    pub mutation: Mutation,
    /// The identities to skip because they are invalid.
    pub rejects: Vec<LineReject>,
}

impl Draft {
    /// The user of the line.
    pub fn imported(&self) -> Option<&ImportedUser> {
        match self.mutation.user_change() {
            Some(UserChange::Import(imported)) => Some(imported),
            _ => None,
        }
    }
}

/// The result of one line.
#[derive(Debug, Default)]
pub struct LineOutcome {
    /// The change that the line made; none if it was rejected.
    pub effect: Option<Effect>,
    /// The reason of the rejection, or of each skipped identity.
    pub rejects: Vec<LineReject>,
    /// The imported user, if it was merged into another.
    pub merged: Option<MergedLine>,
    /// The user that it is about, if it was there before.
    pub user: Option<LocalityId>,
}

/// A line with a merged user, whose primary may follow.
#[derive(Clone, Debug)]
pub struct MergedLine {
    /// Its tenant.
    pub tenant: Tenant,
    /// The user.
    pub user: LocalityId,
}

/// A rejected line, or a skipped identity.
#[derive(Debug)]
pub struct LineReject {
    /// The position of the identity, if the error concerns one.
    pub identity: Option<usize>,
    /// The error.
    pub error: Error,
}

impl LineReject {
    fn from_error(error: Error) -> Self {
        let field = match &error {
            Error::Invalid { field, .. }
            | Error::IdentityTaken { field, .. }
            | Error::IdentityHeld { field, .. }
            | Error::IdentityConfusable { field }
            | Error::IdentityReserved { field } => field,
            _ => return Self { identity: None, error },
        };
        let position = field.strip_prefix("user.identities[").and_then(|rest| rest.split_once(']'));
        Self { identity: position.and_then(|(position, _)| position.parse().ok()), error }
    }
}

impl LineOutcome {
    /// The outcome of a rejected line.
    pub fn rejected(error: Error) -> Self {
        Self { rejects: vec![LineReject::from_error(error)], ..Self::default() }
    }
}

/// The outcome of an imported line, which has the identities that were skipped before its mutation.
pub(super) fn imported(mut line: LineOutcome, outcome: Outcome) -> Result<LineOutcome, Error> {
    let MutationReport::Imported(Imported { effect, skipped }) = outcome.report else {
        return Err(Error::Internal("an import without its report".into()));
    };
    line.rejects.extend(skipped.iter().map(|skipped| LineReject::from_error(skipped.error())));
    line.rejects.sort_by_key(|reject| reject.identity);
    Ok(LineOutcome { effect: Some(effect), ..line })
}
