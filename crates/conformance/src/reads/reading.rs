//! Users read back as written.

use std::collections::BTreeMap;
use std::time::Duration;

use polynym_directory::{
    Consistency, NewUser, Tenant, Timestamp, User, UserChange, Value, Verification, View,
};
use polynym_identifier::Kind;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, key, user_id};

const NAMES: [&str; 5] = [
    "email:joe@example.com",
    "handle:joé_99",
    "phone:+14155552300",
    "social:github/583231",
    "url:https://www.linkedin.com/in/joe",
];

fn values() -> BTreeMap<String, Value> {
    let texts = vec!["one".to_owned(), String::new(), "три, 三".to_owned()];
    let values = [
        ("a.text", Value::String("a \"text\"\0 of\n some 字".to_owned())),
        ("b-int", Value::Int(-7)),
        ("c_double", Value::Double(0.1)),
        ("d_yes", Value::Bool(true)),
        ("d_no", Value::Bool(false)),
        ("e", Value::Time(Timestamp::from_millis(1_234_567_890_123))),
        ("f", Value::List(texts)),
        ("g", Value::List(Vec::new())),
        ("h", Value::String(String::new())),
    ];

    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn everything() -> Result<NewUser, Failure> {
    let mut identities = NAMES.iter().map(|name| draft(name)).collect::<Result<Vec<_>, _>>()?;
    let time = Timestamp::from_millis(1_600_000_000_000);
    identities[2].verification = Some(Verification { time, by: "SMS, код".to_owned() });
    identities[3].verification = Some(Verification { time, by: String::new() });
    Ok(NewUser { display_name: "Joe Smith 🙂".to_owned(), identities, attributes: values() })
}

/// Fails unless `user` has the fields of `draft`.
fn equals_draft(user: &User, draft: &NewUser) -> Result<(), Failure> {
    equal(&user.tenant, &Tenant::DEFAULT, "the tenant")?;
    equal(&user.display_name, &draft.display_name, "the display name")?;
    equal(&user.attributes, &draft.attributes, "the attributes")?;
    equal(&user.update_time, &user.create_time, "the time of the last change")?;
    equal(&user.identities.len(), &draft.identities.len(), "identities")?;
    for (identity, wanted) in user.identities.iter().zip(&draft.identities) {
        equal(&identity.identifier, &wanted.identifier, "an identifier")?;
        equal(&identity.display, &wanted.display, "the display form")?;
        equal(&identity.verification, &wanted.verification, "the verification")?;
        equal(&identity.link_time, &user.create_time, "the link time")?;
        ensure(identity.primary, "the only identity of a kind is not its primary")?;
    }

    Ok(())
}

pub async fn every_kind_and_value_comes_back(f: Fixture) -> Result<(), Failure> {
    let draft = everything()?;
    let kinds: Vec<Kind> =
        draft.identities.iter().map(|identity| identity.identifier.kind()).collect();
    equal(kinds.as_slice(), &Kind::ALL, "the kinds of this case")?;
    let mutation = f.mutation(f.ids.next_id(), UserChange::Create(draft.clone()));
    let (id, time) = (user_id(&mutation)?, mutation.now.time);
    let user = f.mutate(mutation).await?;
    equal(&user.id, &id, "the id")?;
    equal(&user.create_time, &time, "the creation time")?;
    equals_draft(&user, &draft)?;
    f.has(&user).await?;
    for consistency in [Consistency::Latest, Consistency::Linearizable] {
        let keys = NAMES.iter().map(|name| key("default", name)).collect::<Result<Vec<_>, _>>()?;
        let found = decoded::owners(&f.store, &keys, consistency).await?;
        equal(&found, &vec![Some(user.clone()); NAMES.len()], "all names in one call")?;
    }

    Ok(())
}

pub async fn display_stays_as_typed(f: Fixture) -> Result<(), Failure> {
    let typed = [
        "email:Joe.Smith@Exämple.COM",
        "handle:@Ｊoé_99",
        "phone/US:(415) 555-2300",
        "url:HTTP://Example.com/Joe/",
    ];
    let user = f.create(&typed).await?;
    let displays: Vec<&str> =
        user.identities.iter().map(|identity| identity.display.as_str()).collect();
    let wanted = ["Joe.Smith@Exämple.COM", "@Ｊoé_99", "(415) 555-2300", "HTTP://Example.com/Joe/"];
    equal(displays.as_slice(), &wanted, "the display form")?;
    let canonical: Vec<&str> =
        user.identities.iter().map(|identity| identity.identifier.canonical()).collect();
    let wanted =
        ["joe.smith@xn--exmple-cua.com", "joé_99", "+14155552300", "https://example.com/Joe"];
    equal(canonical.as_slice(), &wanted, "the canonical forms")?;
    f.owns(&user, &typed).await?;

    f.has(&user).await
}

pub async fn unlinked_identifiers_have_no_owner(f: Fixture) -> Result<(), Failure> {
    f.free(&NAMES).await?;
    let user = f.create(&["email:joe@example.com"]).await?;
    f.free(&[
        "email:jo@example.com",
        "email:joe@example.co",
        "email:joe@example.comm",
        "handle:joe",
    ])
    .await?;
    f.owns(&user, &["email:joe@example.com"]).await?;
    let none =
        f.store.lookups.resolve(&[], Consistency::Latest, View::Full, Duration::ZERO).await?;

    equal(&none.found.len(), &0, "the answers to no keys")
}

pub async fn unknown_ids_are_absent(f: Fixture) -> Result<(), Failure> {
    let nobody = f.ids.next_id();
    equal(&f.get(nobody).await?, &None, "a user of an empty store")?;
    let (a, b) = (f.create(&[]).await?, f.create(&["handle:b"]).await?);
    let found = decoded::users(&f.store, &Tenant::DEFAULT, &[b.id, nobody, a.id, b.id]).await?;
    equal(&found, &vec![Some(b.clone()), None, Some(a), Some(b)], "users by id, in order")?;
    equal(
        &f.store.lookups.get(&Tenant::DEFAULT, &[], View::Full).await?.len(),
        &0,
        "the answers to no ids",
    )
}

pub async fn extremes_come_back(f: Fixture) -> Result<(), Failure> {
    let values = [
        ("a", Value::Int(i64::MIN)),
        ("b", Value::Int(i64::MAX)),
        ("c", Value::Double(f64::MIN)),
        ("d", Value::Double(f64::MIN_POSITIVE / 4.0)),
        ("e", Value::Double(-0.0)),
        ("f", Value::Time(Timestamp::MIN)),
        ("g", Value::Time(Timestamp::MAX)),
        ("h", Value::Int(0)),
        ("i", Value::Double(0.0)),
        ("j", Value::Time(Timestamp::from_millis(-1))),
    ];
    let attributes = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut identity = draft("email:joe@example.com")?;
    identity.verification = Some(Verification { time: Timestamp::MIN, by: "𝄞".repeat(256) });
    let draft = NewUser { attributes, identities: vec![identity], ..NewUser::default() };
    let user = f.change_new(UserChange::Create(draft.clone())).await?;
    equals_draft(&user, &draft)?;
    f.has(&user).await?;
    let zero = user.attributes.get("e");

    ensure(
        matches!(zero, Some(Value::Double(zero)) if zero.is_sign_negative()),
        "minus zero lost its sign",
    )
}
