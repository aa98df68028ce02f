//! Deliveries of events.

use futures_util::future::join_all;
use locality_uuid::LocalityId;
use polynym_directory::{
    DeliveryChanges, DeliveryError, DeliveryProgress, DeliveryRunStep, DeliveryStep,
    DeliveryTarget, DeliveryUpdate, EVENTS_EXPIRED, Error, EventDelivery, Held, MutationKind,
    MutationReport, PolicyUpdate, Tenant, TenantChange, model::delivery::record::MAX_DELIVERIES,
    model::delivery::step::LEASE,
};

use super::fixture::Fixture;
use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;

const ID: &str = "hook";

async fn create_tenant(f: &Fixture) -> Result<(), Failure> {
    let set = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
    Ok(f.apply(f.mutation_of(set)).await.map(drop)?)
}

fn new_delivery(f: &Fixture, id: &str, url: &str) -> EventDelivery {
    let target = DeliveryTarget {
        url: url.to_owned(),
        kinds: Vec::new(),
        with_values: true,
        secrets: vec!["whsec_a".to_owned()],
        description: String::new(),
    };
    EventDelivery::new(Tenant::DEFAULT, id, target, vec![1], f.now())
}

/// Takes a step. Returns the delivery, unless the step has no effect.
async fn step(f: &Fixture, id: &str, step: DeliveryStep) -> Result<Option<EventDelivery>, Error> {
    let kind = MutationKind::Delivery(id.to_owned(), step);
    Ok(match f.apply(f.mutation_of(kind)).await?.report {
        MutationReport::Delivery(delivery) => Some(*delivery),
        _ => None,
    })
}

/// A change by a caller, while the feed ends at 9.
fn update(changes: DeliveryChanges) -> DeliveryStep {
    let (end, caller) = (vec![9], "ana".to_owned());
    DeliveryStep::Update(Box::new(DeliveryUpdate { changes, end, caller }))
}

async fn stored(f: &Fixture) -> Result<EventDelivery, Failure> {
    let stored = f.store.deliveries.delivery(&Tenant::DEFAULT, ID).await?;
    Ok(stored.ok_or("it is gone")?)
}

async fn create(f: &Fixture, id: &str) -> Result<EventDelivery, Error> {
    let new = new_delivery(f, id, "https://example.com/");
    let created = step(f, id, DeliveryStep::Create(Box::new(new))).await?;
    created.ok_or_else(|| Error::Internal("it was not created".into()))
}

async fn run(
    f: &Fixture,
    server: LocalityId,
    run: DeliveryRunStep,
) -> Result<Option<EventDelivery>, Error> {
    step(f, ID, DeliveryStep::Run(server, run)).await
}

async fn due(f: &Fixture) -> Result<Vec<String>, Error> {
    let due = f.store.deliveries.due_deliveries(f.now(), 10).await?;
    Ok(due.into_iter().map(|(_, id)| id).collect())
}

fn progress(position: u8) -> Box<DeliveryProgress> {
    Box::new(DeliveryProgress { position: vec![position], ..DeliveryProgress::default() })
}

pub async fn one_server_delivers(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (one, other) = (f.ids.next_id(), f.ids.next_id());
    let created = create(&f, ID).await?;
    equal(&create(&f, ID).await?, &created, "the same one, created again")?;
    let another = new_delivery(&f, ID, "https://example.org/");
    let refused = step(&f, ID, DeliveryStep::Create(Box::new(another))).await;
    ensure(
        matches!(refused, Err(Error::Delivery(DeliveryError::Exists))),
        "another one with its id was created",
    )?;
    equal(&due(&f).await?, &vec![ID.to_owned()], "the due ones")?;

    step(&f, ID, DeliveryStep::Take(one)).await?.ok_or("it was not taken")?;
    equal(&due(&f).await?, &Vec::new(), "the due ones")?;
    equal(&step(&f, ID, DeliveryStep::Take(other)).await?, &None, "taken by another server")?;
    let saved = run(&f, one, DeliveryRunStep::Save(progress(2))).await?.ok_or("not saved")?;
    equal(&saved.progress, &*progress(2), "the progress")?;
    equal(&run(&f, other, DeliveryRunStep::Renew).await?, &None, "renewed by another server")?;
    let renewed = run(&f, one, DeliveryRunStep::Renew).await?.ok_or("it was not renewed")?;
    equal(&renewed, &EventDelivery { lease: renewed.lease, ..saved }, "the rest of it")?;

    // The first server is gone for a while.
    f.wait_until(f.now().plus(LEASE * 2));
    let f = f.reopen().await?;
    let stored = f.store.deliveries.delivery(&Tenant::DEFAULT, ID).await?;
    equal(&stored, &Some(renewed), "the stored one")?;
    equal(&due(&f).await?, &vec![ID.to_owned()], "the due ones")?;
    ensure(step(&f, ID, DeliveryStep::Take(other)).await?.is_some(), "nobody took over")?;
    let late = run(&f, one, DeliveryRunStep::Save(progress(9))).await?;
    equal(&late, &None, "progress of the first server")?;
    let released = run(&f, other, DeliveryRunStep::Release(progress(3))).await?;
    let released = released.ok_or("it was not released")?;
    let is_free = released.lease.is_some_and(|lease| lease.until <= f.now());
    ensure(is_free && released.progress == *progress(3), "not released")?;
    let time = released.due_time().ok_or("a released one is not due")?;
    ensure(time > released.update_time, "a released one is the first again")?;
    equal(&due(&f).await?, &vec![ID.to_owned()], "the due ones")
}

pub async fn a_paused_delivery_is_not_taken(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let server = f.ids.next_id();
    create(&f, ID).await?;
    step(&f, ID, DeliveryStep::Take(server)).await?.ok_or("it was not taken")?;
    let paused =
        |paused| update(DeliveryChanges { paused: Some(paused), ..DeliveryChanges::default() });
    let stopped = step(&f, ID, paused(true)).await?.ok_or("it was not paused")?;
    let pause = stopped.pause.ok_or("it is not paused")?;
    equal(&(&*pause.reason, &*pause.caller), &("PAUSED", "ana"), "the pause")?;
    equal(&run(&f, server, DeliveryRunStep::Save(progress(5))).await?, &None, "its server")?;
    equal(&step(&f, ID, DeliveryStep::Take(server)).await?, &None, "taken while it is paused")?;
    f.wait_until(f.now().plus(LEASE * 2));
    equal(&due(&f).await?, &Vec::new(), "the due ones")?;

    step(&f, ID, paused(false)).await?.ok_or("it does not go on")?;
    equal(&due(&f).await?, &vec![ID.to_owned()], "the due ones")?;
    step(&f, ID, DeliveryStep::Take(server)).await?.ok_or("it was not taken again")?;
    let gone = DeliveryRunStep::Pause(progress(6), "RECEIVER_GONE".to_owned());
    let gone = run(&f, server, gone).await?.ok_or("its server did not pause it")?;
    equal(&gone.pause.map(|pause| pause.reason), &Some("RECEIVER_GONE".to_owned()), "the pause")?;
    equal(&gone.progress, &*progress(6), "the progress")
}

pub async fn changes_of_a_delivery_keep_each_other(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    create(&f, ID).await?;
    let none = DeliveryChanges::default;
    let url = |n| Some(format!("https://{n}.example/"));
    for n in 0..4 {
        let text = Some(format!("number {n}"));
        let changes = [
            DeliveryChanges { url: url(n), ..none() },
            DeliveryChanges { description: text.clone(), ..none() },
            DeliveryChanges { with_values: Some(n % 2 == 0), ..none() },
        ];
        let changed = changes.map(|changes| step(&f, ID, update(changes)));
        for changed in join_all(changed).await {
            changed?;
        }
        let target = stored(&f).await?.target;
        equal(&(Some(target.url), Some(target.description)), &(url(n), text), "the changes")?;
        equal(&target.with_values, &(n % 2 == 0), "the values")?;
    }
    // One whose events are gone goes on at the end, any other where it was.
    let server = f.ids.next_id();
    for (reason, position) in [("RECEIVER_GONE", vec![6]), (EVENTS_EXPIRED, vec![9])] {
        step(&f, ID, DeliveryStep::Take(server)).await?.ok_or("it was not taken")?;
        run(&f, server, DeliveryRunStep::Pause(progress(6), reason.to_owned())).await?;
        step(&f, ID, update(DeliveryChanges { paused: Some(false), ..none() })).await?;
        equal(&stored(&f).await?.progress.position, &position, reason)?;
    }
    Ok(())
}

pub async fn events_are_delivered_again_beside_those_that_wait(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (server, user, other) = (f.ids.next_id(), f.ids.next_id(), f.ids.next_id());
    create(&f, ID).await?;
    step(&f, ID, DeliveryStep::Take(server)).await?.ok_or("it was not taken")?;
    let events = |user, first| [(user, Held::new(first, 9, f.now()))].into_iter().collect();
    step(&f, ID, DeliveryStep::Replay(events(other, 4))).await?.ok_or("not replayed")?;
    let mut held = progress(2);
    held.held = events(user, 3);
    let saved = run(&f, server, DeliveryRunStep::Save(held)).await?.ok_or("not saved")?;
    ensure(saved.replays.is_empty(), "the events are not taken over")?;
    let firsts = [user, other].map(|user| saved.progress.held.get(user).map(|held| held.first));
    equal(&firsts, &[Some(3), Some(4)], "the events that wait")?;
    let many = (0..1_000).map(|_| (f.ids.next_id(), Held::new(1, 1, f.now())));
    let refused = step(&f, ID, DeliveryStep::Replay(many.collect())).await;
    ensure(
        matches!(refused, Err(Error::Delivery(DeliveryError::TooManyHeld { .. }))),
        "events of too many users wait",
    )
}

pub async fn a_tenant_has_few_deliveries(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    for n in 0..MAX_DELIVERIES - 5 {
        create(&f, &format!("hook-{n}")).await?;
    }
    let ids: Vec<_> = (0..10).map(|n| format!("late-{n}")).collect();
    let mut refused = 0;
    for created in join_all(ids.iter().map(|id| create(&f, id))).await {
        match created {
            Err(Error::Delivery(DeliveryError::TooMany { .. })) => refused += 1,
            created => drop(created?),
        }
    }
    equal(&refused, &5, "the refused ones")?;
    let all = f.store.deliveries.deliveries(&Tenant::DEFAULT).await?;
    equal(&all.len(), &MAX_DELIVERIES, "the stored ones")?;
    ensure(all.is_sorted_by_key(|delivery| &delivery.id), "they are not in order")?;

    for _ in 0..2 {
        equal(&step(&f, "hook-0", DeliveryStep::Delete).await?, &None, "the deleted one")?;
    }
    create(&f, "another").await?;
    f.store.deliveries.remove_deliveries(&Tenant::DEFAULT).await?;
    equal(&f.store.deliveries.deliveries(&Tenant::DEFAULT).await?, &Vec::new(), "those left")?;
    equal(&due(&f).await?, &Vec::new(), "the due ones")
}
