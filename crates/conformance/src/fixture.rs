//! The fixture of every case: an empty store, ids, a clock, and short forms of common mutations.

pub mod assertions;
pub mod case;
pub mod decoded;
pub mod factory;
mod invariants;
pub mod random;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Claim, Consistency, Error, Event, IdempotencyKey, Mutation, MutationKind, NewIdentity,
    NewUser, Outcome, PageLimit, Policies, Tenant, Timestamp, User, UserChange,
};
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier};

use assertions::equal;
use factory::{Failure, StoreFactory};

/// A store with the ids and the clock of its mutations.
pub struct Fixture {
    pub store: Backend,
    pub ids: Generator,
    factory: Arc<dyn StoreFactory>,
    clock: AtomicI64,
}

impl Fixture {
    pub async fn new(factory: Arc<dyn StoreFactory>) -> Result<Self, Failure> {
        let ids = Generator::builder(Mode::Variable).random_origin().build();
        Ok(Self {
            store: factory.open().await?,
            ids,
            factory,
            clock: AtomicI64::new(Timestamp::now().as_millis()),
        })
    }

    /// Closes the store and opens it again.
    pub async fn reopen(self) -> Result<Self, Failure> {
        let Self { store, ids, factory, clock } = self;
        drop(store);
        Ok(Self { store: factory.open().await?, ids, factory, clock })
    }

    /// A mutation of a user of the default tenant, a second later than the one before.
    pub fn mutation(&self, user_id: LocalityId, change: UserChange) -> Mutation {
        self.mutation_of(MutationKind::User(user_id, change))
    }

    /// A mutation in the default tenant, a second later than the one before.
    pub fn mutation_of(&self, kind: MutationKind) -> Mutation {
        let time = Timestamp::from_millis(self.clock.fetch_add(1_000, Ordering::Relaxed));
        Mutation { policies: Arc::new(no_holds()), ..Mutation::new(Tenant::DEFAULT, time, kind) }
    }

    /// The time of the next mutation.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Moves the clock to `time`, but never back.
    pub fn wait_until(&self, time: Timestamp) {
        self.clock.fetch_max(time.as_millis(), Ordering::Relaxed);
    }

    /// Moves the clock back, before anything is written, so that later checks by the present time
    /// see all that has expired meanwhile.
    pub fn begin_before(&self, time: Duration) {
        let begin = self.now().minus(time).as_millis();
        self.clock.store(begin, Ordering::Relaxed);
    }

    /// Changes a user under these policies.
    pub async fn change_with(
        &self,
        policies: &Policies,
        user: &User,
        change: UserChange,
    ) -> Result<User, Error> {
        let policies = Arc::new(policies.clone());
        self.mutate(Mutation { policies, ..self.mutation(user.id, change) }).await
    }

    /// The claim on an identifier in its text form.
    pub async fn claim(&self, name: &str) -> Result<Option<Claim>, Failure> {
        let claims = self.store.reads.claims(&[key("default", name)?]).await?;
        equal(&claims.len(), &1, "claims under one key")?;
        Ok(claims.into_iter().next().flatten())
    }

    /// The mutation that creates a user who owns `names`.
    pub fn creation(&self, names: &[&str]) -> Result<Mutation, Failure> {
        Ok(self.mutation(self.ids.next_id(), create(names)?))
    }

    /// Executes a mutation.
    pub async fn apply(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.store.mutations.mutate(mutation).await
    }

    /// Executes a mutation of a user.
    pub async fn mutate(&self, mutation: Mutation) -> Result<User, Error> {
        self.apply(mutation).await?.into_user()
    }

    /// Creates a user who owns `names`.
    pub async fn create(&self, names: &[&str]) -> Result<User, Failure> {
        Ok(self.mutate(self.creation(names)?).await?)
    }

    /// Executes a change of a new id.
    pub async fn change_new(&self, change: UserChange) -> Result<User, Error> {
        self.mutate(self.mutation(self.ids.next_id(), change)).await
    }

    /// Changes a user of the default tenant.
    pub async fn change(&self, user: &User, change: UserChange) -> Result<User, Error> {
        self.mutate(self.mutation(user.id, change)).await
    }

    /// Executes mutations concurrently, each in its own task. Returns their outcomes in order.
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

    /// All events of a user of the default tenant, the newest first.
    pub async fn events(&self, user: &User) -> Result<Vec<Event>, Failure> {
        let (histories, all) = (&self.store.histories, PageLimit::unlimited());
        let history = histories.history(&Tenant::DEFAULT, user.id, None, all).await?;
        Ok(history.ok_or("the user is gone")?.events)
    }

    /// The user of the default tenant who owns the identifier with this text form.
    pub async fn owner(&self, name: &str) -> Result<Option<User>, Failure> {
        let keys = [key("default", name)?];
        let users = decoded::owners(&self.store, &keys, Consistency::Latest).await?;
        equal(&users.len(), &1, "answers to one key")?;
        Ok(users.into_iter().next().flatten())
    }

    /// Fails unless each of `names` resolves to exactly this user.
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

    /// Fails unless the store returns exactly this user for its id and for each of its identifiers.
    pub async fn has(&self, user: &User) -> Result<(), Failure> {
        equal(&self.get(user.id).await?.as_ref(), &Some(user), "the user by its id")?;
        for identity in &user.identities {
            self.owns(user, &[&identity.identifier.to_string()]).await?;
        }
        Ok(())
    }
}

/// The policies of most cases: unlinked identifiers are free at once.
pub fn no_holds() -> Policies {
    Policies { holds: BTreeMap::new(), ..Policies::default() }
}

/// The default policies, but only handles are held, for `days`.
pub fn holding(days: u64) -> Policies {
    Policies { holds: BTreeMap::from([(Kind::Handle, DAY * days as u32)]), ..Policies::default() }
}

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the text form of an identifier.
pub fn identifier(name: &str) -> Result<Identifier, Failure> {
    let raw = RawIdentifier::from_text(name).map_err(Failure::from);
    let parsed = raw.and_then(|raw| Identifier::parse(raw).map_err(Failure::from));
    parsed.map_err(|error| format!("invalid case: {name}: {error}").into())
}

/// The key of an identifier in its text form.
pub fn key(tenant: &str, name: &str) -> Result<IdentityKey, Failure> {
    Ok(IdentityKey::new(tenant, &identifier(name)?))
}

/// A new identity, typed as in the text form.
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

/// A mutation at another time.
pub fn at(time: Timestamp, mutation: Mutation) -> Mutation {
    Mutation { now: time.into(), ..mutation }
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

/// The text forms of the identifiers that a user owns, in order.
pub fn names(user: &User) -> Vec<String> {
    user.identities.iter().map(|identity| identity.identifier.to_string()).collect()
}

/// Fails unless a user lists exactly these identifiers, in order.
#[track_caller]
pub fn lists(user: &User, expected: &[&str]) -> Result<(), Failure> {
    equal(&names(user), &expected.iter().map(ToString::to_string).collect(), "the identities")
}
