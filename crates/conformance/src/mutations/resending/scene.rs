//! A tenant with three users, in which one mutation is repeated.

use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym_directory::{
    Claim, ConflictPolicy, DeletionStep, Mutation, MutationKind, Outcome, PolicyUpdate, Tenant,
    TenantChange, TenantRecord, Timestamp, Update, User, UserChange, Verification,
};
use polynym_identifier::IdentityKey;

use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, create, holding, identifier, key, link, replace, tenant, unlink};

/// The repeated method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
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

/// The mutation between the first call and the repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    Nothing,
    /// A change that undoes the first, if possible.
    Undo,
    /// The user in the answer is merged into another.
    Merge,
    /// The user in the answer is purged.
    Purge,
}

/// The content of the tenant: users, claims and the tenant itself.
type Content = (Vec<Option<User>>, Vec<Option<Claim>>, Option<TenantRecord>);

pub struct Scene<'f> {
    f: &'f Fixture,
    tenant: Tenant,
    joe: LocalityId,
    eve: LocalityId,
    pip: LocalityId,
    /// The user that the mutation created.
    created: Option<LocalityId>,
}

impl<'f> Scene<'f> {
    /// A tenant in which `method` succeeds.
    pub async fn new(f: &'f Fixture, name: &str, method: Method) -> Result<Self, Failure> {
        let [joe, eve, pip] = [(); 3].map(|()| f.ids.next_id());
        let scene = Self { f, tenant: tenant(name)?, joe, eve, pip, created: None };
        scene.change_tenant(TenantChange::Set(PolicyUpdate::default())).await?;
        scene.change(joe, create(&["handle:joe", "email:joe@example.com"])?).await?;
        scene.change(eve, create(&["handle:eve"])?).await?;
        scene.change(pip, create(&["handle:pip"])?).await?;
        match method {
            Method::Enable => scene.change(joe, UserChange::Disable).await,
            Method::Undelete => scene.change(joe, UserChange::Delete).await,
            Method::Unmerge => {
                scene.change(joe, UserChange::Merge(eve, ConflictPolicy::PrimaryWins)).await
            }
            Method::Release => scene.hold().await,
            _ => Ok(()),
        }?;

        Ok(scene)
    }

    /// The repeated mutation, with its etag.
    pub async fn mutation(&self, method: Method) -> Result<Mutation, Failure> {
        let user = |change| MutationKind::User(self.user_id(method), change);
        let kind = match method {
            Method::Create => user(create(&["handle:new"])?),
            Method::Update => user(name("Joseph")?),
            Method::Link => user(link("handle:new")?),
            Method::Unlink => user(unlink("handle:joe")?),
            Method::Replace => user(replace("handle:joe", "handle:new")?),
            Method::Verify => user(verify(true)?),
            Method::Disable => user(UserChange::Disable),
            Method::Enable => user(UserChange::Enable),
            Method::Delete => user(UserChange::Delete),
            Method::Undelete => user(UserChange::Undelete),
            Method::Purge => user(UserChange::Purge),
            Method::Merge => user(UserChange::Merge(self.eve, ConflictPolicy::PrimaryWins)),
            Method::Unmerge => user(UserChange::Unmerge(self.eve)),
            Method::Release => MutationKind::ReleaseHold(identifier("handle:held")?),
            Method::SetTenant => MutationKind::Tenant(keep_last(true)),
            Method::DeleteTenant => {
                MutationKind::Tenant(TenantChange::Delete(DeletionStep::Begin { with_users: true }))
            }
        };
        let etag = match method {
            Method::Create | Method::Release => None,
            Method::SetTenant | Method::DeleteTenant => Some(self.tenant().await?.etag()),
            _ => self.user(self.joe).await?.map(|user| user.etag()),
        };

        Ok(Mutation { etag, ..self.in_tenant(kind) })
    }

    /// The user that `method` changes: a new id for each creation.
    pub fn user_id(&self, method: Method) -> LocalityId {
        if method == Method::Create { self.f.ids.next_id() } else { self.joe }
    }

    /// Records the user that the first call created.
    pub fn record(&mut self, first: &Outcome) {
        self.created =
            first.user.as_ref().map(|user| user.id).filter(|id| *id != self.joe && *id != self.eve);
    }

    /// Executes the mutation between the first call and the repeat.
    pub async fn mutate_between(&self, method: Method, between: Between) -> Result<(), Failure> {
        match between {
            Between::Nothing => Ok(()),
            Between::Undo => self.undo(method).await,
            Between::Merge => {
                if method == Method::Delete {
                    self.change(self.joe, UserChange::Undelete).await?;
                }
                let policy = ConflictPolicy::PrimaryWins;
                self.change(self.pip, UserChange::Merge(self.subject_id(method), policy)).await
            }
            Between::Purge => self.change(self.subject_id(method), UserChange::Purge).await,
        }
    }

    async fn undo(&self, method: Method) -> Result<(), Failure> {
        let subject = self.subject_id(method);
        match method {
            Method::Create | Method::Link => self.change(subject, unlink("handle:new")?).await,
            Method::Update => self.change(subject, name("")?).await,
            Method::Unlink => self.change(self.eve, link("handle:joe")?).await,
            Method::Replace => self.change(subject, replace("handle:new", "handle:joe")?).await,
            Method::Verify => self.change(subject, verify(false)?).await,
            Method::Disable => self.change(subject, UserChange::Enable).await,
            Method::Enable => self.change(subject, UserChange::Disable).await,
            Method::Delete => self.change(subject, UserChange::Undelete).await,
            Method::Undelete => self.change(subject, UserChange::Delete).await,
            Method::Purge => self.change(self.eve, link("handle:joe")?).await,
            Method::Merge => self.change(self.joe, UserChange::Unmerge(self.eve)).await,
            Method::Unmerge => {
                self.change(self.joe, UserChange::Merge(self.eve, ConflictPolicy::PrimaryWins))
                    .await
            }
            Method::Release => self.hold().await,
            Method::SetTenant => self.change_tenant(keep_last(false)).await,
            Method::DeleteTenant => {
                self.change_tenant(TenantChange::Delete(DeletionStep::Cancel)).await
            }
        }
    }

    /// Puts a hold for joe on a handle.
    async fn hold(&self) -> Result<(), Failure> {
        self.change(self.joe, link("handle:held")?).await?;
        let mutation = self.in_tenant(MutationKind::User(self.joe, unlink("handle:held")?));
        self.f.apply(Mutation { policies: Arc::new(holding(10)), ..mutation }).await?;
        Ok(())
    }

    fn in_tenant(&self, kind: MutationKind) -> Mutation {
        Mutation { tenant: self.tenant.clone(), ..self.f.mutation_of(kind) }
    }

    async fn change(&self, id: LocalityId, change: UserChange) -> Result<(), Failure> {
        self.f.apply(self.in_tenant(MutationKind::User(id, change))).await?;
        Ok(())
    }

    async fn change_tenant(&self, change: TenantChange) -> Result<(), Failure> {
        self.f.apply(self.in_tenant(MutationKind::Tenant(change))).await?;
        Ok(())
    }

    /// The id of the user in the answer; joe if the answer has no user.
    fn subject_id(&self, method: Method) -> LocalityId {
        match method {
            Method::Unmerge => self.eve,
            _ => self.created.unwrap_or(self.joe),
        }
    }

    pub async fn subject(&self, method: Method) -> Result<Option<User>, Failure> {
        self.user(self.subject_id(method)).await
    }

    async fn user(&self, id: LocalityId) -> Result<Option<User>, Failure> {
        Ok(decoded::users(&self.f.store, &self.tenant, &[id]).await?.into_iter().next().flatten())
    }

    pub async fn tenant(&self) -> Result<TenantRecord, Failure> {
        Ok(self.f.store.tenants.tenant(&self.tenant).await?.ok_or("the tenant is gone")?)
    }

    /// Everything that a repeat could change.
    pub async fn content(&self) -> Result<Content, Failure> {
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
