//! Stores of the second rules with identities that the present rules move, reject or make collide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, ConflictPolicy, Consistency, Directory, EncodedUser, Error, ItemResult, Limits,
    LookUps, Mutation, MutationCall, MutationKind, Mutations, NewIdentity, NewUser, Now, Policies,
    PolicyUpdate, Purpose, RequestContext, ResolveOptions, Resolved, State, Tenant, TenantChange,
    Tenants, Timestamp, UserChange, View,
};
use polynym_identifier::{IdentityKey, Kind, RULES_VERSION, RawIdentifier, Rules};

use crate::golden::records;
use crate::users::id;

/// 2100-01-01 in milliseconds: later than any test run, so no record has expired.
const TIME: i64 = 4_102_444_800_000;
const HOLD_TIME: Duration = Duration::from_secs(10 * 24 * 60 * 60);

/// Identities that move to another form: the user, and another spelling of it.
const MOVED: [(usize, &str, &str); 6] = [
    (
        1,
        "url:https://scholar.google.com/citations?user=a",
        "url:https://scholar.google.de/citations?hl=de&user=a",
    ),
    (1, "phone:+14155552300", "phone:tel:+1-415-555-2300"),
    (1, "handle:νίκος", "handle:@Νίκος"),
    (2, "url:https://x.com/@Ann", "url:https://twitter.com/ann"),
    (2, "url:https://blog.example/?author=2", "url:http://blog.example/?author=2&utm_id=1"),
    (4, "email:cat@example.com", "email:CAT@example.com"),
];

/// Identities that the present rules reject, and texts that the second rules took for the same.
const KEPT: [(usize, &str, Option<&str>); 5] = [
    (1, "url:https://matrix.to/#/@joe:x.y", Some("url:https://matrix.to/#/@ann:x.y")),
    (1, "url:https://app.example/#/joe", Some("url:https://app.example/#/ann")),
    (1, "email:joe@i❤.example", None),
    (
        2,
        "url:https://facebook.com/photo.php?fbid=1",
        Some("url:https://facebook.com/photo.php?fbid=2"),
    ),
    (6, "url:https://t.co/abc", None),
];

/// An identity that a user gave up, which is held, and one of another person.
const GIVEN_UP: &str = "url:https://news.ycombinator.com/user?id=eve";
const OF_ANOTHER: &str = "url:https://news.ycombinator.com/user?id=bob";
/// The identity of a merged user.
const MERGED: &str = "url:https://forum.example/memberlist.php?mode=viewprofile&u=5";

/// Fills a store of the second rules.
pub async fn fill(store: &(impl Mutations + Tenants)) {
    for (n, (tenant, kind)) in changes().into_iter().enumerate() {
        change(store, n, tenant, kind)
            .await
            .unwrap_or_else(|error| panic!("change {n}: {error:?}"));
    }
}

/// Links an identity that collides with another one under the present rules.
pub async fn collide(store: &(impl Mutations + Tenants)) {
    let link = UserChange::Link(new("url:https://x.com/ann"));
    change(store, 50, Tenant::DEFAULT, MutationKind::User(id(1), link)).await.unwrap();
}

/// Unlinks it.
pub async fn resolve_collision(store: &(impl Mutations + Tenants)) {
    let unlink = UserChange::Unlink(new("url:https://x.com/ann").identifier);
    let policies = Policies { holds: BTreeMap::new(), ..Policies::default() };
    let kind = MutationKind::User(id(1), unlink);
    let unlink = Mutation { policies: policies.into(), ..mutation(51, Tenant::DEFAULT, kind) };
    store.mutate(unlink).await.unwrap();
}

async fn change(
    store: &(impl Mutations + Tenants),
    n: usize,
    tenant: Tenant,
    kind: MutationKind,
) -> Result<(), Error> {
    let record = store.tenant(&tenant).await?;
    let tenant_since = record.map(|record| record.create_time).unwrap_or_default();
    store.mutate(Mutation { tenant_since, ..mutation(n, tenant, kind) }).await.map(drop)
}

fn mutation(n: usize, tenant: Tenant, kind: MutationKind) -> Mutation {
    let holds = BTreeMap::from(Kind::ALL.map(|kind| (kind, HOLD_TIME)));
    let policies = Arc::new(Policies { holds, ..Policies::default() });
    Mutation { policies, rules: Rules::SECOND, ..Mutation::new(tenant, time(n), kind) }
}

/// Changes in two tenants: the move of a store goes through one after the other.
fn changes() -> Vec<(Tenant, MutationKind)> {
    let acme = Tenant::parse("acme").unwrap();
    let tenant =
        |tenant| (tenant, MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default())));
    let user = |(n, change)| (Tenant::DEFAULT, MutationKind::User(id(n), change));
    let names = MOVED.iter().map(|(n, text, _)| (*n, *text));
    let names: Vec<_> = names.chain(KEPT.iter().map(|(n, text, _)| (*n, *text))).collect();
    let create = |n| {
        let own = names.iter().filter(|(user, _)| *user == n).map(|(_, text)| new(text));
        UserChange::Create(NewUser { identities: own.collect(), ..NewUser::default() })
    };
    let user_changes = [
        (1, create(1)),
        (2, create(2)),
        (3, create(3)),
        (3, UserChange::Link(new(GIVEN_UP))),
        (3, UserChange::Unlink(new(GIVEN_UP).identifier)),
        (4, create(4)),
        (5, create(5)),
        (5, UserChange::Link(new(MERGED))),
        (4, UserChange::Merge(id(5), ConflictPolicy::PrimaryWins)),
        (6, create(6)),
    ];
    let in_acme = NewUser { identities: vec![new("url:https://x.com/@Ann")], ..NewUser::default() };
    let in_acme = (acme.clone(), MutationKind::User(id(7), UserChange::Create(in_acme)));
    let users = user_changes.into_iter().map(user).chain([in_acme]);
    [tenant(Tenant::DEFAULT), tenant(acme)].into_iter().chain(users).collect()
}

fn new(text: &str) -> NewIdentity {
    let raw = RawIdentifier::from_text(text).unwrap();
    let identifier = Rules::SECOND.parse(raw).unwrap();
    let rules_version = Rules::SECOND.version();
    NewIdentity { rules_version, ..NewIdentity::new(identifier, raw.typed().to_owned()) }
}

fn time(n: usize) -> Timestamp {
    Timestamp::from_millis(TIME + 1_001 * n as i64)
}

/// The context of a call at `time`.
fn context_at(time: Timestamp, method: &'static str) -> RequestContext<'static> {
    let now = Now::certain(time);
    RequestContext {
        tenant: Tenant::DEFAULT,
        caller: "",
        method,
        request_id: "",
        purpose: Purpose::default(),
        now,
    }
}

fn directory(backend: &Backend) -> Arc<Directory> {
    let (ids, limits) = (Generator::new(Mode::Variable), Limits::default());
    Arc::new(Directory::new(backend.clone(), ids, limits))
}

async fn owner(directory: &Directory, text: &str) -> Result<LocalityId, Error> {
    let raw = Some(RawIdentifier::from_text(text).unwrap());
    let (found, _) = directory.resolve(&Tenant::DEFAULT, raw, ResolveOptions::default()).await?;
    Ok(found.user.decode().unwrap().id)
}

/// Asserts that each identity of a store of the second rules is found.
pub async fn assert_second(backend: Backend) {
    let directory = directory(&backend);
    let kept = KEPT.iter().map(|(n, text, _)| (n, text));
    for (n, text) in MOVED.iter().map(|(n, text, _)| (n, text)).chain(kept) {
        assert_eq!(owner(&directory, text).await.unwrap(), id(*n), "{text}");
    }
}

/// Asserts that a dry run of the move reports both users and both identifiers of the collision.
pub async fn assert_collision(backend: Backend) {
    let mut run = directory(&backend).renormalize(Tenant::DEFAULT, "", true).await.unwrap();
    let progress = run.step().await.unwrap();
    assert_eq!((progress.failed, progress.problems.len()), (1, 1));
    let problem = &progress.problems[0];
    let (other, other_identifier) = problem.other.as_ref().unwrap();
    let mut users = [(problem.user, &problem.identifier), (*other, other_identifier)];
    users.sort_unstable();
    let users = users.map(|(user, identifier)| (user, identifier.canonical()));
    assert_eq!(users, [(id(1), "https://x.com/ann"), (id(2), "https://x.com/@ann")]);
    assert_eq!(problem.renormalized.canonical(), "https://x.com/ann");
    let text = problem.to_string();
    assert!(text.contains(&id(1).to_string()) && text.contains(&id(2).to_string()), "{text}");
    assert!(!text.contains("x.com"), "{text}");
}

/// Asserts that a store was upgraded to the present rules, in every case. Changes it.
pub async fn assert_moved(backend: Backend) {
    let directory = directory(&backend);
    let versions = versions(&backend).await;
    assert_eq!(versions, [(2, KEPT.len()), (RULES_VERSION, MOVED.len() + 1)].into());

    for (n, text, spelling) in MOVED {
        for text in [text, spelling] {
            assert_eq!(owner(&directory, text).await.unwrap(), id(n), "{text}");
        }
    }
    for (n, text, other) in KEPT {
        assert_eq!(owner(&directory, text).await.unwrap(), id(n), "{text}");
        let Some(other) = other else { continue };
        let refused = owner(&directory, other).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{other}: {refused:?}");
    }
    for form in ["url:https://scholar.google.com/citations", "url:https://x.com/search"] {
        let refused = owner(&directory, form).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{form}: {refused:?}");
    }
    assert_batch(&backend).await;
    assert_as_of(&directory).await;
    assert_changes(&directory, &backend).await;
}

/// Look-ups that are counted.
struct CountedLookUps {
    inner: Arc<dyn LookUps>,
    count: Arc<AtomicUsize>,
}

#[async_trait]
impl LookUps for CountedLookUps {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner.resolve(keys, consistency, view, max_staleness).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner.get(tenant, ids, view).await
    }
}

/// A batch of identities that the rules reject takes two look-ups: of the URLs as typed, and of the
/// owners.
async fn assert_batch(backend: &Backend) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let layered = backend.clone().layered(|inner| CountedLookUps { inner, count: counted });
    let raw = KEPT.map(|(_, text, _)| Some(RawIdentifier::from_text(text).unwrap()));
    let options = ResolveOptions::default();
    let batch = directory(&layered).batch_resolve(&Tenant::DEFAULT, &raw, options).await;
    for (found, (n, text, _)) in batch.unwrap().0.into_iter().zip(KEPT) {
        assert_eq!(found.unwrap().user.decode().unwrap().id, id(n), "{text}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// The number of identities of each version.
async fn versions(backend: &Backend) -> BTreeMap<u32, usize> {
    let mut versions = BTreeMap::new();
    for record in records(&*backend.search).await {
        for identity in &record.user.identities {
            *versions.entry(identity.rules_version).or_default() += 1;
        }
    }
    versions
}

/// Ended ownerships have the old keys, and present ones the new keys.
async fn assert_as_of(directory: &Directory) {
    let at = async |text: &str, n: usize| {
        let raw = Some(RawIdentifier::from_text(text).unwrap());
        let context = context_at(time(1_000), "Resolve");
        let found = directory.resolve_as_of(&context, raw, time(n), View::Full).await;
        found.map(|(found, _)| found.user.decode().unwrap().id)
    };
    // The identity was linked by the fifth change, and unlinked by the sixth.
    assert_eq!(at(GIVEN_UP, 5).await.unwrap(), id(3));
    for (text, n) in [(GIVEN_UP, 7), (OF_ANOTHER, 5)] {
        let nobody = at(text, n).await.unwrap_err();
        assert!(matches!(nobody, Error::IdentityNotFound), "{text}: {nobody:?}");
    }
    for (n, text, _) in MOVED {
        assert_eq!(at(text, 900).await.unwrap(), id(n), "{text}");
    }
    for (n, text, other) in KEPT {
        assert_eq!(at(text, 900).await.unwrap(), id(n), "{text}");
        let Some(other) = other else { continue };
        assert!(at(other, 900).await.is_err(), "{other}");
    }
}

/// Identities that the rules reject can be verified and unlinked, but not linked; holds are
/// released and merges undone by their old keys.
async fn assert_changes(directory: &Directory, backend: &Backend) {
    let call = |method| MutationCall::from(context_at(Timestamp::now(), method));
    let raw = |text: &'static str| Some(RawIdentifier::from_text(text).unwrap());
    let user = |n: usize| id(n).to_string();
    for (n, text, other) in KEPT {
        if let Some(other) = other {
            let refused = directory.unlink(call("Unlink"), &user(n), raw(other)).await;
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{other}: {refused:?}");
        }
        let verified = directory.verify(call("Verify"), &user(n), raw(text), None).await;
        assert!(verified.is_ok(), "{text}: {verified:?}");
        directory.unlink(call("Unlink"), &user(n), raw(text)).await.unwrap();
        let owner = owner(directory, text).await.unwrap_err();
        assert!(matches!(owner, Error::Invalid { .. }), "{text}: {owner:?}");
        let link = directory.link(call("Link"), &user(n), raw(text), "", None, false).await;
        assert!(matches!(link, Err(Error::Invalid { .. })), "{text}: {link:?}");
    }
    assert_eq!(versions(backend).await.keys().copied().collect::<Vec<_>>(), [RULES_VERSION]);

    let released = directory.release_hold(call("ReleaseHold"), raw(GIVEN_UP)).await.unwrap();
    assert_eq!(released, new(GIVEN_UP).identifier);
    directory.change_state(call("Unmerge"), &user(4), UserChange::Unmerge(id(5))).await.unwrap();
    // The undo record has the old key, so the identity that has moved stays with the primary.
    let records = records(&*backend.search).await;
    let unmerged = records.iter().find(|record| record.id() == id(5)).unwrap();
    assert_eq!(unmerged.user.state, State::Active);
    assert_eq!(owner(directory, MERGED).await.unwrap(), id(4));
}
