//! Searches for probable duplicates.

use std::collections::BTreeMap;
use std::sync::Arc;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    AttributeDefinition, ConflictPolicy, DefinitionUpdate, Directory, DuplicateEvent,
    DuplicateOptions, DuplicatePair, DuplicateProgress, DuplicateReason, Limits, Mutation,
    MutationKind, NewUser, Policies, PolicyUpdate, Tenant, TenantChange, User, UserChange, Value,
};
use polynym_identifier::Kind;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, draft, identifier, tenant};

/// A memory limit that no case reaches.
const UNLIMITED_KEYS: usize = 1_000;

type Found = (Vec<DuplicatePair>, DuplicateProgress);

async fn found_within(f: &Fixture, keys: usize, min_score: i32) -> Result<Found, Failure> {
    let ids = Generator::new(Mode::Variable);
    let directory = Arc::new(Directory::new(f.store.clone(), ids, Limits::default()));
    let options = DuplicateOptions { min_score, max_pairs: 100_000 };
    let search = directory.find_duplicates_within(keys, Tenant::DEFAULT, options);
    let (mut search, mut pairs, mut last) =
        (search.await?, Vec::new(), DuplicateProgress::default());
    while let Some(event) = search.next().await? {
        match event {
            DuplicateEvent::Progress(progress) => last = progress,
            DuplicateEvent::Pair(described) => pairs.push(described.pair),
        }
    }
    Ok((pairs, last))
}

/// The pairs found without a limit.
async fn found(f: &Fixture) -> Result<Vec<DuplicatePair>, Failure> {
    Ok(found_within(f, UNLIMITED_KEYS, 0).await?.0)
}

fn reasons(pair: &DuplicatePair) -> Vec<DuplicateReason> {
    pair.found.evidence.iter().map(|evidence| evidence.reason).collect()
}

fn both(a: &User, b: &User) -> [LocalityId; 2] {
    [a.id.min(b.id), a.id.max(b.id)]
}

fn named(name: &str, names: &[&str]) -> Result<NewUser, Failure> {
    let identities = names.iter().map(|name| draft(name)).collect::<Result<_, _>>()?;
    Ok(NewUser { display_name: name.to_owned(), identities, ..NewUser::default() })
}

pub async fn users_of_one_mailbox_are_found(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["email:joe.smith@gmail.com"]).await?;
    let disabled = f.create(&["email:j.o.e.smith+work@googlemail.com"]).await?;
    f.change(&disabled, UserChange::Disable).await?;
    let deleted = f.create(&["email:joe.smith+old@gmail.com"]).await?;
    f.change(&deleted, UserChange::Delete).await?;
    let merged = f.create(&["email:joe.smith+also@gmail.com"]).await?;
    f.change(&joe, UserChange::Merge(merged.id, ConflictPolicy::PrimaryWins)).await?;
    f.create(&["email:joe.smith@example.com"]).await?;
    let elsewhere = Mutation::new(
        tenant("acme")?,
        f.now(),
        MutationKind::User(
            f.ids.next_id(),
            UserChange::Create(named("", &["email:joe.smith+acme@gmail.com"])?),
        ),
    );
    f.apply(elsewhere).await?;

    let (pairs, progress) = found_within(&f, UNLIMITED_KEYS, 0).await?;
    equal(&pairs.len(), &1, "pairs")?;
    equal(&pairs[0].users, &both(&joe, &disabled), "the users")?;
    equal(&reasons(&pairs[0]), &vec![DuplicateReason::SameMailbox], "the reasons")?;
    equal(&(progress.users, progress.capped), &(3, 0), "scanned users")
}

pub async fn holds_and_attributes_are_compared(f: Fixture) -> Result<(), Failure> {
    let held = Policies { holds: BTreeMap::from([(Kind::Email, DAY * 30)]), ..Policies::default() };
    let joe = f.create(&["email:joe@example.com", "handle:joe", "phone:+14155552300"]).await?;
    let gone = UserChange::Unlink(identifier("email:joe@example.com")?);
    f.change_with(&held, &joe, gone).await?;
    let again = f.create(&["email:joe+2@example.com"]).await?;
    let phone = ("mobile".to_owned(), Value::String("+1 415 555 2300".to_owned()));
    let line = NewUser { attributes: [phone].into(), ..named("Joe", &["handle:wolf"])? };
    let listed = f.change_new(UserChange::Create(line)).await?;

    let pairs = found(&f).await?;
    let of = |other| pairs.iter().find(|pair| pair.users == both(&joe, other)).map(reasons);
    equal(&of(&again), &Some(vec![DuplicateReason::HeldIdentity]), "the hold")?;
    equal(&of(&listed), &Some(vec![DuplicateReason::IdentityInAttribute]), "the attribute")?;
    equal(&pairs.len(), &2, "pairs")
}

pub async fn attributes_that_are_evidence_are_compared(f: Fixture) -> Result<(), Failure> {
    let defined = AttributeDefinition { evidence: true, ..AttributeDefinition::default() };
    let definitions = BTreeMap::from([("born".to_owned(), defined)]);
    let update = PolicyUpdate {
        attributes: DefinitionUpdate { replace: false, definitions },
        ..PolicyUpdate::default()
    };
    f.apply(f.mutation_of(MutationKind::Tenant(TenantChange::Set(update)))).await?;
    let born = |name: &str, day: &str| {
        let attributes = [("born".to_owned(), Value::String(day.to_owned()))].into();
        UserChange::Create(NewUser {
            attributes,
            display_name: name.to_owned(),
            ..NewUser::default()
        })
    };
    let joe = f.change_new(born("Joe Weiß", "1980-01-02")).await?;
    let again = f.change_new(born("WEISS, Joe", "1980-01-02")).await?;
    f.change_new(born("Joe Weiß", "1980-01-03")).await?;

    let ids = Generator::new(Mode::Variable);
    let directory = Arc::new(Directory::new(f.store.clone(), ids, Limits::default()));
    let mut search =
        directory.find_duplicates(Tenant::DEFAULT, DuplicateOptions::default()).await?;
    let mut described = Vec::new();
    while let Some(event) = search.next().await? {
        if let DuplicateEvent::Pair(pair) = event {
            described.push(pair);
        }
    }
    let [pair] = &described[..] else { return Err(format!("{described:?}").into()) };
    equal(&pair.pair.users, &both(&joe, &again), "the users")?;
    equal(&reasons(&pair.pair), &vec![DuplicateReason::SameNameAndAttribute], "the reasons")?;
    let mut names = pair.display_names.clone();
    names.sort();
    equal(&names, &["Joe Weiß".to_owned(), "WEISS, Joe".to_owned()], "the names")?;
    equal(&pair.values, &vec![["1980-01-02", "1980-01-02"].map(ToOwned::to_owned)], "the values")
}

pub async fn a_small_memory_limit_finds_the_same_pairs(f: Fixture) -> Result<(), Failure> {
    for n in 0..40 {
        let names = [format!("email:user{}+{n}@example.com", n % 12), format!("handle:wolf{n}x")];
        let user = named(&format!("Joe {}", n % 20), &[&names[0], &names[1]])?;
        f.change_new(UserChange::Create(user)).await?;
    }

    let (whole, progress) = found_within(&f, UNLIMITED_KEYS, 0).await?;
    // Four groups of four and eight of three.
    let mailboxes = whole.iter().filter(|pair| reasons(pair)[0] == DuplicateReason::SameMailbox);
    equal(&mailboxes.count(), &(4 * 6 + 8 * 3), "users of one mailbox")?;
    let mut sorted = whole.clone();
    sorted.sort_by_key(|pair| (std::cmp::Reverse(pair.found.score), pair.users));
    ensure(whole == sorted, "the pairs are not ordered by score")?;
    let (parts, again) = found_within(&f, 16, 0).await?;
    equal(&parts, &whole, "pairs within a small memory limit")?;
    equal(&again.users, &progress.users, "scanned users")
}

pub async fn large_groups_are_compared_in_part(f: Fixture) -> Result<(), Failure> {
    let mut users = Vec::new();
    for n in 0..60 {
        users.push(f.create(&[&format!("email:joe+{n}@example.com")]).await?.id);
    }
    users.sort();

    let (pairs, _) = found_within(&f, UNLIMITED_KEYS, 0).await?;
    equal(&pairs.len(), &0, "pairs of a mailbox that many share")?;
    let (pairs, progress) = found_within(&f, UNLIMITED_KEYS, 1).await?;
    equal(&(pairs.len(), progress.capped), &(50 * 49 / 2, 1), "pairs and large groups")?;
    let last = pairs.iter().map(|pair| pair.users[1]).max();
    equal(&last, &Some(users[49]), "the last compared user")
}
