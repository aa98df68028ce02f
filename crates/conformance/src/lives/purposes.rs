//! Events keep why their mutation was made.

use polynym_directory::{Event, Mutation, Origin, PageLimit, Tenant, User, UserChange};

use crate::fixture::assertions::equal;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier};

const REASON: &str = "left the company: größer 株";
const NAME: &str = "handle:joe";

fn with_purpose(mutation: Mutation, operation_id: &str) -> Mutation {
    let (reason, operation_id) = (REASON.to_owned(), operation_id.to_owned());
    let origin = Origin { reason, operation_id, ..Origin::server("test") };
    Mutation { origin, ..mutation }
}

/// The reasons and operations of a user's events, the oldest first.
async fn purposes(f: &Fixture, user: &User) -> Result<Vec<(String, String)>, Failure> {
    let limit = PageLimit::unlimited();
    let history = f.store.histories.history(&Tenant::DEFAULT, user.id, None, limit).await?;
    let purpose = |event: Event| (event.origin.reason, event.origin.operation_id);
    Ok(history.ok_or("the user is gone")?.events.into_iter().rev().map(purpose).collect())
}

pub async fn events_keep_the_reason_and_the_operation(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = (f.create(&[NAME]).await?, f.create(&["handle:ann"]).await?);
    // Enough events for some to leave the end of the history.
    for n in 0..12 {
        let change = if n % 2 == 0 { UserChange::Disable } else { UserChange::Enable };
        f.mutate(with_purpose(f.mutation(joe.id, change), &format!("bulk-{n}"))).await?;
    }
    let change = UserChange::Move(joe.id, identifier(NAME)?);
    f.mutate(with_purpose(f.mutation(ann.id, change), "move")).await?;

    let f = f.reopen().await?;
    let text = |n: usize| (REASON.to_owned(), format!("bulk-{n}"));
    let moved = (REASON.to_owned(), "move".to_owned());
    let none = (String::new(), String::new());
    let expected: Vec<_> =
        [none.clone()].into_iter().chain((0..12).map(text)).chain([moved.clone()]).collect();
    equal(&purposes(&f, &joe).await?, &expected, "the events of the changed user")?;
    equal(&purposes(&f, &ann).await?, &vec![none.clone(), moved], "those of the other user")?;

    // The reason may name the purged user.
    f.apply(f.mutation(ann.id, UserChange::Purge)).await?;
    let left = purposes(&f, &joe).await?;
    equal(&left.first(), &Some(&none), "the first event")?;
    equal(&left[1..13], &expected[1..13], "the user's own events")?;
    equal(&left.last(), &Some(&(String::new(), "move".to_owned())), "the redacted event")
}
