//! The random changes of a history.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    BulkAction, BulkChange, BulkList, BulkPart, BulkProgress, BulkStep, ConflictPolicy, Filter,
    ImportedIdentity, ImportedUser, Mutation, MutationKind, MutationReport, OnConflict, OnExisting,
    Origin, Policies, PolicyUpdate, Reimport, RunStep, State, TenantChange, Update, UserChange,
    Value, mutation::bulk::LEASE,
};
use polynym_identifier::Rules;

use super::scene::History;
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, draft, identifier};
use crate::step::{Action, NAMES, policies};

/// The users of a history.
const USERS: usize = 4;

impl History<'_> {
    /// A random change, under random policies, as part of a random operation or of none.
    pub async fn step(&mut self) -> Result<(), Failure> {
        if self.random.below(24) == 0 {
            self.f.wait_until(self.f.now().plus(DAY));
        }
        if self.random.below(12) == 0 {
            return self.bulk_change().await;
        }
        let operation = match self.random.below(4) {
            0 => String::new(),
            _ => self.random.one_of(&self.operations),
        };
        let is_recorded = self.random.below(12) > 0;
        let (id, change) = self.change()?;
        let base = policies(self.random.below(4));
        let policies = match is_recorded {
            true => base,
            false => Policies { history_retention: Duration::ZERO, ..base },
        };
        let kind = match change {
            Some(change) => MutationKind::User(id, change),
            None => MutationKind::ReleaseHold(identifier(self.name())?),
        };
        let mutation = Mutation { policies: Arc::new(policies), ..self.mutation(kind, &operation) };
        // A refused change changes nobody, which is compared, too.
        let _ = self.f.apply(mutation).await;
        self.observe(&operation, is_recorded).await
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(NAMES.len())]
    }

    fn user(&mut self) -> LocalityId {
        match self.ids.is_empty() {
            true => self.f.ids.next_id(),
            false => self.random.one_of(&self.ids),
        }
    }

    /// A user, and a change of it; none for the release of a hold.
    fn change(&mut self) -> Result<(LocalityId, Option<UserChange>), Failure> {
        let is_new = self.ids.len() < USERS && self.random.below(3) == 0 || self.ids.is_empty();
        if is_new {
            let id = self.f.ids.next_id();
            self.ids.push(id);
            let names: Vec<_> =
                (0..self.random.below(3)).map(|_| self.random.below(NAMES.len())).collect();
            return Ok((id, Some(self.action(&Action::Create(names, false))?)));
        }
        let id = self.user();
        let name = self.random.below(NAMES.len());
        let (other, flag) = (self.random.below(NAMES.len()), self.random.below(2) == 0);
        let attribute = self.random.below(4);
        let action = match self.random.below(22) {
            0 => Action::Rename(self.random.below(3) as u8),
            1 | 2 => Action::Set(attribute, Some(self.random.below(3) as i64)),
            3 => Action::Set(attribute, None),
            4..8 => Action::Link(name, flag, attribute == 0),
            8..11 => Action::Unlink(name),
            11 | 12 => Action::Replace(name, other),
            13 => Action::Verify(name, flag),
            14 => Action::Disable,
            15 => Action::Enable,
            16 => Action::Delete,
            17 => Action::Undelete,
            18 => match self.random.below(8) {
                0 => Action::Purge,
                1..3 => Action::Merge(0, ConflictPolicy::PrimaryWins),
                3 => Action::Unmerge(0),
                4..6 => Action::Move(0, name),
                6 => Action::Tend,
                _ => return Ok((id, None)),
            },
            19 => return Ok((id, Some(self.large_value()?))),
            _ => return Ok((id, Some(self.line(id)?))),
        };
        Ok((id, Some(self.action(&action)?)))
    }

    fn action(&mut self, action: &Action) -> Result<UserChange, Failure> {
        let other = self.user();
        match action.kind(self.f.now(), other, |_| other)? {
            Some(MutationKind::User(_, change)) => Ok(change),
            other => Err(format!("no change of a user: {other:?}").into()),
        }
    }

    fn large_value(&mut self) -> Result<UserChange, Failure> {
        let value = Value::String("x".repeat(2_000 + self.random.below(3)));
        let mask = ["attributes.large".to_owned()];
        let attributes = BTreeMap::from([("large".to_owned(), value)]);
        Ok(UserChange::Update(Update::from_mask(Some(&mask), String::new(), attributes)?))
    }

    /// A line of an import about the user.
    fn line(&mut self, id: LocalityId) -> Result<UserChange, Failure> {
        let on_existing = self.random.one_of(&[
            OnExisting::Reject,
            OnExisting::Skip,
            OnExisting::Update,
            OnExisting::Replace,
        ]);
        let mut identities = Vec::new();
        for index in 0..self.random.below(3) {
            let new = draft(self.name())?;
            identities.push(ImportedIdentity { index, new, link_time: None });
        }
        let value = Value::Int(self.random.below(3) as i64);
        Ok(UserChange::Import(Box::new(ImportedUser {
            has_id: true,
            identities,
            attributes: BTreeMap::from([("a".to_owned(), value)]),
            state: self.random.one_of(&[State::Active, State::Disabled]),
            has_state: self.random.below(2) == 0,
            on_conflict: self.random.one_of(&[OnConflict::Reject, OnConflict::SkipIdentity]),
            reimport: Arc::new(Reimport::parse(on_existing, &[], "")?),
            is_found: self.users.contains_key(&id),
            ..ImportedUser::default()
        })))
    }

    /// A bulk change of some users, by a filter or a list, whose server ends it, or dies or freezes
    /// in its batch.
    async fn bulk_change(&mut self) -> Result<(), Failure> {
        let id = format!("bulk-{}", self.operations.len());
        self.operations.push(id.clone());
        let (action, change, state) = match self.operations.len() % 2 {
            0 => (BulkAction::Disable, UserChange::Disable, "state = ACTIVE"),
            _ => (BulkAction::Undelete, UserChange::Undelete, "state = DELETED"),
        };
        let new = BulkChange::new(self.tenant.clone(), &id, action, self.f.now());
        let filter = Arc::new(Filter::parse(state, &[Rules::PRESENT])?);
        let (list, listed, filter) = match self.random.below(2) {
            0 => (None, Arc::default(), Some(filter)),
            _ => (Some(BulkList::new(&self.ids)), self.ids.clone().into(), None),
        };
        let new = BulkChange { list, ..new };
        self.bulk_step(&id, BulkStep::Start(Box::new(new), listed)).await?;
        let server = self.f.ids.next_id();
        self.bulk_step(&id, BulkStep::Take(server)).await?;
        let mut progress = BulkProgress::default();
        progress.next.users = self.ids.clone();
        self.bulk_step(&id, BulkStep::Run(server, RunStep::Save(Box::new(progress)))).await?;

        let part = BulkPart { id: id.clone(), server, filter };
        for user in self.ids.clone() {
            if self.random.below(3) > 0 {
                let mutation = self.bulk_mutation(user, &part, &change);
                // A list has users in all states, of whom some are refused.
                let _ = self.f.apply(mutation).await;
                self.observe(&id, true).await?;
            }
        }
        self.bulk_step(&id, BulkStep::Stop("web".to_owned())).await?;
        match self.random.below(2) {
            0 => {
                let save = RunStep::Save(Box::default());
                self.bulk_step(&id, BulkStep::Run(server, save)).await
            }
            _ => {
                self.f.wait_until(self.f.now().plus(LEASE));
                self.frozen = Some((part, change));
                Ok(())
            }
        }
    }

    /// The mutation of a user by a bulk change.
    pub fn bulk_mutation(
        &self,
        user: LocalityId,
        part: &BulkPart,
        change: &UserChange,
    ) -> Mutation {
        let mutation = self.mutation(MutationKind::User(user, change.clone()), &part.id);
        Mutation { bulk: Some(part.clone()), ..mutation }
    }

    /// A mutation of the tenant, as part of an operation.
    fn mutation(&self, kind: MutationKind, operation: &str) -> Mutation {
        Mutation {
            tenant: self.tenant.clone(),
            tenant_since: self.tenant_since,
            origin: origin(operation),
            ..self.f.mutation_of(kind)
        }
    }

    pub async fn create_tenant(&mut self) -> Result<(), Failure> {
        let set = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
        match self.apply_kind(set).await? {
            MutationReport::Tenant(tenant) => self.tenant_since = tenant.since,
            other => return Err(format!("no tenant: {other:?}").into()),
        }
        Ok(())
    }

    async fn bulk_step(&self, id: &str, step: BulkStep) -> Result<(), Failure> {
        match self.apply_kind(MutationKind::Bulk(id.to_owned(), step)).await? {
            MutationReport::BulkChange(_) => Ok(()),
            other => Err(format!("a step without effect: {other:?}").into()),
        }
    }

    async fn apply_kind(&self, kind: MutationKind) -> Result<MutationReport, Failure> {
        Ok(self.f.apply(self.mutation(kind, "")).await?.report)
    }
}

fn origin(operation: &str) -> Origin {
    Origin {
        caller: "admin".to_owned(),
        method: "Step".to_owned(),
        operation_id: operation.to_owned(),
        ..Origin::default()
    }
}
