//! The newest events of a tenant are those of the histories of its users.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    Event, EventPosition, Mutation, PageLimit, Tenant, Timestamp, Update, UserChange,
};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;
use crate::fixture::{Fixture, at, create, tenant};

/// Users of the tenant, of whom many are created in the same millisecond.
const USERS: usize = 240;
/// The times of their creation.
const TIMES: usize = 4;
/// Users who change again and again, so that their events are in several places.
const BUSY: usize = 6;
const CHANGES: usize = 20;
/// The lists that are compared, each of another period by parts of another size.
const LISTS: usize = 12;
const MILLISECOND: Duration = Duration::from_millis(1);

type Fact = (Timestamp, LocalityId, u64);

fn fact(event: &Event) -> Fact {
    (event.time, event.user, event.sequence)
}

/// The events of all histories of these users.
async fn of_histories(f: &Fixture, users: &[LocalityId]) -> Result<BTreeSet<Fact>, Failure> {
    let (histories, limit) = (&f.store.histories, PageLimit::unlimited());
    let mut facts = BTreeSet::new();
    for user in users {
        let history = histories.history(&Tenant::DEFAULT, *user, None, limit).await?;
        facts.extend(
            history.into_iter().flat_map(|history| history.events).map(|event| fact(&event)),
        );
    }
    Ok(facts)
}

/// The events of a period, by parts of this many.
async fn newest(f: &Fixture, times: &Range<Timestamp>, items: usize) -> Result<Vec<Fact>, Failure> {
    let (mut facts, mut before): (Vec<Fact>, Option<EventPosition>) = (Vec::new(), None);
    loop {
        let limit = PageLimit::new(items, 1 << 20);
        let histories = &f.store.histories;
        let part = histories.newest_events(&Tenant::DEFAULT, times.clone(), before, limit).await?;
        ensure(part.events.len() <= items, "more events than asked for")?;
        ensure(part.unreadable.is_empty(), "an unreadable event")?;
        facts.extend(part.events.iter().map(|(_, event)| fact(event)));
        let Some(next) = part.next else { return Ok(facts) };
        ensure(before.is_none_or(|before| next < before), "a part that does not go on")?;
        before = Some(next);
    }
}

async fn compare(f: &Fixture, users: &[LocalityId], random: &mut Random) -> Result<(), Failure> {
    let all = of_histories(f, users).await?;
    let (first, last) = (all.first().ok_or("no events")?.0, all.last().ok_or("no events")?.0);
    let span = usize::try_from(last.as_millis() - first.as_millis())?;
    for n in 0..LISTS {
        let after = |millis: usize| first.plus(MILLISECOND * millis as u32);
        let times = match n {
            0 => Timestamp::MIN..Timestamp::MAX,
            1 => first..last,
            2 => last..last.plus(MILLISECOND),
            _ => after(random.below(span + 1))..after(random.below(span + 2)),
        };
        let items = random.one_of(&[1, 3, 10, 64, 256]);
        let items = if n == 0 { 7 } else { items };
        let found = newest(f, &times, items).await?;
        let wanted = all.iter().filter(|(time, ..)| times.contains(time)).copied();
        let is_newest_first = found.windows(2).all(|pair| pair[0].0 >= pair[1].0);
        ensure(is_newest_first, "an event before an older one")?;
        equal(&found.len(), &found.iter().collect::<BTreeSet<_>>().len(), "events once")?;
        let (found, wanted) = (BTreeSet::from_iter(found), BTreeSet::from_iter(wanted));
        let lost = wanted.symmetric_difference(&found).collect::<Vec<_>>();
        ensure(lost.is_empty(), format!("{times:?} by {items}: {lost:?}"))?;
    }
    Ok(())
}

/// The newest events are those of all histories, in each period and by parts of each size, also
/// after merges, purges and a restart, and none of another tenant.
pub async fn newest_events_are_those_of_histories(f: Fixture) -> Result<(), Failure> {
    let (mut random, begin) = (Random(0x5eed_a0d1), f.now().minus(Duration::from_secs(3_600)));
    let users: Vec<_> = (0..USERS).map(|_| f.ids.next_id()).collect();
    let mut creations = Vec::new();
    for (n, user) in users.iter().enumerate() {
        let time = begin.plus(MILLISECOND * random.below(TIMES) as u32);
        creations.push(at(time, f.mutation(*user, create(&[&format!("handle:user{n}")])?)));
    }
    for outcome in f.store.mutations.mutate_all(creations).await {
        outcome?;
    }
    for n in 0..CHANGES {
        for user in &users[..BUSY] {
            let time = begin.plus(MILLISECOND * (TIMES + 2 * n + random.below(2)) as u32);
            let name = format!("name {n} {}", "x".repeat(random.one_of(&[0, 200])));
            let rename = UserChange::Update(Update::from_mask(None, name, Default::default())?);
            f.mutate(at(time, f.mutation(*user, rename))).await?;
        }
    }
    let other = tenant("other")?;
    f.mutate(Mutation { tenant: other.clone(), ..f.creation(&["handle:other"])? }).await?;
    compare(&f, &users, &mut random).await?;

    f.mutate(f.mutation(users[0], UserChange::Merge(users[BUSY], Default::default()))).await?;
    for user in [users[1], users[BUSY + 1]] {
        f.apply(f.mutation(user, UserChange::Purge)).await?;
    }
    let f = f.reopen().await?;
    compare(&f, &users, &mut random).await
}
