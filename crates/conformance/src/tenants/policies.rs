//! Tenants and their policies.

use std::collections::BTreeSet;
use std::time::Duration;

use polynym_directory::{
    Error, Mutation, MutationKind, MutationReport, Policies, PolicyUpdate, TenantChange,
    TenantRecord,
};
use polynym_identifier::Kind;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, request, tenant};

fn set(f: &Fixture, name: &str, update: PolicyUpdate) -> Result<Mutation, Failure> {
    Ok(Mutation {
        tenant: tenant(name)?,
        ..f.mutation_of(MutationKind::Tenant(TenantChange::Set(update)))
    })
}

async fn execute(f: &Fixture, mutation: Mutation) -> Result<TenantRecord, Failure> {
    match f.apply(mutation).await?.report {
        MutationReport::Tenant(tenant) => Ok(*tenant),
        other => Err(format!("a change of a tenant reports {other:?}").into()),
    }
}

fn all() -> PolicyUpdate {
    PolicyUpdate {
        holds: Kind::ALL.into_iter().zip([1, 2, 3, 4, 5].map(|n| DAY * n)).collect(),
        hide_unverified: Some(true),
        verified_wins: Some(true),
        phone_takeover_after: Some(Duration::from_secs(90 * 86_400)),
        keep_primary: Some(true),
        keep_last: Some(true),
        allow_lookalikes: Some(true),
        restore_window: Some(Duration::from_millis(1_500)),
        undo_window: Some(Duration::ZERO),
        history_retention: Some(Duration::from_secs(90 * 24 * 60 * 60)),
        inbox_retention: Some(Duration::from_secs(7 * 86_400)),
        inbox_limit: Some(20),
        rule_notices: Some(true),
        reserved_handles: Some(Some(["boss".to_owned()].into())),
        phone_regions: Some(vec!["DE".to_owned(), "AT".to_owned()]),
        ..PolicyUpdate::default()
    }
}

pub async fn a_tenant_is_created_and_changed(f: Fixture) -> Result<(), Failure> {
    let name = tenant("acme")?;
    equal(&f.store.tenants.tenant(&name).await?, &None, "an unknown tenant")?;
    let made = execute(&f, set(&f, "acme", PolicyUpdate::default())?).await?;
    equal(&made.policies, &Policies::default(), "the policies of a new tenant")?;
    equal(
        &execute(&f, set(&f, "acme", PolicyUpdate::default())?).await?,
        &made,
        "a change without effect",
    )?;
    let changed = execute(&f, set(&f, "acme", all())?).await?;
    equal(
        &(changed.create_time, changed.name.clone()),
        &(made.create_time, name.clone()),
        "name and creation time",
    )?;
    ensure(
        changed.update_time > made.update_time && changed.etag() != made.etag(),
        "time and etag did not change",
    )?;
    let wanted = all();
    equal(&changed.policies.holds, &wanted.holds, "the holds")?;
    equal(&Some(changed.policies.restore_window), &wanted.restore_window, "the time to restore")?;
    equal(
        &Some(changed.policies.phone_takeover_after),
        &wanted.phone_takeover_after,
        "the age of phones that can be taken",
    )?;
    equal(
        &Some(changed.policies.reserved_handles.clone()),
        &wanted.reserved_handles,
        "the reserved handles",
    )?;
    ensure(
        changed.policies.hide_unverified && changed.policies.allow_lookalikes,
        "switches are off",
    )?;
    let f = f.reopen().await?;
    equal(
        &f.store.tenants.tenant(&name).await?,
        &Some(changed.clone()),
        "the tenant after the store was closed",
    )?;
    equal(&f.store.tenants.tenant(&tenant("acm")?).await?, &None, "another tenant")?;
    let none =
        PolicyUpdate { holds: [(Kind::Email, Duration::ZERO)].into(), ..PolicyUpdate::default() };
    let changed = execute(&f, set(&f, "acme", none)?).await?;
    equal(&changed.policies.holds.get(&Kind::Email), &None, "a hold of zero duration")?;

    equal(&changed.policies.holds.len(), &4, "the other holds")
}

pub async fn an_etag_of_a_tenant_is_enforced(f: Fixture) -> Result<(), Failure> {
    let first = execute(&f, set(&f, "acme", PolicyUpdate::default())?).await?;
    let second = execute(&f, set(&f, "acme", all())?).await?;
    for (name, etag) in
        [("acme", first.etag()), ("acme", String::new()), ("elsewhere", second.etag())]
    {
        let stale = Mutation { etag: Some(etag), ..set(&f, name, PolicyUpdate::default())? };
        let outcome = f.apply(stale).await;
        ensure(
            matches!(outcome, Err(Error::EtagMismatch)),
            format!("an old etag was answered {outcome:?}"),
        )?;
    }
    equal(&f.store.tenants.tenant(&tenant("elsewhere")?).await?, &None, "the refused tenant")?;
    let current =
        Mutation { etag: Some(second.etag()), ..set(&f, "acme", PolicyUpdate::default())? };

    equal(&execute(&f, current).await?, &second, "the tenant")
}

pub async fn a_repeated_change_of_a_tenant_happens_once(f: Fixture) -> Result<(), Failure> {
    let send =
        || Ok::<_, Failure>(Mutation { request: request("tenant", 1), ..set(&f, "acme", all())? });
    let changed = execute(&f, send()?).await?;
    equal(&execute(&f, send()?).await?, &changed, "the answer to the same request")?;
    let update = PolicyUpdate { verified_wins: Some(false), ..PolicyUpdate::default() };
    let off = execute(&f, set(&f, "acme", update)?).await?;
    equal(&execute(&f, send()?).await?, &off, "the tenant as it is now")
}

pub async fn a_dry_run_changes_no_tenant(f: Fixture) -> Result<(), Failure> {
    let would = execute(&f, Mutation { dry_run: true, ..set(&f, "acme", all())? }).await?;
    ensure(would.policies.verified_wins, "a dry run does not show the result")?;
    equal(&f.store.tenants.tenant(&tenant("acme")?).await?, &None, "the tenant after a dry run")
}

pub async fn tenants_are_listed_by_name(f: Fixture) -> Result<(), Failure> {
    equal(&f.store.tenants.tenants("", "", 10).await?, &vec![], "the tenants of an empty store")?;
    let mut made = Vec::new();
    for name in ["b", "a", "ab", "a-b", "default", "c"] {
        made.push(execute(&f, set(&f, name, PolicyUpdate::default())?).await?);
    }

    made.sort_by(|a, b| a.name.cmp(&b.name));
    equal(&f.store.tenants.tenants("", "", 10).await?, &made, "all tenants")?;
    let page = |from: usize, to: usize| made[from..to].to_vec();
    equal(&f.store.tenants.tenants("", "", 2).await?, &page(0, 2), "the first two")?;
    equal(
        &f.store.tenants.tenants("", made[1].name.as_str(), 2).await?,
        &page(2, 4),
        "the next two",
    )?;
    equal(&f.store.tenants.tenants("", "zz", 2).await?, &vec![], "tenants after the last")?;
    equal(&f.store.tenants.tenants("a", "", 10).await?, &page(0, 3), "tenants with the prefix a")?;
    equal(
        &f.store.tenants.tenants("a", made[0].name.as_str(), 1).await?,
        &page(1, 2),
        "the second of them",
    )?;

    equal(&f.store.tenants.tenants("x", "", 10).await?, &vec![], "tenants with the prefix x")
}

pub async fn changes_of_a_tenant_in_one_millisecond_have_an_order(
    f: Fixture,
) -> Result<(), Failure> {
    let time = f.now();
    let mut tenants = vec![
        execute(&f, Mutation { now: time.into(), ..set(&f, "acme", PolicyUpdate::default())? })
            .await?,
    ];
    for on in [true, false, true, false] {
        let update = PolicyUpdate { verified_wins: Some(on), ..PolicyUpdate::default() };
        let etag = tenants.last().map(TenantRecord::etag);
        tenants.push(
            execute(&f, Mutation { now: time.into(), etag, ..set(&f, "acme", update)? }).await?,
        );
    }

    for pair in tenants.windows(2) {
        ensure(
            pair[0].update_time < pair[1].update_time,
            format!("two changes at one time: {pair:?}"),
        )?;
    }
    let etags: BTreeSet<_> = tenants.iter().map(TenantRecord::etag).collect();

    equal(&etags.len(), &tenants.len(), "different etags")
}
