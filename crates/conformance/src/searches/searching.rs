//! Searches: every path finds the users of a reference in its order and in pages of any size.

use std::collections::BTreeSet;

use polynym_directory::{
    AccessPath, Filter, Mutation, NewUser, Position, Record, SearchedUser, Tenant, Timestamp,
    Update, User, UserChange, Value, View, search::parse_order_by,
};
use polynym_identifier::Rules;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;
use crate::fixture::{Fixture, create, draft, tenant};

/// 2^53: larger integers have no exact double.
const EXACT_DOUBLE_LIMIT: i64 = 1 << 53;

pub fn filter(text: &str) -> Result<Filter, Failure> {
    Ok(Filter::parse(text, &[Rules::PRESENT])?)
}

/// A user with these attributes.
fn with(attributes: impl IntoIterator<Item = (String, Value)>) -> UserChange {
    let attributes = attributes.into_iter().collect();
    UserChange::Create(NewUser { attributes, ..NewUser::default() })
}

async fn create_with(f: &Fixture, value: Value) -> Result<User, Failure> {
    Ok(f.change_new(with([("a".to_owned(), value)])).await?)
}

/// All users of a tenant from a scan.
pub async fn all_users(f: &Fixture, of: &Tenant) -> Result<Vec<Record>, Failure> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = f.store.search.scan(of, after, 100).await?;
        after = page.next;
        all.extend(page.into_readable());
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The users that a path finds, read in pages of `size`.
async fn found(
    f: &Fixture,
    of: &Tenant,
    path: &AccessPath,
    size: usize,
) -> Result<Vec<SearchedUser>, Failure> {
    found_in(View::Full, f, of, path, size).await
}

/// The same in this view.
async fn found_in(
    view: View,
    f: &Fixture,
    of: &Tenant,
    path: &AccessPath,
    size: usize,
) -> Result<Vec<SearchedUser>, Failure> {
    let (mut all, mut after): (Vec<SearchedUser>, Option<Position>) = (Vec::new(), None);
    loop {
        let page = f.store.search.search(of, path, after.as_ref(), size, view).await?;
        ensure(page.users.len() <= size, format!("{path}: a page of {} users", page.users.len()))?;
        after.clone_from(&page.next);
        all.extend(page.into_readable());
        let last = all.last().and_then(|last| path.position_of_found(&last.user));
        let goes_on = after.is_none() || last <= after;
        ensure(goes_on, format!("{path} goes on before its last user"))?;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The users that a path should find, in order.
fn wanted(path: &AccessPath, mut all: Vec<Record>) -> Vec<Record> {
    all.retain(|record| path.position(&record.user).is_some());
    all.sort_by_key(|record| path.position(&record.user));
    all
}

async fn check_lead(
    f: &Fixture,
    of: &Tenant,
    path: &AccessPath,
    size: usize,
) -> Result<(), Failure> {
    let wanted = wanted(path, all_users(f, of).await?);
    let ids: Vec<_> = wanted.iter().map(Record::id).collect();
    for view in [View::Full, View::Basic] {
        let found = found_in(view, f, of, path, size).await?;
        let those: Vec<_> = found.iter().map(|found| found.user.id).collect();
        equal(&those, &ids, &format!("{path}, in pages of {size}"))?;
        let part = |own: &Record| SearchedUser::new(own.user.clone(), path.view(view));
        let users: Vec<_> = wanted.iter().map(part).collect();
        equal(&found, &users, &format!("what {path} finds"))?;
    }
    let probed = f.store.search.probe(of, path, 101).await?;
    ensure(probed <= 101 && (probed == 0) == wanted.is_empty(), format!("{path}: probed {probed}"))
}

/// Values of each type in order; those of one row are equal.
fn values() -> Vec<Vec<Value>> {
    let text = |text: &str| Value::String(text.to_owned());
    let time = |millis| Value::Time(Timestamp::from_millis(millis));
    vec![
        vec![Value::Double(f64::MIN)],
        vec![Value::Int(i64::MIN), Value::Double(i64::MIN as f64)],
        vec![Value::Int(-EXACT_DOUBLE_LIMIT - 1)],
        vec![Value::Int(-EXACT_DOUBLE_LIMIT), Value::Double(-EXACT_DOUBLE_LIMIT as f64)],
        vec![Value::Int(-2)],
        vec![Value::Double(-1.5)],
        vec![Value::Double(-f64::MIN_POSITIVE)],
        vec![Value::Int(0), Value::Double(-0.0), Value::Double(0.0)],
        vec![Value::Double(0.1)],
        vec![Value::Int(1), Value::Double(1.0)],
        vec![Value::Int(EXACT_DOUBLE_LIMIT), Value::Double(EXACT_DOUBLE_LIMIT as f64)],
        vec![Value::Int(EXACT_DOUBLE_LIMIT + 1)],
        vec![Value::Int(EXACT_DOUBLE_LIMIT + 2), Value::Double((EXACT_DOUBLE_LIMIT + 2) as f64)],
        vec![Value::Int(i64::MAX - 1)],
        vec![Value::Int(i64::MAX)],
        vec![Value::Double(i64::MAX as f64)],
        vec![Value::Double(f64::MAX)],
        vec![text(""), Value::List(vec![String::new()])],
        vec![text("A")],
        vec![text("a")],
        vec![text("a b")],
        vec![text("ab"), Value::List(vec!["ab".to_owned(), "zz".to_owned()])],
        vec![text("é")],
        vec![text("\u{ffff}")],
        vec![text("😀")],
        vec![Value::Bool(false)],
        vec![Value::Bool(true)],
        vec![time(Timestamp::MIN.as_millis())],
        vec![time(-1)],
        vec![time(0)],
        vec![time(Timestamp::MAX.as_millis())],
    ]
}

pub async fn values_of_each_type_have_one_order(f: Fixture) -> Result<(), Failure> {
    let mut lines = values();
    lines.reverse();
    for value in lines.into_iter().flatten() {
        create_with(&f, value).await?;
    }
    create_with(&f, Value::List(Vec::new())).await?;
    create_with(&f, Value::String("x".repeat(257))).await?;

    let field = parse_order_by("attributes.a")?.ok_or("no field")?;
    let path = filter("")?.ordered_paths(&field).remove(0);
    let all = found(&f, &Tenant::DEFAULT, &path, 7).await?;
    let order = |value: &Value| values().iter().position(|line| line.contains(value));
    let positions: Vec<_> = all.iter().map(|record| order(&record.user.attributes["a"])).collect();
    ensure(
        positions.is_sorted() && !positions.contains(&None),
        format!("the order {positions:?}"),
    )?;
    equal(&positions.len(), &values().concat().len(), "users with a value")?;

    for text in [
        "attributes.a = 0",
        "attributes.a = -0.0",
        "attributes.a = 9007199254740993",
        "attributes.a >= 9007199254740992",
        "attributes.a < -1",
        "attributes.a <= 1.0",
        "attributes.a = \"\"",
        "attributes.a >= \"\"",
        "attributes.a > \"\"",
        "attributes.a = \"a*\"",
        "attributes.a = \"*\"",
        "attributes.a = \"é*\"",
        "attributes.a < true",
        "attributes.a >= false",
        "attributes.a = true",
        "attributes.a > 1969-12-31T23:59:59.999Z",
        "attributes.a < 1970-01-01T00:00:00Z",
        "attributes.a:*",
        "attributes.nobody:*",
    ] {
        for path in filter(text)?.access_paths() {
            check_lead(&f, &Tenant::DEFAULT, &path, 3).await?;
        }
    }
    Ok(())
}

pub async fn a_search_shows_the_last_change(f: Fixture) -> Result<(), Failure> {
    let joe = f.change_new(with([("team".to_owned(), Value::String("a".to_owned()))])).await?;
    let find = async |text: &str| -> Result<usize, Failure> {
        let path = filter(text)?.access_paths().into_iter().next().ok_or("no path")?;
        check_lead(&f, &Tenant::DEFAULT, &path, 2).await?;
        Ok(found(&f, &Tenant::DEFAULT, &path, 2).await?.len())
    };
    equal(&find("attributes.team = a").await?, &1, "users in a team")?;
    let attributes = [("team".to_owned(), Value::String("b".to_owned()))].into();
    let moved = Update::from_mask(None, "Joe".to_owned(), attributes)?;
    f.change(&joe, UserChange::Update(moved)).await?;
    equal(&find("attributes.team = a").await?, &0, "users in the old team")?;
    equal(&find("attributes.team = b").await?, &1, "users in the new team")?;
    equal(&find("display_name = Joe").await?, &1, "users of that name")?;
    f.change(&joe, UserChange::Disable).await?;
    equal(&find("state = DISABLED").await?, &1, "disabled users")?;
    f.change(&joe, UserChange::Enable).await?;
    equal(&find("state = DISABLED").await?, &0, "disabled users after that")?;
    f.apply(f.mutation(joe.id, UserChange::Purge)).await?;
    equal(&find("attributes.team:*").await?, &0, "users in a team after a purge")
}

pub async fn identities_lead_a_search(f: Fixture) -> Result<(), Failure> {
    let names = ["email:ann@x.org", "email:anna@x.org", "handle:ann", "handle:аня"];
    for name in names {
        f.create(&[name]).await?;
    }
    f.create(&["email:b@x.org", "email:ab@x.org", "phone:+14155552300"]).await?;
    for text in [
        "identities.email = ANN@x.org",
        "identities.email = an*",
        "identities.email:*",
        "identities.handle:*",
        "identities.phone = +1415*",
        "identities.url:*",
        "identities.handle = nobody",
    ] {
        let path = filter(text)?.access_paths().remove(0);
        for size in [1, 10] {
            check_lead(&f, &Tenant::DEFAULT, &path, size).await?;
        }
    }
    Ok(())
}

pub async fn words_of_names_are_found(f: Fixture) -> Result<(), Failure> {
    let names = ["María Müller", "Anna-Maria Weiß", "MARIA", "Mario Müller-Lüdenscheidt", "", "★"];
    let mut users = Vec::new();
    for name in names {
        let new = NewUser { display_name: name.to_owned(), ..NewUser::default() };
        users.push(f.change_new(UserChange::Create(new)).await?);
    }
    for (text, count) in [
        ("display_name:maria", 3),
        ("display_name:\"maria muller\"", 1),
        ("display_name:\"mari*\"", 4),
        ("display_name:\"müller mari*\"", 2),
        ("display_name:\"*Müller\"", 1),
        ("display_name = \"*maria WEISS\"", 1),
        ("display_name:\"*\"", 4),
        ("display_name:nobody", 0),
    ] {
        equal(&count_found(&f, text).await?, &count, text)?;
    }

    let renamed = Update::from_mask(None, "Łucja Nowak".to_owned(), [].into())?;
    f.change(&users[2], UserChange::Update(renamed)).await?;
    equal(&count_found(&f, "display_name:maria").await?, &2, "users of the old name")?;
    equal(&count_found(&f, "display_name:LUCJA").await?, &1, "users of the new name")?;
    f.apply(f.mutation(users[0].id, UserChange::Purge)).await?;
    equal(&count_found(&f, "display_name:maria").await?, &1, "users after a purge")
}

pub async fn ends_of_domains_are_found(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["email:joe@firma.example", "email:joe@a.firma.example"]).await?;
    f.create(&["email:ann@Firma.Example", "handle:firma"]).await?;
    f.create(&["email:eve@exämple.org", "phone:+14155552300"]).await?;
    for (text, count) in [
        ("identities.email = \"*@FIRMA.example\"", 2),
        ("identities.email = \"*firma.example\"", 2),
        ("identities.email = \"*n@firma.example\"", 1),
        ("identities.email:\"*.example\"", 2),
        ("identities.email = \"*@exämple.org\"", 1),
        ("identities.email = \"*@nobody.example\"", 0),
        ("identities.phone = \"*2300\"", 1),
    ] {
        equal(&count_found(&f, text).await?, &count, text)?;
    }
    let identifier = draft("email:joe@firma.example")?.identifier;
    f.change(&joe, UserChange::Unlink(identifier)).await?;
    equal(&count_found(&f, "identities.email = \"*@firma.example\"").await?, &1, "after an unlink")
}

/// The number of users that a filter matches. Each of its paths finds them all, in its order.
pub async fn count_found(f: &Fixture, text: &str) -> Result<usize, Failure> {
    let filter = filter(text)?;
    let (tenant, mut counts) = (&Tenant::DEFAULT, BTreeSet::new());
    for path in filter.access_paths().into_iter().chain([AccessPath::All]) {
        for size in [1, 3] {
            check_lead(f, tenant, &path, size).await?;
            let found = found(f, tenant, &path, size).await?;
            counts.insert(found.iter().filter(|found| filter.matches(&found.user)).count());
        }
    }
    ensure(counts.len() == 1, format!("{text}: its paths find {counts:?}"))?;
    Ok(counts.into_iter().sum())
}

pub async fn tenants_do_not_find_each_others_users(f: Fixture) -> Result<(), Failure> {
    let tenants = [tenant("a")?, tenant("a-b")?, tenant("b")?];
    for (n, tenant) in tenants.iter().enumerate() {
        let attributes = [("n".to_owned(), Value::Int(n as i64))].into();
        let identities = vec![draft("email:joe@example.com")?];
        let change =
            UserChange::Create(NewUser { attributes, identities, display_name: "Joe".to_owned() });
        let mutation = f.mutation(f.ids.next_id(), change);
        f.mutate(Mutation { tenant: tenant.clone(), ..mutation }).await?;
    }
    for (n, tenant) in tenants.iter().enumerate() {
        for (text, count) in [
            ("attributes.n:*", 1),
            (&format!("attributes.n = {n}"), 1),
            (&format!("attributes.n = {}", n + 1), 0),
            ("display_name = Joe", 1),
            ("identities.email = joe@example.com", 1),
            ("identities.email:*", 1),
        ] {
            let path = filter(text)?.access_paths().remove(0);
            check_lead(&f, tenant, &path, 5).await?;
            equal(&found(&f, tenant, &path, 5).await?.len(), &count, text)?;
        }
        check_lead(&f, tenant, &AccessPath::All, 5).await?;
    }
    Ok(())
}

pub async fn random_filters_agree_with_the_reference(f: Fixture) -> Result<(), Failure> {
    let mut random = Random(0x5eed_1234_5678_9abc);
    for n in 0..120 {
        let user = f.change_new(random.user()).await?;
        if n % 9 == 0 {
            f.change(&user, UserChange::Disable).await?;
        }
    }
    let all = all_users(&f, &Tenant::DEFAULT).await?;
    for _ in 0..20 {
        let text = random.filter();
        let filter = filter(&text)?;
        let matches: BTreeSet<_> =
            all.iter().filter(|record| filter.matches(&record.user)).map(Record::id).collect();
        let order = parse_order_by(random.one_of(&["attributes.a", "display_name"]))?;
        let ordered = order.map(|field| filter.ordered_paths(&field)).unwrap_or_default();
        for (path, is_whole) in filter
            .access_paths()
            .into_iter()
            .chain([AccessPath::All])
            .map(|path| (path, true))
            .chain(ordered.into_iter().map(|path| (path, false)))
        {
            let size = 1 + random.below(50);
            check_lead(&f, &Tenant::DEFAULT, &path, size).await?;
            let records = found(&f, &Tenant::DEFAULT, &path, size).await?;
            let matching = records.iter().filter(|record| filter.matches(&record.user));
            let found: BTreeSet<_> = matching.map(|record| record.user.id).collect();
            let agrees = if is_whole { found == matches } else { found.is_subset(&matches) };
            ensure(agrees, format!("{text}: {path} finds {} of {}", found.len(), matches.len()))?;
        }
    }
    Ok(())
}

pub async fn unchanged_users_are_found_once_during_writes(f: Fixture) -> Result<(), Failure> {
    let mut random = Random(77);
    let (mut unchanged, mut changing) = (BTreeSet::new(), Vec::new());
    for n in 0..60 {
        let user = create_with(&f, Value::Int(random.below(8) as i64)).await?;
        if n % 3 == 0 {
            changing.push(user);
        } else {
            unchanged.insert(user.id);
        }
    }
    for text in ["", "attributes.a:*", "attributes.a >= 0"] {
        let path = filter(text)?.access_paths().into_iter().next().unwrap_or(AccessPath::All);
        let (mut seen, mut after): (Vec<_>, Option<Position>) = (Vec::new(), None);
        loop {
            let (of, after_last) = (&Tenant::DEFAULT, after.as_ref());
            let page = f.store.search.search(of, &path, after_last, 7, View::Full).await?;
            after.clone_from(&page.next);
            let ids = page.readable().map(|seen| seen.user.id);
            seen.extend(ids.filter(|id| unchanged.contains(id)));
            if after.is_none() {
                break;
            }
            for _ in 0..5 {
                let user = random.one_of(&changing);
                let attributes = [("a".to_owned(), Value::Int(random.below(8) as i64))].into();
                let update = Update::from_mask(None, String::new(), attributes)?;
                f.change(&user, UserChange::Update(update)).await?;
            }
            f.change_new(create(&[])?).await?;
        }
        equal(&seen.len(), &unchanged.len(), &format!("users found by {path}"))?;
        let distinct: BTreeSet<_> = seen.into_iter().collect();
        equal(&distinct, &unchanged, &format!("the users found by {path}"))?;
    }
    Ok(())
}
