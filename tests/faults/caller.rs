//! Calls and their outcomes in numbers: user 3 links name 7. They go to a store in this process, or
//! to a server.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, ConflictPolicy, Consistency, Directory, EncodedUser, Error, IdempotencyKey, Limits,
    Mutation, NewUser, State, Tenant, Timestamp, User, UserChange, View,
};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};
use polynym_proto::v1;
use tokio::time::sleep;
use tonic::Status;
use tonic_types::StatusExt;
use uuid::Uuid;

use crate::calls::{self, Client};
use crate::stores::TIMEOUT;
use crate::users::{self, identity};

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Create(usize, Vec<usize>),
    Link(usize, usize),
    Unlink(usize, usize),
    /// The user, the old name, the new one.
    Replace(usize, usize, usize),
    /// The primary and the secondary.
    Merge(usize, usize),
    /// The primary and the secondary.
    Unmerge(usize, usize),
    Resolve(usize),
    Get(usize),
}

/// The outcome that the caller gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Success. If the answer shows the user right after the call: the names that it lists; after
    /// an unmerge, those of the secondary.
    Done(Option<Names>),
    /// The owner of the name, and the names that it lists.
    Found(usize, Names),
    /// The name has no owner.
    Nobody,
    /// The names of the user, if it exists.
    User(Option<Names>),
    /// The user is merged into this one, which lists these names.
    Part(usize, Names),
    /// The first user was merged into the second.
    Merged(usize, usize),
    /// The two users are not merged.
    NotMerged,
    /// The name belongs to that user.
    Taken(usize, usize),
    NotOwned,
    /// A failure without an effect.
    Failed(String),
    /// An unknown outcome.
    Unknown(String),
}

/// A set of names: the bit `n` is name `n`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Names(pub u64);

impl Names {
    pub const fn has(self, n: usize) -> bool {
        self.0 & 1 << n != 0
    }

    pub const fn with(self, n: usize) -> Self {
        Self(self.0 | 1 << n)
    }

    pub const fn without(self, n: usize) -> Self {
        Self(self.0 & !(1 << n))
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |n| self.has(*n))
    }
}

impl FromIterator<usize> for Names {
    fn from_iter<I: IntoIterator<Item = usize>>(names: I) -> Self {
        names.into_iter().fold(Self::default(), Self::with)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Call {
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Resolve(_) | Self::Get(_))
    }
}

impl Reply {
    /// Whether the store answered, possibly with a refusal.
    pub const fn is_answer(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Unknown(_))
    }
}

/// A store or a server.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Makes a call; `request` is the request id of a mutation.
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply;

    /// Whether the answer to a look-up may be older than the call: it shows what was acknowledged
    /// before the call, or so long before it as look-ups [may be
    /// stale](crate::ledger::Ledger::may_be_stale).
    fn may_lag(&self, _call: &Call) -> bool {
        false
    }

    /// Repeats a call until it is answered, at the beginning and the end of a test: on a busy
    /// machine a call may time out, or the set may elect another primary.
    async fn answer(&self, call: &Call) -> Reply {
        let (since, request) = (Instant::now(), Uuid::new_v4().to_string());
        loop {
            let reply = self.call(call, (!call.is_read()).then_some(request.as_str())).await;
            if reply.is_answer() || since.elapsed() > TIMEOUT {
                return reply;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A caller whose look-ups may lag, except linearizable ones, which never use ids.
pub struct Lagging(pub Direct);

#[async_trait]
impl Caller for Lagging {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        self.0.call(call, request).await
    }

    fn may_lag(&self, call: &Call) -> bool {
        matches!(call, Call::Get(_))
            || call.is_read() && self.0.consistency != Consistency::Linearizable
    }
}

pub fn identifier(name: usize) -> Identifier {
    Identifier::parse(RawIdentifier::Handle(&text(name))).unwrap()
}

pub fn key(name: usize) -> IdentityKey {
    IdentityKey::new("default", &identifier(name))
}

pub fn text(name: usize) -> String {
    format!("name{name:02}")
}

/// The name with this text.
pub fn name(text: &str) -> usize {
    text.strip_prefix("name").and_then(|n| n.parse().ok()).expect("a name of these tests")
}

/// The number of the user with this id. Ids of servers give numbers above all others.
pub fn number(id: LocalityId) -> usize {
    static OTHERS: Mutex<Vec<LocalityId>> = Mutex::new(Vec::new());
    let n = usize::from_str_radix(&id.to_string()[..8], 16).unwrap();
    if users::id(n) == id {
        return n;
    }
    let mut others = OTHERS.lock().unwrap();
    let known = others.iter().position(|other| *other == id);
    (1 << 32)
        + known.unwrap_or_else(|| {
            others.push(id);
            others.len() - 1
        })
}

/// A time that no other mutation has: the link time identifies a link.
fn now() -> Timestamp {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let clock = Timestamp::now().as_millis();
    let last = LAST.fetch_update(Relaxed, Relaxed, |last| Some(clock.max(last + 1))).unwrap();
    Timestamp::from_millis(clock.max(last + 1))
}

/// The names that a user lists.
pub fn listed(user: &User) -> Names {
    user.identities.iter().map(|identity| name(identity.identifier.canonical())).collect()
}

/// Calls a store.
pub struct Direct {
    pub store: Backend,
    pub consistency: Consistency,
}

impl Direct {
    /// The mutation of a call.
    pub fn mutation(call: &Call, request: Option<&str>) -> Mutation {
        let (user, change) = match call {
            Call::Create(user, names) => {
                let identities = names.iter().map(|name| identity(identifier(*name))).collect();
                (user, UserChange::Create(NewUser { identities, ..NewUser::default() }))
            }
            Call::Link(user, name) => (user, UserChange::Link(identity(identifier(*name)))),
            Call::Unlink(user, name) => (user, UserChange::Unlink(identifier(*name))),
            Call::Replace(user, old, new) => {
                (user, UserChange::Replace(identifier(*old), identity(identifier(*new))))
            }
            Call::Merge(primary, secondary) => {
                (primary, UserChange::Merge(users::id(*secondary), ConflictPolicy::PrimaryWins))
            }
            Call::Unmerge(primary, secondary) => {
                (primary, UserChange::Unmerge(users::id(*secondary)))
            }
            Call::Resolve(_) | Call::Get(_) => unreachable!("a look-up is no mutation"),
        };
        let request = request.map(|key| IdempotencyKey { key: key.to_owned(), request_hash: 1 });
        Mutation { request, now: now().into(), ..users::mutation(users::id(*user), change) }
    }

    async fn resolve(&self, name: usize) -> Result<Reply, Error> {
        let resolved = self
            .store
            .lookups
            .resolve(&[key(name)], self.consistency, View::Full, Duration::ZERO)
            .await?;
        let [found] = <[_; 1]>::try_from(resolved.found)
            .unwrap_or_else(|all| panic!("{} answers", all.len()));
        Ok(found?.map_or(Reply::Nobody, |found| {
            let user = found.user.decode().unwrap();
            Reply::Found(number(user.id), listed(&user))
        }))
    }

    async fn get(&self, user: usize) -> Result<Reply, Error> {
        let users =
            self.store.lookups.get(&Tenant::DEFAULT, &[users::id(user)], View::Full).await?;
        match users.into_iter().next().unwrap()? {
            Some(found) if matches!(found.state(), State::Merged { .. }) => self.follow(user).await,
            found => Ok(Reply::User(found.as_ref().map(|user| listed(&user.decode().unwrap())))),
        }
    }

    /// A user as the API shows it: merges are followed.
    async fn follow(&self, user: usize) -> Result<Reply, Error> {
        let ids = Generator::builder(Mode::Variable).random_origin().build();
        let directory = Directory::new(self.store.clone(), ids, Limits::default());
        let got = directory
            .get(&users::context(Tenant::DEFAULT, "Get"), &users::id(user).to_string(), View::Full)
            .await?;
        let found = EncodedUser::decode(&got.user).unwrap();
        let names = listed(&found);
        Ok(if found.id == users::id(user) {
            Reply::User(Some(names))
        } else {
            Reply::Part(number(found.id), names)
        })
    }
}

#[async_trait]
impl Caller for Direct {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        let reply = match call {
            Call::Resolve(name) => self.resolve(*name).await,
            Call::Get(user) => self.get(*user).await,
            mutation => {
                let outcome = self.store.mutations.mutate(Self::mutation(mutation, request)).await;
                outcome.and_then(|outcome| Ok(Reply::Done(Some(listed(&outcome.into_user()?)))))
            }
        };
        reply.unwrap_or_else(|error| refused(call, error))
    }
}

fn refused(call: &Call, error: Error) -> Reply {
    match error {
        Error::IdentityTaken { owner, field } => Reply::Taken(meant(call, &field), number(owner)),
        Error::NotOwned => Reply::NotOwned,
        Error::UserMerged { user, into } => Reply::Merged(number(user), number(into)),
        Error::NotMerged => Reply::NotMerged,
        Error::Unavailable(cause) => Reply::Failed(cause.to_string()),
        Error::OutcomeUnknown(cause) => Reply::Unknown(cause.to_string()),
        Error::Internal(cause) => panic!("{call:?}: {cause}"),
        other => panic!("{call:?}: {other}"),
    }
}

/// The name in a field of the request.
fn meant(call: &Call, field: &str) -> usize {
    match call {
        Call::Create(_, names) => {
            let n = field
                .strip_prefix("user.identities[")
                .and_then(|rest| rest.split(']').next())
                .unwrap();
            names[n.parse::<usize>().unwrap()]
        }
        Call::Link(_, name) | Call::Replace(_, _, name) => *name,
        _ => panic!("{call:?} takes no name"),
    }
}

/// Calls a server. It generates the ids of users, so there is no `Create`.
pub struct Remote {
    pub client: Client,
    pub consistency: v1::Consistency,
    /// The time limit of a caller, if it has one.
    pub deadline: Option<Duration>,
}

impl Remote {
    fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(deadline) = self.deadline {
            request.set_timeout(deadline);
        }
        request
    }

    async fn mutate(&self, call: &Call, request_id: String) -> Result<Reply, Status> {
        let mut registry = self.client.registry.clone();
        let handle = |name: usize| Some(calls::handle(&text(name)));
        let id = |user: usize| users::id(user).to_string();
        let user = match *call {
            Call::Link(user, name) => {
                let (user_id, identifier) = (id(user), handle(name));
                let request = v1::LinkIdentityRequest {
                    user_id,
                    identifier,
                    request_id,
                    ..Default::default()
                };
                registry.link_identity(self.request(request)).await?.into_inner().user
            }
            Call::Unlink(user, name) => {
                let (user_id, identifier) = (id(user), handle(name));
                let request = v1::UnlinkIdentityRequest {
                    user_id,
                    identifier,
                    request_id,
                    ..Default::default()
                };
                registry.unlink_identity(self.request(request)).await?.into_inner().user
            }
            Call::Replace(user, old, new) => {
                let (user_id, old_identifier, new_identifier) =
                    (id(user), handle(old), handle(new));
                let request = v1::ReplaceIdentityRequest {
                    user_id,
                    old_identifier,
                    new_identifier,
                    request_id,
                    ..Default::default()
                };
                registry.replace_identity(self.request(request)).await?.into_inner().user
            }
            _ => unreachable!("{call:?} is not for a server"),
        };
        Ok(Reply::Done(Some(shown(&user.unwrap()))))
    }

    async fn look_up(&self, call: &Call) -> Result<Reply, Status> {
        let mut directory = self.client.directory.clone();
        match *call {
            Call::Resolve(name) => {
                let identifier = Some(calls::handle(&text(name)));
                let consistency = self.consistency.into();
                let request =
                    v1::ResolveIdentityRequest { identifier, consistency, ..Default::default() };
                let user = directory
                    .resolve_identity(self.request(request))
                    .await?
                    .into_inner()
                    .user
                    .unwrap();
                Ok(Reply::Found(number(user.user_id.parse().unwrap()), shown(&user)))
            }
            Call::Get(user) => {
                let request = v1::GetUserRequest {
                    user_id: users::id(user).to_string(),
                    ..Default::default()
                };
                let user =
                    directory.get_user(self.request(request)).await?.into_inner().user.unwrap();
                Ok(Reply::User(Some(shown(&user))))
            }
            _ => unreachable!("{call:?} is no look-up"),
        }
    }
}

#[async_trait]
impl Caller for Remote {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        let reply = if call.is_read() {
            self.look_up(call).await
        } else {
            self.mutate(call, request.unwrap_or_default().to_owned()).await
        };
        reply.unwrap_or_else(|status| reply_to_status(call, &status))
    }
}

fn shown(user: &v1::User) -> Names {
    let handle = |identity: &v1::Identity| match identity
        .identifier
        .as_ref()
        .unwrap()
        .kind
        .as_ref()
        .unwrap()
    {
        v1::identifier::Kind::Handle(handle) => name(handle),
        other => panic!("an identity that no test links: {other:?}"),
    };
    user.identities.iter().map(handle).collect()
}

/// The outcome that a caller may conclude from a status: unknown unless the server states it.
fn reply_to_status(call: &Call, status: &Status) -> Reply {
    let details = status.get_error_details();
    let Some(info) = details.error_info() else {
        return Reply::Unknown(format!("{:?}", status.code()));
    };
    match info.reason.as_str() {
        "IDENTITY_TAKEN" => {
            let field = &details.bad_request().unwrap().field_violations[0].field;
            Reply::Taken(meant(call, field), number(info.metadata["owner"].parse().unwrap()))
        }
        "IDENTITY_NOT_FOUND" if call.is_read() => Reply::Nobody,
        "IDENTITY_NOT_FOUND" => Reply::NotOwned,
        "USER_NOT_FOUND" if call.is_read() => Reply::User(None),
        "STORE_UNAVAILABLE" | "OVERLOADED" => Reply::Failed(info.reason.clone()),
        "OUTCOME_UNKNOWN" | "DEADLINE" => Reply::Unknown(info.reason.clone()),
        _ => panic!("{call:?}: {status:?}"),
    }
}
