//! The fixture of every case: an empty store, ids, a clock, and short forms of common mutations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Claim, Consistency, Error, IdempotencyKey, Mutation, MutationKind, NewIdentity,
    NewUser, Policies, Tenant, Timestamp, User, UserChange,
};
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier};

use super::assertions::equal;
use super::{Failure, StoreFactory, decoded};

/// A store to try, with what is needed to ask it for things.
pub struct Fixture {
    pub store: Backend,
    pub ids: Generator,
    place: Arc<dyn StoreFactory>,
    clock: AtomicI64,
}

impl Fixture {
    pub async fn new(place: Arc<dyn StoreFactory>) -> Result<Self, Failure> {
        let ids = Generator::builder(Mode::Variable).random_origin().build();
        Ok(Self {
            store: place.open().await?,
            ids,
            place,
            clock: AtomicI64::new(Timestamp::now().as_millis()),
        })
    }

    /// Closes the store and opens it again.
    pub async fn reopen(self) -> Result<Self, Failure> {
        let Self { store, ids, place, clock } = self;
        drop(store);
        Ok(Self { store: place.open().await?, ids, place, clock })
    }

    /// A mutation of a user of the default tenant, a second later than the one before.
    pub fn mutation(&self, user_id: LocalityId, change: UserChange) -> Mutation {
        self.mutation_of(MutationKind::User(user_id, change))
    }

    /// A mutation in the default tenant, a second later than the one before.
    pub fn mutation_of(&self, kind: MutationKind) -> Mutation {
        let time = Timestamp::from_millis(self.clock.fetch_add(1_000, Ordering::Relaxed));
        Mutation { policies: Arc::new(free()), ..Mutation::new(Tenant::DEFAULT, time, kind) }
    }

    /// When the next mutation happens.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Lets time go by until `time`, unless it is later.
    pub fn wait_until(&self, time: Timestamp) {
        self.clock.fetch_max(time.as_millis(), Ordering::Relaxed);
    }

    /// Carries out a change of a user under other policies than the usual ones.
    pub async fn change_under(
        &self,
        policies: &Policies,
        user: &User,
        change: UserChange,
    ) -> Result<User, Error> {
        let policies = Arc::new(policies.clone());
        self.mutate(Mutation { policies, ..self.mutation(user.id, change) }).await
    }

    /// The claim on an identifier, which is given in its text form.
    pub async fn claim(&self, name: &str) -> Result<Option<Claim>, Failure> {
        let claims = self.store.reads.claims(&[key("default", name)?]).await?;
        equal(&claims.len(), &1, "claims under one key")?;
        Ok(claims.into_iter().next().flatten())
    }

    /// The mutation that creates a user who owns `names`.
    pub fn creation(&self, names: &[&str]) -> Result<Mutation, Failure> {
        Ok(self.mutation(self.ids.next_id(), create(names)?))
    }

    /// Carries out a mutation that is about a user.
    pub async fn mutate(&self, mutation: Mutation) -> Result<User, Error> {
        self.store.mutations.mutate(mutation).await?.into_user()
    }

    /// Creates a user who owns `names`.
    pub async fn create(&self, names: &[&str]) -> Result<User, Failure> {
        Ok(self.mutate(self.creation(names)?).await?)
    }

    /// Carries out a change on a fresh id.
    pub async fn change_new(&self, change: UserChange) -> Result<User, Error> {
        self.mutate(self.mutation(self.ids.next_id(), change)).await
    }

    /// Changes a user of the default tenant.
    pub async fn change(&self, user: &User, change: UserChange) -> Result<User, Error> {
        self.mutate(self.mutation(user.id, change)).await
    }

    /// The mutations at once, each in a task of its own; their outcomes, in order.
    pub async fn all(&self, mutations: Vec<Mutation>) -> Result<Vec<Result<User, Error>>, Failure> {
        let start = |mutation| {
            let store = self.store.clone();
            tokio::spawn(async move { store.mutations.mutate(mutation).await?.into_user() })
        };
        let tasks: Vec<_> = mutations.into_iter().map(start).collect();
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            outcomes.push(task.await?);
        }
        Ok(outcomes)
    }

    /// The user of the default tenant who owns the identifier with this text form.
    pub async fn owner(&self, name: &str) -> Result<Option<User>, Failure> {
        let keys = [key("default", name)?];
        let users = decoded::owners(&self.store, &keys, Consistency::Latest).await?;
        equal(&users.len(), &1, "answers to one key")?;
        Ok(users.into_iter().next().flatten())
    }

    /// Fails unless each of `names` resolves to `owner` as it is here.
    pub async fn owns(&self, owner: &User, names: &[&str]) -> Result<(), Failure> {
        for name in names {
            equal(
                &self.owner(name).await?.as_ref(),
                &Some(owner),
                &format!("the owner of {name}"),
            )?;
        }
        Ok(())
    }

    /// Fails unless none of `names` has an owner.
    pub async fn free(&self, names: &[&str]) -> Result<(), Failure> {
        for name in names {
            equal(&self.owner(name).await?, &None, &format!("the owner of {name}"))?;
        }
        Ok(())
    }

    /// The user of the default tenant with this id.
    pub async fn get(&self, id: LocalityId) -> Result<Option<User>, Failure> {
        let users = decoded::users(&self.store, &Tenant::DEFAULT, &[id]).await?;
        equal(&users.len(), &1, "answers to one id")?;
        Ok(users.into_iter().next().flatten())
    }

    /// Fails unless the user is as it is here, by its id and by all that it owns.
    pub async fn is_kept(&self, user: &User) -> Result<(), Failure> {
        equal(&self.get(user.id).await?.as_ref(), &Some(user), "the user by its id")?;
        for identity in &user.identities {
            self.owns(user, &[&identity.identifier.to_string()]).await?;
        }
        Ok(())
    }
}

/// The policies of most cases: nothing is held, so that what is given up is free.
pub fn free() -> Policies {
    Policies { holds: BTreeMap::new(), ..Policies::default() }
}

/// The usual policies, but for handles held for `days`.
pub fn holding(days: u64) -> Policies {
    Policies { holds: BTreeMap::from([(Kind::Handle, DAY * days as u32)]), ..Policies::default() }
}

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the text form of an identifier.
pub fn identifier(name: &str) -> Result<Identifier, Failure> {
    let parsed = RawIdentifier::from_text(name).map_err(Failure::from);
    let parsed = parsed.and_then(|raw| Identifier::parse(raw).map_err(Failure::from));
    parsed.map_err(|error| format!("the case itself is wrong: {name}: {error}").into())
}

/// The key of an identifier in its text form.
pub fn key(tenant: &str, name: &str) -> Result<IdentityKey, Failure> {
    Ok(IdentityKey::new(tenant, &identifier(name)?))
}

/// An identity that is to be linked, typed as in the text form.
pub fn draft(name: &str) -> Result<NewIdentity, Failure> {
    let display = RawIdentifier::from_text(name)?.typed().to_owned();
    Ok(NewIdentity::new(identifier(name)?, display))
}

pub fn create(names: &[&str]) -> Result<UserChange, Failure> {
    let identities = names.iter().map(|name| draft(name)).collect::<Result<_, _>>()?;
    Ok(UserChange::Create(NewUser { identities, ..NewUser::default() }))
}

pub fn link(name: &str) -> Result<UserChange, Failure> {
    Ok(UserChange::Link(draft(name)?))
}

pub fn unlink(name: &str) -> Result<UserChange, Failure> {
    Ok(UserChange::Unlink(identifier(name)?))
}

pub fn replace(old: &str, new: &str) -> Result<UserChange, Failure> {
    Ok(UserChange::Replace(identifier(old)?, draft(new)?))
}

/// A request with this key and hash.
pub fn request(key: &str, request_hash: u64) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { key: key.to_owned(), request_hash })
}

/// The name of a tenant.
pub fn tenant(name: &str) -> Result<Tenant, Failure> {
    Ok(Tenant::parse(name)?)
}

/// The user that a mutation changes.
pub fn user_id(mutation: &Mutation) -> Result<LocalityId, Failure> {
    Ok(mutation.user_id().ok_or("the mutation changes no user")?)
}
