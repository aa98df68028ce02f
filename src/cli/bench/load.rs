//! Makes sure that the users are there: looks which are missing, and registers those.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use locality_uuid::LocalityId;
use tonic::{Code, Status};

use super::caller::Caller;
use super::message::{Changed, ChangedBatch, ChangedOutcome};
use super::people::Person;
use crate::cli::failure::Failure;

/// Users that one call asks for, and how many such calls are under way.
const LOOK: u64 = 100;
const LOOKS: usize = 16;
/// Registrations under way: many share one sync to the disk.
const CREATES: usize = 512;

/// Creates those of the people 0 to `users` that are missing, and returns all their ids.
pub async fn ensure(
    users: u64,
    caller: &impl Fn(usize) -> Caller,
) -> Result<Vec<LocalityId>, Failure> {
    let progress = bar(users, "looking");
    let looks = (0..users.div_ceil(LOOK))
        .map(|n| find_existing(caller(n as usize), n * LOOK, users.min((n + 1) * LOOK)));
    let looks =
        stream::iter(looks).buffered(LOOKS).inspect_ok(|found| progress.inc(found.len() as u64));
    let found: Vec<Vec<Option<LocalityId>>> = looks.try_collect().await?;
    progress.finish_and_clear();

    let mut ids = found.concat();
    let missing: Vec<u64> = (0..users).filter(|n| ids[*n as usize].is_none()).collect();
    let progress = bar(missing.len() as u64, "loading");
    let creates = missing.into_iter().map(|n| create(caller(n as usize), n));
    let mut creates = stream::iter(creates).buffer_unordered(CREATES);
    while let Some((n, id)) = creates.try_next().await? {
        ids[n as usize] = Some(id);
        progress.inc(1);
    }
    progress.finish_and_clear();

    Ok(ids.into_iter().flatten().collect())
}

/// Shown on a terminal only.
fn bar(length: u64, what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} users, {eta} left");
    let bar = ProgressBar::new(length).with_message(what);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

/// The ids of those people from `from` to `to` who are there.
async fn find_existing(
    mut caller: Caller,
    from: u64,
    to: u64,
) -> Result<Vec<Option<LocalityId>>, Failure> {
    let people = (from..to).map(Person);
    let answer: ChangedBatch =
        caller.batch(people.clone().map(|person| person.identifier(0)).collect(), None).await?;
    let items = people.zip(answer.results);
    let ids = items.map(|(person, item)| match item.outcome {
        Some(ChangedOutcome::Found(found)) => id(&mut caller, person, &found).map(Some),
        Some(ChangedOutcome::Error(status)) if status.code == Code::NotFound as i32 => Ok(None),
        Some(ChangedOutcome::Error(status)) => {
            Err(Status::new(status.code.into(), status.message).into())
        }
        None => Err(strange(person)),
    });

    ids.collect()
}

async fn create(mut caller: Caller, number: u64) -> Result<(u64, LocalityId), Failure> {
    let person = Person(number);
    let answer = caller.create(person).await?;
    Ok((number, id(&mut caller, person, &answer)?))
}

fn id(caller: &mut Caller, person: Person, answer: &Changed) -> Result<LocalityId, Failure> {
    let user = answer.user.as_ref().filter(|_| caller.is_whole(person, answer));
    user.and_then(|user| user.user_id.parse().ok()).ok_or_else(|| strange(person))
}

fn strange(person: Person) -> Failure {
    let name = person.name();
    Failure::Other(format!(
        "the user {name} is there, but not as it was loaded: measure on a store of its own"
    ))
}
