//! Compares what an undoing does with the model.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use polynym_directory::{Error, MutationCall, NotUndone, Record};

use super::model::{Expected, Users, Visible};
use super::scene::History;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;

/// The answer to an undoing.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub reverted: u64,
    /// Why users stay.
    pub kept: BTreeMap<LocalityId, String>,
    /// The operations that are to be undone first.
    pub blockers: BTreeMap<LocalityId, Vec<String>>,
}

impl History<'_> {
    /// Undoes an operation, then what it names as to be undone first for one of the users, and the
    /// operation again: unless these stay, nobody has changed that user since.
    pub async fn undo_with_blockers(&mut self, operation: &str) -> Result<(), Failure> {
        let answer = self.undo(operation).await?;
        let mut blocked = answer.blockers.iter();
        let Some((id, blockers)) =
            blocked.find(|(_, named)| named.iter().all(|one| !one.is_empty()))
        else {
            return Ok(());
        };
        let mut stays = false;
        for blocker in blockers {
            stays |= self.undo(blocker).await?.kept.contains_key(id);
        }
        let again = self.undo(operation).await?;
        self.tally.unblocked += u64::from(!stays);
        ensure(stays || !again.blockers.contains_key(id), format!("{id} is blocked: {again:?}"))
    }

    /// Undoes an operation: as a dry run, then in earnest, by a bulk change or not, and again.
    pub async fn undo(&mut self, operation: &str) -> Result<Answer, Failure> {
        let now = self.f.now();
        let expected = self.histories.expected(operation, &self.users, now);
        let dry = self.answer(operation, true, false).await?;
        let tried = self.answer(operation, true, true).await?;
        equal(&dry, &tried, "the dry run, and that for each user of the tenant")?;
        equal(&self.read_users().await?, &self.users, "the users after a dry run")?;
        let is_listed = self.f.now().as_millis() / 1_000 % 2 == 0;
        let is_loose = expected.values().any(|expected| *expected == Expected::Loose);
        let answer = match self.tally.undone % 2 {
            0 => self.answer(operation, false, is_listed).await?,
            _ => self.undo_by_bulk(operation, &dry, is_loose).await?,
        };
        let after = self.read_users().await?;
        self.check_frozen_server(&after).await?;
        if !is_loose {
            equal(&dry, &answer, "what the dry run told")?;
        }
        self.compare(operation, &expected, &answer, &after).await?;
        if !is_loose {
            let count = |wanted: fn(&Expected) -> bool| {
                expected.values().filter(|expected| wanted(expected)).count() as u64
            };
            let reverted = count(Expected::is_reverted);
            equal(&answer.reverted, &reverted, "the number of users as before")?;
            self.tally.deleted += count(|expected| *expected == Expected::Deleted);
        }
        self.tally.undone += 1;
        self.tally.reverted += answer.reverted;
        self.tally.kept += answer.kept.len() as u64;

        let kept: BTreeSet<_> = answer.kept.keys().collect();
        let again = self.answer(operation, false, !is_listed).await?;
        equal(&again.reverted, &0, "the users that were undone twice")?;
        equal(&again.kept.keys().collect(), &kept, "the users kept by the second undoing")?;
        equal(&self.read_users().await?, &after, "the users after the second undoing")?;
        self.histories.undo(operation, &expected);
        self.users = after;
        Ok(answer)
    }

    /// Fails unless the undoing did what the model expects.
    async fn compare(
        &self,
        operation: &str,
        expected: &BTreeMap<LocalityId, Expected>,
        answer: &Answer,
        after: &Users,
    ) -> Result<(), Failure> {
        let now = self.f.now();
        equal(&after.len(), &self.users.len(), "the number of users")?;
        for (id, before) in &self.users {
            let (found, wanted) = (&after[id], &expected[id]);
            let visible = Visible::new(found, now);
            let reason = answer.kept.get(id);
            let context = format!("user {id}, now {visible:?}, kept: {reason:?}");
            match wanted {
                Expected::Untouched => {
                    equal(found, before, &context)?;
                    equal(&reason, &None, &context)?;
                }
                Expected::Kept => {
                    equal(found, before, &context)?;
                    ensure(reason.is_some(), format!("no reason: {context}"))?;
                    if let Some(named) = self.histories.blockers(operation, *id) {
                        equal(&answer.blockers.get(id), &Some(&named), &context)?;
                    }
                }
                Expected::Exact(wanted) => equal(&visible, wanted, &context)?,
                Expected::Deleted => {
                    ensure(visible.is_deleted(), format!("not deleted: {context}"))?;
                }
                Expected::Loose => {
                    let (old, kept) = (Visible::new(before, now), &self.histories);
                    kept.check_others(operation, *id, &old, &visible)
                        .map_err(|fault| format!("{fault}: {context}, {old:?}, {visible:?}"))?;
                }
            }
        }
        after.values().try_for_each(check_primaries)?;
        self.check_claims(after).await
    }

    /// Fails unless the store has the claims of the users.
    async fn check_claims(&self, users: &Users) -> Result<(), Failure> {
        let now = self.f.now();
        let wanted: Vec<_> = users.values().flat_map(Record::claims).collect();
        let keys: Vec<_> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let found = self.f.store.reads.claims(&keys).await?;
        for ((key, wanted), found) in wanted.iter().zip(&found) {
            let is_over = wanted.hold.is_some_and(|until| until <= now);
            ensure(is_over || found.as_ref() == Some(wanted), format!("the claim {key:?}"))?;
        }
        Ok(())
    }

    /// Fails if a server that was frozen in a bulk change changes users afterwards.
    async fn check_frozen_server(&mut self, users: &Users) -> Result<(), Failure> {
        let Some((part, change)) = self.frozen.clone() else { return Ok(()) };
        if !self.is_undone(&part.id).await? {
            return Ok(());
        }
        self.frozen = None;
        for id in users.keys() {
            let late = self.bulk_mutation(*id, &part, &change);
            let _ = self.f.apply(late).await;
        }
        equal(&self.read_users().await?, users, "the users after a frozen server goes on")
    }

    async fn is_undone(&self, id: &str) -> Result<bool, Failure> {
        let change = self.f.store.bulk_changes.bulk_change(&self.tenant, id).await?;
        Ok(change.is_some_and(|change| change.lease.is_none()))
    }

    /// Undoes an operation for its users, or for each user of the tenant, which must do the same.
    async fn answer(
        &self,
        operation: &str,
        dry_run: bool,
        is_listed: bool,
    ) -> Result<Answer, Failure> {
        self.set_clock();
        let context = self.directory.context(self.tenant.clone(), "admin", "UndoOperation", "");
        let call = MutationCall { dry_run, ..context.into() };
        let ids = self.ids.iter().filter(|_| is_listed);
        let listed: Vec<_> = ids.map(ToString::to_string).collect();
        let mut undo = self.directory.begin_undo(&call, operation, &listed).await?;
        let mut answer = Answer { reverted: 0, kept: BTreeMap::new(), blockers: BTreeMap::new() };
        while let Some(step) = undo.next().await? {
            answer.reverted += step.reverted;
            for (id, error) in &step.kept {
                if let Error::NotUndone(NotUndone::ChangedSince(blockers)) = error {
                    let named = blockers.iter().map(|one| one.operation_id.clone());
                    answer.blockers.insert(*id, named.collect());
                }
            }
            answer.blockers.retain(|_, named| !named.is_empty());
            let ids = answer.kept.keys().chain(step.kept.iter().map(|(id, _)| id));
            ensure(ids.is_sorted(), format!("users out of order: {:?}", step.kept))?;
            let reason = |(id, error): (LocalityId, Error)| (id, error.reason().to_owned());
            answer.kept.extend(step.kept.into_iter().map(reason));
        }
        Ok(answer)
    }
}

/// Fails if a user has two primary identities of a kind.
fn check_primaries(record: &Record) -> Result<(), Failure> {
    let primaries = record.user.identities.iter().filter(|identity| identity.primary);
    let kinds: Vec<_> = primaries.map(|identity| identity.identifier.kind().as_str()).collect();
    let distinct: BTreeSet<_> = kinds.iter().collect();
    equal(&distinct.len(), &kinds.len(), &format!("the primary identities of {}", record.id()))
}
