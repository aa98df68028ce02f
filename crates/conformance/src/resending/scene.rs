//! A tenant with a few users, in which one mutation is sent twice.

use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym_directory::{
    Claim, ConflictPolicy, DeletionStep, Mutation, MutationKind, Outcome, PolicyUpdate, Tenant,
    TenantChange, TenantRecord, Timestamp, Update, User, UserChange, Verification,
};
use polynym_identifier::IdentityKey;

use super::super::fixture::{
    Fixture, create, holding, identifier, key, link, replace, tenant, unlink,
};
use super::super::{Failure, decoded};

/// The request that is sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Create,
    Update,
    Link,
    Unlink,
    Replace,
    Verify,
    Disable,
    Enable,
    Delete,
    Undelete,
    Purge,
    Merge,
    Unmerge,
    Release,
    SetTenant,
    DeleteTenant,
}

/// The event between the first time and the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// A change that undoes the first, as far as there is one.
    Later,
    /// The user that the answer is about becomes part of another.
    Merge,
    /// The user that the answer is about is purged.
    Purge,
}

/// All that there is in the tenant: users, claims and the tenant itself.
type Everything = (Vec<Option<User>>, Vec<Option<Claim>>, Option<TenantRecord>);

pub struct Scene<'f> {
    f: &'f Fixture,
    tenant: Tenant,
    joe: LocalityId,
    eve: LocalityId,
    pip: LocalityId,
    /// The user that the mutation has made, if it makes one.
    created: Option<LocalityId>,
}

impl<'f> Scene<'f> {
    /// The tenant as it must be for `sent` to happen.
    pub async fn new(f: &'f Fixture, name: &str, sent: Sent) -> Result<Self, Failure> {
        let [joe, eve, pip] = [(); 3].map(|()| f.ids.next_id());
        let scene = Self { f, tenant: tenant(name)?, joe, eve, pip, created: None };
        scene.change_tenant(TenantChange::Set(PolicyUpdate::default())).await?;
        scene.change(joe, create(&["handle:joe", "email:joe@example.com"])?).await?;
        scene.change(eve, create(&["handle:eve"])?).await?;
        scene.change(pip, create(&["handle:pip"])?).await?;
        match sent {
            Sent::Enable => scene.change(joe, UserChange::Disable).await,
            Sent::Undelete => scene.change(joe, UserChange::Delete).await,
            Sent::Unmerge => {
                scene.change(joe, UserChange::Merge(eve, ConflictPolicy::PrimaryWins)).await
            }
            Sent::Release => scene.hold().await,
            _ => Ok(()),
        }?;

        Ok(scene)
    }

    /// The mutation that is sent, with the etag that it must have where it can have one.
    pub async fn sent(&self, sent: Sent) -> Result<Mutation, Failure> {
        let user = |change| MutationKind::User(self.user_id(sent), change);
        let kind = match sent {
            Sent::Create => user(create(&["handle:new"])?),
            Sent::Update => user(name("Joseph")?),
            Sent::Link => user(link("handle:new")?),
            Sent::Unlink => user(unlink("handle:joe")?),
            Sent::Replace => user(replace("handle:joe", "handle:new")?),
            Sent::Verify => user(verify(true)?),
            Sent::Disable => user(UserChange::Disable),
            Sent::Enable => user(UserChange::Enable),
            Sent::Delete => user(UserChange::Delete),
            Sent::Undelete => user(UserChange::Undelete),
            Sent::Purge => user(UserChange::Purge),
            Sent::Merge => user(UserChange::Merge(self.eve, ConflictPolicy::PrimaryWins)),
            Sent::Unmerge => user(UserChange::Unmerge(self.eve)),
            Sent::Release => MutationKind::ReleaseHold(identifier("handle:held")?),
            Sent::SetTenant => MutationKind::Tenant(keep_last(true)),
            Sent::DeleteTenant => {
                MutationKind::Tenant(TenantChange::Delete(DeletionStep::Begin { with_users: true }))
            }
        };
        let etag = match sent {
            Sent::Create | Sent::Release => None,
            Sent::SetTenant | Sent::DeleteTenant => Some(self.tenant().await?.etag()),
            _ => self.user(self.joe).await?.map(|user| user.etag()),
        };

        Ok(Mutation { etag, ..self.mutation(kind) })
    }

    /// The user that `sent` changes: a new id for every creation.
    pub fn user_id(&self, sent: Sent) -> LocalityId {
        if sent == Sent::Create { self.f.ids.next_id() } else { self.joe }
    }

    pub fn note(&mut self, first: &Outcome) {
        self.created =
            first.user.as_ref().map(|user| user.id).filter(|id| *id != self.joe && *id != self.eve);
    }

    /// Does what happens in between.
    pub async fn then(&self, sent: Sent, then: Then) -> Result<(), Failure> {
        match then {
            Then::Nothing => Ok(()),
            Then::Later => self.undo(sent).await,
            Then::Merge => {
                if sent == Sent::Delete {
                    self.change(self.joe, UserChange::Undelete).await?;
                }
                let policy = ConflictPolicy::PrimaryWins;
                self.change(self.pip, UserChange::Merge(self.subject_id(sent), policy)).await
            }
            Then::Purge => self.change(self.subject_id(sent), UserChange::Purge).await,
        }
    }

    async fn undo(&self, sent: Sent) -> Result<(), Failure> {
        let subject = self.subject_id(sent);
        match sent {
            Sent::Create | Sent::Link => self.change(subject, unlink("handle:new")?).await,
            Sent::Update => self.change(subject, name("")?).await,
            Sent::Unlink => self.change(self.eve, link("handle:joe")?).await,
            Sent::Replace => self.change(subject, replace("handle:new", "handle:joe")?).await,
            Sent::Verify => self.change(subject, verify(false)?).await,
            Sent::Disable => self.change(subject, UserChange::Enable).await,
            Sent::Enable => self.change(subject, UserChange::Disable).await,
            Sent::Delete => self.change(subject, UserChange::Undelete).await,
            Sent::Undelete => self.change(subject, UserChange::Delete).await,
            Sent::Purge => self.change(self.eve, link("handle:joe")?).await,
            Sent::Merge => self.change(self.joe, UserChange::Unmerge(self.eve)).await,
            Sent::Unmerge => {
                self.change(self.joe, UserChange::Merge(self.eve, ConflictPolicy::PrimaryWins))
                    .await
            }
            Sent::Release => self.hold().await,
            Sent::SetTenant => self.change_tenant(keep_last(false)).await,
            Sent::DeleteTenant => {
                self.change_tenant(TenantChange::Delete(DeletionStep::GiveUp)).await
            }
        }
    }

    /// Has a handle held for joe.
    async fn hold(&self) -> Result<(), Failure> {
        self.change(self.joe, link("handle:held")?).await?;
        let mutation = self.mutation(MutationKind::User(self.joe, unlink("handle:held")?));
        self.f
            .store
            .mutations
            .mutate(Mutation { policies: Arc::new(holding(10)), ..mutation })
            .await?;
        Ok(())
    }

    fn mutation(&self, kind: MutationKind) -> Mutation {
        Mutation { tenant: self.tenant.clone(), ..self.f.mutation_of(kind) }
    }

    async fn change(&self, id: LocalityId, change: UserChange) -> Result<(), Failure> {
        self.f.store.mutations.mutate(self.mutation(MutationKind::User(id, change))).await?;
        Ok(())
    }

    async fn change_tenant(&self, change: TenantChange) -> Result<(), Failure> {
        self.f.store.mutations.mutate(self.mutation(MutationKind::Tenant(change))).await?;
        Ok(())
    }

    /// The user whom the answer is about, or joe where it is about none.
    fn subject_id(&self, sent: Sent) -> LocalityId {
        match sent {
            Sent::Unmerge => self.eve,
            _ => self.created.unwrap_or(self.joe),
        }
    }

    pub async fn subject(&self, sent: Sent) -> Result<Option<User>, Failure> {
        self.user(self.subject_id(sent)).await
    }

    async fn user(&self, id: LocalityId) -> Result<Option<User>, Failure> {
        Ok(decoded::users(&self.f.store, &self.tenant, &[id]).await?.into_iter().next().flatten())
    }

    pub async fn tenant(&self) -> Result<TenantRecord, Failure> {
        Ok(self.f.store.tenants.tenant(&self.tenant).await?.ok_or("the tenant is gone")?)
    }

    /// All that a second time could change.
    pub async fn all(&self) -> Result<Everything, Failure> {
        let names = [
            "handle:joe",
            "handle:eve",
            "handle:pip",
            "handle:new",
            "handle:held",
            "email:joe@example.com",
        ];
        let keys = names
            .iter()
            .map(|name| key(self.tenant.as_str(), name))
            .collect::<Result<Vec<IdentityKey>, _>>()?;
        let ids: Vec<_> = [self.joe, self.eve, self.pip].into_iter().chain(self.created).collect();
        let users = decoded::users(&self.f.store, &self.tenant, &ids).await?;

        Ok((
            users,
            self.f.store.reads.claims(&keys).await?,
            self.f.store.tenants.tenant(&self.tenant).await?,
        ))
    }
}

fn name(name: &str) -> Result<UserChange, Failure> {
    let mask = ["display_name".to_owned()];
    Ok(UserChange::Update(Update::from_mask(Some(&mask), name.to_owned(), Default::default())?))
}

fn verify(verified: bool) -> Result<UserChange, Failure> {
    let verification = Verification { time: Timestamp::from_millis(5), by: "a letter".to_owned() };
    Ok(UserChange::Verify(
        identifier("email:joe@example.com")?,
        Some(verification).filter(|_| verified),
    ))
}

fn keep_last(on: bool) -> TenantChange {
    TenantChange::Set(PolicyUpdate { keep_last: Some(on), ..PolicyUpdate::default() })
}
