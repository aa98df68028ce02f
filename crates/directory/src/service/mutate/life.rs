//! Merging, unmerging and purging users.

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::merge_report::{ConflictPolicy, NotRestored, Preview};
use crate::model::user::User;
use crate::mutation::read_set::{MutationReport, Outcome};
use crate::mutation::{Mutation, MutationKind, UserChange};
use crate::service::Directory;
use crate::service::context::MutationCall;
use crate::service::parse::parse_user_id;

impl Directory {
    /// Merges the secondary user into the primary. Returns the primary, and a preview if it is a
    /// dry run.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::UserDeleted`], [`Error::UserMerged`],
    /// [`Error::EtagMismatch`], [`Error::MergeConflict`], [`Error::TooMany`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn merge(
        &self,
        call: MutationCall<'_>,
        primary: &str,
        secondary: &str,
        policy: ConflictPolicy,
    ) -> Result<(User, Option<Preview>), Error> {
        let (primary, secondary) = parse_pair(primary, secondary)?;
        let outcome = self.execute(call, primary, UserChange::Merge(secondary, policy)).await?;
        let preview = match outcome.report.clone() {
            MutationReport::Preview(preview) => Some(*preview),
            _ => None,
        };
        Ok((outcome.into_user()?, preview))
    }

    /// Undoes a merge. Returns the secondary, and the parts that could not be restored.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::UserDeleted`], [`Error::UserMerged`],
    /// [`Error::EtagMismatch`], [`Error::NotMerged`], [`Error::UndoExpired`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn unmerge(
        &self,
        call: MutationCall<'_>,
        primary: &str,
        secondary: &str,
    ) -> Result<(User, Vec<NotRestored>), Error> {
        let (primary, secondary) = parse_pair(primary, secondary)?;
        let outcome = self.execute(call, primary, UserChange::Unmerge(secondary)).await?;
        let not_restored = match &outcome.report {
            MutationReport::NotRestored(parts) => parts.clone(),
            _ => Vec::new(),
        };
        Ok((outcome.into_user()?, not_restored))
    }

    /// Purges a user and the users that were merged into it. Returns their ids.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::UserMerged`], [`Error::EtagMismatch`],
    /// and those of [`crate::stores::Mutations::mutate`].
    pub async fn purge(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
    ) -> Result<Vec<LocalityId>, Error> {
        let id = parse_user_id("user_id", user_id)?;
        match self.execute(call, id, UserChange::Purge).await?.report {
            MutationReport::Purged(ids) => Ok(ids),
            _ => Ok(Vec::new()),
        }
    }

    /// Executes a mutation of the server itself. Links to users that its user is not merged with do
    /// not stop it: they are removed from the user first, which changes no other.
    ///
    /// # Errors
    /// Those of [`crate::stores::Mutations::mutate`].
    pub(crate) async fn mutate_despite_damage(&self, mutation: Mutation) -> Result<Outcome, Error> {
        let outcome = self.mutate_to_completion(mutation.clone()).await;
        let Err(Error::MergeDamaged { user }) = outcome else { return outcome };
        let kind = MutationKind::User(user, UserChange::RemoveMergeFaults);
        self.backend.mutations.mutate(Mutation { kind, ..mutation.clone() }).await?;
        tracing::warn!(%user, "removed links to users that a user is not merged with");
        self.mutate_to_completion(mutation).await
    }

    /// Executes a mutation. A purge may take several transactions, and continues if its caller
    /// leaves; a repeated purge completes an interrupted one.
    ///
    /// # Errors
    /// Those of [`crate::stores::Mutations::mutate`].
    pub(crate) async fn mutate_to_completion(&self, mutation: Mutation) -> Result<Outcome, Error> {
        if !matches!(mutation.user_change(), Some(UserChange::Purge | UserChange::Expire)) {
            return self.backend.mutations.mutate(mutation).await;
        }
        let mutations = self.backend.mutations.clone();
        let purge = tokio::spawn(async move {
            let mut purge = None;
            loop {
                let step = Mutation { purge, ..mutation.clone() };
                let outcome = mutations.mutate(step).await?;
                let MutationReport::PurgeBegun(progress) = outcome.report else {
                    return Ok(outcome);
                };
                purge = Some(progress);
            }
        });
        purge.await.map_err(|error| Error::OutcomeUnknown(error.into()))?
    }
}

fn parse_pair(primary: &str, secondary: &str) -> Result<(LocalityId, LocalityId), Error> {
    Ok((parse_user_id("primary_user_id", primary)?, parse_user_id("secondary_user_id", secondary)?))
}
