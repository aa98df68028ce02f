//! Loads the users of a measurement: finds the missing ones and registers them.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use locality_uuid::LocalityId;
use tonic::{Code, Status};

use super::caller::Caller;
use super::message::{UserBatch, UserOutcome, UserResponse};
use super::numbered_user::NumberedUser;
use crate::failure::Failure;

/// Users in one look-up, and concurrent look-ups.
const LOOKUP_BATCH: u64 = 100;
const CONCURRENT_LOOKUPS: usize = 16;
/// Concurrent registrations: many share one sync to the disk.
const CONCURRENT_CREATES: usize = 512;

/// Creates the missing ones of the users 0 to `users`, and returns the ids of all.
pub async fn ensure(
    users: u64,
    caller: &impl Fn(usize) -> Caller,
) -> Result<Vec<LocalityId>, Failure> {
    let progress = progress_bar(users, "looking");
    let lookups = (0..users.div_ceil(LOOKUP_BATCH)).map(|n| {
        let (from, to) = (n * LOOKUP_BATCH, users.min((n + 1) * LOOKUP_BATCH));
        find_existing(caller(n as usize), from, to)
    });
    let found: Vec<Vec<Option<LocalityId>>> = stream::iter(lookups)
        .buffered(CONCURRENT_LOOKUPS)
        .inspect_ok(|found| progress.inc(found.len() as u64))
        .try_collect()
        .await?;
    progress.finish_and_clear();

    let mut ids = found.concat();
    let missing: Vec<u64> = (0..users).filter(|n| ids[*n as usize].is_none()).collect();
    let progress = progress_bar(missing.len() as u64, "loading");
    let creates = missing.into_iter().map(|n| create(caller(n as usize), n));
    let mut pending = stream::iter(creates).buffer_unordered(CONCURRENT_CREATES);
    while let Some((n, id)) = pending.try_next().await? {
        ids[n as usize] = Some(id);
        progress.inc(1);
    }
    progress.finish_and_clear();

    Ok(ids.into_iter().flatten().collect())
}

/// A progress bar; hidden unless standard error is a terminal.
fn progress_bar(length: u64, what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} users, {eta} left");
    let bar = ProgressBar::new(length).with_message(what);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

/// The ids of the users `from..to`; none for a user that does not exist.
async fn find_existing(
    mut caller: Caller,
    from: u64,
    to: u64,
) -> Result<Vec<Option<LocalityId>>, Failure> {
    let people = (from..to).map(NumberedUser);
    let answer: UserBatch =
        caller.batch(people.clone().map(|person| person.identifier(0)).collect(), None).await?;
    let items = people.zip(answer.results);
    let ids = items.map(|(person, item)| match item.outcome {
        Some(UserOutcome::Found(found)) => id(&mut caller, person, &found).map(Some),
        Some(UserOutcome::Error(status)) if status.code == Code::NotFound as i32 => Ok(None),
        Some(UserOutcome::Error(status)) => {
            Err(Status::new(status.code.into(), status.message).into())
        }
        None => Err(unexpected(person)),
    });

    ids.collect()
}

async fn create(mut caller: Caller, number: u64) -> Result<(u64, LocalityId), Failure> {
    let person = NumberedUser(number);
    let answer = caller.create(person).await?;
    Ok((number, id(&mut caller, person, &answer)?))
}

fn id(
    caller: &mut Caller,
    person: NumberedUser,
    answer: &UserResponse,
) -> Result<LocalityId, Failure> {
    let user = answer.user.as_ref().filter(|_| caller.is_complete(person, answer));
    user.and_then(|user| user.user_id.parse().ok()).ok_or_else(|| unexpected(person))
}

fn unexpected(person: NumberedUser) -> Failure {
    let name = person.name();
    Failure::Other(format!(
        "the user {name} differs from the one that `polynym bench` loads: use another tenant"
    ))
}
